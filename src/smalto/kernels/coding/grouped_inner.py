"""A small dense lasso with nested groups, in float64: the problem on a working set of atoms.

``min_α ½ αHα − bα + λ Σ_g w_g ‖α_g‖₂ + l1 ‖α‖₁``, optionally with α ≥ 0 (see `grouped_norms.py`
for how groups are kept). Two kinds of steps alternate, and each of them lowers the objective:

- a sweep of proximal steps, one for each tree of groups, finds out what is zero;
- a Newton step over what is not zero: there the objective is smooth, and once the zeros are right
  each step doubles the number of correct digits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.coding.grouped_norms import (
    AtomGroups,
    PerGroup,
    Span,
    add_squares,
    shrink,
    soft,
)
from smalto.kernels.jit import kernel, summing

MOST_SWEEPS = 2000
PATIENCE = 50  # sweeps in which steps must become half as large
MOST_SHORTER = 200  # steps tried on a tree: then its curvature is not a number
HALVINGS = 6  # of a Newton step that does not lower the objective

# The share of an atom's curvature that is added in Newton steps, for atoms that depend on others:
# well above the rounding of a Gram matrix. An atom waits if less than a share of that is left.
DAMPING_64, DAMPING_32 = 1e-10, 1e-6
WAITS = 0.1

AT_ZERO = 1e-9  # of the square of a group: less of it is rounding
ROUNDING = 1e-15  # of a sum in float64
STEEPER, STEEPER_THAN_SEEN = 1.2, 1.02  # factors by which a step is shortened that was too long


class Small(NamedTuple):
    """The problem on a working set of n atoms with p groups in some trees, and scratch."""

    H: Any  # (room, room)
    M: Any  # (room, room): second derivative, then its factor
    b: Any  # (room,), and so are those that follow
    code: Any
    corr: Any  # b − H code
    trial: Any
    change: Any
    steep: Any  # of each tree: the curvature of H along the steps so far, at least
    spots: Any  # int64: where the code is not zero
    groups: AtomGroups  # of the working set
    scratch: PerGroup
    skip: Any  # bool (groups,), all False
    cuts: Any  # int64 (room + 1, 2): the first atom and the first group of each tree
    ends: Any  # int64 (groups, 2): the first of a group's nonzero coefficients, and the last + 1
    damping: float


def make_small(room: int, groups: int, dtype: Any) -> Small:
    """Room for ``room`` atoms and as many groups as given: one per thread, for every signal."""
    b, code, corr, trial, change, steep = np.empty((6, room))
    spots, innermost = np.empty((2, room), np.int64)
    weight, squares, factor = np.empty((3, groups))
    return Small(
        H=np.empty((room, room)),
        M=np.empty((room, room)),
        b=b,
        code=code,
        corr=corr,
        trial=trial,
        change=change,
        steep=steep,
        spots=spots,
        groups=AtomGroups(innermost, np.empty(groups, np.int64), weight),
        scratch=PerGroup(squares, factor),
        skip=np.zeros(groups, np.bool_),
        cuts=np.empty((room + 1, 2), np.int64),
        ends=np.empty((groups, 2), np.int64),
        damping=DAMPING_64 if dtype == np.float64 else DAMPING_32,
    )


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

    An entry of which at most a share is independent of those before it becomes zero.
    """
    for r in range(s):
        least = share * M[r, r]
        for t in range(r):
            # On the diagonal stands a reciprocal, zero for entries that wait.
            M[r, t] = (M[r, t] - _rows_inner(M, r, t, t)) * M[t, t]
        rest = M[r, r] - _rows_inner(M, r, r, r)
        M[r, r] = 1.0 / np.sqrt(rest) if rest > least else 0.0
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
    H, code, corr = small.H, small.code, small.corr
    trial, change, steep = small.trial, small.change, small.steep
    worst, same = 0.0, True
    for block in range(blocks):
        begin, low = small.cuts[block]
        end, high = small.cuts[block + 1]
        span = Span(begin, end, low, high)
        for _ in range(MOST_SHORTER):
            step = 1.0 / steep[block]
            for i in range(begin, end):
                trial[i] = soft(code[i] + step * corr[i], step * penalty.l1, penalty.positive)
            shrink(trial, small.groups, span, small.skip, step * penalty.lam, small.scratch)
            moved, bent = 0.0, 0.0
            for i in range(begin, end):
                change[i] = trial[i] - code[i]
                moved += change[i] * change[i]
            if end - begin == 1:
                break
            for i in range(begin, end):
                if change[i] != 0.0:
                    bent += change[i] * _row_times(H, i, change, begin, end)
            # A step lowers the objective if its curvature is at most what was assumed.
            if bent <= (1.0 + 1e-12) * steep[block] * moved:
                break
            steep[block] = max(STEEPER * steep[block], STEEPER_THAN_SEEN * bent / moved)
        worst = max(worst, steep[block] * np.sqrt(moved))
        for i in range(begin, end):
            if change[i] != 0.0:
                same &= (code[i] != 0.0) == (trial[i] != 0.0)
                code[i] = trial[i]
                _subtract_row(H, i, change[i], n, corr)
    return worst, same


