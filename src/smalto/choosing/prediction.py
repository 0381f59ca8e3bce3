"""How well a fitted model predicts the held-out entries of a round."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy

from smalto.checks import Array, Rows, float_dtype
from smalto.choosing.held_out import Round, row_slices
from smalto.coders import encode
from smalto.coders.signals import Missing
from smalto.estimators.base import Factorization

ROWS_AT_ONCE = 4096


class Predicted(NamedTuple):
    """Sums over the held-out entries of a round."""

    squares: float  # of the differences from the predictions
    total: float  # of the squares of the entries themselves
    count: int  # of entries
    nonzeros: float  # mean number of nonzeros of the codes

    @property
    def error(self) -> float:
        """The mean squared error."""
        return self.squares / max(self.count, 1)


def predict_held_out(model: Factorization, X: Rows, held: Round, n_threads: int) -> Predicted:
    """Return how well a model predicts the entries that a round has held out of X."""
    sums = np.zeros(4)
    coded = 0
    for rows in row_slices(len(held.tested), ROWS_AT_ONCE):
        numbers = held.tested[rows]
        part = X[numbers]
        part = part.compute() if hasattr(part, "compute") else part
        signals = model._signals(part)
        if held.mask is not None:
            sums += _masked(model, signals, held.mask[numbers], n_threads)
            coded += len(numbers)
        else:
            for columns in held.columns:
                sums += _by_columns(model, signals, columns, n_threads)
                coded += len(numbers)
    return Predicted(float(sums[0]), float(sums[1]), int(sums[2]), float(sums[3]) / max(coded, 1))


def _by_columns(model: Factorization, X: Rows, hidden: Array, n_threads: int) -> Array:
    """Return the sums for features that are predicted from all others."""
    known = np.setdiff1d(np.arange(X.shape[1]), hidden)
    D = model.components_.astype(float_dtype(X.dtype), copy=False)
    shown = X[:, known] if scipy.sparse.issparse(X) else np.ascontiguousarray(X[:, known])
    missing: Missing = model.missing
    over = np.ascontiguousarray(D[:, known])
    codes = encode(shown, over, model.coder_, missing=missing, n_threads=n_threads)
    return _sums(_dense(X[:, hidden]), codes, D[:, hidden], None)


def _masked(model: Factorization, X: Rows, mask: Array, n_threads: int) -> Array:
    """Return the sums for entries that are predicted from the others of their sample."""
    D = model.components_.astype(float_dtype(X.dtype), copy=False)
    codes = encode(X, D, model.coder_, mask=mask, missing=model.missing, n_threads=n_threads)
    return _sums(_dense(X), codes, D, mask)


def _sums(X: Array, codes: Any, D: Array, where: Array | None) -> Array:
    """Return Σ (x − p)², Σ x², the number of entries and that of nonzeros; NaN is left out."""
    known = ~np.isnan(X) if where is None else where & ~np.isnan(X)
    wide = X.astype(np.float64, copy=False)
    left = (wide - codes @ D)[known]
    return np.array(
        [np.vdot(left, left), np.vdot(wide[known], wide[known]), known.sum(), codes.nnz]
    )


def _dense(X: Rows) -> Array:
    if scipy.sparse.issparse(X):
        return np.asarray(X.toarray())
    return np.asarray(X.filled(np.nan) if isinstance(X, np.ma.MaskedArray) else X)
