"""Products, inverses and solutions with small square matrices and tables, in float64.

Arrays are flat: rows of a matrix are ``stride`` apart, rows of a table ``size`` numbers, both whole
vectors.
"""

from __future__ import annotations

from smalto.kernels.coding.active_set import LANES
from smalto.kernels.jit import kernel
from smalto.kernels.simd import fma, hsum, load, splat, store

SPARE = 4  # rows of a product that are computed at once: tables have room for that many more rows


@kernel
def inner(x, i, y, j, size):
    """``⟨x[i:], y[j:]⟩`` of ``size`` numbers."""
    total = splat(0.0)
    for o in range(0, size, LANES):
        total = fma(load(x, i + o), load(y, j + o), total)
    return hsum(total)


@kernel
def multiply(matrix, stride, s, source, target, size):
    """``target = matrix @ source``, for tables with rows of ``size`` numbers."""
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
            store_two(target, at + o, a0, b0)
            store_two(target, at + size + o, a1, b1)
            store_two(target, at + 2 * size + o, a2, b2)
            store_two(target, at + 3 * size + o, a3, b3)
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
def store_two(target, at, a, b):
    """Store two vectors, one behind the other."""
    store(target, at, a)
    store(target, at + LANES, b)


@kernel
def invert(matrix, stride, s):
    """Invert a positive definite matrix in place; False if it is not positive, to rounding."""
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
    """Solve in place for b with a positive definite matrix, which is overwritten; False if not."""
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
