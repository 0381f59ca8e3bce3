"""Greedy pursuit by orthogonal projections of the atoms: slow, and certain with similar atoms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from smalto.checks import Array
from smalto.coders.base import PROMISED_GAP

DEPENDENT = {4: 1e-9, 8: 1e-16}  # share of an atom's squared norm outside the span of others
NOISE = {4: 1e-11, 8: 1e-26}  # share of ‖X‖² that an atom must gain
LARGEST = 1e9  # Σ|α_j|‖d_j‖/‖X‖ up to which float64 tells what the span of atoms is


class _Found(NamedTuple):
    """Codes, their error, the residuals, the atoms in use, and the parts of all atoms outside these."""

    codes: Array
    error: float
    left: Array
    atoms: list[int]
    rest: Array


@dataclass(frozen=True)
class Pursuit:
    """Where a pursuit ends, and how it chooses atoms; see `OMP`."""

    most: int
    eps: float = 0.0  # of the squared error of all signals together
    gain: float = 0.0
    positive: bool = False
    look_ahead: bool = True

    def codes(
        self, X: Array, D: Array, dtype: np.dtype[np.generic], near: Array | None = None
    ) -> Array:
        """Return codes of the signals X, which share their atoms; they are exact in ``dtype``.

        The better one of two pursuits: from nothing, and from the atoms of the codes ``near``.
        """
        found = self._from([], X, D, dtype)
        start = [] if near is None else np.flatnonzero(near.any(axis=0)).tolist()
        if not start or len(start) > self.most:
            return found.codes
        other = self._from(start, X, D, dtype)
        return min(found, other, key=self._value).codes

    def _value(self, found: _Found) -> tuple[float, int]:
        """What is to be small: the error, and what atoms cost."""
        count = len(found.atoms)
        return max(found.error, self.eps) + self.gain * count, count

    def _from(self, atoms: list[int], X: Array, D: Array, dtype: np.dtype[np.generic]) -> _Found:
        """Return what a pursuit finds that begins with these atoms.

        Of the codes after each step, the last one whose error is lower than those before it.
        """
        norms = np.einsum("ij,ij->i", D, D)
        total = float(np.sum(X * X))
        gain = max(self.gain, NOISE[dtype.itemsize] * total)
        free = norms > 0
        best = _Found(np.zeros((len(X), len(D))), total, X, [], D)
        if atoms:
            begun = self._fitted(X, D, atoms, dtype)
            if begun is None:
                return best
            best = begun
            free[best.atoms] = False
        while len(best.atoms) < self.most and best.error > self.eps:
            outside = np.einsum("ij,ij->i", best.rest, best.rest)
            able = free & (outside > DEPENDENT[dtype.itemsize] * norms)
            c = best.left @ best.rest.T  # in the span, the residual is rounding
            c = np.maximum(c, 0.0) if self.positive else c
            score = np.where(able, (c * c).sum(axis=0), 0.0)
            gains = np.divide(score, outside, out=np.zeros_like(score), where=able)
            if self.look_ahead:
                score = gains
            else:
                score = np.divide(score, norms, out=np.zeros_like(score), where=able)
            j = int(np.argmax(score))
            if not gains[j] > gain:
                break
            free[j] = False
            new = self._fitted(X, D, [*best.atoms, j], dtype)
            # Rounding of the coefficients, or α ≥ 0, may leave no gain.
            if new is not None and best.error - new.error > gain:
                best = new
        return best

    def _fitted(
        self, X: Array, D: Array, atoms: list[int], dtype: np.dtype[np.generic]
    ) -> _Found | None:
        """Return the least-squares codes over these atoms, rounded; None if that spoils them."""
        codes = self._least_squares(X, D, atoms, dtype)
        left = X - codes @ D
        total = float(np.sum(X * X))
        used = np.flatnonzero(np.abs(codes).sum(axis=0)).tolist()
        basis = np.linalg.qr(D[used].T)[0]
        inexact = 0.1 * PROMISED_GAP[dtype.itemsize] * total  # what rounding may leave in a span
        longest, lengths = LARGEST * np.sqrt(total), np.linalg.norm(D, axis=1)
        if np.sum((left @ basis) ** 2) > inexact or np.any(np.abs(codes) @ lengths > longest):
            return None
        rest = D - (D @ basis) @ basis.T
        rest -= (rest @ basis) @ basis.T
        return _Found(codes, float(np.sum(left * left)), left, used, rest)

    def _least_squares(
        self, X: Array, D: Array, atoms: list[int], dtype: np.dtype[np.generic]
    ) -> Array:
        """Return the least-squares codes over these atoms, rounded."""
        codes = np.zeros((len(X), len(D)))
        if self.positive:
            for row, x in enumerate(X):
                codes[row, atoms] = scipy.optimize.nnls(D[atoms].T, x)[0]
        else:
            codes[:, atoms] = np.linalg.lstsq(D[atoms].T, X.T)[0].T
        return codes.astype(dtype).astype(np.float64)
