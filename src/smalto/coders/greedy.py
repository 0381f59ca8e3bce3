"""The greedy pursuit that OMP and L0 share."""

from __future__ import annotations

import numpy as np

from smalto.checks import Array
from smalto.coders.chunks import Chunk, check_squares
from smalto.coders.codes import Codes
from smalto.coders.kernel_output import GrowingCodes
from smalto.coders.masked_gram import lazy_gram, with_fast_rows
from smalto.kernels import aligned
from smalto.kernels.coding.omp import Targets, make_pursuit, omp_rows
from smalto.kernels.coding.omp_choice import Rules


class GreedySolver:
    """The kernel over a dictionary with Gram matrix G."""

    def __init__(self, G: Array, positive: bool, look_ahead: bool) -> None:
        self.G = G.reshape(-1)
        self.fast = self.G if G.dtype == np.float32 else aligned.copy(self.G, np.float32)
        self.rules = Rules(positive, look_ahead)
        self.norms = np.ascontiguousarray(np.diagonal(G))

    def solve(self, chunk: Chunk, limits: Array, eps: Array, gain: float) -> Codes:
        """Run the kernel over all rows."""
        check_squares(chunk)
        gram = with_fast_rows(lazy_gram(chunk.own, self.G, self.fast), self.fast)
        Q = chunk.Q
        n, width = Q.shape
        targets = Targets(chunk.norms, limits, eps, gain)
        room = min(32, max(min(int(limits.max(initial=0)), width), 1))
        out = GrowingCodes(n, Q.dtype, room, width, room)

        def run(row: int, room: int) -> int:
            pursuit = make_pursuit(self.norms, room)
            rules, rounds = self.rules, chunk.rounds
            return int(omp_rows(gram, Q, row, targets, rules, pursuit, out.rows, rounds))

        return out.fill(run)
