"""Signals as solvers and certificates see them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.checks import Array
from smalto.coders.codes import Codes

PADDING = 16  # numbers in a vector of float32


class Chunk(NamedTuple):
    """Some signals as a solver sees them."""

    Q: Array  # x Dᵀ (n, width)
    norms: Array  # ‖x‖² (n,)
    rounds: Array  # (n,) int32, zeros: where the solver notes how many rounds a signal took
    numbers: Array | None = None  # which of the rows given to `encode`; None: of a stream
    start: Codes | None = None  # codes to start from
    groups: Array | None = None  # signals groups[g] to groups[g + 1] belong together (int64)
    own: OwnGram | None = None  # where each signal has a Gram matrix of its own

    def take(self, rows: Array) -> Chunk:
        """Some of the signals, each by itself."""
        own = self.own
        if own is not None:
            missing = None if own.missing is None else own.missing[rows]
            weights = None if own.weights is None else own.weights[rows]
            own = own._replace(missing=missing, weights=weights)
        return Chunk(
            np.ascontiguousarray(self.Q[rows]), self.norms[rows], np.zeros(len(rows), np.int32),
            None if self.numbers is None else self.numbers[rows],
            None if self.start is None else self.start.take(rows), None, own,
        )  # fmt: skip


def check_squares(chunk: Chunk) -> None:
    """Refuse signals so large that their squares overflow, for coders that compare squares."""
    if not np.isfinite(chunk.norms).all():
        message = f"X has signals whose squared norms overflow {chunk.Q.dtype}: scale them down" + (
            ", or use float64" if chunk.Q.dtype == np.float32 else ""
        )
        raise ValueError(message)


class OwnGram(NamedTuple):
    """What makes the Gram matrix of each signal its own: entries it lacks, weights it has."""

    features: Array  # Dᵀ (m, width), C-contiguous
    missing: Array | None  # (n, m) bool
    weights: Array | None  # (n, width), above zero: a coefficient's share in the penalty


class Residuals(NamedTuple):
    """Codes and what they leave over, all in float64: what a certificate is computed from."""

    codes: Any  # csr_array (n, k)
    norms: Array  # ‖x‖² (n,)
    squares: Array  # ‖r‖² (n,) of r = x − αD
    C: Array  # r Dᵀ (n, k)
    weights: Array | None = None  # (n, k) or (1, k)
    groups: Array | None = None
    numbers: Array | None = None

    def inner(self) -> Array:
        """``⟨αD, r⟩`` of each row."""
        return np.asarray(self.codes.multiply(self.C).sum(axis=1)).ravel()

    def lengths(self) -> Array:
        """``Σ w_j|α_j|`` of each row."""
        sizes = abs(self.codes)
        if self.weights is not None:  # an infinite weight has the coefficient 0
            sizes = sizes.multiply(np.where(np.isfinite(self.weights), self.weights, 0.0))
        return np.asarray(sizes.sum(axis=1)).ravel()

    def steepest(self, positive: bool) -> Array:
        """The largest correlation of each row's residual, as the weighted penalty sees it."""
        C = self.C if positive else np.abs(self.C)
        if self.weights is not None:
            C = C / self.weights
        return np.asarray(C.max(axis=1, initial=0.0))
