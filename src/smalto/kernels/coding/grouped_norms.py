"""Norms over groups of coefficients of which any two are nested or disjoint.

``Ω(α) = Σ_g w_g ‖α_g‖₂``: the group lasso where no two groups meet, hierarchical sparse coding
(Jenatton, Mairal, Obozinski, Bach; JMLR 2011) where they form trees. Its proximal operator
shrinks the groups one after the other, inner ones before those around them.

Groups are numbered so that inner ones come first and the groups of one tree (an outermost group
and all inside it) follow each other. ``own[i]`` is the innermost group of coefficient i,
``parent[g]`` the group around g, or −1. Only the coefficients from ``begin`` to ``end`` and the
groups from ``low`` to ``high`` are looked at: one or more trees, whole.
"""

from __future__ import annotations

import numpy as np

from smalto.kernels.jit import kernel


@kernel
def soft(value, level, positive):
    """``argmin_u ½(u − value)² + level |u|``, optionally with u ≥ 0."""
    if value > level:
        return value - level
    if value < -level and not positive:
        return value + level
    return 0.0


@kernel
def add_squares(v, begin, end, own, parent, low, high, squares):
    """``‖v_g‖²`` of each group."""
    for g in range(low, high):
        squares[g] = 0.0
    for i in range(begin, end):
        squares[own[i]] += v[i] * v[i]
    for g in range(low, high):
        if parent[g] >= 0:
            squares[parent[g]] += squares[g]


@kernel
def shrink(v, begin, end, own, parent, weight, skip, low, high, level, squares, factor):
    """``v ← argmin_u ½‖u − v‖² + level Ω(u)``, without the groups whose ``skip`` is True."""
    for g in range(low, high):
        squares[g] = 0.0
    for i in range(begin, end):
        squares[own[i]] += v[i] * v[i]
    for g in range(low, high):
        factor[g] = 1.0
        if not skip[g]:
            norm, less = np.sqrt(squares[g]), level * weight[g]
            factor[g] = 1.0 - less / norm if norm > less else 0.0
        if parent[g] >= 0:
            squares[parent[g]] += factor[g] * factor[g] * squares[g]
    for g in range(high - 1, low - 1, -1):
        if parent[g] >= 0:
            factor[g] *= factor[parent[g]]
    for i in range(begin, end):
        v[i] *= factor[own[i]]


@kernel
def norms_of_rows(indptr, indices, values, own, parent, weight, squares, out):
    """``Ω(α)`` of each row of sparse codes."""
    p = parent.size
    for row in range(out.size):
        squares[:] = 0.0
        for at in range(indptr[row], indptr[row + 1]):
            value = np.float64(values[at])
            squares[own[indices[at]]] += value * value
        out[row] = 0.0
        for g in range(p):
            out[row] += weight[g] * np.sqrt(squares[g])
            if parent[g] >= 0:
                squares[parent[g]] += squares[g]


@kernel
def vanishes(c, v, own, parent, weight, skip, lam, l1, positive, times, squares, factor):
    """Whether c is in ``times`` the unit ball of the dual norm of ``lam Ω + l1 ‖·‖₁``.

    It is just when the proximal operator at that level takes it to zero; v is scratch.
    """
    n = own.size
    for i in range(n):
        v[i] = soft(np.float64(c[i]), times * l1, positive)
    shrink(
        v, 0, n, own, parent, weight, skip, 0, parent.size, times * lam, squares, factor
    )  # fmt: skip
    missed = 0
    for i in range(n):
        missed += v[i] != 0.0
    return missed == 0


@kernel
def dual_norms(C, own, parent, weight, lam, l1, positive, skip, v, squares, factor, out):
    """The dual norm of ``lam Ω + l1 ‖·‖₁`` of each row of C, or 1 where it is less.

    By bisection to the last bits, from above: what comes out is never too small.
    """
    n, p = own.size, parent.size
    for row in range(len(C)):
        c = C[row]
        if vanishes(c, v, own, parent, weight, skip, lam, l1, positive, 1.0, squares, factor):
            out[row] = 1.0
            continue
        # Enough: that coefficients vanish one by one, or with no more than their own group.
        top = 0.0
        for g in range(p):
            squares[g] = 0.0
        for i in range(n):
            value = max(c[i], 0.0) if positive else abs(c[i])
            top = max(top, value)
            squares[own[i]] += value * value
        high = top / l1 if l1 > 0.0 else np.inf
        if lam > 0.0:
            most = 0.0
            for g in range(p):
                most = max(most, np.sqrt(squares[g]) / (lam * weight[g]))
            high = min(high, most)
        if high == np.inf:
            out[row] = np.inf
            continue
        high = max(high * (1.0 + 1e-15), 1.0)
        low = 1.0
        while True:
            middle = 0.5 * (low + high)
            if not low < middle < high or high - low < 1e-15 * high:
                break
            if vanishes(
                c, v, own, parent, weight, skip, lam, l1, positive, middle, squares, factor
            ):  # fmt: skip
                high = middle
            else:
                low = middle
        out[row] = high
