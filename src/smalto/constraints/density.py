"""The density of a dictionary, and the search for the gamma that gives a wanted density."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smalto.checks import Array, check_number


@dataclass(frozen=True)
class DensitySearch:
    """The state of the search for the gamma that gives a wanted density.

    Parameters
    ----------
    pace : float
        The largest change of log gamma in one move.
    side : int
        Whether the last dictionary was too dense (1) or too sparse (−1); 0 before the first move.
    """

    pace: float = 0.5
    side: int = 0

    def move(self, gamma: float, wanted: float, D: Array) -> tuple[float, DensitySearch]:
        """Return the next gamma, larger if D is too dense, and the updated search.

        The pace is halved whenever the density has crossed the wanted one, and grows otherwise:
        the density may change slowly or abruptly with gamma.
        """
        error = float(np.log(max(density(D), 1e-6) / wanted))
        side = int(np.sign(error))
        pace = 0.5 * self.pace if side * self.side < 0 else min(1.2 * self.pace, 1.0)
        return float(gamma * np.exp(side * min(pace, abs(error)))), DensitySearch(pace, side)


def density(D: Array) -> float:
    """Return the share of nonzero entries of D."""
    return float(np.count_nonzero(D)) / D.size


def check_sparsity(name: str, gamma: float | None, wanted: float | None) -> None:
    """Raise ValueError unless gamma or a density is given; check their ranges."""
    if gamma is None and wanted is None:
        message = f"{name} and density are both None: give one of them"
        raise ValueError(message)
    if gamma is not None:
        check_number(name, gamma, low=0)
    if wanted is not None:
        check_number("density", wanted, low=0, high=1, strict=True)


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
    return 1.0 / float(np.sqrt(wanted * n_features))
