"""The joint lasso on a few atoms: block coordinate descent, and Newton's method for its end.

For the active atoms S with Gram matrix G (s × s) the problem is

    min_A  ½⟨A, G A⟩ − ⟨Q, A⟩ + lam Σ_p ‖a_p‖₂,

with a row a_p of coefficients for each atom, one per signal of the group. A sweep minimises over
one row after the other, in closed form. Where no row is zero the objective is smooth, and its
Hessian is that of ``G`` for each signal plus ``w_p (I − u_p u_pᵀ)`` for each atom, where
``w_p = lam/‖a_p‖`` and ``u_p = a_p/‖a_p‖``: a matrix of s·n rows. But Newton's equation for it,

    M Δ = E + (w_p t_p u_p)_p   with  M = G + diag(w),  t_p = ⟨u_p, Δ_p⟩,  E minus the gradient,

becomes one of s rows for t, ``(P ∘ UUᵀ) t = (w_p ⟨u_p, (M⁻¹E)_p⟩)_p``, with the parallel sum
``P = W − W M⁻¹ W = W M⁻¹ G`` of G and W = diag(w), which is positive where G is. So an exact
Newton step costs no more than a few sweeps. G is made positive by a trifle on its diagonal: where
atoms depend on others the step is then long, along directions that leave the fit as it is, and the
line search ends it where an atom becomes zero.

Tables of A, Q, Δ and so on have a row of `padded` length per atom, square matrices rows ``stride``
apart; there is room for at least `SPARE` more rows than atoms. All in float64.
"""

from __future__ import annotations

import numpy as np

from smalto.kernels.coding.active_set import LANES
from smalto.kernels.jit import kernel
from smalto.kernels.simd import fma, hsum, load, splat, store

SPARE = 4  # rows that are computed at once
_HALVINGS = 40  # of the interval of a line search
_DAMPING = 1e-10  # of the diagonal of G, on top of it
_CANCELLED = 1e-6  # share of its parts below which a curvature is computed without subtraction
_VANISHED = 1e-3  # share of its norm that an atom has kept when it is taken to have vanished
_WARM_UP = 2  # sweeps before a Newton step, at least
_PATIENCE = 4  # sweeps that take as long as a Newton step
_MOST = 300  # sweeps


@kernel
def inner(x, i, y, j, size):
    """``⟨x[i:], y[j:]⟩`` of so many numbers."""
    total = splat(0.0)
    for o in range(0, size, LANES):
        total = fma(load(x, i + o), load(y, j + o), total)
    return hsum(total)


@kernel
def multiply(matrix, stride, s, source, target, size):
    """``target = matrix @ source``, for tables of so many numbers a row."""
    for i in range(0, s, SPARE):
        m0 = i * stride
        m1, m2, m3 = m0 + stride, m0 + 2 * stride, m0 + 3 * stride
        at = i * size
        for o in range(0, size - LANES, 2 * LANES):
            a0, a1, a2, a3 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
            b0, b1, b2, b3 = a0, a0, a0, a0
            for r in range(s):
                a, b = load(source, r * size + o), load(source, r * size + o + LANES)
                w = splat(matrix[m0 + r])
                a0, b0 = fma(w, a, a0), fma(w, b, b0)
                w = splat(matrix[m1 + r])
                a1, b1 = fma(w, a, a1), fma(w, b, b1)
                w = splat(matrix[m2 + r])
                a2, b2 = fma(w, a, a2), fma(w, b, b2)
                w = splat(matrix[m3 + r])
                a3, b3 = fma(w, a, a3), fma(w, b, b3)
            _store_two(target, at + o, a0, b0)
            _store_two(target, at + size + o, a1, b1)
            _store_two(target, at + 2 * size + o, a2, b2)
            _store_two(target, at + 3 * size + o, a3, b3)
        if size % (2 * LANES):
            o = size - LANES
            a0, a1, a2, a3 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
            for r in range(s):
                a = load(source, r * size + o)
                a0 = fma(splat(matrix[m0 + r]), a, a0)
                a1 = fma(splat(matrix[m1 + r]), a, a1)
                a2 = fma(splat(matrix[m2 + r]), a, a2)
                a3 = fma(splat(matrix[m3 + r]), a, a3)
            store(target, at + o, a0)
            store(target, at + size + o, a1)
            store(target, at + 2 * size + o, a2)
            store(target, at + 3 * size + o, a3)


@kernel
def _store_two(target, at, a, b):
    store(target, at, a)
    store(target, at + LANES, b)


