"""Checks of user input, with the messages of the errors they raise."""

from __future__ import annotations

import math
import numbers
import os
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from smalto.data_frames import check_frame, frame_to_array, is_frame

Array: TypeAlias = npt.NDArray[Any]
Rows: TypeAlias = Any  # checked rows of data: an ndarray, or a SciPy CSR array or matrix
Matrix: TypeAlias = "npt.ArrayLike | scipy.sparse.sparray | scipy.sparse.spmatrix"  # user input


def float_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the dtype of computation: float32 stays, everything else becomes float64."""
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def check_number(
    name: str, value: Any, *, low: float = -np.inf, high: float = np.inf, strict: bool = False
) -> float:
    """Return ``value`` as a float; raise unless low <= value <= high (low < value if strict)."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        message = f"{name} must be a number, got {_shown(value)}"
        raise TypeError(message)
    number = float(value)
    if not low <= number <= high or (strict and number == low):
        relation = ">" if strict else ">="
        interval = f"in {'(' if strict else '['}{low:g}, {high:g}]"
        bound = f"{relation} {low:g}" if high == np.inf else interval
        message = f"{name} must be {bound}, got {value!r}"
        raise ValueError(message)
    return number


def check_finite_number(name: str, value: Any, *, low: float = 0.0, strict: bool = False) -> float:
    """Return a number as a float; raise unless it is finite and >= low (> low if strict)."""
    number = check_number(name, value, low=low, strict=strict)
    if not np.isfinite(number):
        message = f"{name} must be finite, got {value}"
        raise ValueError(message)
    return number


def _shown(value: Any) -> str:
    """Return a value for a message, on one line; of an array only what kind it is."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def check_integer(name: str, value: Any, *, low: int = 1, high: float = np.inf) -> int:
    """Return ``value`` as an int; raise unless it is an integer from ``low`` to ``high``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        message = f"{name} must be an integer, got {_shown(value)}"
        raise TypeError(message)
    number = int(value)
    if not low <= number <= high:
        bound = f">= {low}" if number < low else f"<= {high:g}"
        message = f"{name} must be {bound}, got {number}"
        raise ValueError(message)
    return number


def check_kind(name: str, value: Any, kind: Any, wanted: str) -> None:
    """Raise TypeError unless ``value`` is of this type; ``wanted`` describes it in the message."""
    if not isinstance(value, kind):
        message = f"{name} must be {wanted}, got {_shown(value)}"
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


def is_built_in(part: Any) -> bool:
    """Return whether the class of an object is one of the library's, not a user's own."""
    return type(part).__module__.partition(".")[0] == "smalto"


class named:
    """Add the name of a user's own class and method to an exception that comes from it."""

    def __init__(self, part: Any, method: str) -> None:
        self.part, self.method = part, method

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not is_built_in(self.part):
            error.add_note(f"It came from {type(self.part).__name__}.{self.method}.")


# What to do if NaN means a missing entry; the command line has an option instead.
SAY_MISSING = 'say missing="nan" (encode, learn, DictionaryLearning, NMF)'


def check_finite(
    name: str, values: Rows, first_row: int = 0, *, whole: bool = True, can_miss: bool = False
) -> None:
    """Raise ValueError if there are NaNs or infinities; say how many, and where the first is.

    ``whole`` tells whether these are all values of that name, not those of a part of its rows, and
    ``can_miss`` whether NaN could be declared to mean a missing entry.
    """
    data = values.data if scipy.sparse.issparse(values) else values
    if sum_is_finite(data):
        return
    bad = ~np.isfinite(data)
    count = int(np.count_nonzero(bad))
    if count == 0:  # the sum overflowed, but every value is finite
        return
    if scipy.sparse.issparse(values):
        position = int(np.flatnonzero(bad)[0])
        row = int(np.searchsorted(values.indptr, position, side="right")) - 1
        where = (row + first_row, int(values.indices[position]))
    else:
        index = [int(i) for i in np.argwhere(bad)[0]]
        index[0] += first_row
        where = tuple(index)  # type: ignore[assignment]
    kind = "NaN" if np.isnan(data[bad].flat[0]) else "infinity"
    some = ("" if whole else "at least ") + (
        "1 such value" if count == 1 else f"{count} such values"
    )
    message = f"{name} contains NaN or infinity: {some}, the first ({kind}) at {where}"
    if can_miss and kind == "NaN":
        dense = "give a dense array and " if scipy.sparse.issparse(values) else ""
        message += f". If NaN means that an entry is missing, {dense}{SAY_MISSING}"
    raise ValueError(message)


