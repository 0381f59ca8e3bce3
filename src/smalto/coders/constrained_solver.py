"""Sparse coding with a constraint in place of the penalty: an ℓ1 radius, or an error bound."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from smalto.checks import Array
from smalto.coders.base import Solver
from smalto.coders.chunks import Chunk
from smalto.coders.codes import Codes
from smalto.coders.kernel_output import GrowingCodes
from smalto.coders.masked_gram import from_own_units, in_own_units, lazy_gram, whole_gram
from smalto.coders.parameters import Setting, of_rows
from smalto.kernels import aligned
from smalto.kernels.coding.active_set import ActiveSet
from smalto.kernels.coding.arguments import SparseRows
from smalto.kernels.coding.constrained import NO_ROOM, UNDECIDED, constrained_rows
from smalto.kernels.coding.lars import (
    ROUNDING_32,
    ROUNDING_64,
    Bounds,
    lars_rows,
    make_path_scratch,
)
from smalto.kernels.coding.lasso import make_search


def constrained_solver(stop: int, name: str, setting: Setting, G: Array, positive: bool) -> Solver:
    """Return the solver of L1Ball (stop=AT_RADIUS) or ErrorBound (stop=AT_ERROR)."""
    exact = G.reshape(-1)
    # For float64 the search runs on a float32 copy, then the end is made exact.
    fast = exact if G.dtype == np.float32 else aligned.copy(exact, np.float32)

    @cache
    def double() -> Array:
        return exact.astype(np.float64, copy=False)

    def solve(chunk: Chunk) -> Codes:
        values = of_rows(name, setting, chunk.numbers, len(chunk.Q))
        bounds = Bounds(stop, values, chunk.norms, bool(positive))
        return _solve_rows(exact, fast, double, chunk, bounds)

    return solve


def _solve_rows(
    exact: Array, fast: Array, double: Callable[[], Array], chunk: Chunk, bounds: Bounds
) -> Codes:
    """Run the kernels over all rows; those that the first one leaves go to the homotopy."""
    own = chunk.own
    gram = lazy_gram(own, exact, fast)
    Q = _above_rounding(in_own_units(own, chunk.Q), exact, chunk)
    n, width = Q.shape
    out = GrowingCodes(n, Q.dtype, min(128, width), width, min(64, width))
    undecided = -1  # the row that is left to the homotopy

    def run(row: int, room: int) -> int:
        nonlocal undecided
        search = make_search(width, room, Q.dtype)
        while row < n:
            if row == undecided:
                G = double() if own is None else whole_gram(own, row).reshape(-1)
                end = follow_rows(G, Q, row, row + 1, bounds, search.active, out.rows)
                if end == row:
                    return row
                row = end
            else:
                why, row = constrained_rows(gram, Q, row, bounds, search, out.rows, chunk.rounds)
                if why == NO_ROOM:
                    return int(row)
                undecided = row if why == UNDECIDED else -1
        return row

    return from_own_units(own, out.fill(run))


def _above_rounding(Q: Array, G: Array, chunk: Chunk) -> Array:
    """Correlations, zero for a signal all of whose are rounding: there is nothing to explain it."""
    width = Q.shape[1]
    longest = float(np.sqrt(max(G[:: width + 1].max(initial=0.0), 0.0)))
    if chunk.own is not None and chunk.own.weights is not None:
        longest /= float(chunk.own.weights.min(initial=np.inf))
    floor = 16.0 * np.finfo(Q.dtype).eps * longest * np.sqrt(chunk.norms)
    lost = np.abs(Q).max(axis=1, initial=0.0) <= floor
    return np.where(lost[:, None], Q.dtype.type(0), Q) if lost.any() else Q


def follow_rows(
    G: Array, Q: Array, row: int, last: int, bounds: Bounds, active: ActiveSet, out: SparseRows
) -> int:
    """Code the rows from ``row`` to ``last`` by the homotopy; the first one not done."""
    rounding = ROUNDING_32 if Q.dtype == np.float32 else ROUNDING_64
    scratch = make_path_scratch(active, Q.shape[1])
    wide = Q.astype(np.float64, copy=False)
    return int(lars_rows(G, wide, row, last, bounds, rounding, scratch, out))
