"""Euclidean projection onto ``a‖u‖₁ + b‖u‖² ≤ r``: ℓ1 ball, simplex and elastic-net ball.

The solution is ``u = soft(v, a lam) / (1 + 2 b lam)``, with the ``lam`` that makes the
constraint tight (Appendix B.1). If the set S of entries that stay nonzero is known, lam
solves ``lam + b lam² = (a Σ|v| + b Σv² - r) / (a²|S| + 4 r b)``, with sums over S. As a function of
``lam + b lam²``, the excess of the constraint is convex and piecewise linear: Newton steps
from the left never pass the root and can only shrink S, so the first step that leaves S
unchanged is exact. With every step the excess or its slope halves, which bounds their number
by ``2 log2(m)`` and the bits of a number; three to eight are usual.

Each step measures the entries from the current threshold (what one step leaves is again a
vector to project, as ``u`` above composes), so nothing cancels when v is far outside the set,
and nothing overflows: what is summed is the current ``u``.

A long vector is not swept that often: a sample tells between which two thresholds the answer
must lie, one pass sums the entries above and keeps those between, and Newton steps look only at
the latter. If the sample was misleading, they show it, and all entries are taken.

``kind`` says which magnitudes are thresholded: ABSOLUTE ``|v|``, POSITIVE ``max(v, 0)`` (the
set with ``u ≥ 0`` added), or RAW ``v`` (the simplex, whose threshold may be negative). ``work``
and ``x`` are scratch of v's dtype with ``v.size`` entries rounded up to a vector (``work_size``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import config
from numba.extending import intrinsic

from smalto.kernels.jit import kernel
from smalto.kernels.simd import (
    above,
    fma,
    hmax,
    hsum,
    lanes,
    load,
    lowest_bit,
    splat,
    store,
    vabs,
    vmax,
    zero,
)

ABSOLUTE, POSITIVE, RAW = 0, 1, 2  # kinds of magnitudes
LONG = 8192  # entries from which a sample pays
SAMPLE = 4096  # entries of the sample, at most
STANDARD_ERRORS = 4.0  # by which the thresholds from a sample are widened
UNSEEN = 1e-5  # share of r: a smaller excess is not looked into
BLOCK = 128  # vectors summed in the vector's precision, before double precision takes over


class Ball(NamedTuple):
    """The set ``a‖u‖₁ + b‖u‖² ≤ r`` (RAW: ``u ≥ 0, a Σu = r``)."""

    a: float
    b: float
    r: float
    kind: int


class Above(NamedTuple):
    """Entries above a level that are known only by sums of how much they exceed it."""

    level: float
    entries: float  # how many
    s1: float  # sum
    s2: float  # sum of squares


@intrinsic
def reached(typingctx, x, y):
    """Give 1 in the lanes where ``x >= y``, 0 in the others."""

    def codegen(context, builder, signature, args):
        kind = args[0].type
        ones, zeros = (ir.Constant(kind, [c] * kind.count) for c in (1.0, 0.0))
        return builder.select(builder.fcmp_ordered(">=", *args), ones, zeros)

    return x(x, x), codegen


def _reached(x, y):
    return (x >= y).astype(x.dtype)


if config.DISABLE_JIT:
    reached = _reached


def work_size(m: int) -> int:
    """The number of entries in the workspace of a vector of length m, for either dtype."""
    return (m + 15) // 16 * 16


@kernel
def magnitudes(v, kind, x):
    """Write v's magnitudes to x, padded with -inf to whole vectors.

    Returns their sum, sum of squares and maximum, and 0.0, or NaN if v is not finite.
    """
    w = lanes(v)
    m = v.size
    whole = m - m % w
    s1, s2, unsound = 0.0, 0.0, 0.0
    top = splat(v.dtype.type(-np.inf))
    none = zero(v)
    for begin in range(0, whole, BLOCK * w):
        b1, b2, bad = none, none, none
        for i in range(begin, min(begin + BLOCK * w, whole), w):
            y = load(v, i)
            bad = fma(y, none, bad)
            if kind == ABSOLUTE:
                y = vabs(y)
            elif kind == POSITIVE:
                y = vmax(y, none)
            store(x, i, y)
            b1, b2, top = b1 + y, fma(y, y, b2), vmax(y, top)
        s1, s2, unsound = s1 + hsum(b1), s2 + hsum(b2), unsound + hsum(bad)
    highest = hmax(top)
    for i in range(whole, m):
        y = v[i]
        unsound += y * 0
        if kind == ABSOLUTE:
            y = abs(y)
        elif kind == POSITIVE and not y > 0:
            y = v.dtype.type(0)
        x[i] = y
        s1, s2, highest = s1 + y, s2 + float(y) * float(y), max(highest, y)
    for i in range(m, whole + w if whole < m else m):
        x[i] = -np.inf
    return s1, s2, float(highest), unsound


@kernel
def beyond(x, n, t, scale):
    """Count and sum ``(x - t) * scale`` and its square over ``x >= t``; n fills vectors."""
    w = lanes(x)
    count, s1, s2 = 0.0, 0.0, 0.0
    threshold, factor = splat(x.dtype.type(t)), splat(x.dtype.type(scale))
    none = zero(x)
    for begin in range(0, n, BLOCK * w):
        c, b1, b2 = none, none, none
        for i in range(begin, min(begin + BLOCK * w, n), w):
            y = load(x, i)
            d = vmax(y - threshold, none) * factor
            c, b1, b2 = c + reached(y, threshold), b1 + d, fma(d, d, b2)
        count, s1, s2 = count + hsum(c), s1 + hsum(b1), s2 + hsum(b2)
    return count, s1, s2


@kernel
def excess(s1, s2, ball):
    """Compute ``a s1 + b s2 - r``; s2 may have overflowed if b = 0."""
    a, b, r, _ = ball
    return a * s1 - r if b == 0.0 else a * s1 + b * s2 - r


@kernel
def bound_from_largest(top, ball):
    """Find the lam for S = {the largest entry}, a lower bound of the solution."""
    a, b, r, _ = ball
    if b == 0.0:
        return (a * top - r) / (a * a)
    unit = 1.0 / top if top > 1.0 else 1.0  # top² may overflow
    x = top * unit
    q = (a * unit * x + b * x * x - r * unit * unit) / (a * a + 4.0 * r * b)
    return 2.0 * q / (unit + math.sqrt(unit * unit + 4.0 * b * max(q, 0.0))) / unit


@kernel
def bound_from_all(s1, s2, m, ball):
    """Find the lam for S = all entries, a lower bound of the solution, exact if none is zero."""
    a, b, r, _ = ball
    q = excess(s1, s2, ball) / (m * a * a + 4.0 * r * b)
    if not abs(q) < np.inf or (b > 0.0 and q < 0.0):
        return -np.inf
    return 2.0 * q / (1.0 + math.sqrt(1.0 + 4.0 * b * q))


@kernel
def step_for(over, count, ball):
    """Find the step of lam that makes up for an excess if these many entries stay nonzero."""
    a, b, r, _ = ball
    q = over / (count * a * a + 4.0 * r * b)
    return 2.0 * q / (1.0 + math.sqrt(1.0 + 4.0 * b * q))


@kernel
def entries_at(x, n, t):
    """Count the entries that are equal to t."""
    count, threshold = 0.0, x.dtype.type(t)
    for i in range(n):
        count += x[i] == threshold
    return count


@kernel
def newton(x, n, lam, ball, above):
    """Step from lam to the solution for the n entries of x together with those above a level.

    Returns (t, scale, shift, count, steps): the magnitudes of the solution are
    ``max((x - t) * scale - shift, 0)``, of which count are positive or just zero. Without any
    steps, lam was not below the solution.
    """
    a, b, r, kind = ball
    before, steps = -1.0, 0
    k = 1.0 + 2.0 * b * lam
    while True:
        t = float(x.dtype.type(a * lam))  # as the entries see it: x - t is then exact near t
        count, s1, s2 = beyond(x, n, t, 1.0 / k)
        if above.entries > 0.0:
            d = above.level - t
            count += above.entries
            s1 += (above.s1 + above.entries * d) / k
            s2 += (above.s2 + 2.0 * d * above.s1 + above.entries * d * d) / k / k
        over = excess(s1, s2, ball)
        mu = step_for(over, count, ball)
        if not mu > 0.0 or (count == before and over <= UNSEEN * r):
            break
        if (
            count == before
        ):  # t was rounded: the entries that it has reached leave with the rest of lam
            tied = entries_at(x, n, t)
            mu = step_for(over, count - tied, ball)
            if tied == 0.0 or float(x.dtype.type(a * (lam + k * mu))) == t:
                break
            count -= tied
        before, steps = count, steps + 1
        lam += k * mu
        k *= 1.0 + 2.0 * b * mu
    if kind != RAW and t <= 0.0 and not mu > 0.0:
        mu = 0.0  # feasible to rounding
    grown = 1.0 + 2.0 * b * mu
    return t, 1.0 / (k * grown), a * mu / grown, count, steps


@kernel
def spread(v, kind, x, n):
    """Write the magnitudes of n entries spread over v to x; return their maximum."""
    w = lanes(v)
    none = zero(v)
    top = splat(v.dtype.type(-np.inf))
    count = n // w
    for j in range(count):
        y = load(v, j * (v.size // w) // count * w)
        if kind == ABSOLUTE:
            y = vabs(y)
        elif kind == POSITIVE:
            y = vmax(y, none)
        store(x, j * w, y)
        top = vmax(y, top)
    return float(hmax(top))


@kernel
def between(v, kind, x, lo, hi):
    """Copy the magnitudes inside (lo, hi) to x, padded with -inf, and sum those from hi on.

    Returns how many were copied (padding included), the number, sum and sum of squares of
    ``|v| - hi`` from hi on, and 0.0, or NaN if v is not finite.
    """
    w = lanes(v)
    m = v.size
    whole = m - m % w
    n, count, s1, s2, unsound = 0, 0.0, 0.0, 0.0, 0.0
    low, high = v.dtype.type(lo), v.dtype.type(hi)
    lows, highs, none = splat(low), splat(high), zero(v)
    for begin in range(0, whole, BLOCK * w):
        b1, b2, c, bad = none, none, none, none
        for i in range(begin, min(begin + BLOCK * w, whole), w):
            y = load(v, i)
            bad = fma(y, none, bad)
            if kind == ABSOLUTE:
                y = vabs(y)
            d = vmax(y - highs, none)
            b1, b2, c = b1 + d, fma(d, d, b2), c + reached(y, highs)
            bits = above(y, lows) & above(highs, y)
            while bits:
                y1 = v[i + lowest_bit(bits)]
                x[n] = abs(y1) if kind == ABSOLUTE else y1
                n += 1
                bits &= bits - 1
        count, s1, s2 = count + hsum(c), s1 + hsum(b1), s2 + hsum(b2)
        unsound += hsum(bad)
    for i in range(whole, m):
        y1 = abs(v[i]) if kind == ABSOLUTE else v[i]
        unsound += y1 * 0
        if y1 >= high:
            count, s1, s2 = count + 1.0, s1 + (y1 - high), s2 + (y1 - high) ** 2
        elif y1 > low:
            x[n] = y1
            n += 1
    while n % w:
        x[n] = -np.inf
        n += 1
    return n, count, s1, s2, unsound


@kernel
def solve_sample(x, n, top, ball):
    """Find threshold and active count of the n magnitudes in x, whose maximum is top."""
    lam = bound_from_largest(top, ball)
    if ball.kind != RAW:
        lam = max(lam, 0.0)
    t, _, _, count, _ = newton(x, n, lam, ball, Above(0.0, 0.0, 0.0, 0.0))
    return t, count


@kernel
def threshold_of_long(v, ball, x):
    """Find (t, scale, shift) as `newton` does, whether they hold, and 0.0 or NaN (not finite)."""
    a, b, r, kind = ball
    w = lanes(v)
    n = min(SAMPLE, v.size // 16) // w * w
    share = r * n / v.size
    top = spread(v, kind, x, n)
    _, count = solve_sample(x, n, top, Ball(a, b, share, kind))
    margin = STANDARD_ERRORS / math.sqrt(count)  # of the sampled excess
    more = 1.0 + margin if margin < 1.0 else (1.0 + margin) ** 2
    # With r itself the threshold is certainly a lower bound.
    lo, _ = solve_sample(x, n, top, Ball(a, b, min(r, share * more), kind))
    if kind != RAW and not lo > 0.0:
        return 0.0, 1.0, 0.0, False, 0.0
    hi = np.inf
    if margin < 1.0:
        hi, _ = solve_sample(x, n, top, Ball(a, b, share * (1.0 - margin), kind))
    n, count, s1, s2, defect = between(v, kind, x, lo, hi)
    t, scale, shift, _, steps = newton(x, n, lo / a, ball, Above(hi, count, s1, s2))
    return t, scale, shift, steps > 0 and t <= hi, defect


@kernel
def shrink(v, out, kind, t, scale, shift):
    """Write ``max((|v| - t) * scale - shift, 0)`` with v's signs to out, zeros without sign."""
    kind_of = v.dtype.type
    none, t, scale, shift = kind_of(0), kind_of(t), kind_of(scale), kind_of(shift)
    if kind == ABSOLUTE:
        for i in range(v.size):
            up = max((v[i] - t) * scale - shift, none)
            out[i] = up - max((-v[i] - t) * scale - shift, none)
    else:
        for i in range(v.size):
            out[i] = max((v[i] - t) * scale - shift, none)