def sum_is_finite(data: Array) -> bool:
    """Return whether a sum over all numbers is finite, so that they are: one pass, no temporary."""
    if data.flags.c_contiguous and data.dtype.char in "fd":
        return math.isfinite(np.vdot(data, data))  # at the speed of memory
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.sum(data)))


def as_rows(name: str, X: Any) -> Rows:
    """Return ``X`` as a 2-D array of real numbers, dense or CSR; copy only to convert it."""
    check_not_path(name, X)
    if is_frame(X):
        X = frame_to_array(name, X)
    elif not scipy.sparse.issparse(X) and not isinstance(X, np.memmap):
        check_not_masked(name, X)
        X = np.asarray(X)  # not a np.matrix either, whose rows and sums are matrices again
    if X.ndim != 2 and X.dtype.kind in "US":
        message = f"{name} must hold real numbers, got text such as {str(X.flat[0])!r}"
        raise TypeError(message)
    if X.ndim != 2:
        hint = "; for a single signal x give x[None, :]" if X.ndim == 1 and X.size else ""
        message = f"{name} must be two-dimensional (rows are samples), got shape {X.shape}{hint}"
        raise ValueError(message)
    if scipy.sparse.issparse(X):
        X = as_csr(name, X)
    if X.dtype == object:
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            message = f"{name} must hold real numbers, got {_first_text(X)}"
            raise TypeError(message) from None
    check_real(name, X)
    if X.shape[1] == 0:
        message = f"{name} has no features: its shape is {X.shape}"
        raise ValueError(message)
    return X


def check_real(name: str, values: Any) -> None:
    """Raise TypeError unless an array, dense or sparse, holds real numbers."""
    if values.dtype.kind not in "fiub":
        message = f"{name} must hold real numbers, got dtype {values.dtype}"
        raise TypeError(message)


def _first_text(X: Array) -> str:
    """Return the first entry that is not a number, and its place, for a message."""
    for place, value in np.ndenumerate(X):
        try:
            float(value)
        except (TypeError, ValueError, OverflowError):
            return f"{_shown(value)} at {tuple(int(i) for i in place)}"
    return f"objects such as {X.flat[0]!r}"


def check_not_masked(name: str, X: Any) -> None:
    """Raise TypeError for a masked array of which something is masked: NumPy would drop the mask."""
    if np.ma.is_masked(X):
        message = (
            f"{name} is a masked array, whose mask would be lost here: where missing entries are "
            f'allowed, give {name}.filled(numpy.nan) and say missing="nan"'
        )
        raise TypeError(message)


def as_marks(mask: Any) -> Array:
    """Return a mask as an array; of a sparse one, what is not stored is False."""
    if not scipy.sparse.issparse(mask):
        return np.asarray(mask)
    return np.asarray(as_csr("mask", mask).toarray(), mask.dtype)


def check_not_path(name: str, X: Any) -> None:
    """Raise TypeError for a path: most functions take arrays only."""
    if isinstance(X, str | os.PathLike):
        message = (
            f"{name} must be an array in memory, got the path {str(X)!r}: load it first "
            "(numpy.load, smalto.sources.as_source); learn and fit take paths"
        )
        raise TypeError(message)


def as_table(name: str, X: Any) -> Any:
    """Return what scikit-learn may check next: X, but a sparse one as CSR; refuse odd frames."""
    check_not_path(name, X)
    check_frame(name, X)
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":  # which scikit-learn does not refuse
        check_real(name, X)
    return as_csr(name, X) if scipy.sparse.issparse(X) else X


def csr_rows(name: str, X: Any) -> Any:
    """Return what `as_rows` does as a CSR array, also if it is dense."""
    return scipy.sparse.csr_array(as_rows(name, X))


def as_csr(name: str, X: Any) -> Any:
    """Return a sparse array as canonical CSR; raise ValueError if its indices are invalid.

    Nothing is copied if X is that already. SciPy checks indices when an array is created, but not
    if they are changed afterwards; compiled code would then read outside of arrays.
    """
    if X.ndim != 2:
        message = f"{name} must be two-dimensional, got shape {X.shape}"
        raise ValueError(message)
    try:
        # SciPy adds repeated entries up in their dtype, where integers may wrap around.
        if X.format != "csr" and X.dtype.kind in "iub":
            X = X.astype(np.float64)
        checked = _rebuilt(X) if X.format in ("csr", "csc", "bsr", "coo") else X
        csr = checked if checked.format == "csr" else _rebuilt(checked.tocsr())
        return csr if csr.has_canonical_format else _canonical(csr)
    except (ValueError, IndexError, TypeError) as error:
        message = f"{name} is not a valid sparse array of format {X.format!r}: {error}"
        raise ValueError(message) from error


