"""The density of a dictionary, and the search for the set that gives a wanted one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smalto.checks import Array, check_number


@dataclass(frozen=True)
class DensitySearch:
    """Where the search for a wanted density stands.

    Parameters
    ----------
    pace : float
        How far log gamma may move at once.
    side : int
        What the last dictionary was: 1 too dense, −1 too sparse, 0 unknown.
    """

    pace: float = 0.5
    side: int = 0

    def move(self, gamma: float, wanted: float, D: Array) -> tuple[float, DensitySearch]:
        """Return a larger gamma where D is too dense, a smaller one where it is too sparse.

        The density may answer to gamma gently or all but jump: the pace is halved whenever the
        wanted density has been overshot, and picks up while it has not.
        """
        error = float(np.log(max(density(D), 1e-6) / wanted))
        side = int(np.sign(error))
        pace = 0.5 * self.pace if side * self.side < 0 else min(1.2 * self.pace, 1.0)
        return float(gamma * np.exp(side * min(pace, abs(error)))), DensitySearch(pace, side)


def density(D: Array) -> float:
    """Return the share of nonzero entries."""
    return float(np.count_nonzero(D)) / D.size


def check_sparsity(name: str, gamma: float | None, wanted: float | None) -> None:
    """Raise unless gamma or a density is given, both in range."""
    if gamma is None and wanted is None:
        message = f"give {name}, or the density wanted of the atoms"
        raise ValueError(message)
    if gamma is not None:
        check_number(name, gamma, low=0)
    if wanted is not None:
        check_number("density", wanted, low=0, high=1, strict=True)


def decided(gamma: float | None) -> float:
    """Return gamma; raise where it is still to be found."""
    if gamma is None:
        message = "gamma is not decided yet: a density is aimed at while a dictionary is learned"
        raise ValueError(message)
    return float(gamma)


def first_gamma(wanted: float, n_features: int) -> float:
    """Return the gamma at which both terms weigh the same in a unit atom of the wanted density."""
    return 1.0 / float(np.sqrt(wanted * n_features))
