"""Simultaneous orthogonal matching pursuit on the Gram matrix: a group of signals, one set of atoms.

Approaches ``min_A ½‖X − AD‖²`` with few atoms in use, one atom a step, with all coefficients of
all signals fitted anew. As for a single signal (`omp_choice.py`), with ``h`` the part of the new
atom outside the span of the earlier ones, normalized, against all atoms, a step is

    c ← c − y h  for the correlations of each signal,  and  outside ← outside − h²,

and the atom with the largest score ``Σ c_j²/outside_j``, summed over the signals, joins: its score
is by how much the squared error of the group falls. Atoms, their factor and h belong to the group;
only c and y belong to a signal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.coding.active_set import (
    INVERSE,
    LANES,
    ActiveSet,
    append,
    capacity,
    largest_value,
    make_active_set,
)
from smalto.kernels.coding.joint_tables import group_norm, padded, write_group
from smalto.kernels.coding.omp_fit import correlate
from smalto.kernels.flat import flat
from smalto.kernels.jit import kernel
from smalto.kernels.precision import EPSILON_32, EPSILON_64, TINY_32, TINY_64, is_double
from smalto.kernels.simd import (
    above,
    fma,
    hmax,
    hsum,
    lanes,
    load,
    lowest_bit,
    ratio,
    splat,
    store,
    vmax,
    zero,
)

COARSE = 1e-5  # share of ‖X‖² that an atom must gain for it to be chosen in float32
NOISE = 32.0  # units in the last place of ‖X‖: an atom must gain the square of it
TIE = 4.0  # units in the last place by which scores may differ and still be equal
SUBNORMAL = 4.0  # times the smallest normal number: a smaller score has lost its digits


class Dictionary(NamedTuple):
    """The atoms, as the choice of the next one needs them."""

    exact: Any  # G in the precision of the data, flat
    G: Any  # G as atoms are chosen by it: float32 if all correlations are
    norms: Any  # (width,): squared norms, infinite for zero atoms
    least: Any  # (width,): what of it must be outside the span of others for an atom to join
    tolerance: float  # the same, as a share of the squared norm


class Targets(NamedTuple):
    """Where a pursuit ends, and how atoms are chosen."""

    most: int  # atoms of a group, at most
    eps: float  # mean over a group of the squared errors that is small enough
    look_ahead: bool  # whether an atom is scored by its part outside the span of the active ones


class Group(NamedTuple):
    """One group of signals."""

    q: Any
    exact: Any  # q in the precision of the data
    given: Any  # what that is computed from where it is read, or None if all of it is there
    row: int  # its first signal
    n: int
    norm: float  # ‖X‖²


class JointPursuit(NamedTuple):
    """Scratch for one group."""

    active: ActiveSet
    c: Any  # correlations of the residual of each signal, one row after the other
    outside: Any  # (width,): squared norms of the atoms outside the span of the active ones
    score: Any  # (width,)
    y: Any  # table of L⁻¹ q, then of coefficients
    by: Any  # −y of each signal for the last atom, followed by its row of the factor
    order: Any  # int64 (room,)


def make_joint_pursuit(width: int, room: int, largest_group: int, dtype: Any) -> JointPursuit:
    """Room for ``room`` active atoms out of ``width``: one per thread, reused for every group."""
    outside, score = np.empty((2, width), dtype)
    return JointPursuit(
        make_active_set(room),
        np.empty(largest_group * width, dtype),
        outside,
        score,
        np.empty(room * padded(largest_group)),
        np.empty(largest_group + room, dtype),
        np.empty(room, np.int64),
    )


@kernel
def _first_above(scores, width, threshold):
    """The first atom with a score above the threshold."""
    bound = splat(threshold)
    for block in range(0, width, lanes(scores)):
        bits = above(load(scores, block), bound)
        if bits != 0:
            return block + lowest_bit(bits)
    return 0


@kernel
def _start(group, norms, pursuit):
    """Write what is outside and all scores for no active atoms; returns the largest score."""
    outside, score = pursuit.outside, pursuit.score
    q, row, n, width = group.q, group.row, group.n, score.size
    none = zero(score)
    top = none
    for j in range(0, width, lanes(score)):
        total = none
        for i in range(n):
            v = load(q, (row + i) * width + j)
            total = fma(v, v, total)
        norm = load(norms, j)
        store(outside, j, norm)
        v = ratio(total, norm)
        store(score, j, v)
        top = vmax(top, v)
    return hmax(top)


@kernel
def _score(h, total, j, look_ahead, least, outside, score):
    """Bring one vector of what is outside and of the scores up to date; returns the scores."""
    norm = load(outside, j)
    if look_ahead:
        norm = vmax(norm - h * h, load(least, j))
        store(outside, j, norm)
    v = ratio(total, norm)
    store(score, j, v)
    return v


@kernel
def _advance(dictionary, old, start, n, look_ahead, pursuit, i):
    """Bring c, what is outside and scores up to date with the i-th active atom; the largest score.

    What c was is read from ``old[start:]``, at first the correlations of the signals. Four vectors of atoms at a time, so that h never leaves the registers.
    """
    active, c, outside, score, _, by, _ = pursuit
    atoms, work = active
    G, least, width = dictionary.G, dictionary.least, score.size
    row = (INVERSE + i) * atoms.size
    step = lanes(c)
    none = zero(c)
    top = none
    for r in range(i + 1):
        by[n + r] = work[row + r]
    j = np.int64(0)
    while j + 4 * step <= width:
        h0, h1, h2, h3 = none, none, none, none
        for r in range(i + 1):
            weight, g = splat(by[n + r]), atoms[r] * width + j
            h0 = fma(weight, load(G, g), h0)
            h1 = fma(weight, load(G, g + step), h1)
            h2 = fma(weight, load(G, g + 2 * step), h2)
            h3 = fma(weight, load(G, g + 3 * step), h3)
        t0, t1, t2, t3 = none, none, none, none
        for signal in range(n):
            weight, p = splat(by[signal]), signal * width + j
            o = start + p
            v0 = fma(weight, h0, load(old, o))
            v1 = fma(weight, h1, load(old, o + step))
            v2 = fma(weight, h2, load(old, o + 2 * step))
            v3 = fma(weight, h3, load(old, o + 3 * step))
            store(c, p, v0)
            store(c, p + step, v1)
            store(c, p + 2 * step, v2)
            store(c, p + 3 * step, v3)
            t0, t1 = fma(v0, v0, t0), fma(v1, v1, t1)
            t2, t3 = fma(v2, v2, t2), fma(v3, v3, t3)
        t0 = _score(h0, t0, j, look_ahead, least, outside, score)
        t1 = _score(h1, t1, j + step, look_ahead, least, outside, score)
        t2 = _score(h2, t2, j + 2 * step, look_ahead, least, outside, score)
        t3 = _score(h3, t3, j + 3 * step, look_ahead, least, outside, score)
        top = vmax(top, vmax(vmax(t0, t1), vmax(t2, t3)))
        j += 4 * step
    while j < width:
        h0, t0 = none, none
        for r in range(i + 1):
            h0 = fma(splat(by[n + r]), load(G, atoms[r] * width + j), h0)
        for signal in range(n):
            p = signal * width + j
            v0 = fma(splat(by[signal]), h0, load(old, start + p))
            store(c, p, v0)
            t0 = fma(v0, v0, t0)
        top = vmax(top, _score(h0, t0, j, look_ahead, least, outside, score))
        j += step
    return hmax(top)


@kernel
def _fit(group, j, pursuit, s):
    """Fit the residuals by atom j, just appended to s others: y and −y; the squares gained."""
    work, stride, y, by = pursuit.active.work, pursuit.active.atoms.size, pursuit.y, pursuit.by
    q, row, n, width = group.exact, group.row, group.n, pursuit.score.size
    size = padded(n)
    factor = (INVERSE + s) * stride
    scratch = factor + stride  # L⁻¹ g, from `append`
    begin = s * size
    for i in range(n):
        start = (row + i) * width
        correlate(group.given, q, start, width, j)
        y[begin + i] = q[start + j]
    for i in range(n, size):
        y[begin + i] = 0.0
    gained = splat(0.0)
    diagonal = splat(work[factor + s])
    for o in range(0, size, LANES):
        v = load(y, begin + o)
        for r in range(s):
            v = fma(splat(-work[scratch + r]), load(y, r * size + o), v)
        v = v * diagonal
        store(y, begin + o, v)
        gained = fma(v, v, gained)
    for i in range(n):
        by[i] = -y[begin + i]
    return hsum(gained)


@kernel
def _pursue(dictionary, group, targets, pursuit):
    """Let atoms join until a limit is reached; returns their number.

    −1 if there is no room, −2 if going on takes more precision than that of the scores.
    """
    active, c, outside, score, _, _, _ = pursuit
    width = score.size
    unit, tiny = (EPSILON_64, TINY_64) if is_double(c) else (EPSILON_32, TINY_32)
    near = c.dtype.type(1.0 - TIE * unit)
    noise = (NOISE * unit) ** 2 * group.norm
    gain = max(noise, SUBNORMAL * tiny)
    coarse = is_double(dictionary.exact) != is_double(c)
    if coarse:
        gain = COARSE * group.norm
    most, eps = targets.most, targets.eps * group.n
    s, error = np.int64(0), group.norm
    top = 0.0
    if most > 0 and error > eps:
        top = np.float64(_start(group, dictionary.norms, pursuit))
    while s < most and error > eps and top > gain:
        if s == capacity(active):
            return np.int64(-1)
        j = _first_above(score, width, c.dtype.type(top) * near)
        # Does it depend on the active atoms, or its gain on nothing but rounding?
        out = targets.look_ahead and not outside[j] > dictionary.least[j]
        out |= not np.float64(score[j]) * outside[j] > gain * dictionary.norms[j]
        outside[j] = np.inf
        share = dictionary.tolerance
        joins = not out and append(dictionary.exact, width, active, s, j, 0.0, share)
        if coarse and not joins:
            return np.int64(-2)
        if not joins:
            score[j] = 0.0
            top = np.float64(largest_value(score, np.int64(0), width))
            continue
        error -= _fit(group, j, pursuit, s)
        s += 1
        if s < most and error > eps:
            old, start = (group.q, group.row * width) if s == 1 else (c, np.int64(0))
            top = np.float64(
                _advance(dictionary, old, start, group.n, targets.look_ahead, pursuit, s - 1)
            )
    if coarse and s < most and error > eps:
        return np.int64(-2)
    return s


@kernel
def _solve(active, s, n, y):
    """Turn y into coefficients, in place: ``L⁻ᵀ y`` of each signal."""
    work, stride, size = active.work, active.atoms.size, padded(n)
    for i in range(s):
        for o in range(0, size, LANES):
            total = splat(0.0)
            for r in range(i, s):
                weight = splat(work[(INVERSE + r) * stride + i])
                total = fma(weight, load(y, r * size + o), total)
            store(y, i * size + o, total)


@kernel
def joint_omp_groups(dictionary, signals, fast, given, g, targets, pursuit, out, rounds):
    """Code the groups of signals from group ``g`` on; returns the first one not done.

    Stops early, to be called again, when the active set or the output has no room left. ``fast``
    are the correlations by which atoms are chosen. If they are in float32 and the signals are not,
    groups for which that is not precise enough get empty codes and −1 rounds.
    """
    q, exact = flat(fast), flat(signals.Q)
    active = pursuit.active
    while g < signals.groups.size - 1:
        row, n = signals.groups[g], signals.groups[g + 1] - signals.groups[g]
        if out.indptr[row] + n * capacity(active) > out.indices.size:
            return g
        group = Group(q, exact, given, row, n, group_norm(signals, g))
        s = _pursue(dictionary, group, targets, pursuit)
        if s == -1:
            return g
        count, s = s, max(s, 0)
        _solve(active, s, n, pursuit.y)
        write_group(pursuit.y, active.atoms, s, pursuit.order, row, n, out)
        for i in range(row, row + n):
            rounds[i] = max(count, -1)  # an atom a round
        g += 1
    return g
