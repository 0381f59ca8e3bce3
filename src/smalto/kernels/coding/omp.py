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
from smalto.kernels.coding.active_set import CODE, INVERSE, LANES, SIGN, TARGET, append, capacity
from smalto.kernels.coding.lasso import DEPENDENT_32, DEPENDENT_64, walk
from smalto.kernels.coding.masked_gram import (
    begin_signal,
    forget_rows,
    make_block,
    make_row,
    squared_norms,
)
from smalto.kernels.jit import inlined, kernel
from smalto.kernels.simd import (
    above,
    fma,
    fnma,
    hmax,
    label,
    labelled,
    lanes,
    load,
    lowest_bit,
    ratio,
    splat,
    store,
    vmax,
    zero,
)

DELICATE = 1e2  # times the share that makes an atom dependent: below, the factor is inexact
COARSE = 1e-5  # share of ‖x‖² that an atom must gain for it to be chosen in float32

# What is known of all atoms is one flat array of rows that lie `stride` apart: c, what is left,
# their squared norms (infinite for zero atoms); then the h of the active ones. A stride that is a
# power of two would put all of them into one corner of the cache.
_C, _LEFT, _OWN, _H = range(4)

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
    """The share of an atom's squared norm below which what is left of it may be rounding.

    In float32 ten times that of the lasso, whose penalty keeps coefficients of atoms that are
    nearly alike from growing against one another.
    """
    return DEPENDENT_64 if array.itemsize == 8 else 10.0 * DEPENDENT_32


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
def _mask(width, state):
    """Last bits of a score that have room for the number of a block of atoms."""
    mask = 1
    while mask * lanes(state) < width:
        mask *= 2
    return mask - 1


@inlined
def _compare(v, norm, block, mask, positive, state, best):
    """The best scores so far, lane by lane; in their last bits, the blocks of atoms they are of.

    Blocks are counted backwards, so that of equal scores the first counts.
    """
    v = vmax(v, zero(state)) if positive else v
    return vmax(labelled(ratio(v * v, norm), mask - block, mask), best)


@inlined
def _choose(best, mask, state):
    """The largest score and the first atom that has it, but for the bits that labels took."""
    top = hmax(best)
    lane = lowest_bit(~above(splat(top), best))
    return top, (mask - label(top, mask)) * lanes(state) + lane


