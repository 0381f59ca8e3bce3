"""Products of sparse rows and a dense table that has few columns."""

from __future__ import annotations

from typing import Any, NamedTuple

from smalto.kernels.jit import inlined, kernel, summing
from smalto.kernels.simd import fma, lanes, load, splat, store, zero


class SparseMatrix(NamedTuple):
    """A CSR matrix."""

    indptr: Any
    indices: Any
    values: Any


@inlined
def _entry(X, p, table, width, j):
    """An entry of X as a vector, and where its row of the table is, from column j on."""
    return splat(X.values[p]), X.indices[p] * width + j


@inlined
def _four(X, row, table, width, j, out, to):
    """Four vectors of a row of the product, from column j on, written behind ``out[to]``."""
    v0 = v1 = v2 = v3 = zero(table)
    step = lanes(table)
    for p in range(X.indptr[row], X.indptr[row + 1]):
        by, o = _entry(X, p, table, width, j)
        v0 = fma(by, load(table, o), v0)
        v1 = fma(by, load(table, o + step), v1)
        v2 = fma(by, load(table, o + 2 * step), v2)
        v3 = fma(by, load(table, o + 3 * step), v3)
    o = to + j
    store(out, o, v0)
    store(out, o + step, v1)
    store(out, o + 2 * step, v2)
    store(out, o + 3 * step, v3)


@inlined
def _two(X, row, table, width, j, out, to):
    """The same for two vectors, of four sums each: an addition need not wait for the one before."""
    v0 = v1 = w0 = w1 = x0 = x1 = y0 = y1 = zero(table)
    step = lanes(table)
    p, end = X.indptr[row], X.indptr[row + 1]
    while p + 4 <= end:
        by, o = _entry(X, p, table, width, j)
        v0, v1 = fma(by, load(table, o), v0), fma(by, load(table, o + step), v1)
        by, o = _entry(X, p + 1, table, width, j)
        w0, w1 = fma(by, load(table, o), w0), fma(by, load(table, o + step), w1)
        by, o = _entry(X, p + 2, table, width, j)
        x0, x1 = fma(by, load(table, o), x0), fma(by, load(table, o + step), x1)
        by, o = _entry(X, p + 3, table, width, j)
        y0, y1 = fma(by, load(table, o), y0), fma(by, load(table, o + step), y1)
        p += 4
    while p < end:
        by, o = _entry(X, p, table, width, j)
        v0, v1 = fma(by, load(table, o), v0), fma(by, load(table, o + step), v1)
        p += 1
    store(out, to + j, (v0 + w0) + (x0 + y0))
    store(out, to + j + step, (v1 + w1) + (x1 + y1))


@inlined
def _one(X, row, table, width, j, out, to):
    """The same for one vector, of four sums."""
    v = w = x = y = zero(table)
    p, end = X.indptr[row], X.indptr[row + 1]
    while p + 4 <= end:
        by, o = _entry(X, p, table, width, j)
        v = fma(by, load(table, o), v)
        by, o = _entry(X, p + 1, table, width, j)
        w = fma(by, load(table, o), w)
        by, o = _entry(X, p + 2, table, width, j)
        x = fma(by, load(table, o), x)
        by, o = _entry(X, p + 3, table, width, j)
        y = fma(by, load(table, o), y)
        p += 4
    while p < end:
        by, o = _entry(X, p, table, width, j)
        v = fma(by, load(table, o), v)
        p += 1
    store(out, to + j, (v + w) + (x + y))


@kernel
def sparse_products(X, table, width, begin, end, out):
    """Write rows ``begin`` to ``end`` of ``X @ table`` to ``out``.

    ``table`` and ``out`` are flat, with rows of ``width`` numbers, a whole number of vectors.
    """
    step = lanes(table)
    for row in range(begin, end):
        j, to = 0, (row - begin) * width
        while j + 4 * step <= width:
            _four(X, row, table, width, j, out, to)
            j += 4 * step
        if j + 2 * step <= width:
            _two(X, row, table, width, j, out, to)
            j += 2 * step
        if j < width:
            _one(X, row, table, width, j, out, to)


@summing
def sparse_squares(X, out):
    """Write the squared norm of each row to ``out``."""
    for row in range(out.size):
        total = X.values.dtype.type(0.0)
        for p in range(X.indptr[row], X.indptr[row + 1]):
            total += X.values[p] * X.values[p]
        out[row] = total
