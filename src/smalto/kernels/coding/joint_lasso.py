"""The joint lasso, on the Gram matrix: the signals of a group share their atoms.

Solves ``min_A ½‖X − AD‖² + lam Σ_j ‖A_j‖₂`` for each group of rows X, where A_j holds the
coefficients of atom j, one per signal (the ℓ1/ℓ2 norm). A working set of atoms grows:

1. all correlations ``C = Q − A G`` are computed in one pass, but only their norms over the group
   are kept; they give the duality gap, and when that is small the method ends;
2. the atoms that violate optimality, ‖C_j‖ > lam, by more than a share of the worst join;
3. the problem on the working set is solved (`joint_newton.py`), ever more exactly; atoms whose
   coefficients are zero leave.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.coding.active_set import LANES, largest_value
from smalto.kernels.coding.joint_newton import WorkingSet, make_working_set, refresh, settle
from smalto.kernels.coding.joint_tables import group_norm, padded, write_group
from smalto.kernels.coding.small_matrices import SPARE, inner
from smalto.kernels.flat import flat
from smalto.kernels.jit import kernel
from smalto.kernels.precision import EPSILON_32, EPSILON_64, is_double
from smalto.kernels.simd import above, fma, lanes, load, lowest_bit, splat, store, zero

FIRST = 8  # atoms that may join at once, at least ...
SHARE = 0.5  # ... those that violate by more than this share of the worst violation
_MOST_ROUNDS = 500
_MOST_WORK = 1e10  # multiplications for one group in one precision: seconds
_EASE = 0.1  # what the solution of a round may violate, as a share of the last violation
_TIGHTEN = 1e-3  # factor for that where no further atom joins
_FAST_GAP = 1e-6  # relative gap at which the search in float32 ends
_STUCK = 1e3  # times the gap that is aimed at: reported as too large


class Penalty(NamedTuple):
    """``lam Σ_j ‖A_j‖₂``, and when it is minimized well enough."""

    lam: float
    by_size: bool  # whether lam is to be multiplied by the root of the size of a group
    tolerance: float  # gap, as a share of the objective


class Goal(NamedTuple):
    """The same for one group and one stage."""

    lam: float
    tolerance: float
    norm: float  # ‖X‖²
    scale: float  # largest norm of correlations, for what counts as rounding


class JointView(NamedTuple):
    """A group in one precision: what passes over all atoms read and write."""

    G: Any
    q: Any
    row: int  # of its first signal in q
    n: int  # signals
    codes: Any  # table of coefficients
    score: Any  # (width,): squared norms of the correlations over the group


class JointSearch(NamedTuple):
    """Scratch for one group."""

    working: WorkingSet
    codes: Any  # as in `JointView`
    fast_codes: Any  # the same in float32; `codes` itself if that is float32
    score: Any
    fast_score: Any
    fast_q: Any  # float32: correlations of the group; empty if not needed
    order: Any  # int64 (rows,)


def make_joint_search(width: int, largest_group: int, room: int, dtype: Any) -> JointSearch:
    """Room for ``room`` atoms in use out of ``width``: one per thread, reused for every group."""
    rows, single = room + SPARE, np.float32
    codes = np.empty(rows * padded(largest_group), dtype)
    two_stages = dtype != single
    return JointSearch(
        make_working_set(width, largest_group, room),
        codes,
        np.empty(codes.size, single) if two_stages else codes,
        np.empty(width, dtype),
        np.empty(width, single),
        np.empty(largest_group * width if two_stages else 0, single),
        np.zeros(rows, np.int64),
    )


@kernel
def _norms_of_correlations(view, atoms, s):
    """Write ``Σ_i c_ij²`` over the signals i, for every atom j, of ``c = q − codes G``.

    Four signals and two vectors of atoms at once.
    """
    G, q, row, n, a, score = view
    width, size = score.size, padded(n)
    step = lanes(score)
    for j in range(0, width, 2 * step):
        two = j + step < width  # widths are whole vectors of float32
        k = j + step if two else j
        s0, s1 = zero(score), zero(score)
        i = 0
        while i + 4 <= n:
            p = (row + i) * width
            c00, c01 = load(q, p + j), load(q, p + k)
            c10, c11 = load(q, p + width + j), load(q, p + width + k)
            c20, c21 = load(q, p + 2 * width + j), load(q, p + 2 * width + k)
            c30, c31 = load(q, p + 3 * width + j), load(q, p + 3 * width + k)
            for r in range(s):
                g = atoms[r] * width
                g0, g1 = load(G, g + j), load(G, g + k)
                at = r * size + i
                v = splat(-a[at])
                c00, c01 = fma(v, g0, c00), fma(v, g1, c01)
                v = splat(-a[at + 1])
                c10, c11 = fma(v, g0, c10), fma(v, g1, c11)
                v = splat(-a[at + 2])
                c20, c21 = fma(v, g0, c20), fma(v, g1, c21)
                v = splat(-a[at + 3])
                c30, c31 = fma(v, g0, c30), fma(v, g1, c31)
            s0 = fma(c00, c00, fma(c10, c10, fma(c20, c20, fma(c30, c30, s0))))
            s1 = fma(c01, c01, fma(c11, c11, fma(c21, c21, fma(c31, c31, s1))))
            i += 4
        while i < n:
            p = (row + i) * width
            c00, c01 = load(q, p + j), load(q, p + k)
            for r in range(s):
                g = atoms[r] * width
                v = splat(-a[r * size + i])
                c00, c01 = fma(v, load(G, g + j), c00), fma(v, load(G, g + k), c01)
            s0, s1 = fma(c00, c00, s0), fma(c01, c01, s1)
            i += 1
        store(score, j, s0)
        if two:
            store(score, k, s1)


@kernel
def _join(exact, score, top, lam, working, s):
    """Let the worst violators join, with coefficients of zero; returns the new number of atoms."""
    gram, stride, codes, q = working.gram, working.stride, working.codes, working.q
    size, width = padded(exact.n), score.size
    least = lam + (top - lam) * SHARE
    threshold = splat(score.dtype.type(least * least))
    room = min(max(FIRST, s), working.norms.size - SPARE - s)
    for block in range(0, width, lanes(score)):
        bits = above(load(score, block), threshold)
        while bits != 0 and room > 0:
            j = block + lowest_bit(bits)
            bits &= bits - 1
            if working.used[j]:
                continue
            working.used[j] = True
            working.atoms[s] = j
            working.norms[s] = 0.0
            for r in range(s + 1):
                value = np.float64(exact.G[j * width + working.atoms[r]])
                gram[s * stride + r] = value
                gram[r * stride + s] = value
            for o in range(0, size, LANES):
                store(codes, s * size + o, splat(0.0))
                store(q, s * size + o, splat(0.0))
            for i in range(exact.n):
                q[s * size + i] = exact.q[(exact.row + i) * width + j]
            s += 1
            room -= 1
    return s


@kernel
def _gap(goal, top, working, s, size):
    """The duality gap and the objective, from the largest norm of correlations.

    Scaled residuals are feasible for the dual problem.
    """
    lam, codes = goal.lam, working.codes
    fitted, taken, total = 0.0, 0.0, 0.0
    for p in range(s):
        with_residual = inner(codes, p * size, working.c, p * size, size)
        fitted += with_residual
        taken += inner(codes, p * size, working.q, p * size, size) + with_residual
        total += working.norms[p]
    square = max(goal.norm - taken, 0.0)  # ‖R‖², and ⟨X, R⟩ = ‖R‖² + ⟨AD, R⟩
    scale = lam / top if top > lam else 1.0
    primal = 0.5 * square + lam * total
    return primal - scale * (square + fitted) + 0.5 * scale * scale * square, primal


@kernel
def _descend(exact, view, goal, working, s, tally):
    """Rounds of join, settle, refresh, until optimal; returns the number of atoms, −1 if full.

    The working set reads the exact view; the passes over all atoms read and write the other one,
    which may be in float32.
    """
    lam, scale, score = goal.lam, goal.scale, view.score
    size, width = padded(view.n), score.size
    allowed = 64.0 * (EPSILON_64 if is_double(score) else EPSILON_32) * scale
    floor, tight = 8.0 * EPSILON_64 * goal.norm, 64.0 * EPSILON_64 * scale
    violation, work = scale, _MOST_WORK  # that `settle` may leave, and cost
    for _ in range(_MOST_ROUNDS):
        refresh(working, s, size)
        for o in range(s * size):
            view.codes[o] = working.codes[o]
        _norms_of_correlations(view, working.atoms, s)
        top = np.sqrt(np.float64(largest_value(score, np.int64(0), width)))
        tally.rounds[exact.row] += 1
        gap, primal = _gap(goal, top, working, s, size)
        if gap <= goal.tolerance * primal + floor:
            return s
        before = s
        if top > lam + allowed:
            if s == working.norms.size - SPARE and s < width:
                return np.int64(-1)
            s = _join(exact, score, top, lam, working, s)
        if s > before:
            violation = max(min(violation, _EASE * (top - lam)), tight)
        elif violation <= tight:
            break  # rounding keeps it from the optimum
        else:
            violation = max(_TIGHTEN * violation, tight)
        s, work = settle(working, s, size, lam, violation, work)
        if work < 0.0:
            tally.stuck[0] += 1
            return s
    if gap > _STUCK * (goal.tolerance * primal + floor):
        tally.stuck[0] += 1
    return s


@kernel
def joint_lasso_groups(gram, signals, g, penalty, search, out, tally):
    """Code the groups of signals from group ``g`` on; returns the first one not done.

    Stops early, to be called again, when the working set or the output has no room left.
    """
    working, codes, fast_codes, score, fast_score, fast_q, order = search
    width = score.size
    q = flat(signals.Q)
    room = working.norms.size - SPARE
    while g < signals.groups.size - 1:
        row, n = signals.groups[g], signals.groups[g + 1] - signals.groups[g]
        if out.indptr[row] + n * room > out.indices.size:
            return g
        tally.rounds[row : row + n] = 0
        norm = group_norm(signals, g)
        lam = penalty.lam * np.sqrt(np.float64(n)) if penalty.by_size else penalty.lam
        exact = JointView(gram.exact, q, row, n, codes, score)
        s, stuck = np.int64(0), tally.stuck[0]
        _norms_of_correlations(exact, working.atoms, s)
        scale = np.sqrt(np.float64(largest_value(score, np.int64(0), width)))
        if scale > lam and is_double(gram.fast) != is_double(gram.exact):
            for o in range(n * width):
                fast_q[o] = q[row * width + o]
            fast = JointView(gram.fast, fast_q, 0, n, fast_codes, fast_score)
            s = _descend(exact, fast, Goal(lam, _FAST_GAP, norm, scale), working, s, tally)
            tally.stuck[0] = stuck  # only the exact stage counts
        if scale > lam and s >= 0:
            goal = Goal(lam, penalty.tolerance, norm, scale)
            s = _descend(exact, exact, goal, working, s, tally)
        if s < 0:
            working.used[:] = False
            return g
        for p in range(s):
            working.used[working.atoms[p]] = False
        write_group(working.codes, working.atoms, s, order, row, n, out)
        for i in range(row + 1, row + n):
            tally.rounds[i] = tally.rounds[row]
        g += 1
    return g