@kernel
def _best(width, positive, state):
    """The largest score and its atom."""
    mask, left = _mask(width, state), _LEFT * _stride(width, state)
    best = zero(state)
    for j in range(0, width, lanes(state)):
        v, norm = load(state, j), load(state, left + j)
        best = _compare(v, norm, j // lanes(state), mask, positive, state, best)
    return _choose(best, mask, state)


@inlined
def _enter(width, j, s, look_ahead, state):
    """Atom j is to join s others: what of its squared norm is outside their span."""
    stride = _stride(width, state)
    outside = np.float64(state[_LEFT * stride + j])
    if not look_ahead:
        for i in range(s):
            outside -= np.float64(state[(_H + i) * stride + j]) ** 2
    state[_LEFT * stride + j] = np.inf
    return outside


@inlined
def _update(h, by, j, stride, positive, look_ahead, least, mask, state, best):
    """One vector of c and of what is left; the best scores with it."""
    v = fma(by, h, load(state, _C * stride + j))
    store(state, _C * stride + j, v)
    norm = load(state, _LEFT * stride + j)
    if look_ahead:
        norm = vmax(fnma(h, h, norm), least)
        store(state, _LEFT * stride + j, norm)
    return _compare(v, norm, j // lanes(state), mask, positive, state, best)


@inlined
def _advance(G, width, j, s, outside, positive, look_ahead, least, state):
    """Atom j has joined s others: write h_s, bring c and what is left up to date.

    Returns the largest score and its atom. Four vectors at a time, so that sums stay in registers.
    """
    step, stride = lanes(state), _stride(width, state)
    g, first, new, mask = j * width, _H * stride, (_H + s) * stride, _mask(width, state)
    # The next choice waits for this: a square root in float32 is sooner there.
    by = state.dtype.type(1.0) / np.sqrt(state.dtype.type(outside))
    scale, by = splat(by), splat(-state[j] * by)
    least = splat(state.dtype.type(least))
    best0 = best1 = zero(state)
    b = 0
    while b + 4 * step <= width:
        o = g + b
        h0, h1, h2, h3 = load(G, o), load(G, o + step), load(G, o + 2 * step), load(G, o + 3 * step)
        o, i = first + b, first + j
        while i < new:
            weight = splat(state[i])
            h0 = fnma(weight, load(state, o), h0)
            h1 = fnma(weight, load(state, o + step), h1)
            h2 = fnma(weight, load(state, o + 2 * step), h2)
            h3 = fnma(weight, load(state, o + 3 * step), h3)
            o += stride
            i += stride
        h0, h1, h2, h3 = h0 * scale, h1 * scale, h2 * scale, h3 * scale
        o = new + b
        store(state, o, h0)
        store(state, o + step, h1)
        store(state, o + 2 * step, h2)
        store(state, o + 3 * step, h3)
        best0 = _update(h0, by, b, stride, positive, look_ahead, least, mask, state, best0)
        o = b + step
        best1 = _update(h1, by, o, stride, positive, look_ahead, least, mask, state, best1)
        o += step
        best0 = _update(h2, by, o, stride, positive, look_ahead, least, mask, state, best0)
        o += step
        best1 = _update(h3, by, o, stride, positive, look_ahead, least, mask, state, best1)
        b += 4 * step
    while b < width:
        h0 = load(G, g + b)
        for i in range(s):
            o = first + i * stride
            h0 = fnma(splat(state[o + j]), load(state, o + b), h0)
        h0 = h0 * scale
        store(state, new + b, h0)
        best0 = _update(h0, by, b, stride, positive, look_ahead, least, mask, state, best0)
        b += step
    return _choose(vmax(best1, best0), mask, state)


@kernel
def _replay(G, width, q, start, positive, look_ahead, least, work, atoms, s, state):
    """All of it afresh, for the active atoms; returns the largest score and its atom."""
    stride = _stride(width, state)
    for j in range(0, width, lanes(state)):
        store(state, _C * stride + j, load(q, start + j))
        store(state, _LEFT * stride + j, load(state, _OWN * stride + j))
    top, best = _best(width, positive, state)
    for i in range(s):
        outside = _enter(width, atoms[i], i, look_ahead, state)
        if not positive:
            _keep(work, atoms, i, width, outside, state)
        top, best = _advance(G, width, atoms[i], i, outside, positive, look_ahead, least, state)
    return top, best


@inlined
def _keep(work, atoms, s, width, outside, state):
    """Keep row s of the factor, with the reciprocal of its last entry, and y; returns y."""
    row, stride = (INVERSE + s) * atoms.size, _stride(width, state)
    o = _H * stride + atoms[s]
    for i in range(s):
        work[row + i] = state[o]
        o += stride
    scale = 1.0 / np.sqrt(outside)
    work[row + s] = scale
    work[s] = state[atoms[s]] * scale
    return work[s]


@kernel
def _pursue(lazy, G, width, q, start, fast_lazy, fast_G, fast_q, fast_start, norm, limit, eps, gain,
            positive, look_ahead, smallest, work, atoms, s, used, state, rounds, row):  # fmt: skip
    """Let atoms join the s active ones until a limit stops it.

    Returns their number, why it ended, the best score, and whether one of them lies so nearly in
    the span of others that rounding counts. Limits are the number of atoms, the error eps, and
    the least that an atom must gain. The choice reads ``fast_G`` and ``fast_q``; G and q are the
    exact ones.
    """
    stride = _stride(width, state)
    code, sign = CODE * atoms.size, SIGN * atoms.size
    share = _dependent(state)
    least = share * smallest  # keeps rounding from making what is left negative
    top, j = _replay(fast_G, width, fast_q, fast_start, positive, look_ahead, least, work, atoms, s,
                     state)  # fmt: skip
    error, delicate = norm, s > 0
    for i in range(s):
        error -= work[i] * work[i]
    while s < limit and error > eps:
        if not top > gain:
            return s, _SPENT, np.float64(top), delicate
        if s == capacity(work, atoms):
            return s, _FULL, np.float64(top), delicate
        if lazy is not None:
            make_row(fast_lazy, j, fast_G, fast_G)
            if positive:
                make_row(lazy, j, G, G)
        rounds[row] += 1
        outside = _enter(width, j, s, look_ahead, state)
        joins = outside > share * state[_OWN * stride + j]
        if not joins and fast_G.itemsize != G.itemsize:
            return s, _DOUBTFUL, np.float64(top), delicate
        delicate |= outside < DELICATE * share * state[_OWN * stride + j]
        if joins and positive:
            joins = append(G, width, work, atoms, s, j, np.float64(q[start + j]), _dependent(G))
        if not joins:  # it depends on the active atoms
            top, j = _best(width, positive, state)
            continue
        atoms[s] = j
        s += 1
        if not positive:
            y = _keep(work, atoms, s - 1, width, outside, state)
            error -= y * y
        else:
            work[sign + s - 1] = 1.0
            work[code + s - 1] = 0.0
            used[j] = True
            before, last = s, error
            s, _ = walk(work, atoms, s, False, used)
            error = norm
            for i in range(s):
                error -= work[i] * work[i]
            if s < before:
                if not error < last - np.finfo(state.dtype).eps * norm:  # or it may go in a circle
                    return s, _SPENT, np.float64(top), delicate
                top, best = _replay(fast_G, width, fast_q, fast_start, positive, look_ahead, least,
                                    work, atoms, s, state)  # fmt: skip
                if not used[j]:
                    state[_LEFT * stride + j] = np.inf
                    top, best = _best(width, positive, state)
                j = best
                continue
        if s < limit and error > eps:
            top, j = _advance(fast_G, width, j, s - 1, outside, positive, look_ahead, least, state)
    return s, _DONE, np.float64(top), delicate


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
def _fit(lazy, G, width, q, start, norm, eps, work, atoms, s):
    """Least squares on the active atoms by elimination in float64, whatever chose them.

    Takes the atoms in their order, but those that depend on others before them, until the error
    is at most eps. Writes their code; returns their number and the error.
    """
    stride = atoms.size
    code, base = CODE * stride, INVERSE * stride
    if lazy is not None:
        make_block(lazy, atoms, s, work, base, stride, code)
    for i in range(s):
        row = base + i * stride
        if lazy is None:
            for r in range(i, s):
                work[row + r] = G[atoms[i] * width + atoms[r]]
        work[i] = q[start + atoms[i]]
    for i in range(s):
        work[code + i] = work[base + i * stride + i]
    error, count = norm, s
    row = base
    for i in range(s):
        outside = work[row + i]
        if not outside > _dependent(G) * work[code + i]:
            work[row + i] = 0.0
            row += stride
            continue
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
        work[code + i] = rest / work[row + i] if work[row + i] > 0.0 else 0.0
    taken = 0
    for i in range(count):
        if work[base + i * stride + i] > 0.0:
            atoms[taken], work[code + taken] = atoms[i], work[code + i]
            taken += 1
    return taken, error


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
def omp_rows(lazy, G, fast_lazy, fast_G, Q, row, norms, limits, eps, gain, positive, look_ahead,
             own, work, atoms, used, state, fast_own, fast_state, fast_q, out_ptr, out_atoms,
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
    fast_smallest = set_norms(fast_own, fast_state)
    while row < n:
        position = out_ptr[row]
        if position + capacity(work, atoms) > out_atoms.size:
            return row
        start, norm, limit, bound = row * width, norms[row], limits[row], eps[row]
        rounds[row] = 0
        if lazy is not None:  # all further atoms would depend on as many as it has entries
            limit = min(limit, begin_signal(lazy, row))
        s, end, finished = 0, _DONE, False
        if two_stages:
            if lazy is not None:
                forget_rows(fast_lazy)
                squared_norms(fast_lazy, fast_own)
                fast_smallest = set_norms(fast_own, fast_state)
            for j in range(width):
                fast_q[j] = q[start + j]
            s, end, top, _ = _pursue(
                lazy, G, width, q, start, fast_lazy, fast_G, fast_q, 0, norm, limit, bound,
                max(1.001 * gain, COARSE * norm), positive, look_ahead, fast_smallest, work, atoms,
                s, used, fast_state, rounds, row,
            )  # fmt: skip
            finished = end == _FULL or (
                end == _SPENT and gain > COARSE * norm and top < 0.999 * gain
            )
            if positive:
                finished |= end == _DONE
            elif end != _FULL:
                chosen = s
                s, error = _fit(lazy, G, width, q, start, norm, bound, work, atoms, s)
                finished = error <= bound or (s == chosen and (finished or s == limit))
        if not finished:
            if lazy is not None:
                squared_norms(lazy, own)
                smallest = set_norms(own, state)
                for i in range(s):
                    make_row(lazy, atoms[i], G, G)
            s, end, _, delicate = _pursue(
                lazy, G, width, q, start, lazy, G, q, start, norm, limit, bound,
                max(gain, (32.0 * unit) ** 2 * norm), positive, look_ahead, smallest, work, atoms,
                s, used, state, rounds, row,
            )  # fmt: skip
            if not positive and delicate:
                s, _ = _fit(lazy, G, width, q, start, norm, bound, work, atoms, s)
            elif not positive:
                _solve(work, atoms, s)
        if end == _FULL:
            used[:] = False
            return row
        code = (TARGET if positive else CODE) * atoms.size
        _write(work, atoms, s, code, used, out_atoms, out_codes, position)
        out_ptr[row + 1] = position + s
        row += 1
    return row