@kernel
def _bend(small, n, p, lam):
    """Write the second derivative over what is not zero to M; returns its number of rows.

    That of the norm of a group is ``λw/‖α_g‖ (I − α_g α_gᵀ/‖α_g‖²)``. ``factor`` becomes the sum
    of λw/‖α_g‖ over a group and those around it.
    """
    innermost, parent, weight = small.groups
    squares, factor = small.scratch
    code, M, spots, ends = small.code, small.M, small.spots, small.ends
    add_squares(code, small.groups, Span(0, n, 0, p), squares)
    for g in range(p):
        ends[g, 0], ends[g, 1] = n, 0
    s = 0
    for i in range(n):
        if code[i] != 0.0:
            ends[innermost[i], 0] = min(ends[innermost[i], 0], s)
            ends[innermost[i], 1] = s + 1
            spots[s] = i
            for t in range(s + 1):
                M[s, t] = small.H[i, spots[t]]
            s += 1
    for g in range(p):
        factor[g] = cube = 0.0
        if squares[g] > 0.0:
            factor[g] = lam * weight[g] / np.sqrt(squares[g])
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
        M[r, r] += factor[innermost[spots[r]]] + small.damping * small.H[spots[r], spots[r]]
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
        pull = small.scratch.factor[small.groups.innermost[i]] * code[i]
        pull += penalty.l1 if code[i] > 0.0 else -penalty.l1
        change[r] = small.corr[i] - pull
    solve_symmetric(small.M, s, change, WAITS * small.damping)
    for r in range(s - 1, -1, -1):  # spots[r] >= r: nothing is lost
        value = change[r]
        change[r] = 0.0
        change[spots[r]] = value
    return s > 0


@kernel
def _inner_products(small, n, p, length):
    """``squares`` and ``factor`` become ⟨α_g, α_g⟩ and ⟨α_g, α_g + length · step⟩ of each group."""
    innermost, parent, _ = small.groups
    squares, inner = small.scratch
    for g in range(p):
        squares[g] = inner[g] = 0.0
    for i in range(n):
        a = small.code[i]
        squares[innermost[i]] += a * a
        inner[innermost[i]] += a * (a + length * small.change[i])
    for g in range(p):
        if parent[g] >= 0:
            squares[parent[g]] += squares[g]
            inner[parent[g]] += inner[g]


@kernel
def _first_zero(small, n, p, penalty):
    """The share of the step, at most 1, at which the first group or coefficient is at zero.

    Where atoms depend on each other the objective may be linear in the norms of the groups: then
    the optimum along a step, however long, is there.
    """
    squares, inner = small.scratch
    _inner_products(small, n, p, 1.0)
    length = 1.0
    if penalty.lam > 0.0:
        for g in range(p):
            if inner[g] < 0.0:
                length = min(length, squares[g] / (squares[g] - inner[g]))
    if penalty.l1 > 0.0 or penalty.positive:
        for i in range(n):
            a, d = small.code[i], small.change[i]
            if a * (a + d) < 0.0:
                length = min(length, -a / d)
    return length


@kernel
def _end_at_zero(small, n, p, penalty, length):
    """Write that share of the step to ``trial``, with no group or coefficient beyond zero."""
    innermost, parent, _ = small.groups
    squares, inner = small.scratch
    code = small.code
    _inner_products(small, n, p, length)
    for g in range(p - 1, -1, -1):
        stays = penalty.lam == 0.0 or inner[g] > AT_ZERO * squares[g]
        inner[g] = 1.0 if stays else 0.0
        if parent[g] >= 0:
            inner[g] *= inner[parent[g]]
    alone = penalty.l1 > 0.0 or penalty.positive
    for i in range(n):
        a, d = code[i], length * small.change[i]
        beyond = alone and a * (a + d) <= AT_ZERO * a * a
        small.trial[i] = -a if beyond or inner[innermost[i]] == 0.0 else d


@kernel
def _rise(small, n, p, penalty):
    """An upper bound on how much the objective rises with the step ``trial``.

    Without cancellation, ``‖a + d‖ − ‖a‖ = ⟨2a + d, d⟩ / (‖a + d‖ + ‖a‖)``; possible rounding is
    added.
    """
    innermost, parent, weight = small.groups
    squares, more = small.scratch
    total, fit, large = 0.0, 0.0, 0.0
    for g in range(p):
        squares[g] = more[g] = 0.0
    for i in range(n):
        a, d = small.code[i], small.trial[i]
        fit += abs(d) * np.sqrt(small.H[i, i])
        large += abs(d * small.corr[i])
        squares[innermost[i]] += a * a
        if d != 0.0:
            more[innermost[i]] += (2.0 * a + d) * d
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
            total += penalty.lam * weight[g] * more[g] / both
    return total + ROUNDING * (fit * fit + large)


@kernel
def _newton(small, n, p, penalty):
    """Take a Newton step over what is not zero, shortened until the objective falls.

    Returns whether a coefficient has become zero: then another step follows.
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
    """The number of coefficients that are not zero."""
    count = 0
    for i in range(n):
        count += code[i] != 0.0
    return count


@kernel
def solve_small(small, n, p, blocks, penalty, enough, work):
    """Solve until no proximal step, times its curvature, is larger than ``enough``.

    Ends earlier where rounding prevents that, and after ``work`` multiplications. Returns the size
    of the last largest step, and what is left of the work.
    """
    worst, best, patience = np.inf, np.inf, PATIENCE
    for _ in range(MOST_SWEEPS):
        worst, same = _sweep(small, n, blocks, penalty)
        work -= float(n) * n
        if worst <= enough or work < 0.0:
            break
        patience -= 1
        if worst < 0.5 * best:
            best, patience = worst, PATIENCE
        if patience == 0:
            break
        while same and work >= 0.0:
            work -= float(_count(small.code, n)) ** 3 / 3.0
            same = _newton(small, n, p, penalty)
    refresh(small, n)
    return worst, work
