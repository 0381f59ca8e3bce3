"""Codes without a penalty, α ≥ 0, compared with SciPy's non-negative least squares."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from benchmarks.campaign import random_data as data
from benchmarks.campaign.random_data import Array
from benchmarks.campaign.report import Report
from smalto import encode
from smalto.coders import Lasso

OPTIMAL = "non-negative codes without a penalty cost no more than SciPy's"
PROMISED = {np.float32: 1e-3, np.float64: 1e-8}  # shares of ½‖x‖²
LARGEST = {np.float32: 1e4, np.float64: 1e10}  # Σ α_j‖d_j‖/‖x‖ that codes are asked for


def compare(rng: np.random.Generator, report: Report) -> None:
    """Code random signals over random atoms, often of unequal length."""
    k, m, n = data.size(rng, 60), data.size(rng, 80), int(rng.integers(1, 150))
    dtype = np.float32 if rng.random() < 0.6 else np.float64
    kind, D = data.dictionary(rng, k, m)
    X = data.signals(rng, n, D)
    if rng.random() < 0.7:
        X, D = np.abs(X), np.abs(D)
    if rng.random() < 0.5:
        D = D * 10.0 ** rng.uniform(-data.log_uniform(rng, 0.1, 6.0), 0.0, (len(D), 1))
    # Codes over shorter atoms may overflow, and smaller signals are not promised.
    X, D = _longer(X, 1e-15).astype(dtype), _longer(D, 1e-12 * np.abs(D).max()).astype(dtype)
    codes = encode(X, D, Lasso(0.0, positive=True), n_threads=int(rng.integers(1, 3))).toarray()
    report.signals += len(X)
    x, d = X.astype(np.float64), D.astype(np.float64)
    left = x - codes.astype(np.float64) @ d
    excess = np.einsum("ij,ij->i", left, left) - _least(x, d, LARGEST[dtype])
    allowed = PROMISED[dtype] * np.einsum("ij,ij->i", x, x) + 1e-300
    is_valid = np.isfinite(codes).all(axis=1) & (codes >= 0).all(axis=1)
    what = f"{kind} atoms in {np.dtype(dtype)}, {len(X)} signals, {D.shape[0]} x {D.shape[1]}"
    report.check(OPTIMAL, is_valid & (excess <= allowed), what, excess / allowed)


def _longer(rows: Array, least: float) -> Array:
    """Return rows, those with a norm of at most ``least`` as zeros."""
    return np.where(np.linalg.norm(rows, axis=1, keepdims=True) > least, rows, 0.0)


def _least(X: Array, D: Array, largest: float) -> Array:
    """Return the smallest ``‖x − αD‖²`` with α ≥ 0; infinite where SciPy gives up or α is too large.

    Atoms that depend on each other but for rounding can fit anything with huge coefficients. Atoms have
    norm 1 meanwhile, for SciPy's sake.
    """
    norms = np.linalg.norm(D, axis=1)
    atoms = (D[norms > 0] / norms[norms > 0, None]).T
    found = np.einsum("ij,ij->i", X, X)
    for row, x in enumerate(X if atoms.size else ()):
        size = np.sqrt(found[row])
        try:
            codes = nnls(atoms, x, maxiter=50 * atoms.shape[1] + 50)[0]
        except RuntimeError:
            codes = np.full(atoms.shape[1], np.inf)
        is_useful = np.sum(codes) <= largest * size
        # Not the residual that it returns, which can be wrong.
        found[row] = np.sum((x - atoms @ codes) ** 2) if is_useful else np.inf
    return np.asarray(found)
