"""The whole fused-lasso path: at which penalty each jump of the signal vanishes.

As the penalty of total variation grows, pieces only ever fuse. So the path is given by the penalty
at which each jump vanishes, and there are two ways to find it. ``merge`` follows the path upwards
from the data, taking the next pair to meet from a heap: O(m log m). ``split`` follows it downwards
from the constant signal, as the homotopy of Appendix B.2 does: it cuts each piece where the dual
variable ``z[i] = Σ_{j≤i} (v[j] - y[j])`` reaches the penalty first. A cut concerns only its own
piece, so pieces may be cut in any order, and the cost, O(ms) at worst, is the length of a piece for
each cut in it.

Pieces are given as in `fused_pieces.py`: sums, lengths and signs of the jumps, of runs of equal
entries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.jit import kernel
from smalto.kernels.projecting.fused_lasso_ball import (
    FusedBall,
    keep_feasible,
    root,
    tight,
    tighten,
    write_projection,
)
from smalto.kernels.projecting.fused_pieces import cut, fuse, spell, unit_of

FLOAT_ROWS, INT_ROWS = 5, 6
EITHER, MERGE, SPLIT = 0, 1, 2  # the roads to one answer
TIE = 1e-11  # relative difference of penalties that counts as none
TOUCH = 1e-13  # distance of heights, relative to the largest, that counts as none
FAIR = 40  # entries that SPLIT may look at for each entry of the signal before MERGE takes over


class PathWork(NamedTuple):
    """Scratch for a signal of length m."""

    work: Any  # (WORK_ROWS, m + 1), as for `fused_lasso_ball.project`
    floats: Any  # (FLOAT_ROWS, m + 1)
    ints: Any  # int64 (INT_ROWS, m + 1)


class Fused(NamedTuple):
    """Pieces that are being fused: sum and length stand at the first member of each."""

    sums: Any
    sizes: Any
    rises: Any


class Heap(NamedTuple):
    """Jumps by the penalty at which they vanish, smallest first."""

    keys: Any
    ids: Any


class ConstraintSet(NamedTuple):
    """The set ``a1‖u‖₁ + a2 FL(u) + b‖u‖² ≤ r``, and whether u ≥ 0."""

    a1: float
    a2: float
    b: float
    r: float
    positive: bool


@kernel
def push(heap, size, key, ident):
    """Add to the heap of ``size`` entries."""
    keys, ids = heap
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if keys[parent] <= key:
            break
        keys[i], ids[i] = keys[parent], ids[parent]
        i = parent
    keys[i], ids[i] = key, ident


@kernel
def pop(heap, size):
    """Remove the first of ``size`` entries, which the caller has read."""
    keys, ids = heap
    size -= 1
    key, ident = keys[size], ids[size]
    i, child = 0, 1
    while child < size:
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[i], ids[i] = keys[child], ids[child]
        i, child = child, 2 * child + 1
    keys[i], ids[i] = key, ident


@kernel
def meeting(fused, a, j, e, touch):
    """Find the penalty at which pieces a..j and j+1..e meet; infinite if they never do.

    Two that have come to rest within ``touch`` of each other have met.
    """
    sums, sizes, rises = fused
    before = rises[a - 1] if a > 0 else 0.0
    closing = (rises[j] - rises[e]) / sizes[j + 1] - (before - rises[j]) / sizes[a]
    gap = sums[j + 1] / sizes[j + 1] - sums[a] / sizes[a]
    if closing == 0.0:
        return np.inf if abs(gap) > touch else 0.0
    return gap / closing


@kernel
def center(pieces, count, sums):
    """Write the sums of the pieces less the mean of all entries; return the largest height.

    Nothing on the path depends on the mean.
    """
    total, size, top = 0.0, 0.0, 0.0
    for p in range(count):
        total += pieces[0, p]
        size += pieces[1, p]
    for p in range(count):
        sums[p] = pieces[0, p] - pieces[1, p] * (total / size)
        top = max(top, abs(sums[p] / pieces[1, p]))
    return top


@kernel
def merge(pieces, count, times, floats, ints):
    """Write to times, for each jump, the penalty at which it vanishes: upwards, by a heap."""
    wide = floats.shape[1]
    sums, sizes = floats[0], floats[1]
    fused = Fused(sums, sizes, pieces[2])
    heap = Heap(floats[2:5].reshape(3 * wide), ints[2:5].reshape(3 * wide))
    first, last, waiting = ints[0], ints[1], ints[5]
    size = 0
    touch = TOUCH * center(pieces, count, sums)
    for p in range(count):
        sizes[p] = pieces[1, p]
        first[p], last[p], waiting[p] = p, p, 1
    for j in range(count - 1):
        times[j] = np.inf
        size = schedule(fused, j, j, j + 1, 0.0, times, heap, size)
    now = 0.0
    while size > 0:
        key, j = heap.keys[0], heap.ids[0]
        pop(heap, size)
        size -= 1
        if not waiting[j] or key != times[j]:
            continue  # its time has changed since
        waiting[j] = 0
        now = max(now, key)
        times[j] = now
        a, e = first[j], last[j + 1]
        sums[a] += sums[j + 1]
        sizes[a] += sizes[j + 1]
        first[e], last[a] = a, e
        if a > 0:
            size = schedule(fused, first[a - 1], a - 1, e, touch, times, heap, size)
        if e < count - 1:
            size = schedule(fused, a, e, last[e + 1], touch, times, heap, size)


@kernel
def schedule(fused, a, j, e, touch, times, heap, size):
    """Put jump j, between the pieces a..j and j+1..e, into the heap; return its size."""
    time = meeting(fused, a, j, e, touch)
    if time != times[j]:
        times[j] = time
        if time < np.inf:
            push(heap, size, time, j)
            size += 1
    return size


@kernel
def first_cut(sums, sizes, rises, a, e, ceiling):
    """Find where the piece made of a..e is cut first as the penalty falls, and at which penalty.

    With k of its n entries left of jump j and C their sum, the dual variable there is
    ``C - (k/n) S - penalty (l (1 - k/n) + r k/n)``, l and r the signs at the piece's ends. It
    comes to ``-penalty * sign`` from within, unless l = r = sign: then it keeps its distance.
    Of cuts of one sign at one penalty all but that next to the other end's piece would leave
    equal heights, if it is also the sign of this end: that one is taken, and the others wait.
    Returns (-1, 0) if there is nothing to cut.
    """
    total, size = 0.0, 0.0
    for p in range(a, e + 1):
        total += sums[p]
        size += sizes[p]
    mean = total / size
    left = rises[a - 1] if a > 0 else 0.0
    right = rises[e]
    where, best, excess, before = -1, 0.0, 0.0, 0.0
    for j in range(a, e):
        excess += sums[j] - sizes[j] * mean
        before += sizes[j]
        rise = rises[j]
        room = (1.0 - rise * left) * (size - before) + (1.0 - rise * right) * before
        enough = best * room * (1.0 - TIE if rise == left else 1.0 + TIE)
        if room > 0.0 and -rise * excess > enough:
            best = -rise * excess / room
            where = j
    return where, min(best * size, ceiling)


@kernel
def split(pieces, cuts, floor, budget, times, floats, ints):
    """Cut every piece as often as the penalty falls to floor; return how many there are.

    Piece k goes from begins[k] to ends[k] and is next cut at places[k], at the penalty
    highest[k]; there are ``cuts`` of them at first. Writes times for each cut made. Gives
    up and returns -1 when it has looked at ``budget`` entries.
    """
    sizes, rises, sums, highest = pieces[1], pieces[2], floats[0], floats[1]
    begins, ends, places = ints[0], ints[1], ints[2]
    k = 0
    while k < cuts:
        while highest[k] > floor:
            j, e, time = places[k], ends[k], highest[k]
            budget -= e - begins[k] + 1
            if budget < 0:
                return -1
            times[j] = time
            ends[k] = j
            places[k], highest[k] = first_cut(sums, sizes, rises, begins[k], j, time)
            begins[cuts], ends[cuts] = j + 1, e
            places[cuts], highest[cuts] = first_cut(sums, sizes, rises, j + 1, e, time)
            cuts += 1
        k += 1
    return cuts


@kernel
def whole(pieces, count, times, floats, ints):
    """Prepare ``split``: one piece, not cut yet."""
    times[:count] = 0.0
    center(pieces, count, floats[0])
    ints[0, 0], ints[1, 0] = 0, count - 1
    ints[2, 0], floats[1, 0] = first_cut(floats[0], pieces[1], pieces[2], 0, count - 1, np.inf)
    return 1


@kernel
def jump_times(pieces, count, road, floor, times, floats, ints):
    """Write to times when each jump vanishes; by SPLIT, 0 for those that do so below floor.

    EITHER tries SPLIT, which is the faster unless the pieces come off one end, one by one.
    """
    if road != MERGE:
        budget = FAIR * count if road == EITHER else count * count
        cuts = whole(pieces, count, times, floats, ints)
        if split(pieces, cuts, floor, budget, times, floats, ints) > 0:
            return
    merge(pieces, count, times, floats, ints)


@kernel
def descend(scratch, count, ball):
    """Follow the path downwards until the constraint is violated; return that tau and the pieces.

    The penalty falls by half at a time. The pieces at that tau are left in work[0:4].
    """
    work, floats, ints = scratch
    a2 = ball.a2
    pieces, times, highest = work[:4], work[3], floats[1]
    cuts = whole(pieces, count, times, floats, ints)
    floor = highest[0]
    while True:
        left = fuse(pieces, pieces[2], count, floor, work[4:8])
        q = tight(work[4:8], left, floor / a2, ball)
        if floor == 0.0 or root(q, ball) >= floor / a2:
            break
        floor = 0.0
        for k in range(cuts):
            floor = max(floor, 0.5 * highest[k])
        cuts = split(pieces, cuts, floor, count * count, times, floats, ints)
    for row in range(4):
        for p in range(left):
            work[row, p] = work[row + 4, p]
    return floor / a2, left


@kernel
def project_by_path(v, out, constraint, road, scratch):
    """Project along the path, upwards (MERGE) or downwards (SPLIT); a2 > 0."""
    work, floats, ints = scratch
    a1, a2, b, r, positive = constraint
    ball = FusedBall(a1, a2, b, r, unit_of(v), positive)
    if not ball.unit > 0.0:
        return False
    if keep_feasible(v, out, ball):
        return True
    count = cut(v, ball.unit, work[0], work[1], work[2])
    lo = 0.0
    if road == MERGE:
        merge(work[:4], count, work[3], floats, ints)
    else:
        lo, count = descend(scratch, count, ball)
    tau = max(lo, root(tight(work[:4], count, lo, ball), ball))
    here, count, tau = tighten(work, count, lo, tau, ball, True)
    write_projection(work, here, count, tau, ball, out)
    return True


@kernel
def project_rows_by_path(rows, out, constraint, road, scratch):
    """Project every row; return whether all are finite."""
    finite = True
    for i in range(rows.shape[0]):
        finite &= project_by_path(rows[i], out[i], constraint, road, scratch)
    return finite


@kernel
def signal_by_path(v, out, gamma1, gamma2, gamma3, positive, road, scratch):
    """Solve the signal approximation along the path, upwards (MERGE) or downwards (SPLIT)."""
    work, floats, ints = scratch
    unit = unit_of(v)
    if not unit > 0.0:
        return False
    count = cut(v, unit, work[0], work[1], work[2])
    penalty = gamma2 * unit
    jump_times(work[:4], count, road, penalty, work[3], floats, ints)
    count = fuse(work[:4], work[2], count, penalty, work[4:8])
    scale = 1.0 / unit / (1.0 + gamma3)
    spell(work[4:8], count, penalty, gamma1 * unit, scale, positive, out)
    return True


@kernel
def signal_rows_by_path(rows, out, gamma1, gamma2, gamma3, positive, road, scratch):
    """Approximate every row; return whether all are finite."""
    finite = True
    for i in range(rows.shape[0]):
        finite &= signal_by_path(rows[i], out[i], gamma1, gamma2, gamma3, positive, road, scratch)
    return finite


@kernel
def path(v, road, out, scratch):
    """Write to out, for each of the v.size - 1 jumps of v, the penalty at which it vanishes."""
    work, floats, ints = scratch
    unit = unit_of(v)
    if not unit > 0.0:
        return False
    count = cut(v, unit, work[0], work[1], work[2])
    jump_times(work[:4], count, road, 0.0, work[3], floats, ints)
    end = 0
    for p in range(count - 1):
        begin, end = end, end + int(work[1, p])
        out[begin : end - 1] = 0.0
        out[end - 1] = work[3, p] / unit
    out[end:] = 0.0
    return True
