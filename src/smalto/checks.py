"""Checks of user input, with the messages of the errors they raise."""

from __future__ import annotations

import numbers
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

Array: TypeAlias = npt.NDArray[Any]
Rows: TypeAlias = Any  # checked rows of data: an ndarray, or a SciPy CSR array or matrix
Matrix: TypeAlias = npt.ArrayLike | sparse.sparray | sparse.spmatrix  # user input


def float_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the dtype of computation: float32 stays, everything else becomes float64."""
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def check_number(
    name: str, value: Any, *, low: float = -np.inf, high: float = np.inf, strict: bool = False
) -> float:
    """Return ``value`` as a float; raise unless low <= value <= high (low < value if strict)."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        message = f"{name} must be a number, got {value!r}"
        raise TypeError(message)
    number = float(value)
    if not low <= number <= high or (strict and number == low):
        relation = ">" if strict else ">="
        interval = f"in {'(' if strict else '['}{low:g}, {high:g}]"
        bound = f"{relation} {low:g}" if high == np.inf else interval
        message = f"{name} must be {bound}, got {value!r}"
        raise ValueError(message)
    return number


def check_integer(name: str, value: Any, *, low: int = 1) -> int:
    """Return ``value`` as an int; raise unless it is an integer of at least ``low``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        message = f"{name} must be an integer, got {value!r}"
        raise TypeError(message)
    if value < low:
        message = f"{name} must be >= {low}, got {value}"
        raise ValueError(message)
    return int(value)


def check_kind(name: str, value: Any, kind: Any, wanted: str) -> None:
    """Raise TypeError unless ``value`` is of this type; ``wanted`` describes it in the message."""
    if not isinstance(value, kind):
        message = f"{name} must be {wanted}, got {value!r}"
        raise TypeError(message)


def check_role(name: str, value: Any, role: type, example: str) -> None:
    """Raise TypeError unless ``value`` is a coder, constraint or learner; hint at missing ()."""
    if isinstance(value, role):
        return
    hint = f" (a {name} of your own must subclass smalto.{name}s.{role.__name__})"
    if isinstance(value, type):
        hint = f"; did you mean {value.__name__}(...)?"
    message = f"{name} must be a {name} such as {example}, got {value!r}{hint}"
    raise TypeError(message)


def check_finite(name: str, values: Rows, first_row: int = 0) -> None:
    """Raise ValueError if there are NaNs or infinities; say how many, and where the first is."""
    data = values.data if sparse.issparse(values) else values
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(data)):  # usually enough: one pass, no temporary
            return
    bad = ~np.isfinite(data)
    count = int(np.count_nonzero(bad))
    if count == 0:  # the sum overflowed, but every value is finite
        return
    if sparse.issparse(values):
        position = int(np.flatnonzero(bad)[0])
        row = int(np.searchsorted(values.indptr, position, side="right")) - 1
        where = (row + first_row, int(values.indices[position]))
    else:
        index = [int(i) for i in np.argwhere(bad)[0]]
        index[0] += first_row
        where = tuple(index)  # type: ignore[assignment]
    kind = "NaN" if np.isnan(data[bad].flat[0]) else "infinity"
    message = f"{name} contains NaN or infinity: {count} such values, the first ({kind}) at {where}"
    raise ValueError(message)


def as_rows(name: str, X: Any) -> Rows:
    """Return ``X`` as a 2-D array of real numbers, dense or CSR; copy only to convert it."""
    if sparse.issparse(X):
        X = X if X.format == "csr" else X.tocsr()
    elif not isinstance(X, np.ndarray):
        X = np.asarray(X)
    if X.ndim != 2:
        hint = "; for a single signal x give x[None, :]" if X.ndim == 1 else ""
        message = f"{name} must be two-dimensional (rows are samples), got shape {X.shape}{hint}"
        raise ValueError(message)
    if X.dtype == object:
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError):
            message = f"{name} must hold real numbers, got objects such as {X.flat[0]!r}"
            raise TypeError(message) from None
    if X.dtype.kind not in "fiub":
        message = f"{name} must hold real numbers, got dtype {X.dtype}"
        raise TypeError(message)
    if X.shape[1] == 0:
        message = f"{name} has no features: its shape is {X.shape}"
        raise ValueError(message)
    return X


def as_floats(X: Rows, dtype: np.dtype[Any]) -> Rows:
    """Return rows in this dtype, C-contiguous or canonical CSR; copy only if needed."""
    if sparse.issparse(X):
        X = X if X.dtype == dtype else X.astype(dtype)
        return X if X.has_canonical_format else _canonical(X)
    return np.ascontiguousarray(X, dtype=dtype)


def _canonical(X: Any) -> Any:
    X = X.copy()
    X.sum_duplicates()
    return X


def as_dictionary(D: Any, n_features: int, dtype: np.dtype[Any], name: str = "D") -> Array:
    """Return a dictionary (k, m) as a C-contiguous array; raise unless it fits the data."""
    D = as_rows(name, D)
    if sparse.issparse(D):
        D = D.toarray()
    if D.shape[0] == 0:
        message = f"{name} has no atoms: its shape is {D.shape}"
        raise ValueError(message)
    if D.shape[1] != n_features:
        message = f"{name} has {D.shape[1]} features (rows are atoms), expected {n_features}"
        raise ValueError(message)
    check_finite(name, D)
    check_scale(name, D, dtype)
    return np.ascontiguousarray(D, dtype=dtype)


# Squares of larger numbers overflow, of smaller ones vanish; by the size of a number in bytes.
_SCALES = {4: 2.0**62, 8: 2.0**500}


def check_scale(name: str, values: Rows, dtype: np.dtype[Any]) -> None:
    """Raise ValueError if finite values are too large or too small to be coded in this dtype."""
    data = values.data if sparse.issparse(values) else values
    if not data.size or data.dtype.kind in "iub":
        return
    top = max(data.max(), -data.min())
    limit = _SCALES[dtype.itemsize]
    size = float(top)  # infinite if it is beyond float64
    if 1.0 / limit <= size <= limit or top == 0:
        return
    kind, way = ("overflow", "down") if size > limit else ("underflow", "up")
    hint = ", or use float64" if dtype == np.float32 and 1e-150 < size < 1e150 else ""
    message = f"the values of {name} reach {top:.3g}, whose square {kind}s {dtype}: scale them {way}{hint}"
    raise ValueError(message)
