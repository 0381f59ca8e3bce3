"""Greedy pursuit of a group of signals, each with missing entries of its own.

The signals share their atoms. But what is known of an atom differs from signal to signal, and so
does what of it is outside the span of the atoms before it: each signal has a basis of its own. A
signal does not take an atom that, on its known entries, depends on those it has.
"""

from __future__ import annotations

import numpy as np

from smalto.checks import Array
from smalto.coders.certain_pursuit import NOISE, Pursuit

# Share of an atom's squared norm outside the span of others, here up to date only up to rounding.
_DEPENDENT = {4: 1e-7, 8: 1e-11}


def pursue_with_holes(
    pursuit: Pursuit, X: Array, D: Array, missing: Array, dtype: np.dtype[np.generic]
) -> Array:
    """Return codes of the signals X (zero where missing), in float64 but exact in ``dtype``.

    As `Pursuit.codes`: an atom joins that lowers the error most, and codes are rounded each time.
    """
    known = (~missing).astype(np.float64)
    norms = known @ (D * D).T  # of what is known of each atom, for each signal
    least, noise = _DEPENDENT[dtype.itemsize], NOISE[dtype.itemsize]
    total = float(np.sum(X * X))
    gain = max(pursuit.gain, noise * total)
    outside, free = norms.copy(), np.ones(len(D), np.bool_)
    bases = _Bases(X, D, known)
    left, error, codes = X, total, np.zeros((len(X), 0))
    while len(bases.atoms) < min(pursuit.most, len(D)) and error > pursuit.eps:
        able = free & (outside > least * norms)
        squares = (left @ D.T) ** 2
        gains = np.divide(squares, outside, out=np.zeros_like(squares), where=able).sum(axis=0)
        score = gains
        if not pursuit.look_ahead:
            score = np.divide(squares, norms, out=np.zeros_like(squares), where=able).sum(axis=0)
        j = int(np.argmax(score))
        if not gains[j] > gain:
            break
        free[j] = False
        longer = bases.with_atom(j, able[:, j])
        new = longer.codes().astype(dtype).astype(np.float64)
        residual = known * (X - new @ D[longer.atoms])
        fell = float(np.sum(residual * residual))
        if not error - fell > gain:  # rounding of the coefficients leaves no gain
            continue
        bases, codes, left, error = longer, new, residual, fell
        outside = outside - (bases.vectors[:, -1] @ D.T) ** 2
    whole = np.zeros((len(X), len(D)))
    whole[:, bases.atoms] = codes
    return whole


class _Bases:
    """An orthonormal basis for each signal, of what it knows of the atoms (Gram and Schmidt)."""

    def __init__(self, X: Array, D: Array, known: Array) -> None:
        n, m = X.shape
        self.X, self.D, self.known = X, D, known
        self.atoms: list[int] = []
        self.vectors = np.zeros((n, 0, m))  # zero for an atom that a signal does not take
        self.factor = np.zeros((n, 0, 0))  # atoms = factorᵀ vectors, upper triangular

    def with_atom(self, j: int, takes: Array) -> _Bases:
        """Return the bases with an atom that some signals take."""
        rest = np.where(takes[:, None], self.known * self.D[j], 0.0)
        inside = np.zeros(self.vectors.shape[:2])
        for _ in range(2):  # once more, for what rounding has left
            by = (self.vectors @ rest[:, :, None])[:, :, 0]
            rest = rest - (by[:, None, :] @ self.vectors)[:, 0]
            inside += by
        sizes = np.linalg.norm(rest, axis=1)
        sizes = np.where(takes & (sizes > 0), sizes, 0.0)
        n, s = inside.shape
        new = _Bases(self.X, self.D, self.known)
        new.atoms = [*self.atoms, j]
        vector = np.divide(rest, sizes[:, None], out=np.zeros_like(rest), where=sizes[:, None] > 0)
        new.vectors = np.concatenate([self.vectors, vector[:, None]], axis=1)
        new.factor = np.zeros((n, s + 1, s + 1))
        new.factor[:, :s, :s] = self.factor
        new.factor[:, :s, s] = np.where(sizes[:, None] > 0, inside, 0.0)
        new.factor[:, s, s] = np.where(sizes > 0, sizes, 1.0)
        return new

    def codes(self) -> Array:
        """Return the least-squares coefficients of the atoms."""
        right = self.vectors @ self.X[:, :, None]
        return np.asarray(np.linalg.solve(self.factor, right)[:, :, 0])
