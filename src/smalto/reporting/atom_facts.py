"""Numbers about the atoms of a dictionary: how much they are used, and how alike they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from smalto.checks import Array

_BLOCK = 1024  # atoms whose products with all others are in memory at once


class AtomFacts(NamedTuple):
    """Numbers of each atom; ``energy`` and ``last_used`` are None if they are unknown."""

    energy: Array | None  # share of the squared coefficients of all codes
    last_used: Array | None  # number of samples since the atom was used
    nearest: Array  # the atom with the smallest angle, and the absolute cosine of that
    cosine: Array
    entries: Array  # share of entries that are not zero
    order: Array  # atoms in the order in which to show them, the most used one first

    @property
    def unused(self) -> Array:
        """Whether each atom is unused, or zero."""
        zero = self.entries == 0
        return np.asarray(zero if self.energy is None else zero | (self.energy == 0))


def atom_facts(D: Array, energy: Array | None, last_used: Array | None) -> AtomFacts:
    """Return the numbers of each atom of a dictionary."""
    shares = None
    if energy is not None and energy.sum() > 0:
        shares = energy / energy.sum()
    nearest, cosine = nearest_atoms(D)
    order = np.arange(len(D)) if shares is None else np.argsort(-shares, kind="stable")
    entries = np.count_nonzero(D, axis=1) / D.shape[1]
    return AtomFacts(shares, last_used, nearest, cosine, entries, order)


def nearest_atoms(D: Array) -> tuple[Array, Array]:
    """Return for each atom the one with the largest absolute cosine, and this cosine."""
    k = len(D)
    norms = np.linalg.norm(D, axis=1, keepdims=True)
    unit = np.divide(D, norms, out=np.zeros_like(D), where=norms > 0)
    nearest, cosine = np.zeros(k, np.int64), np.zeros(k)
    for first in range(0, k, _BLOCK):
        some = np.arange(first, min(first + _BLOCK, k))
        products = np.abs(unit[some] @ unit.T)
        products[np.arange(len(some)), some] = -1.0
        nearest[some] = products.argmax(axis=1)
        cosine[some] = np.clip(products.max(axis=1), 0.0, 1.0)
    return nearest, cosine