def _rebuilt(X: Any) -> Any:
    """Return a sparse array of the same data, checked, without what SciPy remembers of X."""
    if X.format == "coo":
        return scipy.sparse.coo_array((X.data, (X.row, X.col)), shape=X.shape)
    kind = {
        "csr": scipy.sparse.csr_array,
        "csc": scipy.sparse.csc_array,
        "bsr": scipy.sparse.bsr_array,
    }[X.format]
    new = kind((X.data, X.indices, X.indptr), shape=X.shape)
    new.check_format(full_check=True)
    if np.diff(new.indptr).min(initial=0) < 0:  # which SciPy does not check if the last is 0
        message = "indptr must be a non-decreasing sequence"
        raise ValueError(message)
    return new


def as_floats(X: Rows, dtype: np.dtype[Any]) -> Rows:
    """Return rows in this dtype, C-contiguous or canonical CSR; copy only if needed."""
    if scipy.sparse.issparse(X):
        X = X if X.has_canonical_format else _canonical(X)
        return X if X.dtype == dtype else _in_dtype(X, dtype)
    return np.ascontiguousarray(X, dtype=dtype)


def _in_dtype(X: Any, dtype: np.dtype[Any]) -> Any:
    """Return a canonical CSR array in another dtype, which shares its indices."""
    new = scipy.sparse.csr_array((X.data.astype(dtype), X.indices, X.indptr), shape=X.shape)
    new.has_canonical_format = True
    return new


def _canonical(X: Any) -> Any:
    """Return a copy with sorted indices, and without repeated entries; their sums do not wrap around."""
    X = X.astype(np.float64) if X.dtype.kind in "iub" else X.copy()
    X.sum_duplicates()
    return X


def as_dictionary(D: Any, n_features: int, dtype: np.dtype[Any], name: str = "D") -> Array:
    """Return a dictionary (k, m) as a C-contiguous array; raise unless it fits the data."""
    D = as_rows(name, D)
    if scipy.sparse.issparse(D):
        D = D.toarray()
    if D.shape[0] == 0:
        message = f"{name} has no atoms: its shape is {D.shape}"
        raise ValueError(message)
    if D.shape[1] != n_features:
        message = f"{name} has {D.shape[1]} features (rows are atoms), expected {n_features}"
        if D.shape[0] == n_features:
            message += f": if its columns are the atoms, give {name}.T"
        raise ValueError(message)
    check_finite(name, D)
    check_scale(name, D, dtype)
    return np.ascontiguousarray(D, dtype=dtype)


# Squares of larger numbers overflow, of smaller ones vanish; by the size of a number in bytes.
SCALES = {4: 2.0**62, 8: 2.0**500}


def are_ordinary(values: Rows, dtype: np.dtype[Any]) -> bool:
    """Return whether numbers are finite and pass `check_scale`, by one fast pass; False if unsure."""
    if scipy.sparse.issparse(values) or values.dtype != dtype or not values.size:
        return False
    if not values.flags.c_contiguous:
        return False
    flat, limit = values.reshape(-1), SCALES[dtype.itemsize]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        square = float(np.dot(flat, flat))
    return bool(values.size / limit <= square <= limit)


def check_scale(name: str, values: Rows, dtype: np.dtype[Any], *, may_vanish: bool = False) -> None:
    """Raise ValueError if values are too large or too small to be coded in this dtype.

    NaN and infinity are not looked at: other checks are for them. Values that ``may_vanish`` may be
    too small.
    """
    data = values.data if scipy.sparse.issparse(values) else values
    if not data.size or data.dtype.kind in "iub":
        return
    top = max(np.fmax.reduce(data, axis=None), -np.fmin.reduce(data, axis=None))
    limit = SCALES[dtype.itemsize]
    size = float(top)  # infinite if it is beyond float64
    least = 0.0 if may_vanish else 1.0 / limit
    if least <= size <= limit or top == 0 or not np.isfinite(top):
        return
    kind, way = ("more", "down") if size > limit else ("less", "up")
    bound = limit if size > limit else 1.0 / limit
    hint = ", or use float64" if dtype == np.float32 and 1e-150 < size < 1e150 else ""
    message = (
        f"the values of {name} reach {top:.3g}, {kind} than the {bound:.0e} that {dtype} can work "
        f"with: scale them {way}{hint}"
    )
    raise ValueError(message)