@kernel
def refresh(gram, stride, s, codes, given, left, size):
    """The correlations of the residuals with the active atoms: ``left = given − gram codes``."""
    multiply(gram, stride, s, codes, left, size)
    for o in range(0, s * size, LANES):
        store(left, o, load(given, o) - load(left, o))


@kernel
def invert(matrix, stride, s):
    """Invert a positive matrix in place; False, and of no use, where it is not (to rounding)."""
    for p in range(s):
        row = p * stride
        pivot = matrix[row + p]
        if not pivot > 0.0:
            return False
        matrix[row + p] = 1.0
        by = splat(1.0 / pivot)
        for o in range(0, s, LANES):
            store(matrix, row + o, load(matrix, row + o) * by)
        for r in range(s):
            if r != p:
                other = r * stride
                minus = splat(-matrix[other + p])
                matrix[other + p] = 0.0
                for o in range(0, s, LANES):
                    v = fma(minus, load(matrix, row + o), load(matrix, other + o))
                    store(matrix, other + o, v)
    return True


@kernel
def solve(matrix, stride, s, b):
    """Solve for b, in place, with a positive matrix, which is lost; False where it is not."""
    for p in range(s):
        row = p * stride
        pivot = matrix[row + p]
        if not pivot > 0.0:
            return False
        for r in range(p + 1, s):
            other = r * stride
            factor = -matrix[other + p] / pivot
            minus = splat(factor)
            for o in range(p // LANES * LANES, s, LANES):
                v = fma(minus, load(matrix, row + o), load(matrix, other + o))
                store(matrix, other + o, v)
            b[r] += factor * b[p]
    for p in range(s - 1, -1, -1):
        row = p * stride
        total = b[p]
        for r in range(p + 1, s):
            total -= matrix[row + r] * b[r]
        b[p] = total / matrix[row + p]
    return True


@kernel
def sweep(gram, stride, s, lam, codes, given, size, norms, row):
    """Minimise over the coefficients of one atom after the other; the worst violation met.

    ``norms`` are those of the rows of the codes; ``row`` has room for one.
    """
    worst = 0.0
    for p in range(s):
        begin, line = p * size, p * stride
        g = gram[line + p]
        gram[line + p] = 0.0  # not counting the atom itself
        total = splat(0.0)
        o = 0
        while o + 4 * LANES <= size:
            v0, v1 = load(given, begin + o), load(given, begin + o + LANES)
            v2, v3 = load(given, begin + o + 2 * LANES), load(given, begin + o + 3 * LANES)
            for r in range(s):
                w, at = splat(-gram[line + r]), r * size + o
                v0, v1 = fma(w, load(codes, at), v0), fma(w, load(codes, at + LANES), v1)
                v2 = fma(w, load(codes, at + 2 * LANES), v2)
                v3 = fma(w, load(codes, at + 3 * LANES), v3)
            _store_two(row, o, v0, v1)
            _store_two(row, o + 2 * LANES, v2, v3)
            total = fma(v0, v0, fma(v1, v1, fma(v2, v2, fma(v3, v3, total))))
            o += 4 * LANES
        while o < size:
            v0, v1 = load(given, begin + o), splat(0.0)
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
    """How fast the objective rises at t; see `_line_search`."""
    rate = curve * t - slope
    for p in range(s):
        b = along[3 * p + 1] + t * along[3 * p + 2]
        square = along[3 * p] + t * (along[3 * p + 1] + b)
        if square > 0.0:
            rate += lam * b / np.sqrt(square)
    return rate


@kernel
def _line_search(s, lam, slope, curve, along):
    """How far to go, at most 1: to where the objective is least, to about 12 digits.

    Without its norms it is ``curve t²/2 − slope t``; ``along`` has three numbers a, b, c for each
    atom: its squared norm is ``a + 2 t b + t² c``.
    """
    high = 1.0
    if _rate(high, s, lam, slope, curve, along) <= 0.0:
        return high
    low = 0.5
    while _rate(low, s, lam, slope, curve, along) > 0.0:
        high = low
        low *= 0.5
        if low < 1e-15:
            return 0.0
    for _ in range(_HALVINGS):
        t = 0.5 * (low + high)
        if _rate(t, s, lam, slope, curve, along) > 0.0:
            high = t
        else:
            low = t
    return low


@kernel
def newton(gram, stride, s, lam, codes, given, left, size, norms, matrix, schur, move, other,
           small):  # fmt: skip
    """One Newton step with a line search, where no row of the codes is zero.

    Where it ends because a row all but vanishes, that row becomes zero: beyond the kink the
    objective is another one. Returns whether this has happened.

    ``matrix`` and ``schur`` have room for as much as ``gram``; ``left``, ``move`` and ``other`` for
    tables; ``small`` for three numbers per atom.
    """
    refresh(gram, stride, s, codes, given, left, size)
    for p in range(s):
        row = p * stride
        for o in range(0, s, LANES):
            store(matrix, row + o, load(gram, row + o))
        w = lam / norms[p]
        matrix[row + p] += w + _DAMPING * gram[row + p]
        minus = splat(-w)
        for o in range(p * size, (p + 1) * size, LANES):
            store(other, o, fma(minus, load(codes, o), load(left, o)))
    if not invert(matrix, stride, s):
        return False
    multiply(matrix, stride, s, other, move, size)
    for p in range(s):
        row = p * stride
        w = lam / norms[p]
        small[p] = w * inner(codes, p * size, move, p * size, size) / norms[p]
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
    if not solve(schur, stride, s, small):
        return False
    for p in range(s):
        by = splat(small[p] * lam / (norms[p] * norms[p]))
        for o in range(p * size, (p + 1) * size, LANES):
            store(other, o, fma(by, load(codes, o), load(other, o)))
    multiply(matrix, stride, s, other, move, size)
    slope, curve, taken = 0.0, 0.0, 0.0
    for p in range(s):
        at = p * size
        # M Δ is known: what is left of it is G Δ.
        w = lam / norms[p] + _DAMPING * gram[p * stride + p]
        c = inner(move, at, move, at, size)
        slope += inner(move, at, left, at, size)
        curve += inner(move, at, other, at, size) - w * c
        taken += w * c
        small[3 * p] = norms[p] * norms[p]
        small[3 * p + 1] = inner(codes, at, move, at, size)
        small[3 * p + 2] = c
    if curve < _CANCELLED * taken:
        # Atoms that depend on each other: the difference is rounding, and may be negative.
        multiply(gram, stride, s, move, other, size)
        curve = 0.0
        for p in range(s):
            curve += inner(move, p * size, other, p * size, size)
        curve = max(curve, 0.0)
    t = _line_search(s, lam, slope, curve, small)
    if not t > 0.0:
        return False
    by = splat(t)
    vanished = False
    for p in range(s):
        total = splat(0.0)
        for o in range(p * size, (p + 1) * size, LANES):
            v = fma(by, load(move, o), load(codes, o))
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
def drop_zeros(gram, stride, s, atoms, used, codes, given, size, norms):
    """Let the atoms whose coefficients are zero leave; the number of those that stay."""
    kept = 0
    for p in range(s):
        if norms[p] == 0.0:
            used[atoms[p]] = False
            continue
        if kept < p:
            atoms[kept] = atoms[p]
            norms[kept] = norms[p]
            for o in range(0, size, LANES):
                store(codes, kept * size + o, load(codes, p * size + o))
                store(given, kept * size + o, load(given, p * size + o))
            for r in range(s):
                gram[kept * stride + r] = gram[p * stride + r]
            # Columns to the right of p keep their places until it is their turn.
            for r in range(s):
                gram[r * stride + kept] = gram[r * stride + p]
        kept += 1
    return kept


@kernel
def settle(gram, stride, s, lam, goal, atoms, used, codes, given, left, size, norms, matrix, schur,
           move, other, small):  # fmt: skip
    """Sweeps and Newton steps until a sweep meets no violation above ``goal``.

    A Newton step comes when sweeps would take longer, as far as the last two can tell. Returns the
    number of atoms, none of which is zero.
    """
    worst, since = np.inf, 0
    for _ in range(_MOST):
        before, worst = worst, sweep(gram, stride, s, lam, codes, given, size, norms, move)
        since += 1
        if worst <= goal:
            break
        # Sweeps shrink violations by about worst/before each: will a few do?
        if since >= _WARM_UP and worst * (worst / before) ** _PATIENCE > goal:
            again = True
            while again:
                # Sweeps would bring back an atom that has just vanished: the others move first.
                s = drop_zeros(gram, stride, s, atoms, used, codes, given, size, norms)
                again = newton(gram, stride, s, lam, codes, given, left, size, norms, matrix, schur,
                               move, other, small)  # fmt: skip
            since = 0
            worst = np.inf
    return drop_zeros(gram, stride, s, atoms, used, codes, given, size, norms)
