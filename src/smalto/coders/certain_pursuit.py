"""Greedy pursuit by orthogonal projections of the atoms: slow, and certain with similar atoms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from smalto.checks import Array
from smalto.coders.base import PROMISED_GAP

DEPENDENT = {4: 1e-9, 8: 1e-16}  # share of an atom's squared norm outside the span of others
NOISE = {4: 1e-11, 8: 1e-26}  # share of ‖X‖² that an atom must gain
LARGEST = 1e9  # Σ|α_j|‖d_j‖/‖X‖ up to which float64 tells what the span of atoms is


@dataclass(frozen=True)
class Pursuit:
    """Where a pursuit ends, and how it chooses atoms; see `OMP`."""

    most: int
    eps: float = 0.0  # of the squared error of all signals together
    gain: float = 0.0
    positive: bool = False
    look_ahead: bool = True

    def codes(self, X: Array, D: Array, dtype: np.dtype[np.generic]) -> Array:
        """Return codes of the signals X, which share their atoms; they are exact in ``dtype``.

        Of the codes after each step, the last one whose error is lower than those before it.
        """
        norms = np.einsum("ij,ij->i", D, D)
        total = float(np.sum(X * X))
        gain = max(self.gain, NOISE[dtype.itemsize] * total)
        inexact = 0.1 * PROMISED_GAP[dtype.itemsize] * total  # what rounding may leave in a span
        lengths, longest = np.sqrt(norms), LARGEST * np.sqrt(total)
        rest, left = D.copy(), X.copy()
        free = norms > 0
        chosen: list[int] = []
        best, error = np.zeros((len(X), len(D))), total
        while len(chosen) < self.most and error > self.eps:
            outside = np.einsum("ij,ij->i", rest, rest)
            able = free & (outside > DEPENDENT[dtype.itemsize] * norms)
            c = left @ D.T
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
            codes = self._fitted(X, D, [*chosen, j], dtype)
            residual = X - codes @ D
            new = float(np.sum(residual * residual))
            if not error - new > gain:  # rounding of the coefficients, or α ≥ 0, leaves no gain
                continue
            used = np.flatnonzero(np.abs(codes).sum(axis=0)).tolist()
            basis = np.linalg.qr(D[used].T)[0]
            if np.sum((residual @ basis) ** 2) > inexact or np.any(
                np.abs(codes) @ lengths > longest
            ):
                continue
            best, error, left, chosen = codes, new, residual, used
            rest = D - (D @ basis) @ basis.T
            rest -= (rest @ basis) @ basis.T
        return best

    def _fitted(self, X: Array, D: Array, atoms: list[int], dtype: np.dtype[np.generic]) -> Array:
        """Return the least-squares codes over these atoms, rounded."""
        codes = np.zeros((len(X), len(D)))
        if self.positive:
            for row, x in enumerate(X):
                codes[row, atoms] = scipy.optimize.nnls(D[atoms].T, x)[0]
        else:
            codes[:, atoms] = np.linalg.lstsq(D[atoms].T, X.T)[0].T
        return codes.astype(dtype).astype(np.float64)
