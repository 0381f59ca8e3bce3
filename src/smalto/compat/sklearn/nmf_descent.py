"""Alternating descent for NMF with penalties on both factors.

Each half is many non-negative least-squares problems with one matrix, for which smalto has a
kernel: the rows of W share ``H Hᵀ``, and the columns of H share ``Wᵀ W``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, Rows
from smalto.coders import encode
from smalto.compat.sklearn.nmf_start import Penalties
from smalto.kernels.coding.nonnegative import descend, make_panel
from smalto.learning.alternating.variables import DenseCodes
from smalto.threads import run_tasks

SWEEPS = 10  # of coordinate descent in each half: they cost little next to the products with X
FIRST_SWEEPS = 30  # for rows of W that start from zero
_COLUMNS = 1024  # features that one task updates


class Descent:
    """The state of a descent: H, and the past that it fits."""

    def __init__(self, H: Array, penalties: Penalties, threads: int) -> None:
        self.H, self.penalties, self.threads = H, penalties, threads
        k, m = H.shape
        self.A, self.B, self.weight = np.zeros((k, k)), np.zeros((k, m)), 0.0

    def step(self, codes: DenseCodes, *, fresh: bool, keep: float = 0.0) -> tuple[float, float]:
        """Improve the rows of W of some samples, then H; return their cost and H's violation.

        ``fresh`` says that these rows start from zero, ``keep`` how much the samples before count.
        The cost is that before the update of H, and the violation what the gradient asks of H then.
        """
        p = self.penalties
        sweeps = FIRST_SWEEPS if fresh else SWEEPS
        A, B, penalty = codes.step(self.H, p.W, 0.0, sweeps, self.threads)
        wide = self.H.astype(np.float64)
        fit = 0.5 * (codes.squares - 2.0 * np.vdot(B, wide) + np.vdot(A, wide @ wide.T))
        penalty += codes.n * float(p.l1_H * wide.sum() + 0.5 * p.l2_H * np.vdot(wide, wide))
        self.A = keep * self.A + A
        self.B = keep * self.B + B
        self.weight = keep * self.weight + codes.n
        l1, l2 = self.weight * p.l1_H, self.weight * p.l2_H
        G = self.A + l2 * np.eye(len(A))
        gradient = G @ wide - self.B + l1
        violation = np.abs(np.where(wide > 0, gradient, np.minimum(gradient, 0))).sum()
        self._improve(G, self.B, l1)
        return max(0.0, float(fit)) + penalty, float(violation)

    def _improve(self, G: Array, Q: Array, l1: float) -> None:
        """Improve H by sweeps of coordinate descent on ``½ tr(Hᵀ G H) − tr((Q − l1)ᵀ H)``."""
        H = self.H
        k, m = H.shape
        small, shift = G.astype(H.dtype), H.dtype.type(l1)

        def task(number: int) -> None:
            begin, end = number * _COLUMNS, min((number + 1) * _COLUMNS, m)
            part = np.ascontiguousarray(Q[:, begin:end], dtype=H.dtype)
            descend(small, part, shift, SWEEPS, H, begin, end, make_panel(k, H.dtype))

        run_tasks(task, -(-m // _COLUMNS), self.threads)


def start_codes(X: Rows, W: Array | None, H: Array) -> DenseCodes:
    """Return the rows of W, zero unless given."""
    codes = DenseCodes(X, len(H), H.dtype)
    if W is not None:
        codes.ahead[:] = codes.old[:] = W.T
    return codes


def exact_codes(X: Rows, H: Array, penalties: Penalties, threads: Any) -> Array:
    """Return the best W for H."""
    if not H.any():
        return np.zeros((X.shape[0], len(H)), H.dtype)
    return np.asarray(encode(X, H, penalties.W, n_threads=threads).toarray())


def error(X: Rows, W: Array, H: Array) -> float:
    """Return the Frobenius norm of ``X − WH``."""
    if not scipy.sparse.issparse(X):
        return float(np.linalg.norm(X - W @ H))
    W, H = W.astype(np.float64), H.astype(np.float64)
    squares = np.square(X.data, dtype=np.float64).sum()
    squares += np.vdot(W.T @ W, H @ H.T) - 2.0 * np.vdot(X @ H.T, W)
    return math.sqrt(max(0.0, float(squares)))
