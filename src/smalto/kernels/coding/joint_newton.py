"""The joint lasso on a few atoms: block coordinate descent, and Newton's method for its end.

For the active atoms S with Gram matrix G (s × s) the problem is

    min_A  ½⟨A, G A⟩ − ⟨Q, A⟩ + lam Σ_p ‖a_p‖₂,

with a row a_p of coefficients for each atom, one per signal of the group. A sweep minimizes over
one row after the other, in closed form. Where no row is zero the objective is smooth, and its
Hessian is that of ``G`` for each signal plus ``w_p (I − u_p u_pᵀ)`` for each atom, where
``w_p = lam/‖a_p‖`` and ``u_p = a_p/‖a_p‖``: a matrix of s·n rows. But Newton's equation for it,

    M Δ = E + (w_p t_p u_p)_p   with  M = G + diag(w),  t_p = ⟨u_p, Δ_p⟩,  E minus the gradient,

becomes one of s rows for t, ``(P ∘ UUᵀ) t = (w_p ⟨u_p, (M⁻¹E)_p⟩)_p``, with the parallel sum
``P = W − W M⁻¹ W = W M⁻¹ G`` of G and W = diag(w), which is positive definite where G is. So an
exact Newton step costs no more than a few sweeps. A little is added to the diagonal of G to make it
positive definite: where atoms depend on others the step is then long, along directions that leave
the fit as it is, and the line search ends it where an atom becomes zero.

Tables of A, Q, Δ and so on have a row per atom, ``size`` numbers apart (see `padded`); rows of
square matrices are ``stride`` apart. There is room for `SPARE` more rows than atoms. All is in
float64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.coding.active_set import LANES
from smalto.kernels.coding.joint_tables import padded
from smalto.kernels.coding.small_matrices import (
    SPARE,
    inner,
    invert,
    multiply,
    solve,
    store_two,
)
from smalto.kernels.jit import kernel
from smalto.kernels.simd import fma, hsum, load, splat, store

_HALVINGS = 40  # of the interval of a line search
_SHORTEST = 1e-15  # step at which a line search gives up
_DAMPING = 1e-10  # share of the diagonal of G that is added to it
_CANCELLED = 1e-6  # share of its parts below which a curvature is computed without subtraction
_VANISHED = 1e-3  # share of its norm that an atom has kept when it is taken to have vanished
_WARM_UP = 2  # sweeps before a Newton step, at least
_PATIENCE = 4  # sweeps that take as long as a Newton step
_MOST_SWEEPS = 300


class WorkingSet(NamedTuple):
    """The joint lasso on the atoms that are in use. How many there are, s, is passed along."""

    atoms: Any  # int64 (rows,): which atoms
    used: Any  # bool (width,): whether an atom is among them, all False between groups
    gram: Any  # their Gram matrix G, flat
    stride: int  # of square matrices
    q: Any  # table of correlations of the signals
    c: Any  # table of correlations of the residuals
    codes: Any  # table of coefficients A
    norms: Any  # (rows,): of the rows of A
    newton: NewtonScratch


class NewtonScratch(NamedTuple):
    """Scratch for Newton steps."""

    matrix: Any  # as large as the Gram matrix
    schur: Any  # the same
    step: Any  # table of Δ
    product: Any  # table of M Δ
    three: Any  # (3 * rows,): three numbers per atom


def make_working_set(width: int, largest_group: int, room: int) -> WorkingSet:
    """Room for ``room`` atoms out of ``width``: one per thread, reused for every group."""
    rows = room + SPARE
    stride = -(-rows // LANES) * LANES
    gram, matrix, schur = np.zeros((3, rows * stride))
    q, c, codes, step, product = np.zeros((5, rows * padded(largest_group)))
    scratch = NewtonScratch(matrix, schur, step, product, np.zeros(3 * rows))
    atoms, used = np.zeros(rows, np.int64), np.zeros(width, np.bool_)
    return WorkingSet(atoms, used, gram, stride, q, c, codes, np.zeros(rows), scratch)


@kernel
def refresh(working, s, size):
    """Compute the correlations of the residuals with the active atoms: ``c = q − gram codes``."""
    q, c = working.q, working.c
    multiply(working.gram, working.stride, s, working.codes, c, size)
    for o in range(0, s * size, LANES):
        store(c, o, load(q, o) - load(c, o))


@kernel
def sweep(working, s, size, lam, row):
    """Minimize over the coefficients of one atom after the other; returns the worst violation met.

    ``row`` is scratch for a row of a table.
    """
    gram, stride, q, codes, norms = (
        working.gram,
        working.stride,
        working.q,
        working.codes,
        working.norms,
    )
    worst = 0.0
    for p in range(s):
        begin, line = p * size, p * stride
        g = gram[line + p]
        gram[line + p] = 0.0  # not counting the atom itself
        total = splat(0.0)
        o = 0
        while o + 4 * LANES <= size:
            v0, v1 = load(q, begin + o), load(q, begin + o + LANES)
            v2, v3 = load(q, begin + o + 2 * LANES), load(q, begin + o + 3 * LANES)
            for r in range(s):
                w, at = splat(-gram[line + r]), r * size + o
                v0, v1 = fma(w, load(codes, at), v0), fma(w, load(codes, at + LANES), v1)
                v2 = fma(w, load(codes, at + 2 * LANES), v2)
                v3 = fma(w, load(codes, at + 3 * LANES), v3)
            store_two(row, o, v0, v1)
            store_two(row, o + 2 * LANES, v2, v3)
            total = fma(v0, v0, fma(v1, v1, fma(v2, v2, fma(v3, v3, total))))
            o += 4 * LANES
        while o < size:
            v0, v1 = load(q, begin + o), splat(0.0)
            for r in range(0, s - 1, 2):
                v0 = fma(splat(-gram[line + r]), load(codes, r * size + o), v0)
                v1 = fma(splat(-gram[line + r + 1]), load(codes, (r + 1) * size + o), v1)
            if s % 2:
                v0 = fma(splat(-gram[line + s - 1]), load(codes, (s - 1) * size + o), v0)
            v0 = v0 + v1
            store(row, o, v0)
            total = fma(v0, v0, total)
            o += LANES
        gram[line + p] = g
        norm = np.sqrt(hsum(total))
        factor = (1.0 - lam / norm) / g if norm > lam else 0.0
        if factor == 0.0 and norms[p] == 0.0:
            continue
        norms[p] = factor * norm
        by = splat(factor)
        total = splat(0.0)
        for o in range(0, size, LANES):
            v = load(row, o) * by
            change = v - load(codes, begin + o)
            total = fma(change, change, total)
            store(codes, begin + o, v)
        worst = max(worst, g * np.sqrt(hsum(total)))
    return worst


@kernel
def _rate(t, s, lam, slope, curve, along):
    """The derivative of the objective at t; see `_line_search`."""
    rate = curve * t - slope
    for p in range(s):
        b = along[3 * p + 1] + t * along[3 * p + 2]
        square = along[3 * p] + t * (along[3 * p + 1] + b)
        if square > 0.0:
            rate += lam * b / np.sqrt(square)
    return rate


@kernel
def _line_search(s, lam, slope, curve, along):
    """The step, at most 1, for which the objective is least, to about 12 digits.

    Without norms the objective is ``curve t²/2 − slope t``; ``along`` has three numbers a, b, c for each
    atom: its squared norm is ``a + 2 t b + t² c``.
    """
    high = 1.0
    if _rate(high, s, lam, slope, curve, along) <= 0.0:
        return high
    low = 0.5
    while _rate(low, s, lam, slope, curve, along) > 0.0:
        high = low
        low *= 0.5
        if low < _SHORTEST:
            return 0.0
    for _ in range(_HALVINGS):
        t = 0.5 * (low + high)
        if _rate(t, s, lam, slope, curve, along) > 0.0:
            high = t
        else:
            low = t
    return low


@kernel
def _solve_for_step(working, s, size, lam):
    """Write the Newton step Δ and M Δ; False if rounding leaves no positive definite matrix."""
    gram, stride, codes, norms = working.gram, working.stride, working.codes, working.norms
    matrix, schur, step, product, t = working.newton
    for p in range(s):
        row = p * stride
        for o in range(0, s, LANES):
            store(matrix, row + o, load(gram, row + o))
        w = lam / norms[p]
        matrix[row + p] += w + _DAMPING * gram[row + p]
        minus = splat(-w)
        for o in range(p * size, (p + 1) * size, LANES):
            store(product, o, fma(minus, load(codes, o), load(working.c, o)))
    if not invert(matrix, stride, s):
        return False
    multiply(matrix, stride, s, product, step, size)
    for p in range(s):
        row = p * stride
        w = lam / norms[p]
        t[p] = w * inner(codes, p * size, step, p * size, size) / norms[p]
        # P_pp = w (M⁻¹G)_pp: the difference would lose all digits where w is large.
        total = _DAMPING * matrix[row + p] * gram[row + p]
        for r in range(s):
            total += matrix[row + r] * gram[row + r]
        schur[row + p] = w * total
        for r in range(p):
            cosine = inner(codes, p * size, codes, r * size, size) / (norms[p] * norms[r])
            value = -w * matrix[row + r] * (lam / norms[r]) * cosine
            schur[row + r] = value
            schur[r * stride + p] = value
    if not solve(schur, stride, s, t):
        return False
    for p in range(s):
        by = splat(t[p] * lam / (norms[p] * norms[p]))
        for o in range(p * size, (p + 1) * size, LANES):
            store(product, o, fma(by, load(codes, o), load(product, o)))
    multiply(matrix, stride, s, product, step, size)
    return True


@kernel
def _length_of_step(working, s, size, lam):
    """How much of the Newton step to take."""
    codes, norms = working.codes, working.norms
    _, _, step, product, along = working.newton
    slope, curve, taken = 0.0, 0.0, 0.0
    for p in range(s):
        at = p * size
        # M Δ is known: without the diagonal it is G Δ.
        w = lam / norms[p] + _DAMPING * working.gram[p * working.stride + p]
        c = inner(step, at, step, at, size)
        slope += inner(step, at, working.c, at, size)
        curve += inner(step, at, product, at, size) - w * c
        taken += w * c
        along[3 * p] = norms[p] * norms[p]
        along[3 * p + 1] = inner(codes, at, step, at, size)
        along[3 * p + 2] = c
    if curve < _CANCELLED * taken:
        # Atoms that depend on each other: the difference is rounding, and may be negative.
        multiply(working.gram, working.stride, s, step, product, size)
        curve = 0.0
        for p in range(s):
            curve += inner(step, p * size, product, p * size, size)
        curve = max(curve, 0.0)
    return _line_search(s, lam, slope, curve, along)


@kernel
def newton(working, s, size, lam):
    """Take a Newton step with a line search, where no row of the codes is zero.

    Where it ends because a row all but vanishes, that row becomes zero: beyond the kink the
    objective is another one. Returns whether this has happened.
    """
    codes, norms, step = working.codes, working.norms, working.newton.step
    refresh(working, s, size)
    if not _solve_for_step(working, s, size, lam):
        return False
    t = _length_of_step(working, s, size, lam)
    if not t > 0.0:
        return False
    by = splat(t)
    vanished = False
    for p in range(s):
        total = splat(0.0)
        for o in range(p * size, (p + 1) * size, LANES):
            v = fma(by, load(step, o), load(codes, o))
            store(codes, o, v)
            total = fma(v, v, total)
        norm = np.sqrt(hsum(total))
        if norm < _VANISHED * norms[p]:
            norm = 0.0
            vanished = True
            for o in range(p * size, (p + 1) * size, LANES):
                store(codes, o, splat(0.0))
        norms[p] = norm
    return vanished


@kernel
def drop_zeros(working, s, size):
    """Let the atoms leave whose coefficients are zero; returns how many stay."""
    atoms, gram, stride, norms = working.atoms, working.gram, working.stride, working.norms
    q, codes = working.q, working.codes
    kept = np.int64(0)
    for p in range(s):
        if norms[p] == 0.0:
            working.used[atoms[p]] = False
            continue
        if kept < p:
            atoms[kept] = atoms[p]
            norms[kept] = norms[p]
            for o in range(0, size, LANES):
                store(codes, kept * size + o, load(codes, p * size + o))
                store(q, kept * size + o, load(q, p * size + o))
            for r in range(s):
                gram[kept * stride + r] = gram[p * stride + r]
            # Columns to the right of p keep their places until it is their turn.
            for r in range(s):
                gram[r * stride + kept] = gram[r * stride + p]
        kept += 1
    return kept


@kernel
def settle(working, s, size, lam, goal, work):
    """Sweeps and Newton steps until a sweep meets no violation above ``goal``.

    A Newton step is taken when sweeps would take longer, judging by the last two. Returns the
    number of atoms, none of which is zero, and what is left of ``work``, a number of
    multiplications; without any left it ends.
    """
    worst, since = np.inf, 0
    for _ in range(_MOST_SWEEPS):
        before, worst = worst, sweep(working, s, size, lam, working.newton.step)
        since += 1
        work -= float(s) * s * size
        if worst <= goal or work < 0.0:
            break
        # Each sweep shrinks violations by about worst/before: will a few do?
        if since >= _WARM_UP and worst * (worst / before) ** _PATIENCE > goal:
            again = True
            while again and work >= 0.0:
                # Sweeps would bring back an atom that has just vanished: the others move first.
                s = drop_zeros(working, s, size)
                work -= float(s) * s * (s + size)
                again = newton(working, s, size, lam)
            since = 0
            worst = np.inf
    return drop_zeros(working, s, size), work
