"""Simultaneous orthogonal matching pursuit on the Gram matrix: a group of signals, one set of atoms.

Goes towards ``min_A ½‖X − AD‖²`` with few atoms in use, one atom a step, with all coefficients of
all signals fitted anew. As for a single signal (`omp.py`), with ``h`` the new atom's part outside
the span of the earlier ones, normalised, against all atoms, a step is

    c ← c − y h  for each signal's correlations  and  left ← left − h²,

and the atom with the largest ``Σ c_j²/left_j`` (the sum over the signals) joins: by so much the
group's squared error falls. Atoms, their factor and h are the group's; only c and y are a signal's.
"""

from __future__ import annotations

import numpy as np

from smalto.kernels.coding.active_set import INVERSE, LANES, append, capacity, largest
from smalto.kernels.coding.joint_tables import padded, write_group
from smalto.kernels.jit import kernel
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


@kernel
def _first_above(scores, width, threshold):
    """The first atom with a score above the threshold (ties within rounding: the first)."""
    bound = splat(threshold)
    for block in range(0, width, lanes(scores)):
        bits = above(load(scores, block), bound)
        if bits != 0:
            return block + lowest_bit(bits)
    return 0


@kernel
def _start(q, row, n, width, own, c, left, score):
    """No atom is active: write c, what is left, and all scores; returns the largest."""
    none = zero(c)
    top = none
    for j in range(0, width, lanes(c)):
        total = none
        for i in range(n):
            v = load(q, (row + i) * width + j)
            store(c, i * width + j, v)
            total = fma(v, v, total)
        norm = load(own, j)
        store(left, j, norm)
        v = ratio(total, norm)
        store(score, j, v)
        top = vmax(top, v)
    return hmax(top)


@kernel
def _score(h, total, j, look_ahead, least, left, score):
    """One vector of what is left and of the scores, which it returns."""
    norm = load(left, j)
    if look_ahead:
        norm = vmax(norm - h * h, load(least, j))
        store(left, j, norm)
    v = ratio(total, norm)
    store(score, j, v)
    return v


@kernel
def _advance(G, width, n, look_ahead, least, work, atoms, i, by, c, left, score):
    """The i-th active atom is in: bring c, what is left, and scores up to date; the largest.

    ``by`` has −y of the signals and, behind them, room for a row of the factor. Four vectors of
    atoms at a time, so that h never leaves the registers.
    """
    row = (INVERSE + i) * atoms.size
    step = lanes(c)
    none = zero(c)
    top = none
    for r in range(i + 1):
        by[n + r] = work[row + r]
    j = 0
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
            v0 = fma(weight, h0, load(c, p))
            v1 = fma(weight, h1, load(c, p + step))
            v2 = fma(weight, h2, load(c, p + 2 * step))
            v3 = fma(weight, h3, load(c, p + 3 * step))
            store(c, p, v0)
            store(c, p + step, v1)
            store(c, p + 2 * step, v2)
            store(c, p + 3 * step, v3)
            t0, t1 = fma(v0, v0, t0), fma(v1, v1, t1)
            t2, t3 = fma(v2, v2, t2), fma(v3, v3, t3)
        t0 = _score(h0, t0, j, look_ahead, least, left, score)
        t1 = _score(h1, t1, j + step, look_ahead, least, left, score)
        t2 = _score(h2, t2, j + 2 * step, look_ahead, least, left, score)
        t3 = _score(h3, t3, j + 3 * step, look_ahead, least, left, score)
        top = vmax(top, vmax(vmax(t0, t1), vmax(t2, t3)))
        j += 4 * step
    while j < width:
        h0, t0 = none, none
        for r in range(i + 1):
            h0 = fma(splat(by[n + r]), load(G, atoms[r] * width + j), h0)
        for signal in range(n):
            p = signal * width + j
            v0 = fma(splat(by[signal]), h0, load(c, p))
            store(c, p, v0)
            t0 = fma(v0, v0, t0)
        top = vmax(top, _score(h0, t0, j, look_ahead, least, left, score))
        j += step
    return hmax(top)


