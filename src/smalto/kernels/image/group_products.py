"""Products of small matrices, and elimination, for groups of patches.

Matrices are flat, with rows of whole vectors, in which numbers beyond the columns are zero. Four rows
are computed at a time: numbers of rows are rounded up to multiples of four.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.kernels.jit import kernel
from smalto.kernels.simd import WIDTH, fma, fnma, lanes, load, splat, store, zero


def whole(count: int, dtype: Any) -> int:
    """Numbers in as many vectors as hold ``count`` of them."""
    step: int = WIDTH // np.dtype(dtype).itemsize
    return -(-count // step) * step


@kernel
def _four_rows(A, width_of_A, B, width_of_B, count, i, begin, end, C, width_of_C):
    """Write four rows of ``C = AᵀB``, from row i and between two columns."""
    step = lanes(C)
    for j in range(begin, end, step):
        p, q, r, s = zero(C), zero(C), zero(C), zero(C)
        for k in range(count):
            b = load(B, k * width_of_B + j)
            at = k * width_of_A + i
            p = fma(splat(A[at]), b, p)
            q = fma(splat(A[at + 1]), b, q)
            r = fma(splat(A[at + 2]), b, r)
            s = fma(splat(A[at + 3]), b, s)
        at = i * width_of_C + j
        store(C, at, p)
        store(C, at + width_of_C, q)
        store(C, at + 2 * width_of_C, r)
        store(C, at + 3 * width_of_C, s)


@kernel
def product(A, width_of_A, B, width_of_B, count, rows, columns, C, width_of_C):
    """Write ``C = AᵀB`` (rows, columns) for matrices with ``count`` rows."""
    for i in range(0, rows, 4):
        _four_rows(A, width_of_A, B, width_of_B, count, i, 0, columns, C, width_of_C)


@kernel
def gram(A, width_of_A, count, rows, C, width_of_C):
    """Write the upper half of ``C = AᵀA`` (rows, rows), for A with ``count`` rows."""
    step = lanes(C)
    for i in range(0, rows, 4):
        begin = i // step * step
        _four_rows(A, width_of_A, A, width_of_A, count, i, begin, rows, C, width_of_C)


@kernel
def eliminate(R, width, rows):
    """Replace ``R = (G, X)`` by ``(Lᵀ, L⁻¹X)``, for a positive definite ``G = LLᵀ`` (rows, rows).

    What is below the diagonal of G is not used, and becomes useless.
    """
    step = lanes(R)
    for i in range(0, rows, 4):
        begin = i // step * step
        for j in range(begin, width, step):
            at = i * width + j
            p, q = load(R, at), load(R, at + width)
            r, s = load(R, at + 2 * width), load(R, at + 3 * width)
            for k in range(i):
                b = load(R, k * width + j)
                p = fnma(splat(R[k * width + i]), b, p)
                q = fnma(splat(R[k * width + i + 1]), b, q)
                r = fnma(splat(R[k * width + i + 2]), b, r)
                s = fnma(splat(R[k * width + i + 3]), b, s)
            store(R, at, p)
            store(R, at + width, q)
            store(R, at + 2 * width, r)
            store(R, at + 3 * width, s)
        for t in range(i, i + 4):
            for k in range(i, t):
                factor = splat(R[k * width + t])
                for j in range(begin, width, step):
                    at = t * width + j
                    store(R, at, fnma(factor, load(R, k * width + j), load(R, at)))
            scale = splat(R.dtype.type(1.0 / R[t * width + t] ** 0.5))
            for j in range(begin, width, step):
                store(R, t * width + j, scale * load(R, t * width + j))
