"""Greedy coding on the Gram matrix: orthogonal matching pursuit, with or without look-ahead.

Goes towards ``min_α ½‖x − αD‖²`` with few nonzeros (the ℓ0 of Section 5.1), one atom a step,
with all coefficients fitted anew. With ``h = L⁻¹[s] G_S`` for the s-th active atom (the part of
it outside the span of those before it, normalised, against all atoms; `active.py` has L⁻¹)
a step is

    c ← c − y_s h  and  left ← left − h²,

where c are the correlations of the residual and ``left`` the squared norms of all atoms outside
the span of the active ones. Then ``c_j²/left_j`` is by how much the error falls if atom j
joins: the one with the largest joins. Without look-ahead ``left`` stays what it was, which is
the textbook's choice: the atom most correlated with the residual.

Coefficients and errors are in float64. For float64 data, atoms are first chosen on a float32
copy of G, as long as what they gain is far above its rounding.
"""

from __future__ import annotations

import numpy as np

from smalto.kernels.active import (
    CODE,
    INVERSE,
    SIGN,
    TARGET,
    append,
    capacity,
    largest,
    subtract_rows,
)
from smalto.kernels.jit import kernel
from smalto.kernels.lasso import walk, write_sorted
from smalto.kernels.simd import (
    above,
    fma,
    hmax,
    lanes,
    load,
    lowest_bit,
    ratio,
    splat,
    store,
    vmax,
    zero,
)

COARSE = 1e-5  # share of ‖x‖² that an atom must gain for it to be chosen in float32


@kernel
def first_above(score, threshold, width):
    """The first atom with a score above the threshold (ties within rounding: the first)."""
    bound = splat(threshold)
    for block in range(0, width, lanes(score)):
        bits = above(load(score, block), bound)
        if bits != 0:
            return block + lowest_bit(bits)
    return 0


@kernel
def _start(q, start, own, positive, c, left, score, width):
    """No atom is active: write c, what is left, and all scores; returns the largest."""
    none = zero(c)
    top = none
    for j in range(0, width, lanes(c)):
        v, norm = load(q, start + j), load(own, j)
        store(c, j, v)
        store(left, j, norm)
        v = vmax(v, none) if positive else v
        v = ratio(v * v, norm)
        store(score, j, v)
        top = vmax(top, v)
    return hmax(top)


@kernel
def _update(h, by, j, positive, look_ahead, least, c, left, score):
    """One vector of c, of what is left, and of the scores, which it returns."""
    v = fma(by, h, load(c, j))
    store(c, j, v)
    norm = load(left, j)
    if look_ahead:
        norm = vmax(norm - h * h, load(least, j))
        store(left, j, norm)
    v = vmax(v, zero(c)) if positive else v
    v = ratio(v * v, norm)
    store(score, j, v)
    return v


@kernel
def _advance(G, width, y, positive, look_ahead, least, work, atoms, i, c, left, score):
    """The i-th active atom is in: bring c, what is left, and scores up to date; the largest.

    Four vectors at a time, so that h never leaves the registers.
    """
    row = (INVERSE + i) * atoms.size
    step = lanes(c)
    none = zero(c)
    top, by = none, splat(c.dtype.type(-y))
    for r in range(i + 1):
        c[width + r] = work[row + r]
    j = 0
    while j + 4 * step <= width:
        h0, h1, h2, h3 = none, none, none, none
        for r in range(i + 1):
            weight, g = splat(c[width + r]), atoms[r] * width + j
            h0 = fma(weight, load(G, g), h0)
            h1 = fma(weight, load(G, g + step), h1)
            h2 = fma(weight, load(G, g + 2 * step), h2)
            h3 = fma(weight, load(G, g + 3 * step), h3)
        v0 = _update(h0, by, j, positive, look_ahead, least, c, left, score)
        v1 = _update(h1, by, j + step, positive, look_ahead, least, c, left, score)
        v2 = _update(h2, by, j + 2 * step, positive, look_ahead, least, c, left, score)
        v3 = _update(h3, by, j + 3 * step, positive, look_ahead, least, c, left, score)
        top = vmax(top, vmax(vmax(v0, v1), vmax(v2, v3)))
        j += 4 * step
    while j < width:
        h0 = none
        for r in range(i + 1):
            h0 = fma(splat(c[width + r]), load(G, atoms[r] * width + j), h0)
        top = vmax(top, _update(h0, by, j, positive, look_ahead, least, c, left, score))
        j += step
    return hmax(top)


