"""The Gram matrix of one signal, of which only the rows that are needed are made.

Where entries of a signal are missing, atoms count without these entries:
``G_ij = Σ_f d_if d_jf`` over the known features f. Where its coefficients have weights w in the
penalty, its atoms are ``d_j / w_j``. A pursuit of s atoms needs s of the k rows, so each row is made
when its atom joins: as a sum over the known features, or as the row that all signals share less a
sum over the missing features, whichever is shorter. Methods whose active set changes often need no
whole rows: see `masked_atoms.py`.

Where all signals share one Gram matrix, the `LazyGram` is None, and the kernels do nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.jit import kernel
from smalto.kernels.precision import ENDLESS, is_double
from smalto.kernels.simd import fma, lanes, load, splat, store, zero

# With less than this share of an atom's squared norm left, subtraction would leave only rounding.
CANCELS = 0.25

# Rows of `LazyGram.listed` and places in `LazyGram.counts`: KNOWN and MISSING are how many there are,
# SIGNAL is the number of the signal, SUMMED says which of the two `masked_atoms.py` sums over.
KNOWN, MISSING, SIGNAL, SUMMED = range(4)


class LazyGram(NamedTuple):
    """What the rows of each signal's Gram matrix are made from, and scratch for one signal."""

    shared: Any  # the Gram matrix that signals share, flat, with the ridge on its diagonal
    features: Any  # Dᵀ, flat
    missing: Any  # bool (n, m)
    inverse: Any  # (n, width): reciprocals of the weights; (0, width) if there are none
    listed: Any  # int64 (2, m): the signal's known and its missing features
    counts: Any  # int64 (4,)
    made: Any  # bool (width,): which rows have been made
    ridge: float
    # For `masked_atoms.py`:
    atoms: Any  # D, flat
    gathered: Any  # int8 (width,): the features for which entries have been gathered, or −1
    entries: Any  # (width, m filled up to vectors), flat: entries of atoms, one after another
    scratch: Any  # (width + m filled up to vectors,)


@kernel
def is_lazy(lazy):
    """Whether each signal has a Gram matrix of its own."""
    return lazy is not None


@kernel
def forget_rows(lazy):
    """Mark all rows as not made, and entries of atoms as not gathered."""
    if lazy is None:
        return
    lazy.made[:] = False
    lazy.gathered[:] = -1


@kernel
def begin_signal(lazy, row):
    """Forget the rows of the last signal and turn to this one.

    Returns how many features of it are known, without end if G is shared.
    """
    if lazy is None:
        return ENDLESS
    listed, counts = lazy.listed, lazy.counts
    known = absent = 0
    for f in range(lazy.missing.shape[1]):
        if lazy.missing[row, f]:
            listed[MISSING, absent] = f
            absent += 1
        else:
            listed[KNOWN, known] = f
            known += 1
    counts[KNOWN], counts[MISSING], counts[SIGNAL] = known, absent, row
    counts[SUMMED] = MISSING if absent <= known else KNOWN
    forget_rows(lazy)
    return known


@kernel
def _add_products(lazy, which, j, sign, G):
    """``G[j] += sign Σ_f d_jf d_f`` over the KNOWN or MISSING features f, eight vectors at a time."""
    features, listed, width = lazy.features, lazy.listed, lazy.made.size
    count, step = lazy.counts[which], lanes(G)
    row = j * width
    block = 0
    while block + 8 * step <= width:
        o = row + block
        g0, g1, g2, g3 = load(G, o), load(G, o + step), load(G, o + 2 * step), load(G, o + 3 * step)
        o += 4 * step
        g4, g5, g6, g7 = load(G, o), load(G, o + step), load(G, o + 2 * step), load(G, o + 3 * step)
        for i in range(count):
            f = listed[which, i] * width
            by = splat(G.dtype.type(sign * features[f + j]))
            f += block
            g0 = fma(by, load(features, f), g0)
            g1 = fma(by, load(features, f + step), g1)
            g2 = fma(by, load(features, f + 2 * step), g2)
            g3 = fma(by, load(features, f + 3 * step), g3)
            f += 4 * step
            g4 = fma(by, load(features, f), g4)
            g5 = fma(by, load(features, f + step), g5)
            g6 = fma(by, load(features, f + 2 * step), g6)
            g7 = fma(by, load(features, f + 3 * step), g7)
        store(G, o, g4)
        store(G, o + step, g5)
        store(G, o + 2 * step, g6)
        store(G, o + 3 * step, g7)
        o -= 4 * step
        store(G, o, g0)
        store(G, o + step, g1)
        store(G, o + 2 * step, g2)
        store(G, o + 3 * step, g3)
        block += 8 * step
    while block < width:
        g0 = load(G, row + block)
        for i in range(count):
            f = listed[which, i] * width
            g0 = fma(splat(G.dtype.type(sign * features[f + j])), load(features, f + block), g0)
        store(G, row + block, g0)
        block += step


@kernel
def make_row(lazy, j, G, fast_G):
    """Make row j of this signal's Gram matrix and of its float32 copy, unless that was done."""
    if lazy is None:
        return
    shared, features, listed, counts = lazy.shared, lazy.features, lazy.listed, lazy.counts
    made, ridge = lazy.made, lazy.ridge
    if made[j]:
        return
    width = made.size
    row = j * width
    known, absent = counts[KNOWN], counts[MISSING]
    remaining = np.float64(shared[row + j]) - ridge
    least = CANCELS * remaining
    if absent <= known:
        for i in range(absent):
            entry = np.float64(features[listed[MISSING, i] * width + j])
            remaining -= entry * entry
    if absent <= known and (remaining >= least or absent == 0):
        for i in range(width):
            G[row + i] = shared[row + i]
        _add_products(lazy, MISSING, j, -1.0, G)
    else:
        for i in range(width):
            G[row + i] = 0.0
        _add_products(lazy, KNOWN, j, 1.0, G)
        G[row + j] += ridge
    _finish_row(lazy, j, G, fast_G)


