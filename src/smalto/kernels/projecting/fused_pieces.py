"""Signals as rows of pieces, and the total variation problem in one dimension that fuses them.

Pieces are four rows of a workspace: sum, length, sign of the jump to the next piece, and the
penalty at which that jump vanishes. The workspace holds two sets of pieces, the rows named below,
and six rows for knots. Heights are in units of ``1 / unit``, so that no square overflows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.jit import kernel

HEIGHT, LOW, HIGH, KNOTS = 8, 9, 10, 11  # rows of the workspace behind the pieces
HUGE = 1e100  # entries above it are scaled, as their squares might overflow


class Knots(NamedTuple):
    """A piecewise linear function: at ``at``, its line ``slope x + level`` changes by that much."""

    at: Any
    slope: Any
    level: Any


@kernel
def unit_of(v):
    """Find the factor with which no square overflows; NaN if v is not finite."""
    top, defect = 0.0, 0.0
    for i in range(v.size):
        x = np.float64(v[i])
        top = max(top, abs(x))
        defect += x * 0.0
    return (1.0 / top if top > HUGE else 1.0) + defect


@kernel
def cut(v, unit, sums, sizes, rises):
    """Make each run of equal entries a piece; return how many there are."""
    last = 0
    sums[0], sizes[0] = v[0] * unit, 1.0
    for i in range(1, v.size):
        x = v[i]
        if x == v[i - 1]:
            sums[last] += x * unit
            sizes[last] += 1.0
        else:
            rises[last] = 1.0 if x > v[i - 1] else -1.0
            last += 1
            sums[last], sizes[last] = x * unit, 1.0
    rises[last] = 0.0
    return last + 1


@kernel
def heights(sums, sizes, rises, count, penalty, out):
    """Write the heights of the pieces at this penalty above the mean of all."""
    total, size, left = 0.0, 0.0, 0.0
    for p in range(count):
        total += sums[p]
        size += sizes[p]
    for p in range(count):
        right = rises[p]
        out[p] = (sums[p] - penalty * (left - right)) / sizes[p] - total / size
        left = right


@kernel
def fusions(height, sizes, count, penalty, low, high, knots, times):
    """Solve ``½ Σ sizes (y - height)² + penalty FL(y)``: times = 0 where y fuses, else infinite.

    Dynamic programming from left to right. The derivative, in y[p], of the best cost of the
    pieces up to p is increasing and piecewise linear; it is clipped to ±penalty and passed on.
    Its knots are kept in a deque. The way back needs only where it was clipped (low, high). The
    signs of the jumps that stay are left in low: with rounding they may differ from those of the
    heights.
    """
    at, slope, level = knots
    first, last = count, count - 1
    passed = 0.0  # what the pieces so far pass on, far out on either side
    for p in range(count - 1):
        w, wc = sizes[p], sizes[p] * height[p]
        a, b, j = w, -wc - passed, first
        while j <= last and a * at[j] + b <= -penalty:
            a += slope[j]
            b += level[j]
            j += 1
        x = (-penalty - b) / a
        first = j - 1
        low[p], at[first], slope[first], level[first] = x, x, a, b + penalty
        a, b, j = w, -wc + passed, max(last, first)
        while j > first and a * at[j] + b >= penalty:
            a -= slope[j]
            b -= level[j]
            j -= 1
        x = (penalty - b) / a
        last = j + 1
        high[p], at[last], slope[last], level[last] = x, x, -a, penalty - b
        passed = penalty
    p = count - 1
    a, b, j = sizes[p], -sizes[p] * height[p] - passed, first
    while j <= last and a * at[j] + b <= 0.0:
        a += slope[j]
        b += level[j]
        j += 1
    y = -b / a
    for p in range(count - 2, -1, -1):
        x = min(max(y, low[p]), high[p])
        times[p] = 0.0 if x == y else np.inf
        low[p] = 1.0 if y > x else -1.0
        y = x


@kernel
def fuse(source, rises, count, penalty, target):
    """Write the pieces that are left at this penalty to target; return their number."""
    sums, sizes, times = source[0], source[1], source[3]
    last = 0
    total, size = sums[0], sizes[0]
    for p in range(count - 1):
        if times[p] > penalty:
            target[0, last], target[1, last] = total, size
            target[2, last], target[3, last] = rises[p], times[p]
            last += 1
            total, size = sums[p + 1], sizes[p + 1]
        else:
            total += sums[p + 1]
            size += sizes[p + 1]
    target[0, last], target[1, last], target[2, last] = total, size, 0.0
    return last + 1


@kernel
def advance(work, here, count, before, penalty):
    """Find by total variation which of the pieces at penalty ``before`` fuse up to ``penalty``.

    Leaves the signs of the jumps in work[LOW].
    """
    pieces = work[here : here + 4]
    wide = 2 * work.shape[1]
    knots = Knots(
        work[KNOTS : KNOTS + 2].reshape(wide),
        work[KNOTS + 2 : KNOTS + 4].reshape(wide),
        work[KNOTS + 4 : KNOTS + 6].reshape(wide),
    )
    height, low, high = work[HEIGHT], work[LOW], work[HIGH]
    heights(pieces[0], pieces[1], pieces[2], count, before, height)
    fusions(height, pieces[1], count, penalty - before, low, high, knots, pieces[3])


@kernel
def spell(pieces, count, penalty, threshold, scale, positive, out):
    """Write ``scale * soft(height, threshold)`` of each piece to its entries of out."""
    end, left = 0, 0.0
    for p in range(count):
        y = (pieces[0, p] - penalty * (left - pieces[2, p])) / pieces[1, p]
        left = pieces[2, p]
        x = max(y - threshold, 0.0)
        if not positive:
            x -= max(-y - threshold, 0.0)
        begin, end = end, end + int(pieces[1, p])
        for i in range(begin, end):
            out[i] = x * scale
