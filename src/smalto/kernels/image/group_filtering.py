"""The Wiener filter of groups of similar patches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.image.group_products import eliminate, gram, product, whole
from smalto.kernels.jit import kernel, summing
from smalto.kernels.simd import fma, hsum, lanes, load, zero


class Scratch(NamedTuple):
    """Matrices with n or m rows, rounded up to fours, and columns, in whole vectors."""

    Y: Any  # (m, n)
    X: Any  # (m, n)
    R: Any  # (n, n and m)
    T: Any  # (n, n)
    F: Any  # (n, m)
    colors: Any  # (channels,)


def filtering_scratch(n: int, m: int, channels: int) -> Scratch:
    """Scratch for groups of n patches of m numbers, float64."""
    wide, many = whole(m, np.float64), whole(n, np.float64)
    sizes = (wide * many, wide * many, many * (many + wide), many * many, many * wide, channels)
    return Scratch(*(np.zeros(size) for size in sizes))


@summing
def _center(flat, corners, lines, X, width, colors):
    """Copy the patches of a group to the columns of X, less the mean color of the group."""
    starts, span, channels = lines
    n = corners.size
    colors[:] = 0.0
    for a in range(starts.size):
        for b in range(span):
            at = (a * span + b) * width
            total = 0.0
            for i in range(n):
                value = float(flat[corners[i] + starts[a] + b])
                X[at + i] = value
                total += value
            colors[b % channels] += total
    for c in range(channels):
        colors[c] /= n * starts.size * (span // channels)
    for c in range(channels):
        for j in range(c, starts.size * span, channels):
            for i in range(n):
                X[j * width + i] -= colors[c]


@kernel
def filter_groups(noisy, guide, corners, lines, ridge, scratch, out, weights):
    """Filter the noisy patches Y of each group by its patches X in the guide.

    After subtracting the mean color of the group, ``AX`` for ``min_A ‖Y − AX‖² + ridge ‖A‖²``. The
    patches begin at ``corners`` (groups, n) in both pictures, flat. ``out`` (groups, n, m) receives
    the result, with the mean color of Y, and ``weights`` (groups, n) the weights of the groups, larger
    the fewer degrees of freedom they have.
    """
    Y, X, R, T, F, colors = scratch
    n, m = out.shape[1:]
    step = lanes(X)
    wide, many = -(-m // step) * step, -(-n // step) * step  # m and n in whole vectors
    rows = -(-n // 4) * 4
    width = many + wide
    Z = R[many:]
    for g in range(corners.shape[0]):
        _center(guide, corners[g], lines, X, many, colors)
        _center(noisy, corners[g], lines, Y, many, colors)
        gram(X, many, m, rows, R, width)
        for i in range(n):
            R[i * width + i] += ridge
            for j in range(m):
                Z[i * width + j] = X[j * many + i]
        for i in range(n, rows):
            R[i * width + i] = 1.0
        eliminate(R, width, rows)  # ZᵀZ is now Xᵀ(XXᵀ + ridge)⁻¹X
        squares = zero(R)
        for i in range(n):
            for j in range(0, wide, step):
                z = load(Z, i * width + j)
                squares = fma(z, z, squares)
        weight = 1.0 / (1.0 + hsum(squares))
        for j in range(m):
            for i in range(n):
                X[j * many + i] = Z[i * width + j]
        product(X, many, Y, many, m, rows, many, T, many)
        product(T, many, Z, width, n, rows, wide, F, wide)
        for i in range(n):
            weights[g, i] = weight
            for c in range(colors.size):
                for j in range(c, m, colors.size):
                    out[g, i, j] = F[i * wide + j] + colors[c]
