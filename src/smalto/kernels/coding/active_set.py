"""The active set shared by all greedy and homotopy coders, with its Cholesky factor.

For the active atoms S with Gram matrix ``G_SS = L Lᵀ``, the rows of ``L⁻¹`` are kept instead of
``L``: a solution then needs no triangular solve, only dot products and sums of rows, which fill
vectors. For a right-hand side b with one entry per active atom, ``y = L⁻¹ b`` and the solution
``target = L⁻ᵀ y = G_SS⁻¹ b`` are kept as well:

- an atom that joins adds a row to ``L⁻¹``, an entry to y, and that row times that entry to
  the target;
- an atom that leaves is rotated into the last row, which is then removed from all three.

Both cost O(s²). Everything is in float64, whatever the dtype of the data: for s ≈ 10–50 this is
cheap, and float32 signals with correlated atoms need it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.aligned import empty
from smalto.kernels.jit import kernel
from smalto.kernels.simd import (
    fma,
    hmax,
    hsum,
    lanes,
    load,
    splat,
    store,
    subtract_scaled,
    vabs,
    vmax,
    zero,
)

LANES = 8  # float64 numbers in a vector

# `ActiveSet.work` is cut into vectors as long as `ActiveSet.atoms`: these come first, in this order,
# and the rows of L⁻¹ follow.
Y, TARGET, CODE, SIGN, GATHERED, INVERSE = range(6)

_SPARE = 2  # more rows than atoms: one for an atom while it joins, one as scratch


class ActiveSet(NamedTuple):
    """The active atoms and their factor. How many are active, s, is passed along with it."""

    atoms: Any  # int64: the active atoms, in the order in which they joined
    work: Any  # float64, flat


def make_active_set(capacity: int) -> ActiveSet:
    """Room for ``capacity`` atoms: one per thread, reused for every signal."""
    stride = -(-capacity // LANES) * LANES + LANES
    work = empty((INVERSE + capacity + _SPARE) * stride, np.float64)
    work.fill(0.0)
    return ActiveSet(np.zeros(stride, np.int64), work)


@kernel
def capacity(active):
    """The number of atoms that fit."""
    return active.work.size // active.atoms.size - INVERSE - _SPARE


@kernel
def append(G, width, active, s, j, b, tolerance):
    """Let atom j join the s active ones, with right-hand side b; False if it depends on them.

    An atom depends on the others if the part of it outside their span has a squared norm of at
    most ``tolerance`` times its own. Then nothing changes but the scratch row s + 1, which holds
    the atom's ``L⁻¹ g``.
    """
    atoms, work = active
    stride = atoms.size
    inverse, target, gathered = INVERSE * stride, TARGET * stride, GATHERED * stride
    padded = (s + LANES - 1) // LANES * LANES
    zeros = splat(0.0)
    row = inverse + s * stride
    scratch = row + stride
    if padded > s:
        store(work, gathered + padded - LANES, zeros)
        store(work, scratch + padded - LANES, zeros)
    for i in range(s):  # from row j, in which the entries are near each other
        work[gathered + i] = G[j * width + atoms[i]]
    norm = np.float64(G[j * width + j])
    outside = norm
    rest = b
    for i in range(s):
        above = inverse + i * stride
        total = load(work, above) * load(work, gathered)
        for o in range(LANES, i + 1, LANES):
            total = fma(load(work, above + o), load(work, gathered + o), total)
        inner = hsum(total)
        work[scratch + i] = inner
        outside -= inner * inner
        rest -= inner * work[i]  # y is the first vector
    if not outside > tolerance * norm:
        return False
    diagonal = 1.0 / np.sqrt(outside)
    y = rest * diagonal
    work[s] = y
    minus, last = splat(-diagonal), splat(y)
    for o in range(0, padded, LANES):
        even, odd = zeros, zeros
        i = o
        above = inverse + o * stride + o
        while i + 1 < s:
            even = fma(splat(work[scratch + i]), load(work, above), even)
            odd = fma(splat(work[scratch + i + 1]), load(work, above + stride), odd)
            above += 2 * stride
            i += 2
        if i < s:
            even = fma(splat(work[scratch + i]), load(work, above), even)
        new = (even + odd) * minus
        store(work, row + o, new)
        store(work, target + o, fma(last, new, load(work, target + o)))
    store(work, row + padded, zeros)
    work[row + s] = diagonal
    work[target + s] = y * diagonal
    atoms[s] = j
    return True


@kernel
def remove(active, s, p):
    """Let the p-th of s active atoms leave; those behind it move up."""
    atoms, work = active
    stride = atoms.size
    inverse, target = INVERSE * stride, TARGET * stride
    code, sign = CODE * stride, SIGN * stride
    for i in range(p, s - 1):
        row = inverse + i * stride
        below = row + stride
        u, v = work[row + p], work[below + p]
        scale = 1.0 / np.sqrt(u * u + v * v)
        cosine, sine = v * scale, u * scale
        c, plus, minus = splat(cosine), splat(sine), splat(-sine)
        for o in range(0, i + 2, LANES):
            upper, lower = load(work, row + o), load(work, below + o)
            store(work, row + o, fma(minus, lower, upper * c))
            store(work, below + o, fma(plus, upper, lower * c))
        y, next_y = work[i], work[i + 1]
        work[i], work[i + 1] = cosine * y - sine * next_y, sine * y + cosine * next_y
        for o in range(p, i + 2, LANES):  # column p is zero now: close the gap
            store(work, row + o, load(work, row + o + 1))
    last = inverse + (s - 1) * stride
    minus = splat(-work[s - 1])
    for o in range(0, s, LANES):
        store(work, target + o, fma(minus, load(work, last + o), load(work, target + o)))
    for i in range(p, s - 1):
        atoms[i] = atoms[i + 1]
        work[target + i] = work[target + i + 1]
        work[code + i] = work[code + i + 1]
        work[sign + i] = work[sign + i + 1]


@kernel
def weights_of_dependent(active, s):
    """Gather the weights w for which atom j, just refused by `append`, is Σ w_i (active atom i)."""
    atoms, work = active
    stride = atoms.size
    inverse, gathered = INVERSE * stride, GATHERED * stride
    scratch = inverse + (s + 1) * stride
    for i in range(s):
        work[gathered + i] = 0.0
    for r in range(s):
        for i in range(r + 1):
            work[gathered + i] += work[scratch + r] * work[inverse + r * stride + i]


@kernel
def largest_value(values, start, width):
    """The largest of ``values[start : start + width]``; at least 0."""
    top = zero(values)
    for j in range(start, start + width, lanes(values)):
        top = vmax(top, load(values, j))
    return hmax(top)


@kernel
def largest_magnitude(values, start, width):
    """The largest magnitude of ``values[start : start + width]``."""
    top = zero(values)
    for j in range(start, start + width, lanes(values)):
        top = vmax(top, vabs(load(values, j)))
    return hmax(top)


@kernel
def largest(values, start, width, positive):
    """The largest of some values, which must be above zero to count, or of their magnitudes."""
    if positive:
        return largest_value(values, start, width)
    return largest_magnitude(values, start, width)


@kernel
def subtract_rows(G, width, q, start, atoms, s, buffer):
    """Write ``q − Σ_i coefficient_i G[atoms_i]``.

    ``q`` is read from ``start`` on. The s coefficients stand in the buffer behind its first
    ``width`` numbers, which receive the result. Rows of G are read eight at a time: with more
    than a few hundred atoms they are not in the first cache, and the order of reading is what
    matters most.
    """
    i = s % 4
    if i == 0:
        subtract_scaled(buffer, width, q, start, G, atoms, 0, 0)
    elif i == 1:
        subtract_scaled(buffer, width, q, start, G, atoms, 0, 1)
    elif i == 2:
        subtract_scaled(buffer, width, q, start, G, atoms, 0, 2)
    else:
        subtract_scaled(buffer, width, q, start, G, atoms, 0, 3)
    if (s - i) % 8 != 0:
        subtract_scaled(buffer, width, buffer, 0, G, atoms, i, 4)
        i += 4
    while i < s:
        subtract_scaled(buffer, width, buffer, 0, G, atoms, i, 8)
        i += 8


@kernel
def correlations(G, width, q, start, atoms, s, positive, buffer):
    """Write ``q − Σ_i coefficient_i G[atoms_i]`` as `subtract_rows` does; returns its `largest`."""
    subtract_rows(G, width, q, start, atoms, s, buffer)
    return largest(buffer, np.int64(0), width, positive)
