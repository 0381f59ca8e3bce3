"""Simultaneous orthogonal matching pursuit on the Gram matrix: a group of signals, one set of atoms.

Approaches ``min_A ½‖X − AD‖²`` with few atoms in use, one atom a step, with all coefficients of
all signals fitted anew. As for a single signal (`omp_choice.py`), with ``h`` the part of the new
atom outside the span of the earlier ones, normalized, against all atoms, a step is

    c ← c − y h  for the correlations of each signal,  and  outside ← outside − h²,

and the atom with the largest score ``t_j/outside_j`` joins, where ``t_j`` is the sum of ``c_j²``
over the signals: its score is by how much the squared error of the group falls. Atoms, their factor
and h belong to the group; only c and y belong to a signal. And c need not be written, as

    t ← t − 2 h Σ y c + h² Σ y²,   Σ y c = Σ y q − Σ_r (Σ y y_r) h_r,

with sums over the signals, of which ``Σ y q`` reads the correlations q of the signals once. When t
has become so small that its rounding counts, c is computed, and takes the place of q.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.aligned import empty
from smalto.kernels.coding.active_set import (
    INVERSE,
    LANES,
    ActiveSet,
    append,
    capacity,
    largest_value,
    make_active_set,
    subtract_rows,
)
from smalto.kernels.coding.joint_tables import group_norm, padded, write_group
from smalto.kernels.coding.omp_fit import ROUGH_32, ROUGH_64, correlate
from smalto.kernels.flat import flat
from smalto.kernels.jit import kernel
from smalto.kernels.precision import EPSILON_32, EPSILON_64, TINY_32, TINY_64, is_double
from smalto.kernels.simd import (
    above,
    fma,
    fnma,
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
FRESH = 1e-3  # share of the error at which t was summed up: below, it is summed up again
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
    c: Any  # correlations of the residual of each signal, one row after the other, if computed
    outside: Any  # (width,): squared norms of the atoms outside the span of the active ones
    total: Any  # (width,): t
    score: Any  # (width,)
    h: Any  # rows h of the active atoms, one after the other
    new: Any  # (width,): a row of h, followed by weights of the rows before it
    sums: Any  # (width,): −Σ y c, followed by weights of the rows that are added up
    zeros: Any  # (width,)
    lines: Any  # int64: numbers of these rows
    y: Any  # table of L⁻¹ q, then of coefficients
    order: Any  # int64 (room,)


def make_joint_pursuit(width: int, room: int, largest_group: int, dtype: Any) -> JointPursuit:
    """Room for ``room`` active atoms out of ``width``: one per thread, reused for every group."""
    outside, total, score = (empty(width, dtype) for _ in range(3))
    most = max(largest_group, room)
    return JointPursuit(
        make_active_set(room),
        np.empty(largest_group * width, dtype),
        outside,
        total,
        score,
        empty(room * width, dtype),
        empty(width + room, dtype),
        empty(width + most, dtype),
        np.zeros(width, dtype),
        np.empty(most, np.int64),
        np.empty(room * padded(largest_group)),
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
def _sum_up(rows, first, n, pursuit):
    """Write t and all scores from the correlations in the n rows from ``first`` on; the largest."""
    outside, total, score = pursuit.outside, pursuit.total, pursuit.score
    width = score.size
    none = zero(score)
    top = none
    for j in range(0, width, lanes(score)):
        t = none
        for i in range(first, first + n):
            v = load(rows, i * width + j)
            t = fma(v, v, t)
        store(total, j, t)
        v = ratio(t, load(outside, j))
        store(score, j, v)
        top = vmax(top, v)
    return hmax(top)


@kernel
def _renew(rows, first, n, since, pursuit, s):
    """Write c from its values in some rows before the atoms from ``since`` on; the largest score."""
    c, y, h, sums, lines = pursuit.c, pursuit.y, pursuit.h, pursuit.sums, pursuit.lines
    width, size = pursuit.score.size, padded(n)
    for r in range(since, s):
        lines[r - since] = r
    for i in range(n):
        for r in range(since, s):
            sums[width + r - since] = y[r * size + i]
        subtract_rows(h, width, rows, (first + i) * width, lines, s - since, sums)
        for j in range(0, width, lanes(c)):
            store(c, i * width + j, load(sums, j))
    return _sum_up(c, np.int64(0), n, pursuit)


@kernel
def _sum_products(rows, first, n, since, pursuit, s):
    """Write ``−Σ y c`` of the last of s + 1 atoms, c being as `_renew` would write it."""
    y, sums, lines = pursuit.y, pursuit.sums, pursuit.lines
    width, size = pursuit.score.size, padded(n)
    last = s * size
    for i in range(n):
        lines[i] = first + i
        sums[width + i] = y[last + i]
    subtract_rows(rows, width, pursuit.zeros, np.int64(0), lines, n, sums)
    for r in range(since, s):
        inner = splat(0.0)
        for o in range(0, size, LANES):
            inner = fma(load(y, r * size + o), load(y, last + o), inner)
        lines[r - since] = r
        sums[width + r - since] = -hsum(inner)
    subtract_rows(pursuit.h, width, sums, np.int64(0), lines, s - since, sums)


@kernel
def _advance(dictionary, gained, look_ahead, pursuit, s):
    """Write h of the last of s + 1 atoms, and bring t, what is outside and scores up to date.

    ``gained`` is ``Σ y²``. Returns the largest score.
    """
    atoms, work = pursuit.active
    outside, total, score, h, new = (
        pursuit.outside,
        pursuit.total,
        pursuit.score,
        pursuit.h,
        pursuit.new,
    )
    width, least = score.size, dictionary.least
    factor = (INVERSE + s) * atoms.size
    scratch = factor + atoms.size  # L⁻¹ g, from `append`
    for r in range(s):
        pursuit.lines[r] = r
        new[width + r] = work[scratch + r]
    subtract_rows(h, width, dictionary.G, atoms[s] * width, pursuit.lines, s, new)
    scale, squares = splat(h.dtype.type(work[factor + s])), splat(h.dtype.type(gained))
    none = zero(score)
    top = none
    for j in range(0, width, lanes(score)):
        v = load(new, j) * scale
        store(h, s * width + j, v)
        norm = load(outside, j)
        if look_ahead:
            norm = vmax(fnma(v, v, norm), load(least, j))
            store(outside, j, norm)
        w = load(pursuit.sums, j)
        t = vmax(fma(v, fma(v, squares, w + w), load(total, j)), none)
        store(total, j, t)
        t = ratio(t, norm)
        store(score, j, t)
        top = vmax(top, t)
    return hmax(top)


@kernel
def _fit(group, j, pursuit, s):
    """Fit the residuals by atom j, just appended to s others: y; returns the squares gained."""
    work, stride, y = pursuit.active.work, pursuit.active.atoms.size, pursuit.y
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
    return hsum(gained)


@kernel
def _pursue(dictionary, group, targets, pursuit):
    """Let atoms join until a limit is reached; returns their number, and whether they are too few.

    −1 if there is no room, −2 if going on takes more precision than that of the scores. They are too
    few where rounding may have kept others from joining.
    """
    active, c, outside, score, n = (
        pursuit.active,
        pursuit.c,
        pursuit.outside,
        pursuit.score,
        group.n,
    )
    width = score.size
    unit, tiny = (EPSILON_64, TINY_64) if is_double(c) else (EPSILON_32, TINY_32)
    near = c.dtype.type(1.0 - TIE * unit)
    noise = (NOISE * unit) ** 2 * group.norm
    gain = max(noise, SUBNORMAL * tiny)
    coarse = is_double(dictionary.exact) != is_double(c)
    if coarse:
        gain = COARSE * group.norm
    most, eps = targets.most, targets.eps * n
    s, error = np.int64(0), group.norm
    rows, first, since, fresh = group.q, group.row, np.int64(0), FRESH * error
    top = 0.0
    if most > 0 and error > eps:
        for j in range(width):
            outside[j] = dictionary.norms[j]
        top = np.float64(_sum_up(rows, first, n, pursuit))
    while s < most and error > eps and top > gain:
        if s == capacity(active):
            return np.int64(-1), False
        j = _first_above(score, width, c.dtype.type(top) * near)
        if since < s and not pursuit.total[j] > fresh * dictionary.norms[j]:
            top = np.float64(_renew(rows, first, n, since, pursuit, s))
            rows, first, since, fresh = c, np.int64(0), s, FRESH * error
            continue
        # Does it depend on the active atoms, or its gain on nothing but rounding?
        out = targets.look_ahead and not outside[j] > dictionary.least[j]
        out |= not np.float64(score[j]) * outside[j] > gain * dictionary.norms[j]
        outside[j] = np.inf
        share = dictionary.tolerance
        joins = not out and append(dictionary.exact, width, active, s, j, 0.0, share)
        if coarse and not joins:
            return np.int64(-2), False
        if not joins:
            score[j] = 0.0
            top = np.float64(largest_value(score, np.int64(0), width))
            continue
        gained = _fit(group, j, pursuit, s)
        error -= gained
        if s + 1 < most and error > eps:
            _sum_products(rows, first, n, since, pursuit, s)
            top = np.float64(_advance(dictionary, gained, targets.look_ahead, pursuit, s))
        s += 1
    if coarse and s < most and error > eps:
        return np.int64(-2), False
    rough = (ROUGH_64 if is_double(c) else ROUGH_32) * group.norm
    return s, s < most and (error > max(eps, rough) or error < -rough)


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
    groups for which that is not precise enough get empty codes. These have negative numbers of
    rounds, and so have those where rounding may have ended the pursuit too early.
    """
    q, exact = flat(fast), flat(signals.Q)
    active = pursuit.active
    while g < signals.groups.size - 1:
        row, n = signals.groups[g], signals.groups[g + 1] - signals.groups[g]
        if out.indptr[row] + n * capacity(active) > out.indices.size:
            return g
        group = Group(q, exact, given, row, n, group_norm(signals, g))
        s, too_few = _pursue(dictionary, group, targets, pursuit)
        if s == -1:
            return g
        count = -1 if s == -2 else -s if too_few else s  # an atom a round
        s = max(s, 0)
        _solve(active, s, n, pursuit.y)
        write_group(pursuit.y, active.atoms, s, pursuit.order, row, n, out)
        for i in range(row, row + n):
            rounds[i] = count
        g += 1
    return g
