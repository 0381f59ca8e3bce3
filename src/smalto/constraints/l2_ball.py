"""The ℓ2 ball and its non-negative part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smalto.checks import Array
from smalto.constraints.base import Constraint
from smalto.kernels.learning import block_sweep
from smalto.kernels.projecting import l2_ball


@dataclass(frozen=True)
class L2Ball(Constraint):
    """The set ``{d : ‖d‖₂ ≤ 1}``, with d ≥ 0 if ``positive`` (Section 2 of the paper).

    Parameters
    ----------
    positive : bool, default False
        Whether atoms must be non-negative.

    See Also
    --------
    ElasticNetBall : Sparse atoms.
    smalto.projections.project_l2_ball : The projection, as a function.
    """

    positive: bool = False

    def project(self, atom: Array) -> None:
        """Replace ``atom`` by the nearest point of the set, in place."""
        l2_ball.project_l2(atom, bool(self.positive))

    def gauge(self, atom: Array) -> float:
        """Return ``‖atom‖₂``, or infinity if a negative entry is not allowed."""
        if self.positive and np.any(atom < 0):
            return float("inf")
        return float(np.linalg.norm(np.asarray(atom, np.float64)))

    def sweep_block(self, D: Array, R: Array, A: Array, first: int, smallest: float) -> float:
        """Update a block of atoms, in place; return the change of the objective."""
        block = block_sweep.make_block(D, R, A, first, smallest)
        return float(block_sweep.sweep_l2(block, bool(self.positive)))

    def divided(self, rest: Array) -> tuple[float, L2Ball]:
        """Return the radius that is left, and this ball."""
        return float(np.sqrt(max(0.0, 1.0 - float(np.square(rest, dtype=np.float64).sum())))), self
