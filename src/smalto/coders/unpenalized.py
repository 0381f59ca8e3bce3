"""Atoms without a penalty (weights of zero), eliminated before signals are coded.

Whatever the other coefficients are, those of the unpenalized atoms U are least squares on what is
left of the signal. So the others solve the same problem for the signal and the atoms without their
parts in the span of U. A ridge is the same as atoms (D, √ridge I) and signals (x, 0). With missing
entries, each signal has atoms of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, float_dtype
from smalto.coders.base import PROMISED_GAP, Coder
from smalto.coders.codes import Codes, compressed
from smalto.coders.precise_residuals import precise_residuals
from smalto.coders.rounding import rounded_together
from smalto.coders.signals import Signals

# Singular values relative to the largest, and parts of signals and atoms, that are not only
# rounding; and a value for coefficients that are otherwise too large to be rounded.
_USABLE = {4: (1e-6, 1e-4), 8: (1e-12, 1e-8)}
_ROUNDING = {4: 5e-7, 8: 5e-15}  # the same, up to which they may come from the rounding of atoms


def free_atoms(signals: Signals, coder: Coder) -> Array | None:
    """Return which atoms are not penalized (n or 1, k); None if all atoms of all signals are.

    Weights multiply those of the coder; where one of them is infinite, the atom is excluded.
    """
    weights = coder.all_weights(signals.penalty_weights)
    if weights is None:
        return None
    free = np.asarray(weights == 0)
    return free if free.any() else None


def check_unpenalized(signals: Signals, coder: Coder) -> None:
    """Raise ValueError if atoms are not penalized and codes are to be nonnegative."""
    if coder.positive and free_atoms(signals, coder) is not None:
        raise ValueError(NOT_POSITIVE)


NOT_POSITIVE = (
    "penalty_weights must be > 0 with positive=True, got 0.0: to leave an atom practically "
    "unpenalized, give 1e-6"
)


@dataclass(frozen=True)
class Elimination:
    """A dictionary without the parts of its atoms in the span of the unpenalized ones."""

    D: Array  # (k, m), float64
    free: Array  # (k,) bool
    atoms: Array  # D without these parts; the unpenalized atoms are zero
    basis: Array  # of the span (r, m)
    inverses: tuple[Array, ...]  # (m, u): give coefficients of the unpenalized atoms
    whole: Elimination | None  # with directions that only huge coefficients reach; None without any

    @classmethod
    def of(cls, D: Array, free: Array, dtype: np.dtype[Any]) -> Elimination:
        """Eliminate the unpenalized atoms of a dictionary, whose numbers have been ``dtype``."""
        norms = np.linalg.norm(D[free], axis=1)
        norms = np.where(norms > 0, norms, 1.0)
        U, sizes, V = np.linalg.svd(D[free] / norms[:, None], full_matrices=False)
        inverses = []
        for least in _USABLE[dtype.itemsize]:
            some = sizes > least * sizes.max(initial=0.0)
            inverses.append((V[some].T / sizes[some]) @ U[:, some].T / norms)
        top, least = sizes.max(initial=0.0), _USABLE[dtype.itemsize][0]

        def without_directions(basis: Array, whole: Elimination | None) -> Elimination:
            atoms = without(D, basis, dtype)
            atoms[free] = 0.0
            return cls(D, free, atoms, basis, tuple(inverses), whole)

        basis = V[sizes > least * top]
        all_directions = V[sizes > _ROUNDING[dtype.itemsize] * top]
        whole = None
        if len(all_directions) > len(basis):
            whole = without_directions(all_directions, None)
        return without_directions(basis, whole)

    @property
    def bounding(self) -> Elimination:
        """The one by which codes are certified: no direction of the span is left out."""
        return self if self.whole is None else self.whole

    def completed(self, codes: Codes, X: Array) -> tuple[Codes, Array]:
        """Return codes of the signals X with the coefficients of the unpenalized atoms.

        Also by how much ``½‖x − αD‖²`` is above its minimum over these: that is rounding, which
        matters if they are similar.
        """
        dtype, rest = codes.values.dtype, codes.as_csr(len(self.D)).astype(np.float64)
        left = X - rest @ self.D
        enough = 0.01 * PROMISED_GAP[dtype.itemsize] * 0.5 * np.einsum("ij,ij->i", X, X)
        found, off = codes, np.full(len(X), np.inf)
        for inverse in self.inverses:
            rows = np.flatnonzero(~(off <= enough))
            if not rows.size:
                break
            new = compressed(left[rows] @ inverse)
            tries = [new._replace(values=new.values.astype(dtype))]
            if dtype == np.float32:
                tries.append(rounded_together(new, self.D[self.free]))
            for each in tries:
                all_atoms = each._replace(indices=np.flatnonzero(self.free)[each.indices])
                both = compressed(rest[rows] + all_atoms.as_csr(len(self.D)))
                both = both._replace(values=both.values.astype(dtype))
                lost = self.lost(both, X[rows])
                better = ~(lost >= off[rows])
                found = found.put(rows[better], both.take(np.flatnonzero(better)))
                off[rows[better]] = lost[better]
        return found, off

    def lost(self, codes: Codes, X: Array) -> Array:
        """Return by how much ``½‖x − αD‖²`` may be above its minimum over the unpenalized atoms.

        It is what lies in their span, what huge coefficients have moved out of it by rounding, and
        what these may gain because the rest is orthogonal to the atoms only up to rounding.
        """
        A = codes.as_csr(len(self.D)).astype(np.float64)
        left, best = precise_residuals(X, self.D, A), X - A @ self.atoms
        inside = left @ self.basis.T
        for _ in range(2):  # the second time, of rounding
            best -= (best @ self.basis.T) @ self.basis
        moved = np.sum((left - inside @ self.basis) ** 2, axis=1) - np.sum(best**2, axis=1)
        gained = abs(A[:, self.free]).multiply(np.abs(best @ self.D[self.free].T)).sum(axis=1)
        off = 0.5 * (np.sum(inside**2, axis=1) + np.maximum(moved, 0.0))
        return np.asarray(off + np.asarray(gained).ravel())


def without(X: Array, basis: Array, dtype: np.dtype[Any]) -> Array:
    """Return the rows without their parts in a span; zero if rounding is all that is left."""
    left = X - (X @ basis.T) @ basis
    left -= (left @ basis.T) @ basis
    least = _USABLE[dtype.itemsize][0] * np.linalg.norm(X, axis=1)
    left[np.linalg.norm(left, axis=1) <= least] = 0.0
    return np.asarray(left)


@dataclass(frozen=True)
class Reduced:
    """Some signals of which the unpenalized atoms are the same, and the problem without these."""

    rows: Array
    X: Array  # (n, m), float64: as they are, their known entries only
    signals: Signals  # without their parts in the span of the unpenalized atoms
    elimination: Elimination
    whole: bool  # whether nothing is missing


def reduced_problems(
    signals: Signals, D: Array, free: Array, ridge: float, known: dict[bytes, Elimination]
) -> Iterator[Reduced]:
    """Yield the signals by their unpenalized atoms; those with missing entries one by one.

    ``known`` keeps eliminations for the next call.
    """
    n, k = len(signals), len(D)
    X = signals.X.toarray() if scipy.sparse.issparse(signals.X) else signals.X
    dtype, X = float_dtype(X.dtype), X.astype(np.float64)
    missing, weights = signals.missing, signals.penalty_weights
    if ridge:
        D = np.hstack([D, np.sqrt(ridge) * np.eye(k)])
        X = np.hstack([X, np.zeros((n, k))])
        missing = None if missing is None else np.hstack([missing, np.zeros((n, k), np.bool_)])
    patterns, kind = np.unique(np.broadcast_to(free, (n, k)), axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    holes = np.zeros(n, np.bool_) if missing is None else np.asarray(missing.any(axis=1))
    parts = [(np.flatnonzero((kind == p) & ~holes), patterns[p]) for p in range(len(patterns))]
    parts += [(np.array([row]), patterns[kind[row]]) for row in np.flatnonzero(holes)]
    for rows, pattern in parts:
        if not rows.size:
            continue
        x, whole = X[rows], not holes[rows[0]]
        if missing is not None and not whole:
            here = ~missing[rows[0]]
            x, made = x[:, here], Elimination.of(D[:, here], pattern, dtype)
        else:
            key = pattern.tobytes()
            if key not in known:
                known[key] = Elimination.of(D, pattern, dtype)
            made = known[key]
        own = weights if weights is None or len(weights) == 1 else weights[rows]
        own = None if own is None else np.where(pattern | (own == 0), 1.0, own)
        yield Reduced(rows, x, Signals(without(x, made.basis, dtype), None, own), made, whole)
