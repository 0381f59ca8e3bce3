"""The batch algorithms that the paper compares with in Section 6.2, in NumPy.

Both minimize ``½‖X − αD‖² + lam Σ α`` over α ≥ 0 and D ≥ 0, with whole matrices. They spend nearly
all of their time in BLAS products, as did the Matlab code of their authors.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.peers.common import Array

TINY = 1e-12  # keeps quotients finite
Watch = Callable[[Array, Array], bool]  # called with codes and D after each iteration; True stops


def lee_seung(X: Array, D: Array, codes: Array, watch: Watch) -> None:
    """Run the multiplicative rules of Lee and Seung (2001) for the Euclidean cost, in place.

    No rule increases the cost. After each iteration the rows of D are scaled to norm 1, and the
    codes accordingly.
    """
    while True:
        codes *= (X @ D.T) / (codes @ (D @ D.T) + TINY)
        D *= (codes.T @ X) / ((codes.T @ codes) @ D + TINY)
        norms = np.maximum(np.linalg.norm(D, axis=1), TINY).astype(D.dtype)
        D /= norms[:, None]
        codes *= norms
        if watch(codes, D):
            return


def hoyer(X: Array, D: Array, codes: Array, lam: float, watch: Watch) -> None:
    """Run non-negative sparse coding by Hoyer (2002), in place.

    The codes follow a multiplicative rule. D takes projected gradient steps: negative entries are
    set to zero, and rows are scaled to norm 1. The step size is halved until the cost does not
    rise, and grows by a fifth after each success, as in Hoyer's program.
    """
    step = 1.0
    while True:
        gram, products = codes.T @ codes, codes.T @ X
        gradient = gram @ D - products
        before = _cost_of_D(D, gram, products)
        for _ in range(60):
            moved = np.maximum(D - D.dtype.type(step) * gradient, 0)
            norms = np.linalg.norm(moved, axis=1, keepdims=True)
            moved = np.where(norms > 0, moved / np.maximum(norms, TINY), D).astype(D.dtype)
            if _cost_of_D(moved, gram, products) <= before:
                D[:] = moved
                step *= 1.2
                break
            step *= 0.5
        codes *= (X @ D.T) / (codes @ (D @ D.T) + lam)
        if watch(codes, D):
            return


def _cost_of_D(D: Array, gram: Array, products: Array) -> float:
    """Return the part of the cost that depends on D for fixed codes."""
    D = D.astype(np.float64)  # float64: small differences of large sums decide
    return 0.5 * float(np.vdot(gram, D @ D.T)) - float(np.vdot(products, D))
