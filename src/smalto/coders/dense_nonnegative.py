"""Exact nonnegative codes with few zeros.

The active set of a dense code contains almost all atoms, and its factorization costs k³. Over few atoms
that are not much alike, sweeps of coordinate descent reach the optimum sooner, up to rounding. Codes
that are far from it are left to the dual, which takes the sweeps as a guess. The dual
of ``min_α ½ αGαᵀ − qαᵀ, α ≥ 0`` is a problem of the same kind: with H = G⁻¹ and u = qH it is
``min_μ ½ μHμᵀ + uμᵀ, μ ≥ 0``; then α = u + μH, and μ is nonzero only where α is zero. So the sweeps tell
roughly which entries are zero, and the active-set kernel of the lasso, applied to the dual, makes the
solution exact. Where the guess has many zeros, or rounding errors
are too large, the kernel is applied to the problem itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import scipy

from smalto.checks import Array
from smalto.coders.chunks import Chunk
from smalto.coders.codes import Codes
from smalto.kernels.coding.nonnegative import (
    compress,
    count_positive,
    make_panel,
    make_slots,
    settle,
)

FEWEST, MOST = 12, 144  # sweeps, at most, over many atoms and over few ...
WORTH = 60_000  # ... multiplications of these for a code: the dual takes as long
SETTLED = 8.0  # slope of a code that is optimal, in the units of `ROUNDING`
WIDEST = 256  # atoms: above this, sweeps over all of them cost more than they save
REFINEMENTS = 2  # of the dual solution, to correct rounding errors of the inverse
ROUNDING = 256.0  # allowed error, in units in the last place of the largest correlation
_ALIKE = 4.0  # ratio of squared norms up to which atoms are about equally long
_CONDITION = 1e-10  # reciprocal condition number below which the dual is not used ...
_FAR_FROM_SINGULAR = 1e-4  # ... and above which rounding to float32 changes a cost by 1e-6 of ‖x‖²

# The active-set method for α ≥ 0 and λ = 0: takes a Gram matrix and a chunk, returns codes.
ActiveSet: TypeAlias = Callable[[Array, Chunk], Codes]


def inverse(G: Array) -> Array | None:
    """Return ``G⁻¹`` in float64 over the nonzero atoms, zero elsewhere; None if singular."""
    used, scale, part = _unit_atoms(G)
    if not used.size or len(G) > WIDEST:
        return None
    values, vectors = scipy.linalg.eigh(part, check_finite=False)
    limit = _CONDITION if G.dtype == np.float64 else 1e-7
    if not values[0] > limit * values[-1]:
        return None
    vectors *= scale[:, None]
    H = np.zeros(G.shape)
    H[np.ix_(used, used)] = (vectors / values) @ vectors.T
    return H


def suit_float32(G: Array) -> bool:
    """Return whether few atoms, about equally long, are far from depending on each other.

    The slope of a code that counts as optimal is that of the longest atom: a short one would hardly
    be looked at.
    """
    squares = G.diagonal()[G.diagonal() > 0]
    if len(G) > WIDEST or not squares.size or squares.max() > _ALIKE * squares.min():
        return False
    values = scipy.linalg.eigvalsh(_unit_atoms(G)[2], check_finite=False)
    return bool(values[0] > _FAR_FROM_SINGULAR * values[-1])


def _unit_atoms(G: Array) -> tuple[Array, Array, Array]:
    """Return which atoms are not zero, their reciprocal norms, and the Gram matrix without these."""
    used = np.flatnonzero(G.diagonal() > 0)
    part = G[np.ix_(used, used)].astype(np.float64)
    scale = 1.0 / np.sqrt(part.diagonal())
    return used, scale, part * np.outer(scale, scale)


def solve_dense(G: Array, H: Array, chunk: Chunk, active_set: ActiveSet) -> Codes:
    """Return ``argmin_α ½ αGαᵀ − qαᵀ`` over α ≥ 0 for the signals of a chunk; H is ``G⁻¹``."""
    Q, start = chunk.Q, chunk.start
    n, width = Q.shape
    used, eps = np.flatnonzero(G.diagonal() > 0), float(np.finfo(Q.dtype).eps)
    codes = np.zeros((n, width), G.dtype) if start is None else start.as_csr(width).toarray()
    most = min(max(WORTH // len(used) ** 2, FEWEST), MOST)
    part = np.ascontiguousarray(G[np.ix_(used, used)])
    scratch = make_panel(len(used), G.dtype), make_slots()
    settle(part, Q, used, SETTLED * eps, most, codes, *scratch, chunk.rounds)
    rest = np.flatnonzero(chunk.rounds < 0)
    np.abs(chunk.rounds, out=chunk.rounds)
    is_dense = 2 * np.count_nonzero(codes[rest], axis=1) > len(used)
    few, many = rest[~is_dense], rest[is_dense]
    if many.size:
        allowed = ROUNDING * eps * np.abs(Q[many]).max(axis=1, initial=0.0).astype(np.float64)
        codes[many], failed = _solve_dual(G, H, chunk.take(many), codes[many], allowed, active_set)
        few = np.sort(np.concatenate([few, many[failed]]))
    if few.size:
        some = chunk.take(few)._replace(start=compressed(codes[few]))
        codes[few] = active_set(G, some).as_csr(width).toarray()
    return compressed(codes)


def _solve_dual(
    G: Array, H: Array, chunk: Chunk, codes: Array, allowed: Array, active_set: ActiveSet
) -> tuple[Array, Array]:
    """Return codes computed by the dual, and which of them rounding kept from the optimum."""
    used = G.diagonal() > 0
    wide = chunk.Q.astype(np.float64)
    wide[:, ~used] = 0.0
    u = wide @ H
    G = G.astype(np.float64, copy=False)
    mu = np.where((codes <= 0) & used, codes @ G - wide, 0.0)
    for _ in range(REFINEMENTS + 1):
        # What rounding keeps from the optimum here is found below: it is not counted.
        dual = chunk._replace(Q=-u, start=compressed(mu), stuck=None)
        mu = active_set(H, dual).as_csr(len(H)).toarray()
        exact = u + mu @ H
        exact[(mu > 0) | (exact < 0)] = 0.0
        residual = wide - exact @ G
        missed = np.where(exact > 0, np.abs(residual), residual).max(axis=1, initial=0.0)
        if not np.any(missed > allowed):
            break
        # Add the error of the inverse to u; the remaining error is of second order.
        u += (residual + mu) @ H
    return exact, missed > allowed


def compressed(codes: Array) -> Codes:
    """Return the positive entries of dense codes."""
    codes = np.ascontiguousarray(codes)
    indptr = np.empty(len(codes) + 1, np.int64)
    count_positive(codes, indptr)
    count = indptr[-1]
    indices, values = np.empty(count + 1, np.int32), np.empty(count + 1, codes.dtype)
    compress(codes, indices, values)
    return Codes(indptr, indices[:count], values[:count])
