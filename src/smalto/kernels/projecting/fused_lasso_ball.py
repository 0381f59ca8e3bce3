"""Fused lasso: signal approximation and projection onto its ball (Appendix B.2).

The solution u of ``½‖v - u‖² + tau (a1‖u‖₁ + a2 FL(u) + b‖u‖²)`` is found from the total
variation problem alone: ``u = soft(y, tau a1) / (1 + 2 b tau)`` with ``y = y(tau a2)`` its
solution. In one dimension y is a row of pieces which, as the penalty grows, only ever fuse:
piece p, of sum S, length n, with jumps of signs l and r at its ends, has the height
``(S - tau a2 (l - r)) / n``. Hence y can be advanced from pieces to pieces, and each solve
after the first costs as much as there are pieces left, not entries.

The projection needs the tau at which the constraint ``a1‖u‖₁ + a2 FL(u) + b‖u‖² ≤ r`` is
tight. Between two kinks it has a closed form (``tight``), linear in ``tau + b tau²``; so tau is
found by Newton steps along the pieces, and a step that finds the same pieces again is exact.
The excess is convex except for pieces that leave zero, so that nearly every step comes from the
left; the others are guarded by a bracket.

Everything is computed in float64. ``work`` has the shape (WORK_ROWS, m + 1).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from smalto.kernels.jit import kernel
from smalto.kernels.projecting.fused_pieces import KNOTS, LOW, advance, cut, fuse, spell, unit_of

WORK_ROWS = KNOTS + 6
STEPS = 200  # of Newton; a dozen are usual
LONG = 4096  # entries from which a sample pays
SAMPLE = 1024  # entries of the sample, in stretches of ...
STRETCH = 64
CAUTION = 0.9  # share of the tau of a sample from which the search begins
LAST_BITS = 4e-16  # relative difference of two tau that counts as none


class FusedBall(NamedTuple):
    """The set ``a1‖u‖₁ + a2 FL(u) + b‖u‖² ≤ r``, for signals multiplied by ``unit``."""

    a1: float
    a2: float
    b: float
    r: float
    unit: float
    positive: bool  # whether u ≥ 0


@kernel
def gauge(v, a1, a2, b, positive):
    """Compute ``a1‖u‖₁ + a2 FL(u) + b‖u‖²`` for u = v, or its positive part."""
    s1, s2, jumps, before = 0.0, 0.0, 0.0, 0.0
    for i in range(v.size):
        x = np.float64(v[i]) if v[i] > 0.0 or not positive else np.float64(0.0)
        s1 += abs(x)
        s2 += x * x
        if i > 0:
            jumps += abs(x - before)
        before = x
    return a1 * s1 + a2 * jumps + b * s2


@kernel
def tight(pieces, count, tau, ball):
    """Find ``unit tau' + b tau'²`` of the tau' that makes the constraint tight.

    For the given pieces, of which those are nonzero that are at tau. With alpha the mean of such a
    piece and beta the slope at which its height shrinks, its value is
    ``(alpha - tau beta) / (unit + 2 b tau)``, which put into the constraint leaves
    ``b Σ n alpha² + unit Σ n alpha beta - r unit² = (Σ n beta² + 4 r b) (unit tau + b tau²)``.
    """
    a1, a2, b, r, unit, positive = ball
    squares, products, slopes, left = 0.0, 0.0, 0.0, 0.0
    for p in range(count):
        total, size, right = pieces[0, p], pieces[1, p], pieces[2, p]
        pull = a2 * (left - right)
        left = right
        here = total - tau * pull
        band = tau * a1 * size
        if here > band:
            slope = a1 * size + pull
        elif here < -band and not positive:
            total, slope = -total, a1 * size - pull
        else:
            continue
        squares += total * total / size
        products += total * slope / size
        slopes += slope * slope / size
    return (b * squares + unit * products - r * unit * unit) / (slopes + 4.0 * r * b)


@kernel
def root(q, ball):
    """Solve ``unit tau + b tau² = q``; 0 if there is no tau >= 0."""
    if not q > 0.0:
        return 0.0
    b, unit = ball.b, ball.unit
    return 2.0 * q / (unit + math.sqrt(unit * unit + 4.0 * b * q))


@kernel
def tighten(work, count, lo, tau, ball, known):
    """Step from tau to the solution; work[0:4] holds the ``count`` pieces at lo, below tau.

    With ``known``, their fourth row says when they fuse; otherwise total variation is solved for
    it. Returns (found, count, tau): pieces ``work[found : found + 4]`` make the solution.
    """
    a2 = ball.a2
    here, there, found, hi = 0, 4, 4, np.inf
    for _ in range(STEPS):
        if not known:
            advance(work, here, count, lo * a2, tau * a2)
        rises = work[here + 2] if known else work[LOW]
        found, pieces = there, work[there : there + 4]
        left = fuse(work[here : here + 4], rises, count, tau * a2, pieces)
        new = root(tight(pieces, left, tau, ball), ball)
        if abs(new - tau) <= LAST_BITS * tau or hi <= lo * (1.0 + LAST_BITS):
            tau = new
            break
        if new > tau:
            lo, count = tau, left
            here, there = there, here
        else:
            hi = tau
        tau = new if lo < new < hi else 0.5 * (lo + hi)
    return found, left, tau


@kernel
def correction(pieces, count, tau, ball, scale):
    """Find the factor, 1 up to rounding, that makes the constraint hold as computed."""
    a1, a2, b, r, _, positive = ball
    s1, s2, jumps, left, before = 0.0, 0.0, 0.0, 0.0, 0.0
    for p in range(count):
        y = (pieces[0, p] - tau * a2 * (left - pieces[2, p])) / pieces[1, p]
        left = pieces[2, p]
        x = max(y - tau * a1, 0.0)
        if not positive:
            x -= max(-y - tau * a1, 0.0)
        x *= scale
        s1 += abs(x) * pieces[1, p]
        s2 += x * x * pieces[1, p]
        if p > 0:
            jumps += abs(x - before)
        before = x
    linear = a1 * s1 + a2 * jumps
    if not s2 > 0.0:
        return 1.0
    return 2.0 * r / (linear + math.sqrt(linear * linear + 4.0 * b * s2 * r))


@kernel
def write_projection(work, here, count, tau, ball, out):
    """Write the projection made of these pieces."""
    pieces = work[here : here + 4]
    scale = 1.0 / (ball.unit + 2.0 * ball.b * tau)
    scale *= correction(pieces, count, tau, ball, scale)
    spell(pieces, count, tau * ball.a2, tau * ball.a1, scale, ball.positive, out)


@kernel
def keep_feasible(v, out, ball):
    """Write v, or its positive part, to out if that is feasible; return whether it was."""
    if not gauge(v, ball.a1, ball.a2, ball.b, ball.positive) <= ball.r:
        return False
    for i in range(v.size):
        out[i] = v[i] if v[i] > 0.0 or not ball.positive else 0.0
    return True


@kernel
def guess(v, ball, work):
    """Find a tau probably not far below the solution, from stretches of v."""
    x = work[WORK_ROWS - 1, :SAMPLE]
    for i in range(0, SAMPLE, STRETCH):
        begin = i * (v.size - STRETCH) // SAMPLE
        for j in range(STRETCH):
            x[i + j] = v[begin + j]
    count = cut(x, ball.unit, work[0], work[1], work[2])
    share = ball.r * SAMPLE / v.size
    part = FusedBall(ball.a1, ball.a2, ball.b, share, ball.unit, ball.positive)
    tau = root(tight(work[:4], count, 0.0, part), part)
    return CAUTION * tighten(work, count, 0.0, tau, part, False)[2]


@kernel
def project(v, out, a1, a2, b, r, positive, work):
    """Project v onto ``a1‖u‖₁ + a2 FL(u) + b‖u‖² ≤ r``; out may be v.

    Needs b > 0 and r > 0; best scaled so that max(a1, a2, b) = 1. Returns whether v is finite; if
    it is not, ``out`` is not valid.
    """
    ball = FusedBall(a1, a2, b, r, unit_of(v), positive)
    if not ball.unit > 0.0:
        return False
    if keep_feasible(v, out, ball):
        return True
    tau = guess(v, ball, work) if v.size >= LONG else 0.0
    count = cut(v, ball.unit, work[0], work[1], work[2])
    tau = max(tau, root(tight(work[:4], count, 0.0, ball), ball))
    here, count, tau = tighten(work, count, 0.0, tau, ball, False)
    write_projection(work, here, count, tau, ball, out)
    return True


@kernel
def project_rows(rows, out, a1, a2, b, r, positive, work):
    """Project every row; return whether all are finite."""
    finite = True
    for i in range(rows.shape[0]):
        finite &= project(rows[i], out[i], a1, a2, b, r, positive, work)
    return finite


@kernel
def signal(v, out, gamma1, gamma2, gamma3, positive, work):
    """Minimize ``½‖v - u‖² + gamma1‖u‖₁ + gamma2 FL(u) + gamma3/2 ‖u‖²``; out may be v.

    Returns whether v is finite; if it is not, ``out`` is not valid.
    """
    unit = unit_of(v)
    if not unit > 0.0:
        return False
    count = cut(v, unit, work[0], work[1], work[2])
    advance(work, 0, count, 0.0, gamma2 * unit)
    count = fuse(work[:4], work[LOW], count, gamma2 * unit, work[4:8])
    scale = 1.0 / unit / (1.0 + gamma3)
    spell(work[4:8], count, gamma2 * unit, gamma1 * unit, scale, positive, out)
    return True


@kernel
def signal_rows(rows, out, gamma1, gamma2, gamma3, positive, work):
    """Approximate every row; return whether all are finite."""
    finite = True
    for i in range(rows.shape[0]):
        finite &= signal(rows[i], out[i], gamma1, gamma2, gamma3, positive, work)
    return finite


@kernel
def project_fused_lasso(v, gamma1, gamma2, positive, work):
    """Project v in place onto ``‖u‖² + gamma1‖u‖₁ + gamma2 FL(u) ≤ 1``, u ≥ 0 if positive."""
    unit = 1.0 / max(gamma1, gamma2, 1.0)
    project(v, v, gamma1 * unit, gamma2 * unit, unit, unit, positive, work)


@kernel
def fused_lasso_gauge(v, gamma1, gamma2, positive):
    """Compute ``‖v‖² + gamma1‖v‖₁ + gamma2 FL(v)``; infinite if v < 0 somewhere and may not."""
    for i in range(v.size):
        if positive and v[i] < 0.0:
            return np.inf
    return gauge(v, gamma1, gamma2, 1.0, False)
