"""Groups of patches made orthonormal, nearly: what their Wiener filter needs."""

from __future__ import annotations

from smalto.kernels.jit import kernel, summing


@summing
def _dot(x, y, count):
    total = 0.0
    for j in range(count):
        total += x[j] * y[j]
    return total


@kernel
def whiten(G, X):
    """Replace each group X (n, m) by ``Z = L⁻¹ X``, with ``G = L Lᵀ``, in place.

    ``G`` (groups, n, n) has the positive definite matrices, of which only the lower triangles are
    read, and which become L; ``X`` is (groups, n, m).
    """
    groups, n, m = X.shape
    for g in range(groups):
        L, Z = G[g], X[g]
        for i in range(n):
            for j in range(i):
                L[i, j] = (L[i, j] - _dot(L[i], L[j], j)) / L[j, j]
                factor = L[i, j]
                for a in range(m):
                    Z[i, a] -= factor * Z[j, a]
            diagonal = (L[i, i] - _dot(L[i], L[i], i)) ** 0.5
            L[i, i] = diagonal
            for a in range(m):
                Z[i, a] /= diagonal
