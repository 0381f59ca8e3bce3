"""Which atoms of several dictionaries are the same: matching and clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from smalto.checks import Array

MAX_ROUNDS = 20  # of matching all dictionaries to the centers, and computing these again


class Clusters(NamedTuple):
    """Atoms of S dictionaries, matched one to one with k centers."""

    U: Array  # (S, k, m) atoms of norm 1, in the order and with the sign of their centers
    centers: Array  # (k, m), of norm 1
    kept: Array  # (S, k) bool: atoms that are similar enough to their center
    order: Array  # (S, k) numbers of the atoms in their own dictionary


def unit_atoms(D: Array) -> Array:
    """Return atoms scaled to norm 1, in float64; zero atoms stay zero."""
    D = np.asarray(D, np.float64)
    norms = np.linalg.norm(D, axis=1, keepdims=True)
    return np.asarray(D / np.where(norms > 0, norms, 1.0))


def match(D: Array, centers: Array) -> tuple[Array, Array]:
    """Return, for each center, the number of its atom and their cosine, with its sign.

    Atoms and centers have norm 1. Of all ways to give each center an atom of its own, this one has
    the largest sum of absolute cosines.
    """
    cosines = centers @ D.T
    _, order = linear_sum_assignment(-np.abs(cosines))
    return order, cosines[np.arange(len(order)), order]


def cluster(dictionaries: Sequence[Array], first: int, min_similarity: float) -> Clusters:
    """Match dictionaries of k atoms with k centers, which begin as those of number ``first``.

    A center is the median of its atoms, without those that are not similar to it.
    """
    units = [unit_atoms(D) for D in dictionaries]
    centers = units[first]
    before: Array | None = None
    for _ in range(MAX_ROUNDS):
        matched = [match(U, centers) for U in units]
        order = np.array([numbers for numbers, _ in matched])
        cosines = np.array([values for _, values in matched])
        signs = np.where(cosines < 0, -1.0, 1.0)
        aligned = np.stack([U[o] * s[:, None] for U, o, s in zip(units, order, signs, strict=True)])
        kept = np.abs(cosines) >= min_similarity
        if before is not None and (order == before).all():
            break
        before = order
        centers = np.stack([_center(aligned[:, j], kept[:, j]) for j in range(len(centers))])
    return Clusters(aligned, centers, kept, order)


def _center(atoms: Array, kept: Array) -> Array:
    """Return the median of the atoms that are kept (of all if none is), scaled to norm 1."""
    middle = np.median(atoms[kept] if kept.any() else atoms, axis=0)
    norm = np.linalg.norm(middle)
    return np.asarray(middle / norm if norm > 0 else unit_atoms(atoms.mean(axis=0)[None])[0])


def stability(clusters: Clusters) -> Array:
    """Return how stable each cluster is: 1 if its atoms are all the same, 0 or less if no cluster.

    This is the mean silhouette of its atoms, left out or not, by the distance ``1 − |cosine|``: how
    much nearer they are to each other than to the atoms of the nearest other cluster, as a share of
    the latter distance.
    """
    S, k, m = clusters.U.shape
    flat = clusters.U.transpose(1, 0, 2).reshape(k * S, m)  # cluster by cluster
    distances = 1.0 - np.abs(flat @ flat.T)
    sums = distances.reshape(k * S, k, S).sum(axis=2)  # of each atom to each cluster
    own = np.repeat(np.arange(k), S)
    within = sums[np.arange(k * S), own] / max(S - 1, 1)
    if k == 1:
        scores = 1.0 - within
    else:
        others = sums / S
        others[np.arange(k * S), own] = np.inf
        nearest = others.min(axis=1)
        larger = np.maximum(within, nearest)
        scores = np.where(larger > 0, (nearest - within) / np.where(larger > 0, larger, 1.0), 0.0)
    return np.asarray(np.clip(scores.reshape(k, S).mean(axis=1), -1.0, 1.0))
