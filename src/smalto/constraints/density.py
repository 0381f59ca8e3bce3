"""The density of a dictionary, and the search for the gamma that gives a wanted density."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from smalto.checks import Array, check_number

CLOSE = 0.05  # relative difference from the wanted density at which a search ends
MISSED = 0.1  # relative difference of which users are warned
_FEW_ENTRIES = 2  # of a dictionary so small that its density cannot be exact
_STEPS = [0.25 * (2**i - 1) for i in range(1, 8)]  # of log(gamma), to enclose what is looked for
_BISECTIONS = 25
_RANGE = 1e-100, 1e100  # in which gamma is looked for


def find_gamma(
    gamma: float, wanted: float, density_at: Callable[[float], float], reach: float = math.inf
) -> float:
    """Return the gamma at which the density is the wanted one, or as close as it comes.

    ``density_at`` is called with one gamma after another, from the given one on, and last with
    the one that is returned. Their logarithms differ by at most ``reach``. The density is
    expected to fall with gamma, but may do so slowly or in jumps: the search ends at a jump across
    the wanted density, and where longer and longer steps no longer change it.
    """
    errors: dict[float, float] = {}  # log(density / wanted), by gamma

    def error(gamma: float) -> float:
        errors[gamma] = math.log(max(density_at(gamma), 1e-12) / wanted)
        return errors[gamma]

    last = gamma
    if abs(error(gamma)) > CLOSE:
        last = _search(gamma, errors, error, reach)
    best = min(errors, key=lambda value: (abs(errors[value]), abs(math.log(value / gamma))))
    if best != last:
        density_at(best)
    return best


def _search(
    gamma: float, errors: dict[float, float], error: Callable[[float], float], reach: float
) -> float:
    """Enclose the wanted gamma by longer and longer steps, then bisect; return the last tried."""
    side, near, first = math.copysign(1.0, errors[gamma]), gamma, gamma
    for step in [step for step in _STEPS if step < reach] + [reach] * (reach < _STEPS[-1]):
        gamma = min(max(first * math.exp(side * step), _RANGE[0]), _RANGE[1])
        if abs(error(gamma)) <= CLOSE:
            return gamma
        if errors[gamma] * side < 0:
            break
        near = gamma
    else:
        return gamma
    far = gamma
    for _ in range(_BISECTIONS):
        gamma = math.sqrt(near * far)
        if abs(error(gamma)) <= CLOSE or abs(math.log(far / near)) < 1e-6:
            break
        if errors[gamma] * side < 0:
            far = gamma
        else:
            near = gamma
    return gamma


def density(D: Array) -> float:
    """Return the share of nonzero entries of D."""
    return float(np.count_nonzero(D)) / D.size


def missed(D: Array, wanted: float | None) -> str | None:
    """Return what to tell a user if D does not have the wanted density, or None if it has."""
    if wanted is None:
        return None
    if abs(density(D) - wanted) * D.size <= max(MISSED * wanted * D.size, _FEW_ENTRIES):
        return None
    return f"density={wanted:g} was not reached: the density of the atoms is {density(D):.3g}"


def check_sparsity(name: str, gamma: float | None, wanted: float | None) -> None:
    """Raise ValueError unless gamma or a density is given; check their ranges.

    With a density, gamma is where the search for a better one goes on, by factors.
    """
    if gamma is None and wanted is None:
        message = f"{name} and density are both None: give one of them"
        raise ValueError(message)
    if gamma is not None:
        check_weight(name, gamma)
    if wanted is not None:
        check_number("density", wanted, low=0, high=1, strict=True)
    if gamma is not None and wanted is not None:
        check_number(f"{name} (with a density)", gamma, low=_RANGE[0], high=_RANGE[1])


def check_weight(name: str, value: float) -> None:
    """Raise ValueError unless the weight of a norm is finite and not negative."""
    if check_number(name, value, low=0) == np.inf:
        message = f"{name} must be finite, got {value!r}"
        raise ValueError(message)


def decided(gamma: float | None) -> float:
    """Return gamma; raise ValueError if it has not been found yet."""
    if gamma is None:
        message = (
            "gamma is not decided yet: with density=, it is found while a dictionary is learned. "
            "Give gamma to use the constraint by itself"
        )
        raise ValueError(message)
    return float(gamma)


def first_gamma(wanted: float, n_features: int) -> float:
    """Return the gamma for which both norms of an atom of the wanted density count equally."""
    return 1.0 / float(np.sqrt(float(wanted) * n_features))
