"""The fused-lasso ball, for sparse, piecewise constant atoms."""

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
    check_weight,
    decided,
    density,
    find_gamma,
    first_gamma,
)
from smalto.kernels.learning import block_sweep
from smalto.kernels.projecting import fused_lasso_ball


@dataclass(frozen=True)
class FusedLassoBall(Constraint):
    """The set ``{d : ‖d‖₂² + gamma1 ‖d‖₁ + gamma2 Σ|d_i − d_(i−1)| ≤ 1}``.

    It makes atoms sparse and piecewise constant (Section 5.2 and Appendix B.2 of the paper).

    Parameters
    ----------
    gamma1 : float, optional
        The larger, the sparser the atoms.
    gamma2 : float
        The larger, the fewer the jumps within an atom.
    positive : bool, default False
        Whether atoms must be non-negative.
    density : float, optional
        The share of nonzero entries wanted in the dictionary, instead of ``gamma1``, which is
        then adjusted during learning.

    See Also
    --------
    ElasticNetBall : Sparse atoms without an order of the features.
    smalto.projections.project_fused_lasso_ball : The projection, as a function.
    """

    gamma1: float | None = None
    gamma2: float = 0.0
    positive: bool = False
    density: float | None = None

    def __post_init__(self) -> None:
        check_sparsity("gamma1", self.gamma1, self.density)
        check_weight("gamma2", self.gamma2)

    def project(self, atom: Array) -> None:
        """Replace ``atom`` by the nearest point of the set, in place; zeros are exact."""
        work = np.empty((fused_lasso_ball.WORK_ROWS, len(atom) + 1))
        gammas = decided(self.gamma1), float(self.gamma2)
        fused_lasso_ball.project_fused_lasso(atom, *gammas, bool(self.positive), work)

    def gauge(self, atom: Array) -> float:
        """Return the left side of the inequality; infinity if a negative entry is not allowed."""
        gammas = decided(self.gamma1), float(self.gamma2)
        return float(fused_lasso_ball.fused_lasso_gauge(atom, *gammas, bool(self.positive)))

    def sweep_block(self, D: Array, R: Array, A: Array, first: int, smallest: float) -> float:
        """Update a block of atoms, in place; return the change of the objective."""
        block = block_sweep.make_block(D, R, A, first, smallest)
        work = np.empty((fused_lasso_ball.WORK_ROWS, D.shape[1] + 1))
        settings = decided(self.gamma1), float(self.gamma2), bool(self.positive)
        return float(block_sweep.sweep_fused_lasso(block, *settings, work))

    def begun(self, D: Array) -> Self:
        """Return this set with a first gamma1, if a density is wanted."""
        if self.density is None:
            return self
        return replace(self, gamma1=first_gamma(self.density, D.shape[1]))

    @property
    def adapts(self) -> bool:
        """Whether gamma1 is adjusted during learning, to reach a wanted density."""
        return self.density is not None

    def adapted(self, update: Callable[[Self], Array], reach: float = math.inf) -> Self:
        """Return this set with the gamma1 for which ``update(set)`` has the wanted density."""
        if self.density is None:
            return self
        had = decided(self.gamma1)
        found = {had: self}

        def density_at(gamma1: float) -> float:
            tried = found.setdefault(gamma1, replace(self, gamma1=gamma1))
            return density(update(tried))

        return found[find_gamma(had, self.density, density_at, reach)]

    def loosened(self, factor: float) -> Self:
        """Return this set with gamma1 divided by ``factor``."""
        return replace(self, gamma1=decided(self.gamma1) / factor)

    def matching(self, other: Any) -> Self:
        """Return this set with an undecided gamma1 taken from ``other``, for comparison."""
        if self.density is not None and isinstance(other, type(self)):
            return replace(self, gamma1=other.gamma1)
        return self
