"""Checks of coders' parameters: single numbers, one number per signal, one weight per atom."""

from __future__ import annotations

import numbers
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from smalto.checks import Array, Rows, check_finite_number, check_integer
from smalto.warn import warn

# One number for all signals, or one per signal. Coders keep several numbers as a tuple.
PerSignal: TypeAlias = float | npt.ArrayLike

_SMALLEST, _LARGEST = 3e-308, 1e308  # where `scaled_number` stays


def as_per_signal(name: str, value: Any, *, integer: bool = False) -> float | tuple[float, ...]:
    """Return a number, or several as a tuple (hashable); raise unless all are finite and >= 0."""
    if isinstance(value, (numbers.Number, str, bytes)) or value is None:
        return _number(name, value, integer)
    values = np.asarray(value)
    if values.ndim == 0:
        return _number(name, values.item(), integer)
    if values.ndim != 1 or values.dtype.kind not in ("iu" if integer else "iuf"):
        kind = "an integer" if integer else "a number"
        message = (
            f"{name} must be {kind} or a one-dimensional array with one per signal, "
            f"got shape {values.shape} of {values.dtype}"
        )
        raise TypeError(message)
    bad = np.flatnonzero(~(values >= 0) | ~np.isfinite(values))
    if bad.size:
        place = int(bad[0])
        message = f"{name} must be >= 0 and finite, got {values[place]} for signal {place}"
        raise ValueError(message)
    return tuple(values.tolist())


def _number(name: str, value: Any, integer: bool) -> float:
    return check_integer(name, value, low=0) if integer else check_finite_number(name, value)


def check_length(name: str, value: PerSignal | None, X: Rows) -> None:
    """Raise ValueError unless there is one value for all signals, or one per signal."""
    if isinstance(value, tuple) and len(value) != X.shape[0]:
        message = (
            f"{name} has {len(value)} numbers, one per signal, but there are {X.shape[0]} "
            "signals (to learn, give one number for all)"
        )
        raise ValueError(message)


def of_rows(name: str, value: PerSignal, rows: Array | None, count: int) -> Array:
    """Return the values for ``count`` rows, in float64; ``rows`` are their numbers in X."""
    if not isinstance(value, tuple):
        return np.full(count, value, np.float64)
    if rows is None:
        message = (
            f"{name} has one number per signal, which only encode can use: "
            "to learn, give one number for all"
        )
        raise ValueError(message)
    return np.asarray(value, np.float64)[rows]


def limit_nonzeros(asked: int, D: Array) -> int:
    """Return at most as many nonzeros as D has atoms or features; warn if ``asked`` is more.

    For `Coder.resolve`: the warning points to the caller of `encode`.
    """
    most = int(min(D.shape))
    if asked > most:
        message = (
            f"max_nonzeros={asked} is more than the {D.shape[0]} atoms of {D.shape[1]} features "
            f"allow: {most} is used"
        )
        warn(message)
    return min(asked, most)


def as_weights(
    name: str,
    weights: npt.ArrayLike,
    of: str = "atom",
    *,
    finite: bool = False,
    zero: bool = False,
) -> tuple[float, ...]:
    """Return weights, one per atom or group (``of``), as a tuple.

    Raise unless they are > 0, or zero if that is allowed.
    """
    values = np.asarray(weights)
    if values.ndim != 1 or values.dtype.kind not in "fiu":
        message = f"{name} must be numbers, one per {of}, got {weights!r}"
        raise TypeError(message)
    good = ((values > 0) | ((values == 0) & zero)) & (np.isfinite(values) | (not finite))
    if not good.all():
        place = int(np.argmin(good))
        bound = (">= 0" if zero else "> 0") + (" and finite" if finite else "")
        message = f"{name} must be {bound}, got {values[place]} for {of} {place}"
        if values[place] == 0:
            message += ": to leave it practically unpenalized, give 1e-6"
        raise ValueError(message)
    return tuple(float(value) for value in values)


def check_count(name: str, values: tuple[float, ...], expected: int, of: str = "atom") -> None:
    """Raise ValueError unless there is one value per atom or group (``of``)."""
    if len(values) != expected:
        message = f"{name} has {len(values)} numbers, expected {expected}, one per {of}"
        raise ValueError(message)


def scaled_number(value: float, *factors: float) -> float:
    """Return ``value`` times the factors; neither zero nor infinite if ``value`` is neither."""
    value = float(value)
    if value == 0.0:
        return 0.0
    exponent = np.log2(value) + sum(np.log2(factor) for factor in factors)
    if not np.log2(_SMALLEST) < exponent < np.log2(_LARGEST):
        return _SMALLEST if exponent < 0 else _LARGEST
    mantissa, power = np.frexp(value)
    for factor in factors:
        more, by = np.frexp(factor)
        mantissa, power = mantissa * more, power + by
    return float(np.ldexp(mantissa, power))


def scaled_numbers(values: Any, *factors: float) -> Any:
    """Return one number, or a tuple with one per signal, scaled by `scaled_number`."""
    if isinstance(values, tuple):
        return tuple(scaled_number(value, *factors) for value in values)
    return scaled_number(values, *factors)
