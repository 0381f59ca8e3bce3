"""The elastic-net ball, for sparse atoms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from smalto.checks import Array
from smalto.constraints.base import Constraint
from smalto.constraints.density import (
    check_sparsity,
    decided,
    density,
    find_gamma,
    first_gamma,
)
from smalto.kernels.learning import block_sweep
from smalto.kernels.projecting import elastic_net_ball


@dataclass(frozen=True)
class ElasticNetBall(Constraint):
    """The set ``{d : ‖d‖₂² + gamma ‖d‖₁ ≤ 1}``, with d ≥ 0 if ``positive``, for sparse atoms.

    It is the set of the paper's sparse PCA (Sections 5.2 and 5.4). In the notation of its
    Appendix B.1: ``‖u‖₁ + (γ′/2)‖u‖₂² ≤ τ`` with γ′ = 2/gamma and τ = 1/gamma.

    Parameters
    ----------
    gamma : float, optional
        The larger, the sparser the atoms; 0 gives the ℓ2 ball.
    positive : bool, default False
        Whether atoms must be non-negative.
    density : float, optional
        The share of nonzero entries wanted in the dictionary, instead of ``gamma``, which is
        then adjusted during learning.

    See Also
    --------
    FusedLassoBall : Sparse atoms that are piecewise constant.
    smalto.projections.project_elastic_net_ball : The projection, as a function.
    """

    gamma: float | None = None
    positive: bool = False
    density: float | None = None

    def __post_init__(self) -> None:
        check_sparsity("gamma", self.gamma, self.density)

    def project(self, atom: Array) -> None:
        """Replace ``atom`` by the nearest point of the set, in place; zeros are exact."""
        work = np.empty(elastic_net_ball.work_size(len(atom)), atom.dtype)
        elastic_net_ball.project_elastic_net(atom, decided(self.gamma), bool(self.positive), work)

    def gauge(self, atom: Array) -> float:
        """Return ``‖atom‖₂² + gamma ‖atom‖₁``, or infinity if a negative entry is not allowed."""
        gauge = elastic_net_ball.elastic_net_gauge
        return float(gauge(atom, decided(self.gamma), bool(self.positive)))

    def sweep_block(self, D: Array, R: Array, A: Array, first: int, smallest: float) -> float:
        """Update a block of atoms, in place; return the change of the objective."""
        block = block_sweep.make_block(D, R, A, first, smallest)
        work = np.empty(elastic_net_ball.work_size(D.shape[1]), D.dtype)
        gamma, positive = decided(self.gamma), bool(self.positive)
        return float(block_sweep.sweep_elastic_net(block, gamma, positive, work))

    def divided(self, rest: Array) -> tuple[float, ElasticNetBall]:
        """Return r and the ball with gamma / r: r times it is ``‖d‖₂² + gamma ‖d‖₁ ≤ r²``."""
        gamma = decided(self.gamma)
        taken = float(np.square(rest, dtype=np.float64).sum()) + gamma * float(
            np.abs(rest).sum(dtype=np.float64)
        )
        room = float(np.sqrt(max(0.0, 1.0 - taken)))
        return room, ElasticNetBall(gamma / max(room, 1e-300), bool(self.positive))

    def begun(self, D: Array) -> Self:
        """Return this set with a first gamma, if a density is wanted."""
        if self.density is None:
            return self
        return replace(self, gamma=first_gamma(self.density, D.shape[1]))

    @property
    def adapts(self) -> bool:
        """Whether gamma is adjusted during learning, to reach a wanted density."""
        return self.density is not None

    def adapted(self, update: Callable[[Self], Array], reach: float = math.inf) -> Self:
        """Return this set with the gamma for which ``update(set)`` has the wanted density."""
        if self.density is None:
            return self
        had = decided(self.gamma)
        found = {had: self}

        def density_at(gamma: float) -> float:
            tried = found.setdefault(gamma, replace(self, gamma=gamma))
            return density(update(tried))

        return found[find_gamma(had, self.density, density_at, reach)]

    def loosened(self, factor: float) -> Self:
        """Return this set with gamma divided by ``factor``."""
        return replace(self, gamma=decided(self.gamma) / factor)

    def matching(self, other: Any) -> Self:
        """Return this set with an undecided gamma taken from ``other``, for comparison."""
        if self.density is not None and isinstance(other, type(self)):
            return replace(self, gamma=other.gamma)
        return self
