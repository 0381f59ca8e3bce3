"""First atoms for NMF from singular vectors."""

from __future__ import annotations

import math

import numpy as np
from sklearn.utils.extmath import randomized_svd

from smalto.checks import Array, Rows


def nndsvd(X: Rows, n_components: int, rng: np.random.RandomState, *, fill: bool) -> Array:
    """Return non-negative atoms from singular vectors of X (Boutsidis and Gallopoulos 2008).

    Each pair of singular vectors is split into its positive and its negative part, and the one
    of larger norm is kept. With ``fill``, zeros are replaced by a small number, because learning
    may never move an entry away from zero: ``√(mean(X)/k)``, in units of atoms.
    """
    if n_components > min(X.shape):
        message = (
            f"init by singular vectors gives at most {min(X.shape)} atoms for X of shape {X.shape},"
            f" but n_components={n_components}: use init='samples' or 'random'"
        )
        raise ValueError(message)
    X = X if X.dtype == np.float32 else X.astype(np.float64)
    U, s, V = randomized_svd(X, n_components, random_state=rng)
    atoms = np.empty_like(V)
    for j, (u, v) in enumerate(zip(U.T, V, strict=True)):
        sides = [(np.maximum(sign * u, 0), np.maximum(sign * v, 0)) for sign in (1, -1)]
        weights = [float(np.linalg.norm(a) * np.linalg.norm(b)) for a, b in sides]
        part, weight = sides[int(np.argmax(weights))][1], max(weights)
        norm = float(np.linalg.norm(part))
        atoms[j] = part * (math.sqrt(s[j] * weight) / norm if norm > 0 else 0.0)
    if fill:
        atoms[atoms <= 0] = math.sqrt(float(X.mean()) / n_components)
    return np.asarray(atoms)
