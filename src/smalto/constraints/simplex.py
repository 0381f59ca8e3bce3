"""The simplex: atoms that are distributions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smalto.checks import Array
from smalto.constraints.base import Constraint
from smalto.kernels.learning import block_sweep
from smalto.kernels.projecting import elastic_net_ball


@dataclass(frozen=True)
class Simplex(Constraint):
    """``{d : d ≥ 0, Σ d = 1}``: atoms that are distributions (topics, mixtures)."""

    def project(self, atom: Array) -> None:
        """``argmin_u ½‖u − atom‖²`` over the set, in place; true zeros."""
        work = np.empty(elastic_net_ball.work_size(len(atom)), atom.dtype)
        elastic_net_ball.project(atom, atom, 1.0, 0.0, 1.0, elastic_net_ball.RAW, work)

    def gauge(self, atom: Array) -> float:
        """``1 + |Σ atom − 1|``, or infinity where an entry is negative."""
        if np.any(atom < 0):
            return float("inf")
        return 1.0 + abs(float(np.sum(atom, dtype=np.float64)) - 1.0)

    def sweep_block(self, D: Array, R: Array, A: Array, first: int, smallest: float) -> float:
        """Update the atoms of a block."""
        atom = np.empty(D.shape[1], D.dtype)
        work = np.empty(elastic_net_ball.work_size(D.shape[1]), D.dtype)
        return float(block_sweep.sweep_simplex(D, R, A, first, smallest, atom, work))

    def divided(self, rest: Array) -> tuple[float, Simplex]:
        """A simplex of the sum that is left."""
        return max(0.0, 1.0 - float(rest.sum(dtype=np.float64))), self
