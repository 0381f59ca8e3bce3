"""Problems in SPAMS's orientation, and the objectives of its functions, in float64."""

from __future__ import annotations

import numpy as np
import scipy
from problems import DEGENERATE

DTYPES = [np.float32, np.float64]
ROUNDING = {np.float32: 2e-5, np.float64: 1e-8}  # share of an objective


def columns(A, dtype):
    return np.asfortranarray(A, dtype=dtype)


def unit(rng, m, n, dtype=np.float64):
    A = rng.standard_normal((m, n))
    return columns(A / np.linalg.norm(A, axis=0), dtype)


def problems(dtype):
    """Signals and atoms as columns, by name; SPAMS wants atoms of norm 1."""
    for name, (X, D) in DEGENERATE.items():
        norms = np.linalg.norm(D, axis=1, keepdims=True)
        if (norms > 1e-6).all() and len(D) > 1:
            yield name, columns(X.T, dtype), columns((D / norms).T, dtype)


def fit(X, D, alpha, known=None):
    """``½‖x − Dα‖²`` of each column, at the known entries."""
    left = X.astype(float) - D.astype(float) @ dense(alpha)
    return 0.5 * ((left if known is None else np.where(known, left, 0.0)) ** 2).sum(axis=0)


def dense(alpha):
    return (alpha.toarray() if scipy.sparse.issparse(alpha) else alpha).astype(float)


def penalty(regul, W, lambda1, lambda2, lambda3, size):
    """SPAMS's penalties, summed over the columns of W."""
    W = W.astype(float)
    l1, squares = np.abs(W).sum(), 0.5 * (W * W).sum()
    groups = [W[i : i + size] for i in range(0, len(W) - size + 1, size)]
    grouped = sum(np.sqrt((part * part).sum(axis=0)).sum() for part in groups)
    return {
        "l0": lambda: lambda1 * np.count_nonzero(W),
        "l1": lambda: lambda1 * l1,
        "l2": lambda: lambda1 * squares,
        "l2-not-squared": lambda: lambda1 * np.sqrt((W * W).sum(axis=0)).sum(),
        "linf": lambda: lambda1 * np.abs(W).max(axis=0).sum(),
        "l1-constraint": lambda: 0.0,
        "elastic-net": lambda: lambda1 * l1 + lambda2 * squares,
        "fused-lasso": lambda: (
            lambda1 * np.abs(np.diff(W, axis=0)).sum() + lambda2 * l1 + lambda3 * squares
        ),
        "group-lasso-l2": lambda: lambda1 * grouped,
        "group-lasso-linf": lambda: lambda1 * sum(np.abs(p).max(axis=0).sum() for p in groups),
        "sparse-group-lasso-l2": lambda: (
            lambda1 * grouped + lambda2 * sum(np.abs(p).sum() for p in groups)
        ),
        "l1l2": lambda: lambda1 * np.sqrt((W * W).sum(axis=1)).sum(),
        "none": lambda: 0.0,
    }[regul]()
