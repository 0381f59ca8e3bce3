"""The coefficients of the atoms that a pursuit has chosen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.coding.active_moves import DEPENDENT_32, DEPENDENT_64
from smalto.kernels.coding.active_set import CODE, INVERSE, LANES
from smalto.kernels.coding.masked_gram import make_block
from smalto.kernels.coding.omp_choice import VECTORS, place_of_h
from smalto.kernels.jit import inlined, kernel
from smalto.kernels.precision import is_double
from smalto.kernels.simd import fma, hsum, lanes, load, splat, store, zero

LESS_EXACT = 10.0  # times `DEPENDENT_32`, see `dependent_share`
ROUGH_32, ROUGH_64 = 1e-5, 1e-10  # share of ‖x‖² that is too small an error to ask for more atoms


class Given(NamedTuple):
    """What correlations are computed from, one by one."""

    x: Any  # signals, flat
    atoms: Any  # flat


class Correlations(NamedTuple):
    """The correlations of all signals, ``x Dᵀ``."""

    Q: Any  # (n, width); what is read of it is written before if there is something given
    fast: Any  # the same in float32; Q itself if that is float32
    given: Any  # Given, or None


@kernel
def correlate(given, q, start, width, j):
    """Write the correlation of the signal and atom j, if correlations are not all there."""
    if given is None:
        return
    x, atoms = given
    m = atoms.size // width
    o, a = start // width * m, j * m
    step = lanes(atoms)
    sum0 = sum1 = zero(atoms)
    i = np.int64(0)
    while i + 2 * step <= m:
        sum0 = fma(load(x, o + i), load(atoms, a + i), sum0)
        sum1 = fma(load(x, o + i + step), load(atoms, a + i + step), sum1)
        i += 2 * step
    total = hsum(sum0 + sum1)
    while i < m:
        total += x[o + i] * atoms[a + i]
        i += 1
    q[start + j] = total


@kernel
def dependent_share(array):
    """The share of its squared norm up to which what is left of an atom may be rounding.

    In float32 ten times that of the lasso, whose penalty keeps the coefficients of atoms that are
    nearly alike from growing against each other.
    """
    return DEPENDENT_64 if is_double(array) else LESS_EXACT * DEPENDENT_32


@inlined
def keep_row(active, s, table, outside):
    """Keep row s of the factor L, with the reciprocal of its last entry, and y_s; returns y_s."""
    atoms, work = active
    row = (INVERSE + s) * atoms.size
    o = place_of_h(table, atoms[s])
    for i in range(s):
        work[row + i] = table.numbers[o]
        o += VECTORS * lanes(table.numbers)
    scale = 1.0 / np.sqrt(outside)
    work[row + s] = scale
    work[s] = table.numbers[atoms[s]] * scale
    return work[s]


@kernel
def solve_kept(active, s):
    """Write the code ``L⁻ᵀ y`` from the rows of L that were kept; y is overwritten."""
    work, stride = active.work, active.atoms.size
    code, row = CODE * stride, (INVERSE + s) * stride
    for i in range(s - 1, -1, -1):
        row -= stride
        value = work[i] * work[row + i]
        work[code + i] = value
        by = splat(-value)
        for o in range(0, i, LANES):
            store(work, o, fma(by, load(work, row + o), load(work, o)))


@kernel
def _eliminate(active, s, share, norm, eps):
    """Eliminate the chosen atoms one by one from the equations in ``work``.

    Leaves out an atom that depends on those before it, and stops where the error is at most eps.
    Returns how many atoms have been looked at, and the error.
    """
    work, stride = active.work, active.atoms.size
    code, row = CODE * stride, INVERSE * stride
    error = norm
    for i in range(s):
        outside = work[row + i]
        if not outside > share * work[code + i]:
            work[row + i] = 0.0
            row += stride
            continue
        inverse = 1.0 / outside
        y = work[i]
        error -= y * y * inverse
        if error <= eps:
            return i + 1, error
        below = row
        for r in range(i + 1, s):
            below += stride
            weight = work[row + r] * inverse
            work[r] -= weight * y
            by = splat(-weight)
            for o in range(r // LANES * LANES, s, LANES):
                store(work, below + o, fma(by, load(work, row + o), load(work, below + o)))
        row += stride
    return s, error


@kernel
def fit_chosen(exact, width, norm, eps, active, s):
    """Least squares on the active atoms by elimination in float64, whatever chose them.

    Takes the atoms in their order, without those that depend on others before them, until the error
    is at most eps. Writes their code; returns their number and the error.
    """
    atoms, work = active
    stride = atoms.size
    code, base = CODE * stride, INVERSE * stride
    made = make_block(exact.lazy, atoms, s, work, base, stride, code)
    for i in range(s):
        row = base + i * stride
        if not made:
            for r in range(i, s):
                work[row + r] = exact.G[atoms[i] * width + atoms[r]]
        correlate(exact.given, exact.q, exact.start, width, atoms[i])
        work[i] = exact.q[exact.start + atoms[i]]
    for i in range(s):
        work[code + i] = work[base + i * stride + i]
    count, error = _eliminate(active, s, dependent_share(exact.G), norm, eps)
    for i in range(count - 1, -1, -1):  # column by column, as sums would wait for each other
        pivot = work[base + i * stride + i]
        value = work[i] / pivot if pivot > 0.0 else 0.0
        work[code + i] = value
        for r in range(i):
            work[r] -= work[base + r * stride + i] * value
    taken = np.int64(0)
    for i in range(count):
        if work[base + i * stride + i] > 0.0:
            atoms[taken], work[code + taken] = atoms[i], work[code + i]
            taken += 1
    return taken, error


@kernel
def write_code(active, s, first, used, out, position):
    """Append the coefficients, which begin at ``first`` in ``work``, by increasing atom."""
    atoms, work = active
    for i in range(s):
        atom = atoms[i]
        used[atom] = False
        p = position
        for r in range(s):
            p += 1 if atoms[r] < atom else 0
        out.indices[p] = atom
        out.values[p] = work[first + i]
