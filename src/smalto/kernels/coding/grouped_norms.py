"""Norms over groups of coefficients of which any two are nested or disjoint.

``Ω(α) = Σ_g w_g ‖α_g‖₂``: the group lasso where no two groups meet, hierarchical sparse coding
(Jenatton, Mairal, Obozinski, Bach; JMLR 2011) where they form trees. Its proximal operator
shrinks the groups one after the other, inner ones before those around them.

Groups are numbered so that inner ones come first and the groups of one tree (an outermost group
and all groups inside it) follow each other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.jit import inlined, kernel

LAST_BITS = 1e-15  # relative precision of `dual_norms`


class AtomGroups(NamedTuple):
    """Groups of atoms, numbered as above."""

    innermost: Any  # int64 (k,): innermost group of each atom
    parent: Any  # int64 (groups,): the group around each group, −1 if there is none
    weight: Any  # float64 (groups,)


class Penalty(NamedTuple):
    """What is added to the error: ``lam Ω(α) + l1 ‖α‖₁``, and whether α ≥ 0."""

    lam: float
    l1: float
    positive: bool


class Span(NamedTuple):
    """One or more whole trees: some coefficients and their groups."""

    begin: int  # first coefficient
    end: int  # last coefficient + 1
    low: int  # first group
    high: int  # last group + 1


class PerGroup(NamedTuple):
    """Scratch with one number per group."""

    squares: Any  # ‖v_g‖²
    factor: Any


@inlined
def whole_span(groups):
    """All coefficients and all groups."""
    return Span(0, groups.innermost.size, 0, groups.parent.size)


@inlined
def soft(value, level, positive):
    """``argmin_u ½(u − value)² + level |u|``, optionally with u ≥ 0."""
    if value > level:
        return value - level
    if value < -level and not positive:
        return value + level
    return 0.0


@kernel
def add_squares(v, groups, span, squares):
    """Write ``‖v_g‖²`` of each group of the span."""
    for g in range(span.low, span.high):
        squares[g] = 0.0
    for i in range(span.begin, span.end):
        squares[groups.innermost[i]] += v[i] * v[i]
    for g in range(span.low, span.high):
        if groups.parent[g] >= 0:
            squares[groups.parent[g]] += squares[g]


@inlined
def shrink(v, groups, span, skip, level, scratch):
    """``v ← argmin_u ½‖u − v‖² + level Ω(u)``, without the groups for which ``skip`` is True.

    Called once per tree and sweep: inlined, the group lasso takes a tenth less time.
    """
    innermost, parent, weight = groups
    squares, factor = scratch
    begin, end, low, high = span
    for g in range(low, high):
        squares[g] = 0.0
    for i in range(begin, end):
        squares[innermost[i]] += v[i] * v[i]
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
        v[i] *= factor[innermost[i]]


@kernel
def norms_of_rows(codes, groups, squares, out):
    """``Ω(α)`` of each row of sparse codes."""
    innermost, parent, weight = groups
    for row in range(out.size):
        squares[:] = 0.0
        for at in range(codes.indptr[row], codes.indptr[row + 1]):
            value = np.float64(codes.values[at])
            squares[innermost[codes.indices[at]]] += value * value
        out[row] = 0.0
        for g in range(parent.size):
            out[row] += weight[g] * np.sqrt(squares[g])
            if parent[g] >= 0:
                squares[parent[g]] += squares[g]


@kernel
def vanishes(c, v, groups, skip, penalty, times, scratch):
    """Whether c is in ``times`` the unit ball of the dual norm of ``lam Ω + l1 ‖·‖₁``.

    It is if and only if the proximal operator at that level takes it to zero. v is scratch.
    """
    for i in range(v.size):
        v[i] = soft(np.float64(c[i]), times * penalty.l1, penalty.positive)
    shrink(v, groups, whole_span(groups), skip, times * penalty.lam, scratch)
    missed = 0
    for i in range(v.size):
        missed += v[i] != 0.0
    return missed == 0


@kernel
def _upper_bound(c, groups, penalty, squares):
    """A level at which c vanishes: coefficients one by one, or together with their own group."""
    lam, l1, positive = penalty
    top = 0.0
    squares[:] = 0.0
    for i in range(groups.innermost.size):
        value = max(c[i], 0.0) if positive else abs(c[i])
        top = max(top, value)
        squares[groups.innermost[i]] += value * value
    high = top / l1 if l1 > 0.0 else np.inf
    if lam > 0.0:
        most = 0.0
        for g in range(squares.size):
            most = max(most, np.sqrt(squares[g]) / (lam * groups.weight[g]))
        high = min(high, most)
    return high


@kernel
def dual_norms(C, v, groups, skip, penalty, scratch, out):
    """The dual norm of ``lam Ω + l1 ‖·‖₁`` of each row of C, or 1 where it is less.

    By bisection to the last bits, from above: the result is never too small.
    """
    for row in range(len(C)):
        c = C[row]
        if vanishes(c, v, groups, skip, penalty, 1.0, scratch):
            out[row] = 1.0
            continue
        high = _upper_bound(c, groups, penalty, scratch.squares)
        if high == np.inf:
            out[row] = np.inf
            continue
        high = max(high * (1.0 + LAST_BITS), 1.0)
        low = 1.0
        while True:
            middle = 0.5 * (low + high)
            if not low < middle < high or high - low < LAST_BITS * high:
                break
            if vanishes(c, v, groups, skip, penalty, middle, scratch):
                high = middle
            else:
                low = middle
        out[row] = high
