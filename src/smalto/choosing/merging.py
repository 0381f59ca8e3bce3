"""A smaller dictionary from a larger one: atoms are merged in pairs, at the least loss."""

from __future__ import annotations

import numpy as np

from smalto.checks import Array


def merged(D: Array, A: Array, n_atoms: int) -> Array:
    """Return ``n_atoms`` atoms that approximate what all atoms of D do.

    ``A = Σ αᵀα`` is the sum over the codes of all samples. Of all pairs, one after another, that
    one becomes a single atom for which ``Σ ‖α_i d_i + α_j d_j − α d‖²`` is lowest, minimized over
    the new atom d and its coefficients α. So atoms go that are hardly used, that are alike, and
    that are used together.
    """
    atoms = np.asarray(D, np.float64).copy()
    # Losses are in units of A, of any size: a power of two keeps their squares in range.
    G, A = atoms @ atoms.T, np.ldexp(np.asarray(A, np.float64), -np.frexp(np.max(A))[1])
    loss = np.stack([_losses(A, G, i) for i in range(len(A))])
    for _ in range(len(atoms) - n_atoms):
        i, j = sorted(divmod(int(np.argmin(loss)), len(loss)))
        pair, left = [i, j], np.delete(np.arange(len(A)), j)
        p, q = _rank_one(A[np.ix_(pair, pair)], G[np.ix_(pair, pair)])
        atoms[i] = p @ atoms[pair]
        G[i], A[i] = p @ G[pair], q @ A[pair]
        G[:, i], A[:, i] = G[:, pair] @ p, A[:, pair] @ q
        atoms, A, G, loss = (
            atoms[left], A[np.ix_(left, left)], G[np.ix_(left, left)], loss[np.ix_(left, left)]
        )  # fmt: skip
        loss[i] = loss[:, i] = _losses(A, G, i)
    return np.asarray(atoms.astype(D.dtype))


def _losses(A: Array, G: Array, i: int) -> Array:
    """Return what it costs to merge atom i with each other one: the smaller eigenvalue of A₂G₂."""
    a, g = A.diagonal(), G.diagonal()
    trace = a[i] * g[i] + 2.0 * A[i] * G[i] + a * g
    det = np.maximum((a[i] * a - A[i] ** 2) * (g[i] * g - G[i] ** 2), 0.0)
    larger = 0.5 * (trace + np.sqrt(np.maximum(trace**2 - 4.0 * det, 0.0)))
    losses = np.where(larger > 0.0, det / np.where(larger > 0.0, larger, 1.0), 0.0)
    losses[i] = np.inf
    return np.asarray(losses)


def _rank_one(A: Array, G: Array) -> tuple[Array, Array]:
    """Return p and q: the best atom for a pair is p₀d₀ + p₁d₁, its coefficients q₀α₀ + q₁α₁."""
    values, vectors = np.linalg.eig(A @ G)
    p = vectors[:, int(np.argmax(values.real))].real
    norm = float(np.sqrt(max(p @ G @ p, 0.0)))
    if not norm > 0.0:  # neither atom is used: keep the first
        return np.array([1.0, 0.0]), np.array([1.0, 0.0])
    p = p * (np.sign(p[np.argmax(np.abs(p))]) / norm)
    return p, G @ p
