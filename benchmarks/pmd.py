"""Penalized matrix decomposition (Witten, Tibshirani and Hastie 2009), the baseline of SparseCCA.

``max_{u,v} uᵀXᵀYv − lam ‖v‖₁ − lam Σ|v_i − v_(i−1)|`` with ‖u‖₂ ≤ 1, ‖v‖₂ ≤ 1 and an ℓ1 bound on u
that leaves a given number of nonzeros, by alternating between u and v. Implemented for this
comparison from the formulas of their article. lam is a multiple of the noise of the first
``YᵀXu``, which is estimated from the differences of neighboring entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.projections import fused_lasso_signal

Array = np.ndarray[Any, Any]

_NORMAL = 0.6745 * np.sqrt(2.0)  # median of |a − b| of two standard normal numbers, about


def pmd(
    X: Array,
    Y: Array,
    nonzeros: int = 25,
    multiple: float = 4.0,
    max_iter: int = 100,
    tol: float = 1e-6,
) -> tuple[Array, Array]:
    """Return weights (u, v) for standardized blocks X (n, p) and Y (n, q), Y's columns ordered."""
    v = _leading(X, Y)
    lam = None
    for _ in range(max_iter):
        u = _unit(_keep(X.T @ (Y @ v), nonzeros))
        target = Y.T @ (X @ u)
        if lam is None:
            noise = np.median(np.abs(np.diff(target))) / _NORMAL if len(target) > 1 else 0.0
            lam = multiple * float(noise)
        before, v = v, _unit(fused_lasso_signal(target, lam, lam))
        if np.linalg.norm(v - before) <= tol:
            break
    return u, v


def _leading(X: Array, Y: Array) -> Array:
    """Return the first right singular vector of XᵀY, through matrices (n, n)."""
    values, vectors = np.linalg.eigh(Y @ Y.T)
    root = vectors * np.sqrt(np.maximum(values, 0.0))  # Y Yᵀ = root rootᵀ
    _, inner = np.linalg.eigh(root.T @ (X @ X.T) @ root)
    scores = vectors @ (inner[:, -1] * np.where(values > 1e-10, values, np.inf) ** -0.5)
    return _unit(Y.T @ scores)


def _keep(c: Array, nonzeros: int) -> Array:
    """Soft-threshold so that ``nonzeros`` entries are left."""
    size = np.abs(c)
    rest = len(size) - nonzeros
    threshold = np.partition(size, rest - 1)[rest - 1] if rest > 0 else 0.0
    return np.copysign(np.maximum(size - threshold, 0.0), c)


def _unit(w: Array) -> Array:
    return w / (np.linalg.norm(w) or 1.0)
