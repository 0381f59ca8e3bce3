"""Products of atoms at the known entries of one signal, for methods with an active set.

An active set needs the Gram matrix of its own atoms only, and the correlations of all atoms with
the residual. Where entries of a signal are missing (or its coefficients have weights in the
penalty), both are made without a row of the Gram matrix of that signal:

- each active atom has its entries at the missing features, one after another, so that a product of
  two atoms is the one that all signals share, less a short inner product;
- the correlations are those of the shared Gram matrix, plus a sum over the missing features of what
  the code fills in there.

Where fewer features are known than missing, or where so little of an atom is known that
subtraction would leave only rounding, the sums are over the known features instead, and nothing is
subtracted. Where all signals share one Gram matrix, the `LazyGram` is None.
"""

from __future__ import annotations

import numpy as np

from smalto.kernels.coding.active_set import correlations, largest, subtract_rows
from smalto.kernels.coding.masked_gram import CANCELS, KNOWN, MISSING, SIGNAL, SUMMED
from smalto.kernels.jit import inlined, kernel
from smalto.kernels.simd import fma, hsum, lanes, load, splat, store, zero


@kernel
def _gather(lazy, j):
    """List the entries of atom j at the features to sum over, filled up to whole vectors by zeros."""
    which = lazy.counts[SUMMED]
    lazy.gathered[j] = which
    entries, atoms, listed = lazy.entries, lazy.atoms, lazy.listed
    count, m = lazy.counts[which], lazy.listed.shape[1]
    place, step = j * (entries.size // lazy.made.size), lanes(entries)
    for i in range(count):
        entries[place + i] = atoms[j * m + listed[which, i]]
    for i in range(count, (count + step - 1) // step * step):
        entries[place + i] = 0.0


@inlined
def _inner(lazy, i, j):
    """The inner product of the gathered entries of two atoms."""
    entries = lazy.entries
    stride, step = entries.size // lazy.made.size, lanes(entries)
    a, b = i * stride, j * stride
    even, odd = zero(entries), zero(entries)
    o, count = 0, lazy.counts[lazy.counts[SUMMED]]
    while o + step < count:
        even = fma(load(entries, a + o), load(entries, b + o), even)
        odd = fma(load(entries, a + o + step), load(entries, b + o + step), odd)
        o += 2 * step
    if o < count:
        even = fma(load(entries, a + o), load(entries, b + o), even)
    return hsum(even + odd)


@kernel
def _left_of(lazy, j):
    """The squared norm of what is known of atom j, with the ridge."""
    shared = lazy.shared[j * lazy.made.size + j]
    if lazy.gathered[j] != lazy.counts[SUMMED]:
        _gather(lazy, j)
    if lazy.counts[SUMMED] == MISSING:
        left = shared - _inner(lazy, j, j)
        norm = shared - lazy.ridge
        if lazy.counts[MISSING] == 0 or left - lazy.ridge >= CANCELS * norm:
            return left
        lazy.counts[SUMMED] = KNOWN
        _gather(lazy, j)
    return _inner(lazy, j, j) + lazy.shared.dtype.type(lazy.ridge)


@kernel
def make_products(lazy, j, atoms, s, G):
    """Write the products of atom j with itself and with the s active atoms to its row of G."""
    if lazy is None:
        return
    shared, inverse, width = lazy.shared, lazy.inverse, lazy.made.size
    row, signal = j * width, lazy.counts[SIGNAL]
    G[row + j] = _left_of(lazy, j)
    which = lazy.counts[SUMMED]
    for i in range(s):
        other = atoms[i]
        if lazy.gathered[other] != which:
            _gather(lazy, other)
        inner = _inner(lazy, j, other)
        G[row + other] = inner if which == KNOWN else shared[row + other] - inner
    if inverse.shape[0] > 0:
        of_atom = inverse[signal, j]
        for i in range(s):
            G[row + atoms[i]] *= of_atom * inverse[signal, atoms[i]]
        G[row + j] *= of_atom * of_atom


@kernel
def _fill_in(lazy, atoms, s, c, sign):
    """Write ``sign Σ_i coefficient_i entries_i`` behind the first ``width`` numbers of the scratch."""
    entries, scratch, width = lazy.entries, lazy.scratch, lazy.made.size
    stride, step = entries.size // width, lanes(entries)
    for i in range(s):
        if lazy.gathered[atoms[i]] != lazy.counts[SUMMED]:
            _gather(lazy, atoms[i])
    for o in range(0, lazy.counts[lazy.counts[SUMMED]], step):
        total = zero(entries)
        for i in range(s):
            total = fma(splat(c[width + i]), load(entries, atoms[i] * stride + o), total)
        store(scratch, width + o, total * splat(scratch.dtype.type(sign)))


@kernel
def correlations_of_signal(lazy, view, width, atoms, s, positive):
    """Write the correlations of all atoms with the residual to ``view.c``; returns the `largest`.

    The s coefficients stand behind its first ``width`` numbers, and may be changed.
    """
    c = view.c
    if lazy is None:
        return correlations(view.G, width, view.q, view.start, atoms, s, positive, c)
    inverse, counts = lazy.inverse, lazy.counts
    which, signal, scratch = counts[SUMMED], counts[SIGNAL], lazy.scratch
    weighted = inverse.shape[0] > 0
    if weighted:
        for i in range(s):
            c[width + i] *= inverse[signal, atoms[i]]
    if which == MISSING:
        _fill_in(lazy, atoms, s, c, -1.0)
    else:
        _fill_in(lazy, atoms, s, c, 1.0)
    # Without weights, from q; with weights, the change of q in the units of the atoms.
    for o in range(0, width, lanes(c)):
        store(scratch, o, zero(c) if weighted else load(view.q, view.start + o))
    if which == MISSING:
        subtract_rows(lazy.shared, width, scratch, 0, atoms, s, c)
        subtract_rows(lazy.features, width, c, 0, lazy.listed[MISSING], counts[MISSING], scratch)
    else:
        subtract_rows(lazy.features, width, scratch, 0, lazy.listed[KNOWN], counts[KNOWN], scratch)
        for i in range(s):
            scratch[atoms[i]] -= c.dtype.type(lazy.ridge) * c[width + i]
    if weighted:
        for j in range(width):
            c[j] = view.q[view.start + j] + inverse[signal, j] * scratch[j]
    else:
        for o in range(0, width, lanes(c)):
            store(c, o, load(scratch, o))
    return largest(c, np.int64(0), width, positive)
