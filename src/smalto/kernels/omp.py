"""Greedy coding on the Gram matrix: orthogonal matching pursuit, with or without look-ahead.

Goes towards ``min_α ½‖x − αD‖²`` with few nonzeros (the ℓ0 of Section 5.1), one atom a step,
with all coefficients fitted anew. What counts of an active atom is the part of it outside the
span of those before it; ``h_s`` has the products of that part, normalised, with all atoms, and is
a row of a Cholesky factor of the Gram matrix. With atom j a step is

    h_s = (G_j − Σ_i h_i[j] h_i) / √left_j,   y = c_j / √left_j,
    c ← c − y h_s,   left ← left − h_s²,

where c are the correlations of the residual and ``left`` the squared norms of all atoms outside
the span of the active ones. Then ``c_j²/left_j`` is by how much the error falls if atom j joins:
the one with the largest joins. Without look-ahead it is divided by the squared norm of the whole
atom, which is the textbook's choice: the atom most correlated with the residual.

So a step reads one row of G, and else only what belongs to the signal and is in a near cache.
The factor ``L_si = h_i[j_s]`` comes along, and at the end gives the code as ``L⁻ᵀ y``. For float64
data, atoms are first chosen on a float32 copy of G, as long as what they gain is far above its
rounding; the code on them is then computed in float64.
"""

from __future__ import annotations

import numpy as np

from smalto.kernels import aligned
from smalto.kernels.active import CODE, INVERSE, LANES, SIGN, TARGET, append, capacity, largest
from smalto.kernels.jit import kernel
from smalto.kernels.lasso import DEPENDENT_32, DEPENDENT_64, walk
from smalto.kernels.lazy_gram import begin_signal, make_row, squared_norms
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

# What is known of all atoms is one flat array of rows that lie `stride` apart: c, what is left,
# the scores; their squared norms (infinite for zero atoms); then the h of the active ones. A stride
# that is a power of two would put all of them into one corner of the cache.
_C, _LEFT, _SCORE, _OWN, _H = range(5)

# Why a pursuit has ended: the number of atoms or the error is as wanted, nothing gains enough, it
# takes more precision to go on, there is no room.
_DONE, _SPENT, _DOUBTFUL, _FULL = range(4)


