"""The input of solvers (`Chunk`) and of certificates (`Residuals`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy

from smalto.checks import Array
from smalto.coders.codes import Codes
from smalto.coders.precise_residuals import precise_residuals
from smalto.kernels.coding.arguments import Tally

PADDING = 16  # float32 numbers in a SIMD vector


def padded_width(n_atoms: int) -> int:
    """Return the number of atoms, rounded up to a multiple of `PADDING`."""
    return -(-n_atoms // PADDING) * PADDING


class Chunk(NamedTuple):
    """Signals as a solver sees them."""

    Q: Array  # x Dᵀ (n, width)
    norms: Array  # ‖x‖² (n,)
    rounds: Array  # (n,) int32, zeros: the solver writes the number of rounds per signal here, made
    # negative where rounding may have kept a signal from its optimum
    numbers: Array | None = None  # row numbers in the X given to `encode`; None in a stream
    start: Codes | None = None  # codes to start from
    groups: Array | None = None  # signals groups[g] to groups[g + 1] are a group (int64)
    own: OwnGram | None = None  # set if each signal has a Gram matrix of its own
    stuck: Array | None = None  # (1,) int64: such signals, counted by solvers that do not mark them
    coarse: Coarse | None = None  # if set, the solver writes the entries of Q that it needs itself

    def take(self, rows: Array) -> Chunk:
        """Return the chunk of these signals (increasing); whole groups if there are groups."""
        own = self.own
        if own is not None:
            missing = None if own.missing is None else own.missing[rows]
            weights = None if own.weights is None else own.weights[rows]
            signals = None if own.signals is None else own.signals[rows]
            own = own._replace(missing=missing, weights=weights, signals=signals)
        return Chunk(
            Q=np.ascontiguousarray(self.Q[rows]),
            norms=self.norms[rows],
            rounds=np.zeros(len(rows), np.int32),
            numbers=None if self.numbers is None else self.numbers[rows],
            start=None if self.start is None else self.start.take(rows),
            groups=None if self.groups is None else groups_of_rows(self.groups, rows),
            own=own,
            stuck=self.stuck,
            coarse=None if self.coarse is None else self.coarse.take(rows),
        )

    def tally(self) -> Tally:
        """Return what kernels count: rounds, and signals that are stuck."""
        return Tally(self.rounds, np.zeros(1, np.int64) if self.stuck is None else self.stuck)


def check_squares(chunk: Chunk) -> None:
    """Raise ValueError if squared norms overflow, for coders that compare squares."""
    if not np.isfinite(chunk.norms.sum()) and not np.isfinite(chunk.norms).all():
        message = f"X has signals whose squared norms overflow {chunk.Q.dtype}: scale them down" + (
            ", or use float64" if chunk.Q.dtype == np.float32 else ""
        )
        raise ValueError(message)


def all_if_none(groups: Array | None, n: int) -> Array:
    """Return the pointers of the groups of n signals; None means that all are one group."""
    return np.array([0, n], np.int64) if groups is None else groups


def groups_of_rows(groups: Array, rows: Array) -> Array:
    """Return the pointers of the groups among some rows (increasing), which are whole groups."""
    chosen = np.zeros(groups[-1] + 1, np.int64)
    chosen[rows + 1] = 1
    return np.unique(np.cumsum(chosen)[groups])


class Coarse(NamedTuple):
    """Signals in float64 with float32 correlations, by which atoms are chosen."""

    Q: Array  # x Dᵀ (n, width), float32
    signals: Array  # x (n, m), C-contiguous
    atoms: Array  # D (width, m), C-contiguous

    def take(self, rows: Array) -> Coarse:
        """Return those of some signals."""
        return Coarse(self.Q[rows], self.signals[rows], self.atoms)


class OwnGram(NamedTuple):
    """Missing entries and penalty weights, which give each signal a Gram matrix of its own."""

    atoms: Array  # D (width, m), C-contiguous
    features: Array  # Dᵀ (m, width), C-contiguous
    missing: Array | None  # (n, m) bool
    weights: Array | None  # (n, width), above zero: penalty weights of the coefficients
    signals: Array | None = None  # x (n, m), zero where missing; given if there are groups


class Problem(NamedTuple):
    """A signal, or a group of signals coded together, in float64; a signal has known entries only."""

    X: Array  # (n, m)
    D: Array  # (k, m)
    weights: Array  # (k,): penalty weights
    numbers: Array | None  # row numbers in the X given to `encode`
    dtype: np.dtype[Any]  # of the codes in the end
    missing: Array | None = None  # (n, m) bool: entries that signals of a group lack
    near: Array | None = None  # (n, k): codes that may be near the best ones


class Residuals(NamedTuple):
    """Codes and their residuals in float64, from which duality gaps are computed."""

    codes: Any  # csr_array (n, k)
    norms: Array  # ‖x‖² (n,)
    squares: Array  # ‖r‖² (n,) of r = x − αD
    C: Array  # r Dᵀ (n, k)
    weights: Array | None = None  # (n, k) or (1, k)
    groups: Array | None = None
    numbers: Array | None = None
    longest: Array | None = None  # (n, k) or (1, k): bounds of the best non-negative coefficients

    def inner(self) -> Array:
        """Return ``⟨αD, r⟩`` of each row."""
        return np.asarray(self.codes.multiply(self.C).sum(axis=1)).ravel()

    def lengths(self) -> Array:
        """Return ``Σ w_j|α_j|`` of each row."""
        sizes = abs(self.codes)
        if self.weights is not None:  # the coefficient of an infinite weight is 0
            sizes = sizes.multiply(np.where(np.isfinite(self.weights), self.weights, 0.0))
        return np.asarray(sizes.sum(axis=1)).ravel()

    def steepest(self, positive: bool) -> Array:
        """Return ``max_j |C_j|/w_j`` of each row (``max_j C_j/w_j``, at least 0, if positive).

        Residuals are taken to be orthogonal to atoms of weight 0; see `unpenalized.py`.
        """
        C = self.C if positive else np.abs(self.C)
        if self.weights is not None:
            C = np.divide(C, self.weights, out=np.zeros_like(C), where=self.weights > 0)
        return np.asarray(C.max(axis=1, initial=0.0))


def residuals(X: Array, D: Array, codes: Any, missing: Array | None = None) -> Residuals:
    """Return codes and residuals of the signals X; all in float64."""
    codes = scipy.sparse.csr_array(codes, dtype=np.float64)
    left = precise_residuals(X, D, codes)
    if missing is not None:
        left[missing] = 0.0
    return Residuals(
        codes,
        norms=np.einsum("ij,ij->i", X, X),
        squares=np.einsum("ij,ij->i", left, left),
        C=left @ D.T,
    )