@kernel
def _fit(q, width, row, n, j, work, atoms, s, y, by):
    """Fit the residuals by the s-th active atom j, just appended: y, −y; the squares gained."""
    stride, size = atoms.size, padded(n)
    factor = (INVERSE + s) * stride
    scratch = factor + stride  # L⁻¹ g, from `append`
    begin = s * size
    for i in range(n):
        y[begin + i] = q[(row + i) * width + j]
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
def _pursue(G, width, q, row, n, norm, limit, eps, gain, look_ahead, own, least, work, atoms, c,
            left, score, y, by, tolerance):  # fmt: skip
    """Let atoms join until a limit stops it; their number, −1 if there is no room."""
    near = c.dtype.type(1.0 - 4.0 * np.finfo(c.dtype).eps)
    s, error = 0, norm
    top = 0.0
    if limit > 0 and error > eps:
        top = np.float64(_start(q, row, n, width, own, c, left, score))
    while s < limit and error > eps and top > gain:
        if s == capacity(work, atoms):
            return -1
        j = _first_above(score, width, c.dtype.type(top) * near)
        # Does it depend on the active atoms, or its gain on nothing but rounding?
        out = look_ahead and not left[j] > least[j]
        out |= not np.float64(score[j]) * left[j] > gain * own[j]
        left[j] = np.inf
        if out or not append(G, width, work, atoms, s, j, 0.0, tolerance):
            score[j] = 0.0
            top = np.float64(largest(score, 0, width, True))
            continue
        error -= _fit(q, width, row, n, j, work, atoms, s, y, by)
        s += 1
        if s < limit and error > eps:
            top = np.float64(
                _advance(G, width, n, look_ahead, least, work, atoms, s - 1, by, c, left, score)
            )
    return s


@kernel
def _solve(work, atoms, s, n, y):
    """Coefficients from what was fitted, in place: ``L⁻ᵀ y`` of each signal."""
    stride, size = atoms.size, padded(n)
    for i in range(s):
        for o in range(0, size, LANES):
            total = splat(0.0)
            for r in range(i, s):
                total = fma(
                    splat(work[(INVERSE + r) * stride + i]), load(y, r * size + o), total
                )  # fmt: skip
            store(y, i * size + o, total)


@kernel
def joint_omp_groups(G, Q, groups, g, norms, limit, eps, look_ahead, own, least, work, atoms, c,
                     left, score, y, by, order, tolerance, out_ptr, out_atoms, out_codes, rounds):  # fmt: skip
    """Code the groups of rows of Q from group ``g`` on; returns the first one not done.

    G is flat; ``own`` has the squared norms of the atoms, infinite for zero ones; ``least`` what
    must be left of each for it to join; ``eps`` bounds the mean over a group of the squared errors.
    Stops early, to be called again, when the active set or the output has no room left.
    """
    width = Q.shape[1]
    q = Q.reshape(-1)
    unit = np.float64(np.finfo(c.dtype).eps)
    least_gain = 4.0 * np.float64(np.finfo(c.dtype).tiny)  # below, a score has lost its digits
    while g < groups.size - 1:
        row, n = groups[g], groups[g + 1] - groups[g]
        if out_ptr[row] + n * capacity(work, atoms) > out_atoms.size:
            return g
        norm = 0.0
        for i in range(row, row + n):
            norm += norms[i]
        s = _pursue(G, width, q, row, n, norm, limit, eps * n, max((32.0 * unit) ** 2 * norm, least_gain),
                    look_ahead, own, least, work, atoms, c, left, score, y, by, tolerance)  # fmt: skip
        if s < 0:
            return g
        _solve(work, atoms, s, n, y)
        write_group(y, atoms, s, order, row, n, out_ptr, out_atoms, out_codes)
        for i in range(row, row + n):
            rounds[i] = s  # an atom a round
        g += 1
    return g
