"""Hierarchical alternating least squares with extrapolation, in NumPy, as a rival for NMF.

After Ang and Gillis, "Accelerating nonnegative matrix factorization algorithms using
extrapolation" (2019): each factor is updated column by column several times, from a point
extrapolated along its last move; if the cost rises, the extrapolation is taken back and shrinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.peers.common import Array

SWEEPS = 4  # of one factor before the other's turn: products with the data cost more


def extrapolated_hals(X: Any, k: int, seed: int) -> Iterator[tuple[Array, Array]]:
    """Yield codes (n, k) and atoms (k, m) after each iteration, without end."""
    rng = np.random.default_rng(seed)
    n, m = X.shape
    C, D = rng.random((n, k), np.float32), rng.random((k, m), np.float32)
    inner = float(np.sum(C * (X @ D.T), dtype=np.float64))
    C *= np.float32(inner / float(np.vdot(C.T @ C, D @ D.T)))  # the best multiple
    squares = float((X.multiply(X) if hasattr(X, "multiply") else X * X).sum(dtype=np.float64))
    ahead_C, ahead_D, last = C.copy(), D.copy(), np.inf
    beta, bound = 0.5, 1.0
    while True:
        new_C = _sweeps(ahead_C, X @ ahead_D.T, ahead_D @ ahead_D.T)
        ahead_C = np.maximum(new_C + np.float32(beta) * (new_C - C), 0.0)
        A, B = ahead_C.T @ ahead_C, np.ascontiguousarray((X.T @ ahead_C).T)
        new_D = np.ascontiguousarray(_sweeps(ahead_D.T, B.T, A).T)
        ahead_D = np.maximum(new_D + np.float32(beta) * (new_D - D), 0.0)
        cost = squares - 2.0 * float(np.vdot(B, new_D)) + float(np.vdot(A, new_D @ new_D.T))
        if cost > last:
            ahead_C, ahead_D = C.copy(), D.copy()
            bound, beta = beta, beta / 1.5
        else:
            C, D = new_C, new_D
            bound = min(1.0, 1.005 * bound)
            beta = min(bound, 1.01 * beta)
        last = cost
        yield C, D


def _sweeps(C: Array, Q: Array, G: Array) -> Array:
    """Minimize ``½ tr(C G Cᵀ) − tr(Q Cᵀ)`` over one column of C ≥ 0 after the other, several times."""
    rows, Q = np.ascontiguousarray(C.T), np.ascontiguousarray(Q.T)
    for _ in range(SWEEPS):
        for t in range(len(G)):
            if G[t, t] > 0:
                rows[t] = np.maximum(rows[t] + (Q[t] - G[t] @ rows) / G[t, t], 0.0)
    return np.ascontiguousarray(rows.T)
