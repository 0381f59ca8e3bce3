"""A small dense lasso with nested groups, in float64: the one on a working set of atoms.

``min_α ½ αHα − bα + λ Σ_g w_g ‖α_g‖₂ + l1 ‖α‖₁``, optionally with α ≥ 0 (see `nested.py` for how
groups are kept). Two kinds of steps alternate, and each of them lowers the objective:

- a sweep of proximal steps, one for each tree of groups, finds out what is zero;
- a Newton step over what is not: there the objective is smooth, and once the zeros are right
  such steps double the number of right digits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.coding.grouped_norms import add_squares, shrink, soft
from smalto.kernels.jit import kernel, summing

MOST_SWEEPS = 2000
PATIENCE = 50  # sweeps in which steps must become half as large
HALVINGS = 6  # of a Newton step that does not lower the objective

# The share of an atom's curvature that is added in Newton steps, for atoms that depend on others:
# well above the rounding of a Gram matrix. With less than a tenth of it left an atom waits.
DAMPING_64, DAMPING_32 = 1e-10, 1e-6

AT_ZERO = 1e-9  # of a group's square: what is left of it is rounding


class Penalty(NamedTuple):
    """What is added to the error: ``lam Ω(α) + l1 ‖α‖₁``, and whether α ≥ 0."""

    lam: float
    l1: float
    positive: bool


class Small(NamedTuple):
    """The problem on a working set of n atoms with p groups in so many trees, and scratch."""

    H: Any  # (room, room)
    M: Any  # (room, room) of the Newton step
    b: Any  # (room,) and so are those that follow
    code: Any
    corr: Any  # b − H code
    trial: Any
    change: Any
    steep: Any  # of each tree: the curvature of H along the steps so far, at least
    spots: Any  # int64: where the code is not zero
    own: Any  # int64: the innermost group of each atom
    cuts: Any  # int64 (room + 1, 2): the first atom and the first group of each tree
    parent: Any  # int64 (groups,) and so are those that follow
    weight: Any
    squares: Any
    factor: Any
    skip: Any  # bool, all False
    damping: float
    ends: Any  # int64 (groups, 2): of each group's nonzero coefficients, the first, the last + 1


def make_small(room: int, groups: int, dtype: Any) -> Small:
    """Room for so many atoms and groups: one per thread, reused for every signal."""
    b, code, corr, trial, change, steep = np.empty((6, room))
    spots, own = np.empty((2, room), np.int64)
    weight, squares, factor = np.empty((3, groups))
    return Small(
        np.empty((room, room)), np.empty((room, room)), b, code, corr, trial, change, steep,
        spots, own, np.empty((room + 1, 2), np.int64), np.empty(groups, np.int64), weight,
        squares, factor, np.zeros(groups, np.bool_),
        DAMPING_64 if dtype == np.float64 else DAMPING_32, np.empty((groups, 2), np.int64),
    )  # fmt: skip


@summing
def _subtract_row(H, i, by, n, out):
    """``out −= by H[i]``."""
    for j in range(n):
        out[j] -= by * H[i, j]


@summing
def _row_times(H, i, v, begin, end):
    """``Σ_j H[i, j] v[j]``."""
    total = 0.0
    for j in range(begin, end):
        total += H[i, j] * v[j]
    return total


@summing
def _rows_inner(M, r, t, count):
    """``Σ_u M[r, u] M[t, u]``."""
    total = 0.0
    for u in range(count):
        total += M[r, u] * M[t, u]
    return total


@kernel
def refresh(small, n):
    """``corr = b − H code``."""
    for i in range(n):
        small.corr[i] = small.b[i]
    for i in range(n):
        if small.code[i] != 0.0:
            _subtract_row(small.H, i, small.code[i], n, small.corr)


@kernel
def move(small, n, step):
    """Add a step to the code."""
    for i in range(n):
        if step[i] != 0.0:
            small.code[i] += step[i]
            _subtract_row(small.H, i, step[i], n, small.corr)


@kernel
def solve_symmetric(M, s, right, share):
    """``right ← M⁻¹ right`` by Cholesky, in place.

    An entry of which no more than a share is independent of those before it stays out: zero.
    """
    for r in range(s):
        least = share * M[r, r]
        for t in range(r):
            # On the diagonal stands a reciprocal, zero for entries that wait.
            M[r, t] = (M[r, t] - _rows_inner(M, r, t, t)) * M[t, t]
        left = M[r, r] - _rows_inner(M, r, r, r)
        M[r, r] = 1.0 / np.sqrt(left) if left > least else 0.0
    for r in range(s):
        right[r] = (right[r] - _row_times(M, r, right, 0, r)) * M[r, r]
    for r in range(s - 1, -1, -1):
        right[r] *= M[r, r]
        _subtract_row(M, r, right[r], r, right)


@kernel
def _sweep(small, n, blocks, penalty):
    """One proximal step on each tree.

    Returns the largest of them times its curvature, and whether no zero has come or gone.
    """
    H, code, corr, trial, change, steep = (
        small.H, small.code, small.corr, small.trial, small.change, small.steep,
    )  # fmt: skip
    worst, same = 0.0, True
    for block in range(blocks):
        begin, low = small.cuts[block]
        end, high = small.cuts[block + 1]
        while True:
            step = 1.0 / steep[block]
            for i in range(begin, end):
                trial[i] = soft(code[i] + step * corr[i], step * penalty.l1, penalty.positive)
            shrink(
                trial, begin, end, small.own, small.parent, small.weight, small.skip, low, high,
                step * penalty.lam, small.squares, small.factor,
            )  # fmt: skip
            moved, bent = 0.0, 0.0
            for i in range(begin, end):
                change[i] = trial[i] - code[i]
                moved += change[i] * change[i]
            if end - begin == 1:
                break
            for i in range(begin, end):
                if change[i] != 0.0:
                    bent += change[i] * _row_times(H, i, change, begin, end)
            # A step lowers the objective if no more than this bends along it.
            if bent <= (1.0 + 1e-12) * steep[block] * moved:
                break
            steep[block] = max(1.2 * steep[block], 1.02 * bent / moved)
        worst = max(worst, steep[block] * np.sqrt(moved))
        for i in range(begin, end):
            if change[i] != 0.0:
                same &= (code[i] != 0.0) == (trial[i] != 0.0)
                code[i] = trial[i]
                _subtract_row(H, i, change[i], n, corr)
    return worst, same


@kernel
def _bend(small, n, p, lam):
    """Write the second derivative over what is not zero to M; returns how many that are.

    The norm of a group bends by ``λw/‖α_g‖ (I − α_g α_gᵀ/‖α_g‖²)``. ``factor`` becomes the sum
    of λw/‖α_g‖ over a group and those around it.
    """
    code, own, parent, M, spots = small.code, small.own, small.parent, small.M, small.spots
    squares, factor, ends = small.squares, small.factor, small.ends
    add_squares(code, 0, n, own, parent, 0, p, squares)
    for g in range(p):
        ends[g, 0], ends[g, 1] = n, 0
    s = 0
    for i in range(n):
        if code[i] != 0.0:
            ends[own[i], 0] = min(ends[own[i], 0], s)
            ends[own[i], 1] = s + 1
            spots[s] = i
            for t in range(s + 1):
                M[s, t] = small.H[i, spots[t]]
            s += 1
    for g in range(p):
        factor[g] = cube = 0.0
        if squares[g] > 0.0:
            factor[g] = lam * small.weight[g] / np.sqrt(squares[g])
            cube = factor[g] / squares[g]
        if parent[g] >= 0:
            around = parent[g]
            ends[around, 0] = min(ends[around, 0], ends[g, 0])
            ends[around, 1] = max(ends[around, 1], ends[g, 1])
        for r in range(ends[g, 0], ends[g, 1]):
            by = cube * code[spots[r]]
            for t in range(ends[g, 0], r + 1):
                M[r, t] -= by * code[spots[t]]
    for g in range(p - 1, -1, -1):
        if parent[g] >= 0:
            factor[g] += factor[parent[g]]
    for r in range(s):
        M[r, r] += factor[own[spots[r]]] + small.damping * small.H[spots[r], spots[r]]
    return s


@kernel
def _newton_step(small, n, p, penalty):
    """Write the Newton step to ``change``; False if all of the code is zero."""
    code, change, spots = small.code, small.change, small.spots
    s = _bend(small, n, p, penalty.lam)
    for i in range(n):
        change[i] = 0.0
    for r in range(s):
        i = spots[r]
        pull = small.factor[small.own[i]] * code[i]
        pull += penalty.l1 if code[i] > 0.0 else -penalty.l1
        change[r] = small.corr[i] - pull
    solve_symmetric(small.M, s, change, 0.1 * small.damping)
    for r in range(s - 1, -1, -1):  # spots[r] >= r: nothing is lost
        value = change[r]
        change[r] = 0.0
        change[spots[r]] = value
    return s > 0


@kernel
def _inner_products(small, n, p, length):
    """``squares`` and ``factor`` become ⟨α_g, α_g⟩ and ⟨α_g, α_g + length · step⟩ of each group."""
    own, parent, squares, inner = small.own, small.parent, small.squares, small.factor
    for g in range(p):
        squares[g] = inner[g] = 0.0
    for i in range(n):
        a = small.code[i]
        squares[own[i]] += a * a
        inner[own[i]] += a * (a + length * small.change[i])
    for g in range(p):
        if parent[g] >= 0:
            squares[parent[g]] += squares[g]
            inner[parent[g]] += inner[g]


@kernel
def _first_zero(small, n, p, penalty):
    """How much of the step it takes until the first group or coefficient is at zero, at most 1.

    Where atoms depend on each other the objective may be linear in the norms of the groups:
    then there is the optimum of a step, however long.
    """
    _inner_products(small, n, p, 1.0)
    length = 1.0
    if penalty.lam > 0.0:
        for g in range(p):
            if small.factor[g] < 0.0:
                length = min(length, small.squares[g] / (small.squares[g] - small.factor[g]))
    if penalty.l1 > 0.0 or penalty.positive:
        for i in range(n):
            a, d = small.code[i], small.change[i]
            if a * (a + d) < 0.0:
                length = min(length, -a / d)
    return length


@kernel
def _end_at_zero(small, n, p, penalty, length):
    """Write so much of the step to ``trial``, with no group or coefficient beyond zero."""
    code, own, parent, inner = small.code, small.own, small.parent, small.factor
    _inner_products(small, n, p, length)
    for g in range(p - 1, -1, -1):
        stays = penalty.lam == 0.0 or inner[g] > AT_ZERO * small.squares[g]
        inner[g] = 1.0 if stays else 0.0
        if parent[g] >= 0:
            inner[g] *= inner[parent[g]]
    alone = penalty.l1 > 0.0 or penalty.positive
    for i in range(n):
        a, d = code[i], length * small.change[i]
        beyond = alone and a * (a + d) <= AT_ZERO * a * a
        small.trial[i] = -a if beyond or inner[own[i]] == 0.0 else d


@kernel
def _rise(small, n, p, penalty):
    """By how much the objective rises with the step ``trial``, at most.

    Without cancellation: ``‖a + d‖ − ‖a‖ = ⟨2a + d, d⟩ / (‖a + d‖ + ‖a‖)``; what rounding may
    have taken off is added.
    """
    own, parent, squares, more = small.own, small.parent, small.squares, small.factor
    total, fit, large = 0.0, 0.0, 0.0
    for g in range(p):
        squares[g] = more[g] = 0.0
    for i in range(n):
        a, d = small.code[i], small.trial[i]
        fit += abs(d) * np.sqrt(small.H[i, i])
        large += abs(d * small.corr[i])
        squares[own[i]] += a * a
        if d != 0.0:
            more[own[i]] += (2.0 * a + d) * d
            total += d * (0.5 * _row_times(small.H, i, small.trial, 0, n) - small.corr[i])
            if a * (a + d) > 0.0:
                total += penalty.l1 * (d if a > 0.0 else -d)
            else:
                total += penalty.l1 * (abs(a + d) - abs(a))
    for g in range(p):
        if parent[g] >= 0:
            squares[parent[g]] += squares[g]
            more[parent[g]] += more[g]
        if more[g] != 0.0:
            both = np.sqrt(max(squares[g] + more[g], 0.0)) + np.sqrt(squares[g])
            total += penalty.lam * small.weight[g] * more[g] / both
    return total + 1e-15 * (fit * fit + large)


@kernel
def _newton(small, n, p, penalty):
    """Take a Newton step over what is not zero, shortened until the objective falls.

    Returns whether something has come to zero in it: then there is another one to take.
    """
    if not _newton_step(small, n, p, penalty):
        return False
    length = 1.0
    for turn in range(HALVINGS):
        _end_at_zero(small, n, p, penalty, length)
        if _rise(small, n, p, penalty) < 0.0:
            before = _count(small.code, n)
            move(small, n, small.trial)
            return _count(small.code, n) < before
        length = _first_zero(small, n, p, penalty) if turn == 0 else 0.5 * length
    return False


@kernel
def _count(code, n):
    """How many coefficients are not zero."""
    count = 0
    for i in range(n):
        count += code[i] != 0.0
    return count


@kernel
def solve_small(small, n, p, blocks, penalty, enough):
    """Solve until no proximal step, times its curvature, is larger than ``enough``.

    Ends earlier where rounding keeps it from that. Returns the last such size.
    """
    worst, best, patience = np.inf, np.inf, PATIENCE
    for _ in range(MOST_SWEEPS):
        worst, same = _sweep(small, n, blocks, penalty)
        if worst <= enough:
            break
        patience -= 1
        if worst < 0.5 * best:
            best, patience = worst, PATIENCE
        if patience == 0:
            break
        while same and _newton(small, n, p, penalty):
            pass
    refresh(small, n)
    return worst
