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

from smalto.kernels.active import LANES
from smalto.kernels.jit import kernel
from smalto.kernels.simd import fma, hsum, load, splat, store

SPARE = 4  # rows that are computed at once
_HALVINGS = 40  # of the interval of a line search
_DAMPING = 1e-10  # of the diagonal of G, on top of it
_WARM_UP = 3  # sweeps before the first Newton step
_MOST = 200  # sweeps


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
        row = i * stride
        for o in range(0, size, LANES):
            t0, t1, t2, t3 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
            for r in range(s):
                v = load(source, r * size + o)
                t0 = fma(splat(matrix[row + r]), v, t0)
                t1 = fma(splat(matrix[row + stride + r]), v, t1)
                t2 = fma(splat(matrix[row + 2 * stride + r]), v, t2)
                t3 = fma(splat(matrix[row + 3 * stride + r]), v, t3)
            store(target, i * size + o, t0)
            store(target, (i + 1) * size + o, t1)
            store(target, (i + 2) * size + o, t2)
            store(target, (i + 3) * size + o, t3)


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
def sweep(gram, stride, s, lam, codes, left, size, norms):
    """Minimise over the coefficients of one atom after the other; the worst violation met.

    ``left`` are the correlations of the residuals with the active atoms, ``norms`` those of the
    rows of the codes; both are kept up to date.
    """
    worst = 0.0
    for p in range(s):
        begin = p * size
        g = gram[p * stride + p]
        own = splat(g)
        total = splat(0.0)
        for o in range(begin, begin + size, LANES):
            v = fma(own, load(codes, o), load(left, o))
            total = fma(v, v, total)
        norm = np.sqrt(hsum(total))
        factor = (1.0 - lam / norm) / g if norm > lam else 0.0
        if factor == 0.0 and norms[p] == 0.0:
            continue
        norms[p] = factor * norm
        by = splat(factor)
        total = splat(0.0)
        for o in range(0, size, LANES):
            a = load(codes, begin + o)
            new = fma(own, a, load(left, begin + o)) * by
            store(codes, begin + o, new)
            d = a - new
            total = fma(d, d, total)
            for r in range(s):
                at = r * size + o
                store(left, at, fma(splat(gram[p * stride + r]), d, load(left, at)))
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
def newton(gram, stride, s, lam, codes, left, size, norms, matrix, schur, move, other, small):
    """One Newton step with a line search, where no row of the codes is zero; whether it moved.

    ``matrix`` and ``schur`` have room for as much as ``gram``, ``move`` and ``other`` for tables,
    ``small`` for three numbers per atom.
    """
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
        w = lam / norms[p]
        small[p] = w * inner(codes, p * size, move, p * size, size) / norms[p]
        # P_pp = w (M⁻¹G)_pp: the difference would lose all digits where w is large.
        row = p * stride
        total = _DAMPING * matrix[row + p] * gram[row + p]
        for r in range(s):
            total += matrix[row + r] * gram[row + r]
        schur[row + p] = w * total
        for r in range(p):
            cosine = inner(codes, p * size, codes, r * size, size) / (norms[p] * norms[r])
            value = -w * matrix[row + r] * (lam / norms[r]) * cosine
            schur[row + r] = value
            schur[r * stride + p] = value
    if not invert(schur, stride, s):
        return False
    for p in range(s):
        t = 0.0
        for r in range(s):
            t += schur[p * stride + r] * small[r]
        by = splat(t * lam / (norms[p] * norms[p]))
        for o in range(p * size, (p + 1) * size, LANES):
            store(other, o, fma(by, load(codes, o), load(other, o)))
    multiply(matrix, stride, s, other, move, size)
    multiply(gram, stride, s, move, other, size)
    slope, curve = 0.0, 0.0
    for p in range(s):
        at = p * size
        slope += inner(move, at, left, at, size)
        curve += inner(move, at, other, at, size)
        small[3 * p] = norms[p] * norms[p]
        small[3 * p + 1] = inner(codes, at, move, at, size)
        small[3 * p + 2] = inner(move, at, move, at, size)
    t = _line_search(s, lam, slope, curve, small)
    if not t > 0.0:
        return False
    plus, minus = splat(t), splat(-t)
    for p in range(s):
        for o in range(p * size, (p + 1) * size, LANES):
            store(codes, o, fma(plus, load(move, o), load(codes, o)))
            store(left, o, fma(minus, load(other, o), load(left, o)))
        norms[p] = np.sqrt(inner(codes, p * size, codes, p * size, size))
    return True


@kernel
def drop_zeros(gram, stride, s, atoms, used, codes, left, given, size, norms):
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
                store(left, kept * size + o, load(left, p * size + o))
                store(given, kept * size + o, load(given, p * size + o))
            for r in range(s):
                gram[kept * stride + r] = gram[p * stride + r]
            # Columns to the right of p keep their places until it is their turn.
            for r in range(s):
                gram[r * stride + kept] = gram[r * stride + p]
        kept += 1
    return kept


@kernel
def settle(gram, stride, s, lam, goal, atoms, used, codes, left, given, size, norms, matrix, schur,
           move, other, small):  # fmt: skip
    """Sweeps and Newton steps until a sweep meets no violation above ``goal``.

    Returns the number of atoms, none of which is zero, and the last sweep's worst violation.
    """
    worst = np.inf
    for number in range(_MOST):
        worst = sweep(gram, stride, s, lam, codes, left, size, norms)
        if worst <= goal:
            break
        if number >= _WARM_UP - 1:
            s = drop_zeros(gram, stride, s, atoms, used, codes, left, given, size, norms)
            newton(
                gram, stride, s, lam, codes, left, size, norms, matrix, schur, move, other, small
            )
    s = drop_zeros(gram, stride, s, atoms, used, codes, left, given, size, norms)
    return s, worst