@kernel
def _refresh(G, width, q, start, positive, look_ahead, own, least, work, atoms, s, c, left, score):  # fmt: skip
    """All of it afresh, for the active atoms and their coefficients; returns the largest."""
    code = CODE * atoms.size
    _start(q, start, own, positive, c, left, score, width)
    if look_ahead:
        for i in range(s):
            _advance(G, width, 0.0, positive, True, least, work, atoms, i, c,
                           left, score)  # fmt: skip
    for i in range(s):
        c[width + i] = work[code + i]
        left[atoms[i]] = np.inf
    subtract_rows(G, width, q, start, atoms, s, c)
    none = zero(c)
    for j in range(0, width, lanes(c)):
        v = load(c, j)
        v = vmax(v, none) if positive else v
        store(score, j, ratio(v * v, load(left, j)))
    return largest(score, 0, width, True)


@kernel
def _pursue(G, width, q, start, fast_G, fast_q, fast_start, norm, limit, eps, gain, positive,
            look_ahead, own, least, work, atoms, s, used, c, left, score,
            tolerance):  # fmt: skip
    """Let atoms join the s active ones until a limit stops it; their number, −1 if no room.

    Limits are the number of atoms, the error eps, and the least that an atom must gain. The
    factor reads ``G`` and ``q``, the choice ``fast_G`` and ``fast_q``.
    """
    stride = atoms.size
    code, target, sign = CODE * stride, TARGET * stride, SIGN * stride
    near = c.dtype.type(1.0 - 4.0 * np.finfo(c.dtype).eps)
    error = norm
    for i in range(s):
        error -= work[i] * work[i]
    if s == 0:
        top = _start(fast_q, fast_start, own, positive, c, left, score, width)
    elif s < limit and error > eps:
        top = _refresh(fast_G, width, fast_q, fast_start, positive, look_ahead, own, least, work,
                       atoms, s, c, left, score)  # fmt: skip
    while s < limit and error > eps and top > gain:
        if s == capacity(work, atoms):
            return -1
        j = first_above(score, top * near, width)
        out = look_ahead and not left[j] > least[j]  # it depends on the active atoms
        left[j] = np.inf
        if out or not append(G, width, work, atoms, s, j, np.float64(q[start + j]), tolerance):
            score[j] = 0.0
            top = largest(score, 0, width, True)
            continue
        work[sign + s] = 1.0
        work[code + s] = 0.0
        used[j] = True
        y = work[s]
        s += 1
        if positive:
            before = s
            s, _ = walk(work, atoms, s, False, used)
            if s < before:
                error = norm
                for i in range(s):
                    error -= work[i] * work[i]
                top = _refresh(fast_G, width, fast_q, fast_start, positive, look_ahead, own, least,
                               work, atoms, s, c, left, score)  # fmt: skip
                if not used[j]:
                    left[j], score[j] = np.inf, 0.0
                    top = largest(score, 0, width, True)
                continue
        error -= y * y
        if s < limit and error > eps:
            top = _advance(fast_G, width, y, positive, look_ahead, least, work, atoms, s - 1,
                           c, left, score)  # fmt: skip
    for i in range(s):
        work[code + i] = work[target + i]
    return s


@kernel
def omp_rows(G, fast_G, Q, row, norms, limits, eps, gain, positive, look_ahead, own, least,
             fast_own, fast_least, work, atoms, used, c, left, score, 
             fast_c, fast_left, fast_score, fast_q, tolerance, out_ptr, out_atoms, out_codes):  # fmt: skip
    """Code the rows of Q from ``row`` on; returns the first row not done.

    G and fast_G are flat. ``own`` has the squared norms of the atoms, infinite for zero ones;
    ``least`` what must be left of each for it to join; c has room for coefficients behind.
    Stops early, to be called again, when the active set or the output has no room left.
    """
    n, width = Q.shape
    q = Q.reshape(-1)
    two_stages = fast_G.itemsize != G.itemsize
    unit = np.float64(np.finfo(c.dtype).eps)
    while row < n:
        position = out_ptr[row]
        if position + capacity(work, atoms) > out_atoms.size:
            return row
        start, norm, limit = row * width, norms[row], limits[row]
        s = 0
        if two_stages:
            for j in range(width):
                fast_q[j] = q[start + j]
            s = _pursue(G, width, q, start, fast_G, fast_q, 0, norm, limit, eps[row],
                        max(1.001 * gain, COARSE * norm), positive, look_ahead, fast_own,
                        fast_least, work, atoms, s, used, fast_c, fast_left, fast_score,
                        tolerance)  # fmt: skip
        if s >= 0:
            s = _pursue(G, width, q, start, G, q, start, norm, limit, eps[row],
                        max(gain, (32.0 * unit) ** 2 * norm), positive, look_ahead, own, least,
                        work, atoms, s, used, c, left, score, tolerance)  # fmt: skip
        if s < 0:
            used[:] = False
            return row
        write_sorted(work, atoms, s, used, out_atoms, out_codes, position)
        out_ptr[row + 1] = position + s
        row += 1
    return row