def make_state(room: int, width: int, dtype: np.dtype) -> np.ndarray:
    """Room for what is known of ``width`` atoms, ``room`` of them active; begins a cache line."""
    size = (_H + room) * (width + 64 // dtype.itemsize)
    return aligned.empty(size, dtype)


@kernel
def _stride(width, state):
    return width + lanes(state)


@kernel
def _dependent(array):
    """The share of an atom's squared norm below which what is left of it may be rounding."""
    return DEPENDENT_64 if array.itemsize == 8 else DEPENDENT_32


@kernel
def set_norms(norms, state):
    """Write the squared norms of the atoms; returns the smallest, zero atoms aside."""
    width = norms.size
    own = _OWN * _stride(width, state)
    smallest = np.inf
    for j in range(width):
        norm = norms[j] if norms[j] > 0.0 else np.inf
        state[own + j] = norm
        smallest = min(smallest, norm)
    return smallest


@kernel
def first_above(state, start, width, threshold):
    """The first atom with a score above the threshold (ties within rounding: the first)."""
    bound = splat(threshold)
    for block in range(0, width, lanes(state)):
        bits = above(load(state, start + block), bound)
        if bits != 0:
            return block + lowest_bit(bits)
    return 0


@kernel
def _start(q, start, width, positive, state):
    """No atom is active: write c, what is left, and all scores; returns the largest."""
    stride = _stride(width, state)
    none = zero(state)
    top = none
    for j in range(0, width, lanes(state)):
        v, norm = load(q, start + j), load(state, _OWN * stride + j)
        store(state, _C * stride + j, v)
        store(state, _LEFT * stride + j, norm)
        v = vmax(v, none) if positive else v
        v = ratio(v * v, norm)
        store(state, _SCORE * stride + j, v)
        top = vmax(top, v)
    return hmax(top)


@kernel
def _enter(width, j, s, look_ahead, state, weights):
    """Atom j is to join s others: gather its −h_i[j]; what of its norm is outside them."""
    stride = _stride(width, state)
    o = _H * stride + j
    for i in range(s):
        weights[i] = -state[o]
        o += stride
    outside = np.float64(state[_LEFT * stride + j])
    if not look_ahead:
        for i in range(s):
            outside -= np.float64(weights[i]) ** 2
    state[_LEFT * stride + j] = np.inf
    return outside


@kernel
def _update(h, by, j, stride, positive, look_ahead, least, state):
    """One vector of c, of what is left, and of the scores, which it returns."""
    v = fma(by, h, load(state, _C * stride + j))
    store(state, _C * stride + j, v)
    norm = load(state, _LEFT * stride + j)
    if look_ahead:
        norm = vmax(norm - h * h, least)
        store(state, _LEFT * stride + j, norm)
    v = vmax(v, zero(state)) if positive else v
    v = ratio(v * v, norm)
    store(state, _SCORE * stride + j, v)
    return v


@kernel
def _advance(G, width, j, s, outside, positive, look_ahead, least, state, weights):
    """Atom j has joined s others: write h_s, bring c, what is left, and scores up to date.

    Returns the largest score. Four vectors at a time, so that sums stay in registers.
    """
    step, stride = lanes(state), _stride(width, state)
    g, new = j * width, (_H + s) * stride
    by = 1.0 / np.sqrt(outside)
    scale, by = splat(state.dtype.type(by)), splat(state.dtype.type(-state[j] * by))
    least = splat(state.dtype.type(least))
    top = zero(state)
    b = 0
    while b + 4 * step <= width:
        o = g + b
        h0, h1, h2, h3 = load(G, o), load(G, o + step), load(G, o + 2 * step), load(G, o + 3 * step)
        o = _H * stride + b
        for i in range(s):
            weight = splat(weights[i])
            h0 = fma(weight, load(state, o), h0)
            h1 = fma(weight, load(state, o + step), h1)
            h2 = fma(weight, load(state, o + 2 * step), h2)
            h3 = fma(weight, load(state, o + 3 * step), h3)
            o += stride
        h0, h1, h2, h3 = h0 * scale, h1 * scale, h2 * scale, h3 * scale
        o = new + b
        store(state, o, h0)
        store(state, o + step, h1)
        store(state, o + 2 * step, h2)
        store(state, o + 3 * step, h3)
        v0 = _update(h0, by, b, stride, positive, look_ahead, least, state)
        v1 = _update(h1, by, b + step, stride, positive, look_ahead, least, state)
        v2 = _update(h2, by, b + 2 * step, stride, positive, look_ahead, least, state)
        v3 = _update(h3, by, b + 3 * step, stride, positive, look_ahead, least, state)
        top = vmax(top, vmax(vmax(v0, v1), vmax(v2, v3)))
        b += 4 * step
    while b < width:
        h0 = load(G, g + b)
        for i in range(s):
            h0 = fma(splat(weights[i]), load(state, (_H + i) * stride + b), h0)
        h0 = h0 * scale
        store(state, new + b, h0)
        top = vmax(top, _update(h0, by, b, stride, positive, look_ahead, least, state))
        b += step
    return hmax(top)


@kernel
def _replay(G, width, q, start, positive, look_ahead, least, work, atoms, s, state, weights):
    """All of it afresh, for the active atoms; returns the largest score."""
    top = _start(q, start, width, positive, state)
    for i in range(s):
        outside = _enter(width, atoms[i], i, look_ahead, state, weights)
        if not positive:
            _keep(work, atoms, i, state[atoms[i]], outside, weights)
        top = _advance(G, width, atoms[i], i, outside, positive, look_ahead, least, state, weights)
    return top


@kernel
def _keep(work, atoms, s, c, outside, weights):
    """Keep row s of the factor, with the reciprocal of its last entry, and y; returns y."""
    row = (INVERSE + s) * atoms.size
    for i in range(s):
        work[row + i] = -np.float64(weights[i])
    scale = 1.0 / np.sqrt(outside)
    work[row + s] = scale
    work[s] = c * scale
    return work[s]


@kernel
def _pursue(lazy, G, width, q, start, fast_G, fast_q, fast_start, norm, limit, eps, gain, positive,
            look_ahead, smallest, work, atoms, s, used, state, weights, rounds, row):  # fmt: skip
    """Let atoms join the s active ones until a limit stops it; (s, why it ended, best score).

    Limits are the number of atoms, the error eps, and the least that an atom must gain. The
    choice reads ``fast_G`` and ``fast_q``; G and q are the exact ones.
    """
    stride = _stride(width, state)
    code, sign = CODE * atoms.size, SIGN * atoms.size
    near = state.dtype.type(1.0 - 4.0 * np.finfo(state.dtype).eps)
    share = _dependent(state)
    least = share * smallest  # keeps rounding from making what is left negative
    top = _replay(fast_G, width, fast_q, fast_start, positive, look_ahead, least, work, atoms, s,
                  state, weights)  # fmt: skip
    error = norm
    for i in range(s):
        error -= work[i] * work[i]
    while s < limit and error > eps:
        if not top > gain:
            return s, _SPENT, np.float64(top)
        if s == capacity(work, atoms):
            return s, _FULL, np.float64(top)
        j = first_above(state, _SCORE * stride, width, top * near)
        if lazy is not None:
            make_row(lazy, j, G, fast_G)
        rounds[row] += 1
        outside = _enter(width, j, s, look_ahead, state, weights)
        joins = outside > share * state[_OWN * stride + j]
        if not joins and fast_G.itemsize != G.itemsize:
            return s, _DOUBTFUL, np.float64(top)
        if joins and positive:
            joins = append(G, width, work, atoms, s, j, np.float64(q[start + j]), _dependent(G))
        if not joins:  # it depends on the active atoms
            state[_SCORE * stride + j] = 0.0
            top = largest(state, _SCORE * stride, width, True)
            continue
        atoms[s] = j
        s += 1
        if not positive:
            y = _keep(work, atoms, s - 1, state[j], outside, weights)
            error -= y * y
        else:
            work[sign + s - 1] = 1.0
            work[code + s - 1] = 0.0
            used[j] = True
            before = s
            s, _ = walk(work, atoms, s, False, used)
            error = norm
            for i in range(s):
                error -= work[i] * work[i]
            if s < before:
                top = _replay(fast_G, width, fast_q, fast_start, positive, look_ahead, least, work,
                              atoms, s, state, weights)  # fmt: skip
                if not used[j]:
                    state[_LEFT * stride + j], state[_SCORE * stride + j] = np.inf, 0.0
                    top = largest(state, _SCORE * stride, width, True)
                continue
        if s < limit and error > eps:
            top = _advance(fast_G, width, j, s - 1, outside, positive, look_ahead, least, state,
                           weights)  # fmt: skip
    return s, _DONE, np.float64(top)


@kernel
def _solve(work, atoms, s):
    """Write the code ``L⁻ᵀ y`` from the rows of L that were kept; y is lost."""
    code, row = CODE * atoms.size, (INVERSE + s) * atoms.size
    for i in range(s - 1, -1, -1):
        row -= atoms.size
        value = work[i] * work[row + i]
        work[code + i] = value
        by = splat(-value)
        for o in range(0, i, LANES):
            store(work, o, fma(by, load(work, row + o), load(work, o)))


@kernel
def _fit(G, width, q, start, norm, eps, work, atoms, s):
    """Least squares on the active atoms by elimination in float64, whatever chose them.

    Takes the atoms in their order, as long as they do not depend on those before and the error
    is above eps. Writes their code; returns their number and the error.
    """
    stride = atoms.size
    code, base = CODE * stride, INVERSE * stride
    row = base
    for i in range(s):
        g = atoms[i] * width
        for r in range(i, s):
            work[row + r] = G[g + atoms[r]]
        work[i] = q[start + atoms[i]]
        row += stride
    error, count = norm, s
    row = base
    for i in range(s):
        outside = work[row + i]
        if not outside > _dependent(G) * G[atoms[i] * width + atoms[i]]:
            count = i
            break
        inverse = 1.0 / outside
        y = work[i]
        error -= y * y * inverse
        if error <= eps:
            count = i + 1
            break
        below = row
        for r in range(i + 1, s):
            below += stride
            weight = work[row + r] * inverse
            work[r] -= weight * y
            by = splat(-weight)
            for o in range(r // LANES * LANES, s, LANES):
                store(work, below + o, fma(by, load(work, row + o), load(work, below + o)))
        row += stride
    for i in range(count - 1, -1, -1):
        row = base + i * stride
        rest = work[i]
        for r in range(i + 1, count):
            rest -= work[row + r] * work[code + r]
        work[code + i] = rest / work[row + i]
    return count, error


@kernel
def _write(work, atoms, s, start, used, out_atoms, out_codes, position):
    """Append the coefficients, which begin at ``start``, to the output by increasing atom."""
    for i in range(s):
        atom = atoms[i]
        used[atom] = False
        p = position
        for r in range(s):
            p += 1 if atoms[r] < atom else 0
        out_atoms[p] = atom
        out_codes[p] = work[start + i]


@kernel
def omp_rows(lazy, G, fast_G, Q, row, norms, limits, eps, gain, positive, look_ahead, own, work,
             atoms, used, state, weights, fast_state, fast_weights, fast_q, out_ptr, out_atoms,
             out_codes, rounds):  # fmt: skip
    """Code the rows of Q from ``row`` on; returns the first row not done.

    G and fast_G are flat, ``own`` has the squared norms of the atoms; all are filled for each
    signal anew where there is a ``lazy`` (see `lazy_gram.py`). Stops early, to be called again,
    when the active set or the output has no room left. ``rounds`` counts choices of an atom.
    """
    n, width = Q.shape
    q = Q.reshape(-1)
    two_stages = fast_G.itemsize != G.itemsize
    unit = np.float64(np.finfo(state.dtype).eps)
    smallest = set_norms(own, state)
    set_norms(own, fast_state)
    while row < n:
        position = out_ptr[row]
        if position + capacity(work, atoms) > out_atoms.size:
            return row
        start, norm, limit, bound = row * width, norms[row], limits[row], eps[row]
        rounds[row] = 0
        if lazy is not None:
            begin_signal(lazy, row)
            squared_norms(lazy, own)
            smallest = set_norms(own, state)
            if two_stages:
                set_norms(own, fast_state)
        s, end, finished = 0, _DONE, False
        if two_stages:
            for j in range(width):
                fast_q[j] = q[start + j]
            s, end, top = _pursue(
                lazy, G, width, q, start, fast_G, fast_q, 0, norm, limit, bound,
                max(1.001 * gain, COARSE * norm), positive, look_ahead, smallest, work, atoms, s,
                used, fast_state, fast_weights, rounds, row,
            )  # fmt: skip
            finished = end == _FULL or (
                end == _SPENT and gain > COARSE * norm and top < 0.999 * gain
            )
            if positive:
                finished |= end == _DONE
            elif end != _FULL:
                chosen = s
                s, error = _fit(G, width, q, start, norm, bound, work, atoms, s)
                finished = error <= bound or (s == chosen and (finished or s == limit))
        if not finished:
            s, end, _ = _pursue(
                lazy, G, width, q, start, G, q, start, norm, limit, bound,
                max(gain, (32.0 * unit) ** 2 * norm), positive, look_ahead, smallest, work, atoms,
                s, used, state, weights, rounds, row,
            )  # fmt: skip
            if not positive:
                _solve(work, atoms, s)
        if end == _FULL:
            used[:] = False
            return row
        code = (TARGET if positive else CODE) * atoms.size
        _write(work, atoms, s, code, used, out_atoms, out_codes, position)
        out_ptr[row + 1] = position + s
        row += 1
    return row
