"""Which atom joins next in orthogonal matching pursuit: scores of all atoms, kept up to date.

What counts of an active atom is the part of it outside the span of those before it; ``h_s`` has
the products of that part, normalized, with all atoms, and is a row of a Cholesky factor of the
Gram matrix. When atom j joins s others,

    h_s = (G_j − Σ_i h_i[j] h_i) / √outside_j,   y = c_j / √outside_j,
    c ← c − y h_s,   outside ← outside − h_s²,

where c are the correlations of the residual and ``outside`` the squared norms of all atoms outside
the span of the active ones. The score of an atom, ``c_j²/outside_j``, is by how much the error
falls if it joins. Without look-ahead, ``outside`` stays the squared norm of the whole atom, which
is the choice of the textbook: the atom most correlated with the residual.

A step reads one row of G, and otherwise only what belongs to the signal and is in a near cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels import aligned
from smalto.kernels.jit import inlined, kernel
from smalto.kernels.simd import (
    WIDTH,
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

# Rows of a `Table`. Squared norms are infinite for zero atoms.
C, OUTSIDE, NORMS, H = range(4)

VECTORS = 4  # of atoms in a block


class Table(NamedTuple):
    """What is known of all atoms for one signal, in rows ``stride`` apart.

    Behind these are the rows h of the active atoms in blocks, as they are read: all rows for the first
    few vectors of atoms, one after the other, then all for the next ones. Last is a column of h.
    """

    numbers: Any  # flat; begins at a cache line
    width: int  # atoms
    stride: int  # with a power of two, all rows would fall on the same lines of the cache
    mask: int  # last bits of a score that have room for the number of a vector of atoms
    room: int  # for active atoms


class Rules(NamedTuple):
    """How atoms are chosen."""

    positive: bool  # whether α ≥ 0
    look_ahead: bool  # whether an atom is scored by its part outside the span of the active ones


def make_table(room: int, width: int, dtype: np.dtype) -> Table:
    """Room for what is known of ``width`` atoms, ``room`` of them active."""
    per_vector = WIDTH // dtype.itemsize
    stride = width + per_vector
    mask = 1
    while mask * per_vector < width:
        mask *= 2
    size = H * stride + room * (width + VECTORS * per_vector + 1)
    return Table(aligned.empty(size, dtype), width, stride, mask - 1, room)


@inlined
def place_of_h(table, j):
    """Where the first row h has atom j; the next one is a block, `VECTORS`, behind it."""
    block = VECTORS * lanes(table.numbers)
    return H * table.stride + j // block * (table.room * block) + j % block


@kernel
def set_norms(norms, table):
    """Write the squared norms of the atoms; returns the smallest of those that are not zero."""
    first = NORMS * table.stride
    smallest = np.inf
    for j in range(table.width):
        norm = norms[j] if norms[j] > 0.0 else np.inf
        table.numbers[first + j] = norm
        smallest = min(smallest, norm)
    return smallest


@inlined
def _lowest(table, positive):
    """What c counts as at least: zero if α ≥ 0."""
    return splat(table.numbers.dtype.type(0.0 if positive else -np.inf))


@inlined
def _compare(v, norm, j, table, lowest, best):
    """The best scores so far, lane by lane, with those of the vector of atoms that begins at j.

    The last bits of a score hold the number of its vector. Vectors are counted backwards, so that
    of equal scores the first is the largest.
    """
    v = vmax(v, lowest)
    number = table.mask - j // lanes(table.numbers)
    return vmax(labelled(ratio(v * v, norm), number, table.mask), best)


@inlined
def _choose(best, table):
    """The largest score and the first atom that has it, up to the bits that labels took."""
    top = hmax(best)
    lane = lowest_bit(~above(splat(top), best))
    return top, (table.mask - label(top, table.mask)) * lanes(table.numbers) + lane


@kernel
def best_atom(table, positive):
    """The largest score and its atom."""
    numbers, outside = table.numbers, OUTSIDE * table.stride
    best, lowest = zero(numbers), _lowest(table, positive)
    for j in range(0, table.width, lanes(numbers)):
        best = _compare(load(numbers, j), load(numbers, outside + j), j, table, lowest, best)
    return _choose(best, table)


@kernel
def first_atom(table, q, start, positive):
    """Write c and what is outside for no active atoms; returns the largest score and its atom."""
    numbers, stride = table.numbers, table.stride
    best, lowest = zero(numbers), _lowest(table, positive)
    for j in range(0, table.width, lanes(numbers)):
        v, norm = load(q, start + j), load(numbers, NORMS * stride + j)
        store(numbers, C * stride + j, v)
        store(numbers, OUTSIDE * stride + j, norm)
        best = _compare(v, norm, j, table, lowest, best)
    return _choose(best, table)


@inlined
def enter(table, j, s, look_ahead):
    """Bar atom j, which joins s others, from being chosen; returns what of it is outside them.

    That is the squared norm of its part outside the span of the active atoms.
    """
    numbers, stride = table.numbers, table.stride
    outside = np.float64(numbers[OUTSIDE * stride + j])
    if not look_ahead:
        o = place_of_h(table, j)
        for _ in range(s):
            outside -= np.float64(numbers[o]) ** 2
            o += VECTORS * lanes(numbers)
    numbers[OUTSIDE * stride + j] = np.inf
    return outside


@inlined
def _gather_column(table, j, s):
    """Copy what s rows h have of atom j to one place, as each block of atoms reads it; returns where."""
    numbers = table.numbers
    column, o = numbers.size - table.room, place_of_h(table, j)
    for i in range(s):
        numbers[column + i] = numbers[o]
        o += VECTORS * lanes(numbers)
    return column


@inlined
def _update(h, by, j, table, share, lowest, least, best):
    """Bring one vector of c and of what is outside up to date; returns the best scores with it.

    ``share`` is 1 with look-ahead, else 0: no branches, which would keep vectors from registers.
    """
    numbers, stride = table.numbers, table.stride
    v = fma(by, h, load(numbers, C * stride + j))
    store(numbers, C * stride + j, v)
    norm = vmax(fnma(h * share, h, load(numbers, OUTSIDE * stride + j)), least)
    store(numbers, OUTSIDE * stride + j, norm)
    return _compare(v, norm, j, table, lowest, best)


@inlined
def advance(G, table, j, s, outside, rules, least):
    """Write h_s for atom j, which has joined s others, and bring c and what is outside up to date.

    Returns the largest score and its atom. ``least`` keeps rounding from making what is outside
    negative. Four vectors at a time, so that sums stay in registers.
    """
    numbers, width = table.numbers, table.width
    step = lanes(numbers)
    block = VECTORS * step
    g, start, weights = j * width, H * table.stride, _gather_column(table, j, s)
    end = weights + s
    # The next choice waits for this square root, which is sooner there in float32.
    by = numbers.dtype.type(1.0) / np.sqrt(numbers.dtype.type(outside))
    scale, by = splat(by), splat(-numbers[j] * by)
    least, lowest = splat(numbers.dtype.type(least)), _lowest(table, rules.positive)
    share = splat(numbers.dtype.type(1.0 if rules.look_ahead else 0.0))
    best = zero(numbers)
    b = np.int64(0)
    while b + block <= width:
        o = g + b
        h0, h1, h2, h3 = load(G, o), load(G, o + step), load(G, o + 2 * step), load(G, o + 3 * step)
        o, i = start, weights
        while i < end:
            weight = splat(numbers[i])
            h0 = fnma(weight, load(numbers, o), h0)
            h1 = fnma(weight, load(numbers, o + step), h1)
            h2 = fnma(weight, load(numbers, o + 2 * step), h2)
            h3 = fnma(weight, load(numbers, o + 3 * step), h3)
            o += block
            i += 1
        h0, h1, h2, h3 = h0 * scale, h1 * scale, h2 * scale, h3 * scale
        store(numbers, o, h0)
        store(numbers, o + step, h1)
        store(numbers, o + 2 * step, h2)
        store(numbers, o + 3 * step, h3)
        best = _update(h0, by, b, table, share, lowest, least, best)
        best = _update(h1, by, b + step, table, share, lowest, least, best)
        best = _update(h2, by, b + 2 * step, table, share, lowest, least, best)
        best = _update(h3, by, b + 3 * step, table, share, lowest, least, best)
        b += block
        start += table.room * block
    while b < width:
        h0 = load(G, g + b)
        o = start
        for i in range(weights, end):
            h0 = fnma(splat(numbers[i]), load(numbers, o), h0)
            o += block
        h0 = h0 * scale
        store(numbers, o, h0)
        best = _update(h0, by, b, table, share, lowest, least, best)
        b += step
        start += step
    return _choose(best, table)
