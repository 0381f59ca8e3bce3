"""Settings of a coder that may be one number, or one number per signal."""

from __future__ import annotations

import numbers
from typing import Any, TypeAlias

import numpy as np

from smalto.checks import Array, Rows, check_integer, check_number

Setting: TypeAlias = float | tuple[float, ...]


def as_setting(name: str, value: Any, *, low: float, integer: bool = False) -> Setting:
    """A number of at least ``low``, or several of them as a tuple (which compares and hashes)."""
    if isinstance(value, (numbers.Number, str, bytes)) or value is None:
        return _number(name, value, low, integer)
    values = np.asarray(value)
    if values.ndim == 0:
        return _number(name, values.item(), low, integer)
    if values.ndim != 1 or values.dtype.kind not in ("iu" if integer else "iuf"):
        kind = "an integer" if integer else "a number"
        message = (
            f"{name} must be {kind} or a one-dimensional array with one per signal, got "
            f"shape {values.shape} of {values.dtype}"
        )
        raise TypeError(message)
    bad = np.flatnonzero(~(values >= low) | ~np.isfinite(values))
    if bad.size:
        place = int(bad[0])
        message = f"{name} must be >= {low:g} and finite, got {values[place]} for signal {place}"
        raise ValueError(message)
    return tuple(values.tolist())


def _number(name: str, value: Any, low: float, integer: bool) -> float:
    if integer:
        return check_integer(name, value, low=int(low))
    number = check_number(name, value, low=low)
    if not np.isfinite(number):
        message = f"{name} must be finite, got {value}"
        raise ValueError(message)
    return number


def check_length(name: str, value: Setting | None, X: Rows) -> None:
    """Refuse as many numbers as there are no signals."""
    if isinstance(value, tuple) and len(value) != X.shape[0]:
        message = (
            f"{name} has {len(value)} numbers, one per signal, but there are {X.shape[0]} "
            "signals (to learn, give one number for all)"
        )
        raise ValueError(message)


def of_rows(name: str, value: Setting, rows: Array | None, count: int) -> Array:
    """The numbers of ``count`` rows, in float64."""
    if not isinstance(value, tuple):
        return np.full(count, value, np.float64)
    if rows is None:
        message = (
            f"{name} has one number per signal: that is for encode, where signals have numbers; "
            "to learn, give one number for all"
        )
        raise ValueError(message)
    return np.asarray(value, np.float64)[rows]
