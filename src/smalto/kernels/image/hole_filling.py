"""Patches with missing pixels, coded over similar patches."""

from __future__ import annotations

from typing import Any, NamedTuple

from smalto.kernels.jit import kernel, summing


class Scratch(NamedTuple):
    """Space for one group of n patches besides the damaged one, of m values each."""

    X: Any  # (n + 1, m) centered patches, the damaged one first
    known: Any  # (n + 1, m) the same, zero where the damaged patch has missing pixels
    share: Any  # (m,) 1 where it is known, 0 elsewhere
    means: Any  # (n + 1, channels)
    G: Any  # (n, n)
    code: Any  # (n,)


@summing
def _dot(x, y, count):
    total = 0.0
    for j in range(count):
        total += x[j] * y[j]
    return total


@summing
def _center(flat, marks, corners, layout, scratch):
    """Cut out the patches and subtract the means of the pixels that the first of them has."""
    line, height, span, channels = layout
    X, known, share, means = scratch.X, scratch.known, scratch.share, scratch.means
    first = corners[0]
    count = 0.0
    for a in range(height):
        for b in range(span):
            here = 1.0 - marks[(first + a * line + b) // channels]
            share[a * span + b] = here
            count += here
    for i in range(corners.size):
        for c in range(channels):
            total = 0.0
            for a in range(height):
                begin = corners[i] + a * line
                for b in range(c, span, channels):
                    total += share[a * span + b] * flat[begin + b]
            means[i, c] = total * channels / count
        for a in range(height):
            begin = corners[i] + a * line
            for b in range(span):
                at = a * span + b
                X[i, at] = flat[begin + b] - means[i, b % channels]
                known[i, at] = share[at] * X[i, at]


@kernel
def _solve(G, x, n):
    """Solve ``G x = b`` for positive definite G, in place; x holds b."""
    for i in range(n):
        for j in range(i):
            G[i, j] = (G[i, j] - _dot(G[i], G[j], j)) / G[j, j]
        G[i, i] = (G[i, i] - _dot(G[i], G[i], i)) ** 0.5
        x[i] = (x[i] - _dot(G[i], x, i)) / G[i, i]
    for i in range(n - 1, -1, -1):
        x[i] /= G[i, i]
        for j in range(i):
            x[j] -= G[i, j] * x[i]


@kernel
def fill_from_alike(flat, marks, corners, layout, ridge, scratch, out):
    """Predict damaged patches from similar ones.

    ``corners`` (groups, n + 1) are those of a damaged patch and of n similar ones. The known pixels
    y of the damaged one, centered, are coded as ``min_a ‖y − aX‖² + λ‖a‖²`` over those pixels X of
    the others, with λ being ``ridge`` times the mean of ‖x‖² over the rows of X; ``out`` (groups, m)
    receives aX plus the mean of each channel. ``marks`` is 1 at missing pixels.
    """
    groups, members = corners.shape
    n = members - 1
    m = out.shape[1]
    channels = layout.channels
    X, known, G, code = scratch.X, scratch.known, scratch.G, scratch.code
    for g in range(groups):
        _center(flat, marks, corners[g], layout, scratch)
        energy = 0.0
        for i in range(n):
            for j in range(i + 1):
                G[i, j] = _dot(known[i + 1], known[j + 1], m)
            energy += G[i, i]
            code[i] = _dot(known[i + 1], known[0], m)
        penalty = ridge * energy / n + 1e-30
        for i in range(n):
            G[i, i] += penalty
        _solve(G, code, n)
        for at in range(m):
            out[g, at] = scratch.means[0, at % channels]
        for i in range(n):
            factor = code[i]
            for at in range(m):
                out[g, at] += factor * X[i + 1, at]
