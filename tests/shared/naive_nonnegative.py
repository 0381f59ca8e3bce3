"""Slow NumPy twins of non-negative coordinate descent and of NMF."""

from __future__ import annotations

import numpy as np


def descend(G, Q, shift, sweeps, C):
    """Coordinate descent for every column of C, one coordinate after the other."""
    C = C.copy()
    for _ in range(sweeps):
        for t in range(len(G)):
            if G[t, t] > 0:
                C[t] = np.maximum(C[t] + (Q[t] - shift - G[t] @ C) / G[t, t], 0)
    return C


def alternate(X, D, iterations):
    """Hierarchical alternating least squares, without any of the tricks; codes and atoms."""
    C = np.zeros((len(D), len(X)))
    for _ in range(iterations):
        C = descend(D @ D.T, D @ X.T, 0.0, 1, C)
        D = descend(C @ C.T, C @ X, 0.0, 1, D)
    return C.T, D


def missed(X, D, codes, lam):
    """By how much the codes miss the optimality conditions, relative to the correlations."""
    X, D, codes = (np.asarray(a, np.float64) for a in (X, D, codes))
    slope = (X - codes @ D) @ D.T - lam
    wrong = np.where(codes > 0, np.abs(slope), np.maximum(slope, 0))
    return wrong.max(initial=0.0) / max(np.abs(X @ D.T).max(initial=0.0), 1e-30)