@kernel
def project(v, out, a, b, r, kind, x):
    """Project v onto ``a‖u‖₁ + b‖u‖² ≤ r`` (RAW: onto ``u ≥ 0, a Σu = r``); out may be v.

    Needs a > 0, or b > 0 and kind not RAW, and r > 0; best scaled so that max(a, b) = 1.
    Returns whether v is finite; if it is not, ``out`` is not valid.
    """
    ball = Ball(a, b, r, kind)
    if v.size >= LONG and a > 0.0:
        t, scale, shift, holds, defect = threshold_of_long(v, ball, x)
        if holds and defect == 0.0:
            shrink(v, out, kind, t, scale, shift)
            return True
    s1, s2, top, defect = magnitudes(v, kind, x)
    if defect != 0.0:  # or NaN
        return False
    if kind != RAW and excess(s1, s2, ball) <= 0.0:
        for i in range(v.size):
            out[i] = v[i] if kind == ABSOLUTE else x[i]
        return True
    lam = max(bound_from_largest(top, ball), bound_from_all(s1, s2, v.size, ball))
    if kind != RAW:
        lam = max(lam, 0.0)
    n = (v.size + lanes(v) - 1) // lanes(v) * lanes(v)
    t, scale, shift, _, _ = newton(x, n, lam, ball, Above(0.0, 0.0, 0.0, 0.0))
    shrink(v, out, kind, t, scale, shift)
    return True


@kernel
def project_rows(rows, out, a, b, r, kind, work):
    """Project every row; return whether all are finite."""
    finite = True
    for i in range(rows.shape[0]):
        finite &= project(rows[i], out[i], a, b, r, kind, work)
    return finite


@kernel
def project_elastic_net(v, gamma, positive, work):
    """Project v in place onto ``‖u‖² + gamma ‖u‖₁ ≤ 1``, with ``u ≥ 0`` if positive."""
    unit = 1.0 / max(gamma, 1.0)
    project(v, v, gamma * unit, unit, unit, POSITIVE if positive else ABSOLUTE, work)


@kernel
def elastic_net_gauge(v, gamma, positive):
    """Compute ``‖v‖² + gamma ‖v‖₁``; infinite if v has a negative entry and may not."""
    s1, s2 = 0.0, 0.0
    for i in range(v.size):
        x = np.float64(v[i])
        if positive and x < 0.0:
            return np.inf
        s1 += abs(x)
        s2 += x * x
    return s2 + gamma * s1
