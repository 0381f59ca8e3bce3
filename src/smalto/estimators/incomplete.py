"""Missing entries in `NMF`: which are known, and the defaults for such data."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, Rows, as_rows
from smalto.coders.signals import Missing, as_mask

_PRIOR = 5.0  # known entries that the mean of all features counts for in that of each feature


def missing_entries(X: Any, mask: Any, missing: Missing) -> Array | None:
    """Return where entries are missing, as booleans (n, m), or None if none is."""
    masked = isinstance(X, np.ma.MaskedArray) or mask is not None
    if scipy.sparse.issparse(X) or not (masked or missing == "nan"):
        return None
    own = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None
    table = as_rows("X", X.data if own is not None else X)
    holes = np.zeros(table.shape, np.bool_) if own is None else own
    if mask is not None:
        holes = holes | as_mask(mask, table)
    if missing == "nan":
        holes = holes | np.isnan(table)
    return holes if holes.any() else None


def default_ridge(holes: Array | None) -> float:
    """Return the weight of a squared penalty on codes, from the share of missing entries."""
    if holes is None:
        return 0.0
    known = 1.0 - float(holes.mean())
    return 0.1 * known * (1.0 - known) ** 2


def filled_samples(X: Any, holes: Array, count: int, seed: int) -> Array:
    """Return random samples, scaled to norm 1, with missing entries filled by the feature means.

    The mean of a feature with few known entries is close to that of all of them.
    """
    table = np.where(holes, 0.0, as_rows("X", X.data if np.ma.isMaskedArray(X) else X))
    known = len(holes) - holes.sum(axis=0)
    overall = table.sum() / max(int(known.sum()), 1)
    means = (table.sum(axis=0) + _PRIOR * overall) / (known + _PRIOR)
    rows = np.random.default_rng(seed).permutation(len(table))[:count]
    chosen = np.where(holes[rows], means, table[rows])
    norms = np.linalg.norm(chosen, axis=1, keepdims=True)
    return np.asarray(chosen / np.where(norms > 0, norms, 1.0))


def is_complete(X: Any) -> bool:
    """Return whether X is a dense table of numbers without NaN."""
    if scipy.sparse.issparse(X):
        return False
    table = np.asarray(X)
    if table.dtype.kind in "iub":
        return True
    return table.dtype.kind == "f" and table.size > 0 and not np.isnan(np.min(table))


def check_nonnegative(X: Rows, mask: Any, name: str | None = None) -> None:
    """Raise ValueError if known entries are negative, with their number and the smallest."""
    data = X.data if scipy.sparse.issparse(X) else X
    known: Any = True
    if isinstance(X, np.ma.MaskedArray):
        data, known = X.data, ~np.ma.getmaskarray(X)
    if mask is not None:
        known = known & ~as_mask(mask, X)
    smallest = np.fmin.reduce(data, axis=None, initial=0.0, where=known)  # ignores NaN
    if not smallest < 0:
        return
    count = int(np.count_nonzero((data < 0) & known))
    where = f"{name} of NMF" if name else "data passed to NMF"
    message = f"Negative values in {where}: {count} of them, the smallest is {smallest:g}"
    raise ValueError(message)
