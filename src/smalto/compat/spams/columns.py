"""SPAMS's convention, signals and atoms as columns, and smalto's, both as rows."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import scipy

from smalto.checks import (
    Array,
    Rows,
    as_marks,
    as_rows,
    check_finite,
    check_integer,
    check_number,
    float_dtype,
)

EVERY_CORE = -1  # SPAMS's numThreads


def signals(name: str, X: Any, *, finite: bool = True) -> Rows:
    """Return the columns of X as rows; a float array in Fortran order is not copied."""
    if not scipy.sparse.issparse(X):
        X = np.asarray(X)
    if X.ndim != 2:
        hint = "; for a single one x give x[:, None]" if X.ndim == 1 else ""
        message = f"{name} must be two-dimensional (columns are signals), got shape {X.shape}{hint}"
        raise ValueError(message)
    if 0 in X.shape:
        message = f"{name} is empty: its shape is {X.shape} (features, signals)"
        raise ValueError(message)
    if finite and not scipy.sparse.issparse(X) and X.dtype.kind == "f":
        check_finite(name, X)
    rows = as_rows(name, X.T)
    return rows.astype(float_dtype(rows.dtype), copy=False)


def atoms(name: str, D: Any, n_features: int) -> Rows:
    """Return the atoms, columns of D, as rows; raise ValueError unless they fit the signals."""
    rows = signals(name, D)
    if rows.shape[1] != n_features:
        message = (
            f"{name} has {rows.shape[1]} rows (features), expected {n_features} as in the data"
        )
        raise ValueError(message)
    return rows


def masked(X: Any, D: Any, B: Any) -> tuple[Array, Rows, Array]:
    """Return signals, with zeros for unknown entries, atoms, and which entries are known."""
    x = dense(signals("X", X, finite=False))
    d = atoms("D", D, x.shape[1])
    known = as_marks(B)
    check_shape("B", known, x.T.shape, "as X")
    if known.dtype != bool:
        message = f"B must hold bool, True where an entry is known, got {known.dtype}"
        raise TypeError(message)
    x = np.where(known.T, x, x.dtype.type(0))
    check_finite("X (its known entries)", x.T)
    return x, d, np.ascontiguousarray(known.T)


def dense(rows: Rows) -> Array:
    """Return rows as an ndarray."""
    return np.asarray(rows.toarray() if scipy.sparse.issparse(rows) else rows)


def check_shape(name: str, values: Any, shape: tuple[int, ...], meaning: str) -> None:
    """Raise ValueError unless ``values`` has this shape; ``meaning`` says what its axes are."""
    if np.shape(values) != shape:
        message = f"{name} must have shape {shape} ({meaning}), got {np.shape(values)}"
        raise ValueError(message)


def as_csc(codes: Any) -> scipy.sparse.csc_matrix:
    """Return codes (n, k) of smalto as a csc_matrix (k, n) that shares their arrays."""
    return scipy.sparse.csc_matrix(
        (codes.data, codes.indices, codes.indptr), shape=codes.shape[::-1]
    )


def columns(rows: Array, dtype: Any = None) -> Array:
    """Return rows as the columns of an array in Fortran order."""
    return np.asfortranarray(rows.T, dtype=dtype)


def group_labels(list_groups: Any, n: int) -> Array:
    """Return the group number of each signal, from the first signal of each group."""
    starts = np.asarray(list_groups)
    if starts.ndim != 1 or starts.dtype.kind not in "iu" or not starts.size:
        message = (
            "list_groups must be a vector with the number of the first signal of each group, "
            f"got shape {starts.shape} of {starts.dtype}"
        )
        raise TypeError(message)
    if starts[0] != 0 or starts[-1] >= n or np.any(np.diff(starts) <= 0):
        message = (
            f"list_groups must start with 0 and increase to at most {n - 1} (there are {n} "
            f"signals), got {starts.tolist() if starts.size < 20 else 'other numbers'}"
        )
        raise ValueError(message)
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=n))


def n_threads(numThreads: int) -> int | None:
    """Return smalto's number of threads: None, for every core, if it is -1."""
    if numThreads == EVERY_CORE:
        return None
    number = check_integer("numThreads", numThreads, low=-1)
    if number == 0:
        message = "numThreads must be -1 (every core) or at least 1, got 0"
        raise ValueError(message)
    return number


def required(name: str, value: Any) -> float:
    """Return a parameter that has no default, a finite number >= 0."""
    if value is None:
        message = f"{name} must be given"
        raise ValueError(message)
    number = check_number(name, value, low=0)
    if not np.isfinite(number):
        message = f"{name} must be finite, got {value}"
        raise ValueError(message)
    return number


def refuse(what: str, way_out: str) -> NoReturn:
    """Raise NotImplementedError that names the way out."""
    message = f"{what} is not available in smalto.compat.spams: {way_out}"
    raise NotImplementedError(message)
