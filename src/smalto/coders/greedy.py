"""The greedy solver that OMP and L0 share."""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.coders.chunks import Chunk, check_squares
from smalto.coders.codes import Codes
from smalto.coders.kernel_output import GrowingCodes, of_thread
from smalto.coders.masked_gram import float32_copy, lazy_gram, with_fast_rows
from smalto.coders.out_of_reach import too_small_for_gram
from smalto.kernels.coding.omp import Targets, make_pursuit, omp_rows
from smalto.kernels.coding.omp_choice import Rules
from smalto.kernels.coding.omp_fit import Correlations, Given


class GreedySolver:
    """Greedy pursuit over a dictionary.

    Parameters
    ----------
    G : array (width, width)
        Gram matrix of the dictionary.
    positive : bool
        Require α ≥ 0.
    look_ahead : bool
        Which atom is added, see `OMP`.
    """

    def __init__(self, G: Array, positive: bool, look_ahead: bool) -> None:
        self.G = G.reshape(-1)
        self.fast = float32_copy(self.G)
        self.rules = Rules(positive, look_ahead)
        self.norms = np.ascontiguousarray(np.diagonal(G))

    def solve(self, chunk: Chunk, limits: Array, eps: Array, gain: float) -> Codes:
        """Return the codes of a chunk.

        Each signal has a limit on the number of nonzeros and on the squared error (``eps``, infinite
        and negative if there is none: rounding does not tell when an error is zero); an atom is added
        only if it reduces the squared error by more than ``gain``.
        """
        check_squares(chunk)
        gram = with_fast_rows(lazy_gram(chunk.own, self.G, self.fast), self.fast)
        Q, coarse = chunk.Q, chunk.coarse
        n, width = Q.shape
        if coarse is not None:
            fast, given = coarse.Q, Given(coarse.signals.reshape(-1), coarse.atoms.reshape(-1))
        else:
            with np.errstate(over="ignore", under="ignore"):
                fast, given = Q.astype(np.float32, copy=False), None
        correlations = Correlations(Q, fast, given)
        eps = np.where(chunk.norms > 0.0, eps, 0.0)  # zero signals end at once
        targets = Targets(chunk.norms, limits, eps, gain)
        room = min(32, max(min(int(limits.max(initial=0)), width), 1))
        out = GrowingCodes(n, Q.dtype, room, width, room)

        def run(row: int, room: int) -> int:
            pursuit = of_thread(make_pursuit, width, room, Q.dtype)
            pursuit.norms[:] = pursuit.fast_norms[:] = self.norms
            pursuit.active.work.fill(0.0)
            rules, rounds = self.rules, chunk.rounds
            return int(omp_rows(gram, correlations, row, targets, rules, pursuit, out.rows, rounds))

        return out.fill(run)


def mark_unsure(
    chunk: Chunk, codes: Codes, limits: Any, eps: Array, norms: Array, sizes: Any = 1
) -> None:
    """Mark signals whose pursuit has ended at an error so small that the Gram matrix cannot tell it.

    For pursuits with two limits: what has met neither may still go on. ``eps`` and ``norms`` have a
    number for each group of so many signals.
    """
    small = np.repeat(too_small_for_gram(eps, norms, chunk.Q.dtype), sizes)
    unsure = small & (np.diff(codes.indptr) < limits) & (chunk.rounds > 0)
    np.negative(chunk.rounds, out=chunk.rounds, where=unsure)