@kernel
def _finish_row(lazy, j, G, fast_G):
    """Apply the weights to a row just made, copy it to float32, and mark it as made."""
    inverse, made = lazy.inverse, lazy.made
    width, signal = made.size, lazy.counts[SIGNAL]
    row = j * width
    made[j] = True
    if inverse.shape[0] > 0:
        of_atom = inverse[signal, j]
        for i in range(width):
            G[row + i] *= of_atom * inverse[signal, i]
    if is_double(fast_G) != is_double(G):
        for i in range(width):
            fast_G[row + i] = G[row + i]


@kernel
def make_block(lazy, atoms, s, work, start, stride, table):
    """Write the Gram matrix of these s atoms to ``work[start:]``, its rows ``stride`` apart.

    Only its upper triangle is valid. A row of scratch begins at ``table`` in ``work``. Returns
    False if there is nothing to make it from, because G is shared.
    """
    if lazy is None:
        return False
    features, inverse, listed, counts = lazy.features, lazy.inverse, lazy.listed, lazy.counts
    width, signal = lazy.made.size, counts[SIGNAL]
    step = lanes(work)
    for i in range(s):
        for o in range(0, s, step):
            store(work, start + i * stride + o, zero(work))
    for o in range(0, s, step):
        store(work, table + o, zero(work))
    for p in range(counts[KNOWN]):
        f = listed[KNOWN, p] * width
        for i in range(s):
            work[table + i] = features[f + atoms[i]]
        for i in range(s):
            by, row = splat(work[table + i]), start + i * stride
            for o in range(i // step * step, s, step):
                store(work, row + o, fma(by, load(work, table + o), load(work, row + o)))
    for i in range(s):
        row = start + i * stride
        work[row + i] += lazy.ridge
        if inverse.shape[0] > 0:
            for r in range(i, s):
                work[row + r] *= np.float64(inverse[signal, atoms[i]]) * inverse[signal, atoms[r]]
    return True


@kernel
def _add_squares(lazy, which, sign, out):
    """``out += sign Σ_f d_f²`` over the KNOWN or MISSING features f, eight vectors at a time."""
    features, listed, width = lazy.features, lazy.listed, lazy.made.size
    count, step = lazy.counts[which], lanes(out)
    by = splat(out.dtype.type(sign))
    o = 0
    while o + 8 * step <= width:
        n0, n1 = load(out, o), load(out, o + step)
        n2, n3 = load(out, o + 2 * step), load(out, o + 3 * step)
        p = o + 4 * step
        n4, n5 = load(out, p), load(out, p + step)
        n6, n7 = load(out, p + 2 * step), load(out, p + 3 * step)
        for i in range(count):
            f = listed[which, i] * width + o
            v0, v1 = load(features, f), load(features, f + step)
            v2, v3 = load(features, f + 2 * step), load(features, f + 3 * step)
            n0, n1 = fma(by * v0, v0, n0), fma(by * v1, v1, n1)
            n2, n3 = fma(by * v2, v2, n2), fma(by * v3, v3, n3)
            f += 4 * step
            v4, v5 = load(features, f), load(features, f + step)
            v6, v7 = load(features, f + 2 * step), load(features, f + 3 * step)
            n4, n5 = fma(by * v4, v4, n4), fma(by * v5, v5, n5)
            n6, n7 = fma(by * v6, v6, n6), fma(by * v7, v7, n7)
        store(out, o, n0)
        store(out, o + step, n1)
        store(out, o + 2 * step, n2)
        store(out, o + 3 * step, n3)
        store(out, p, n4)
        store(out, p + step, n5)
        store(out, p + 2 * step, n6)
        store(out, p + 3 * step, n7)
        o += 8 * step
    while o < width:
        total = load(out, o)
        for i in range(count):
            v = load(features, listed[which, i] * width + o)
            total = fma(by * v, v, total)
        store(out, o, total)
        o += step


@kernel
def squared_norms(lazy, out):
    """Write the diagonal of this signal's Gram matrix."""
    if lazy is None:
        return
    shared, features, listed, counts = lazy.shared, lazy.features, lazy.listed, lazy.counts
    inverse, ridge, width = lazy.inverse, lazy.ridge, lazy.made.size
    known, absent, signal = counts[KNOWN], counts[MISSING], counts[SIGNAL]
    if absent <= known:
        for j in range(width):
            out[j] = shared[j * width + j] - ridge
        _add_squares(lazy, MISSING, -1.0, out)
        for j in range(width):
            if absent > 0 and out[j] < CANCELS * (shared[j * width + j] - ridge):
                total = 0.0
                for i in range(known):
                    entry = np.float64(features[listed[KNOWN, i] * width + j])
                    total += entry * entry
                out[j] = total
    else:
        for j in range(width):
            out[j] = 0.0
        _add_squares(lazy, KNOWN, 1.0, out)
    for j in range(width):
        out[j] += ridge
        if inverse.shape[0] > 0:
            out[j] *= inverse[signal, j] * inverse[signal, j]
