"""Linear combinations of similar patches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.image.group_products import eliminate, gram, product, whole
from smalto.kernels.jit import kernel
from smalto.kernels.simd import fma, hsum, lanes, load, splat, store, zero


class Scratch(NamedTuple):
    """Matrices with n or m rows, rounded up to fours, and columns, in whole vectors."""

    X: Any  # (n, m)
    Z: Any  # (n, m)
    R: Any  # (m, m and n)
    Theta: Any  # (n, n)
    mean: Any  # (m,)


def combining_scratch(n: int, m: int, dtype: Any) -> Scratch:
    """Scratch for groups of n patches of m numbers."""
    wide, many = whole(m, dtype), whole(n, dtype)
    sizes = (many * wide, many * wide, wide * (wide + many), many * many, wide)
    return Scratch(*(np.zeros(size, dtype) for size in sizes))


@kernel
def _center(flat, corners, lines, X, width, mean):
    """Copy the patches of a group to X, less their mean."""
    starts, span, _ = lines
    n, step = corners.size, lanes(X)
    for i in range(n):
        for a in range(starts.size):
            begin, at = corners[i] + starts[a], i * width + a * span
            for b in range(span):
                X[at + b] = flat[begin + b]
    share = splat(X.dtype.type(1.0 / n))
    for j in range(0, width, step):
        total = zero(X)
        for i in range(n):
            total = total + load(X, i * width + j)
        total = share * total
        store(mean, j, total)
        for i in range(n):
            store(X, i * width + j, load(X, i * width + j) - total)


@kernel
def combine_groups(left, guide, corners, lines, noise, scratch, out, weights):
    """Replace the patches Z of each group by combinations ``ΘZ`` of them.

    ``min_Θ ‖X − ΘX‖² + m σ²‖Θ‖²``, where the weights of each patch sum to one: this has the least
    expected error if Z is X and white noise, whose σ for each group is in ``noise``. The patches
    begin at ``corners`` (groups, n), Z in ``left`` and X in ``guide``, both flat. ``out`` (groups, n,
    m) receives the combinations, and ``weights`` (groups, n) their weights in an average: the
    inverse of the share of the noise that is left in them.
    """
    X, Z, R, Theta, mean = scratch
    n, m = out.shape[1:]
    step = lanes(X)
    wide, many = -(-m // step) * step, -(-n // step) * step  # m and n in whole vectors
    rows_m, rows_n = -(-m // 4) * 4, -(-n // 4) * 4
    width = wide + many
    W = R[wide:]
    for g in range(corners.shape[0]):
        _center(guide, corners[g], lines, X, wide, mean)
        _center(left, corners[g], lines, Z, wide, mean)
        # Without the mean patch, Θ is 11ᵀ/n + X (XᵀX + m σ² I)⁻¹ Xᵀ.
        gram(X, wide, n, rows_m, R, width)
        penalty = R.dtype.type(m * noise[g] * noise[g])
        for j in range(m):
            R[j * width + j] += penalty
            for i in range(n):
                W[j * width + i] = X[i * wide + j]
        for j in range(m, rows_m):
            R[j * width + j] = 1.0
        eliminate(R, width, rows_m)  # Θ is now 11ᵀ/n + WᵀW
        product(W, width, W, width, m, rows_n, many, Theta, many)
        product(Theta, many, Z, wide, n, rows_n, wide, X, wide)
        for i in range(n):
            squares = zero(X)
            for j in range(0, many, step):
                theta = load(Theta, i * many + j)
                squares = fma(theta, theta, squares)
            weights[g, i] = 1.0 / (1.0 / n + hsum(squares))
            for b in range(m):
                out[g, i, b] = X[i * wide + b] + mean[b]
