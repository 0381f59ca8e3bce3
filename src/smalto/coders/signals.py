"""Checked input of coding: signals, missing entries, penalty weights and groups."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy

from smalto.checks import (
    Array,
    Rows,
    are_ordinary,
    as_marks,
    as_rows,
    check_finite,
    check_not_masked,
    check_scale,
    float_dtype,
)
from smalto.coders.base import Coder
from smalto.coders.chunks import groups_of_rows

Missing = Literal["nan"] | None


@dataclass(frozen=True)
class Signals:
    """Signals to be coded, one per row of X; missing entries of X are zero."""

    X: Rows
    missing: Array | None = None  # (n, m) bool
    penalty_weights: Array | None = None  # (n or 1, k), >= 0
    groups: Array | None = None  # rows groups[g] to groups[g + 1] are a group (int64)

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def part(self, rows: slice) -> Signals:
        """Return the signals of consecutive rows, which must not split groups."""
        groups = self.groups
        if groups is not None:
            first, last = np.searchsorted(groups, (rows.start, rows.stop))
            groups = groups[first : last + 1] - rows.start
        weights = self.penalty_weights
        if weights is not None and len(weights) > 1:
            weights = weights[rows]
        missing = None if self.missing is None else self.missing[rows]
        return Signals(_consecutive(self.X, rows), missing, weights, groups)

    def take(self, rows: Array) -> Signals:
        """Return the signals of these rows (increasing); whole groups if there are groups."""
        groups, weights = self.groups, self.penalty_weights
        if groups is not None:
            groups = groups_of_rows(groups, rows)
        if weights is not None and len(weights) > 1:
            weights = weights[rows]
        missing = None if self.missing is None else self.missing[rows]
        return Signals(self.X[rows], missing, weights, groups)


def _consecutive(X: Rows, rows: slice) -> Rows:
    """Return consecutive rows, which share the memory of X: of a sparse array SciPy would copy them."""
    if not scipy.sparse.issparse(X):
        return X[rows]
    begin, end = X.indptr[rows.start], X.indptr[rows.stop]
    some = scipy.sparse.csr_array((rows.stop - rows.start, X.shape[1]), dtype=X.dtype)
    # Its constructor would check all indices once more, and copy parts of larger arrays.
    some.data, some.indices = X.data[begin:end], X.indices[begin:end]
    some.indptr = X.indptr[rows.start : rows.stop + 1] - begin
    some.has_canonical_format = X.has_canonical_format
    return some


def as_signals(name: str, X: Any, mask: Any = None, missing: Missing = None) -> Signals:
    """Return checked signals; raise if X has NaN or infinity outside the missing entries.

    The mask is True where an entry is missing, as in NumPy's masked arrays and in scikit-image;
    the value there is ignored. With ``missing="nan"``, NaN also means missing.
    """
    check_missing(missing)
    X, mask = without_mask(X, mask)
    X = as_rows(name, X)
    holes = None if mask is None else as_mask(mask, X)
    if missing == "nan" and not scipy.sparse.issparse(X):
        nan = np.isnan(X)
        holes = nan if holes is None else holes | nan
    if holes is None or not holes.any():
        if not are_ordinary(X, float_dtype(X.dtype)):
            check_finite(name, X, can_miss=True)
            check_scale(name, X, float_dtype(X.dtype))
        return Signals(X)
    X = np.where(holes, X.dtype.type(0), X)
    check_finite(name, X)
    check_scale(name, X, float_dtype(X.dtype))
    return Signals(X, holes)


def without_mask(X: Any, mask: Any) -> tuple[Any, Any]:
    """Return the data of a masked array, and its mask joined with ``mask``; others as they are."""
    if not isinstance(X, np.ma.MaskedArray):
        return X, mask
    own = np.ma.getmaskarray(X)
    return X.data, own if mask is None else own | as_mask(mask, X.data)


def check_missing(missing: Any) -> None:
    """Raise ValueError unless ``missing`` is None or "nan"."""
    if missing is not None and not (isinstance(missing, str) and missing == "nan"):
        what = repr(missing) if np.ndim(missing) == 0 else "an array: a mask is given as mask="
        message = f'missing must be None (NaN is an error) or "nan", got {what}'
        raise ValueError(message)


def as_mask(mask: Any, X: Rows) -> Array:
    """Return the mask as booleans (n, m); raise unless it has the shape of dense signals."""
    if scipy.sparse.issparse(X):
        message = "a mask needs dense signals: the zeros of a sparse array are known entries"
        raise TypeError(message)
    mask = as_marks(mask)
    if mask.shape != X.shape:
        message = f"mask must have the shape of the signals, {X.shape}, got {mask.shape}"
        raise ValueError(message)
    if mask.dtype != np.bool_:
        if mask.dtype.kind not in "iuf" or not np.isin(mask, (0, 1)).all():
            message = f"mask must hold booleans, True where an entry is missing, got {mask.dtype}"
            raise TypeError(message)
        mask = mask.astype(np.bool_)
    return clean_bools(mask)


def clean_bools(mask: Array) -> Array:
    """Return booleans stored as 0 or 1; Pillow makes some that are stored as 255."""
    return np.asarray(np.ascontiguousarray(mask).view(np.uint8) != 0)


def as_groups(groups: Any, n: int) -> tuple[Array, Array | None]:
    """Return pointers to consecutive groups, and the order of rows for them (None: as given).

    ``groups`` has one label per row; rows with the same label form a group.
    """
    check_not_masked("groups", groups)
    labels = np.asarray(groups)
    if labels.shape != (n,):
        message = f"groups must have one label for each of the {n} rows, got shape {labels.shape}"
        raise ValueError(message)
    _check_labels(labels)
    if n and labels.dtype.kind in "iuf" and (labels[1:] >= labels[:-1]).all():
        ends = np.flatnonzero(labels[1:] != labels[:-1]) + 1
        return np.concatenate([[0], ends, [n]]).astype(np.int64), None
    try:
        _, numbers, counts = np.unique(labels, return_inverse=True, return_counts=True)
    except TypeError as error:
        kinds = ", ".join(sorted({type(label).__name__ for label in labels.tolist()}))
        message = (
            f"groups must hold labels of one kind that can be sorted, got {kinds}: give numbers or "
            "text for all rows"
        )
        raise TypeError(message) from error
    order = np.argsort(numbers, kind="stable")
    pointers = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    in_order = bool((order == np.arange(n)).all())
    return pointers, None if in_order else order


def _check_labels(labels: Array) -> None:
    """Raise ValueError if the label of a row is missing or infinite."""
    if labels.dtype.kind in "fc":
        bad = ~np.isfinite(labels)
    elif labels.dtype.kind in "mM":
        bad = np.isnat(labels)
    elif labels.dtype == object:
        bad = np.array([_is_missing(label) for label in labels], np.bool_)
    else:
        return
    if bad.any():
        row = int(np.argmax(bad))
        message = (
            f"groups must not contain NaN or infinity, or other missing labels, got {labels[row]} "
            f"for row {row}: give every row a label"
        )
        raise ValueError(message)


def _is_missing(label: Any) -> bool:
    """Return whether a label is None, NaN, NaT or the NA of pandas, which is not even unequal."""
    try:
        return label is None or bool(label != label)  # noqa: PLR0124 (NaN differs from itself)
    except (TypeError, ValueError):
        return True


def blocks(n: int, at_once: int, groups: Array | None = None) -> list[slice]:
    """Return slices of about ``at_once`` consecutive rows that cover all rows; groups stay whole."""
    cuts = list(range(0, n, at_once))
    if groups is not None:
        cuts = sorted({int(groups[np.searchsorted(groups, cut)]) for cut in cuts})
    return [slice(a, b) for a, b in itertools.pairwise([*cuts, n]) if a < b]


def in_groups(signals: Signals, groups: Any, coder: Coder) -> tuple[Signals, Array | None]:
    """Return the signals ordered by group, and the order of their rows (None: as given).

    Without ``groups``, a coder that takes groups codes all rows together.
    """
    if "groups" not in coder.takes:
        return signals, None
    n = len(signals)
    pointers, order = as_groups(np.zeros(n) if groups is None else groups, n)
    if order is None:
        return replace(signals, groups=pointers), None
    missing, weights = signals.missing, signals.penalty_weights
    return (
        Signals(
            signals.X[order],
            None if missing is None else missing[order],
            weights if weights is None or len(weights) == 1 else weights[order],
            pointers,
        ),
        order,
    )


def with_penalty_weights(signals: Signals, weights: Any, n_atoms: int) -> Signals:
    """Return the signals with checked penalty weights (k,) or (n, k)."""
    if weights is None:
        return signals
    check_not_masked("penalty_weights", weights)
    values = np.asarray(weights)
    shapes = [(n_atoms,), (len(signals), n_atoms)]
    if values.shape not in shapes or values.dtype.kind not in "fiu":
        message = (
            f"penalty_weights must be numbers of shape {shapes[0]} or {shapes[1]}, "
            f"got {values.shape} of {values.dtype}"
        )
        raise ValueError(message)
    values = np.atleast_2d(values).astype(np.float64)
    bad = np.argwhere(~(values >= 0))
    if len(bad):
        place = tuple(int(i) for i in bad[0])
        message = f"penalty_weights must be >= 0, got {values[place]} at {place}"
        raise ValueError(message)
    return replace(signals, penalty_weights=values)
