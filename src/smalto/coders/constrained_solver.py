"""The solver of `L1Ball` and `ErrorBound`: coding with a constraint instead of a penalty."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from smalto.checks import Array
from smalto.coders.base import Solver
from smalto.coders.chunks import Chunk
from smalto.coders.codes import Codes
from smalto.coders.kernel_output import GrowingCodes, search_of_thread
from smalto.coders.masked_gram import (
    float32_copy,
    from_own_units,
    in_own_units,
    lazy_gram,
    whole_gram,
    with_fast_rows,
)
from smalto.coders.parameters import PerSignal, of_rows
from smalto.kernels.coding.active_set import ActiveSet
from smalto.kernels.coding.arguments import SparseRows
from smalto.kernels.coding.constrained import NO_ROOM, UNDECIDED, constrained_rows
from smalto.kernels.coding.lars import (
    AT_RADIUS,
    ROUNDING_32,
    ROUNDING_64,
    Bounds,
    lars_rows,
    make_path_scratch,
)

OUTSIDE = {4: 1e-6, 8: 1e-12}  # relative excess of an ℓ1 norm that is only rounding


def constrained_solver(stop: int, name: str, bound: PerSignal, G: Array, positive: bool) -> Solver:
    """Return a function that codes chunks of signals until their codes meet a bound.

    Parameters
    ----------
    stop : int
        AT_RADIUS or AT_ERROR: whether the ℓ1 norm or the squared error is bounded.
    name : str
        Name of the parameter, for error messages.
    bound : float or tuple of float
        The bound; one for all signals, or one each.
    G : array (width, width)
        Gram matrix of the dictionary.
    positive : bool
        Require α ≥ 0.
    """
    exact = G.reshape(-1)
    fast = float32_copy(exact)

    @cache
    def double() -> Array:
        return exact.astype(np.float64, copy=False)

    def solve(chunk: Chunk) -> Codes:
        values = of_rows(name, bound, chunk.numbers, len(chunk.Q))
        bounds = Bounds(stop, values, chunk.norms, bool(positive))
        return _solve_rows(exact, fast, double, chunk, bounds)

    return solve


def _solve_rows(
    exact: Array, fast: Array, double: Callable[[], Array], chunk: Chunk, bounds: Bounds
) -> Codes:
    """Run the active-set kernel on all rows, and the homotopy on those it leaves undecided."""
    own = chunk.own
    gram = with_fast_rows(lazy_gram(own, exact, fast), fast)
    Q = _above_rounding(in_own_units(own, chunk.Q), exact, chunk)
    n, width = Q.shape
    out = GrowingCodes(n, Q.dtype, min(128, width), width, min(64, width))
    undecided = -1  # the row for the homotopy

    def run(row: int, room: int) -> int:
        nonlocal undecided
        search = search_of_thread(width, room, Q.dtype)
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

    codes = out.fill(run)
    if bounds.stop == AT_RADIUS:
        chunk.tally().stuck[0] += _shrink_to_radius(codes, bounds.values)
    return from_own_units(own, codes)


def _shrink_to_radius(codes: Codes, radii: Array) -> int:
    """Scale codes that rounding left outside the ball, in place; return how many there were."""
    sizes = np.abs(codes.values, dtype=np.float64)
    rows = np.repeat(np.arange(len(radii)), np.diff(codes.indptr))
    lengths = np.bincount(rows, sizes, minlength=len(radii))
    with np.errstate(invalid="ignore"):
        outside = lengths > radii * (1.0 + OUTSIDE[codes.values.dtype.itemsize])
    count = int(np.count_nonzero(outside))
    if count:
        factors = np.where(outside, radii / np.where(outside, lengths, 1.0), 1.0)
        codes.values[:] = codes.values * factors[rows]
    return count


def _above_rounding(Q: Array, G: Array, chunk: Chunk) -> Array:
    """Return the correlations Q, set to zero for signals where they are only rounding errors."""
    sizes = np.sqrt(np.maximum(G[:: Q.shape[1] + 1], 0.0), dtype=np.float64)
    if chunk.own is not None and chunk.own.weights is not None:
        longest = (sizes / chunk.own.weights).max(axis=1, initial=0.0)
    else:
        longest = sizes.max(initial=0.0)
    floor = 16.0 * np.finfo(Q.dtype).eps * longest * np.sqrt(chunk.norms)
    lost = np.abs(Q).max(axis=1, initial=0.0) <= floor
    return np.where(lost[:, None], Q.dtype.type(0), Q) if lost.any() else Q


def follow_rows(
    G: Array, Q: Array, row: int, last: int, bounds: Bounds, active: ActiveSet, out: SparseRows
) -> int:
    """Code rows ``row`` to ``last`` by the homotopy; return the first row not coded."""
    rounding = ROUNDING_32 if Q.dtype == np.float32 else ROUNDING_64
    scratch = make_path_scratch(active, Q.shape[1])
    wide = Q.astype(np.float64, copy=False)
    return int(lars_rows(G, wide, row, last, bounds, rounding, scratch, out))
