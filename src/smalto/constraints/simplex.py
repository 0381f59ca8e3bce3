"""The simplex, for atoms that are probability distributions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smalto.checks import Array
from smalto.constraints.base import Constraint
from smalto.kernels.learning import block_sweep
from smalto.kernels.projecting import elastic_net_ball


@dataclass(frozen=True)
class Simplex(Constraint):
    """The set ``{d : d ≥ 0, Σ d = 1}``: atoms are distributions (topics, mixtures).

    See Also
    --------
    L2Ball : With ``positive=True``, non-negative atoms of norm at most 1.
    smalto.projections.project_simplex : The projection, as a function.
    """

    def project(self, atom: Array) -> None:
        """Replace ``atom`` by the nearest point of the set, in place; zeros are exact."""
        work = np.empty(elastic_net_ball.work_size(len(atom)), atom.dtype)
        elastic_net_ball.project(atom, atom, 1.0, 0.0, 1.0, elastic_net_ball.RAW, work)

    def gauge(self, atom: Array) -> float:
        """Return ``1 + |Σ atom − 1|``, or infinity if an entry is negative."""
        if np.any(atom < 0):
            return float("inf")
        return 1.0 + abs(float(np.sum(atom, dtype=np.float64)) - 1.0)

    def sweep_block(self, D: Array, R: Array, A: Array, first: int, smallest: float) -> float:
        """Update a block of atoms, in place; return the change of the objective."""
        block = block_sweep.make_block(D, R, A, first, smallest)
        work = np.empty(elastic_net_ball.work_size(D.shape[1]), D.dtype)
        return float(block_sweep.sweep_simplex(block, work))

    def divided(self, rest: Array) -> tuple[float, Simplex]:
        """Return the sum that is left, and this simplex."""
        return max(0.0, 1.0 - float(rest.sum(dtype=np.float64))), self
