"""Reordering of the atoms of a state."""

from __future__ import annotations

import numpy as np

from smalto.checks import Array
from smalto.coders.codes import Codes
from smalto.learning.memory.state import State


def by_energy(state: State) -> Array:
    """Return the numbers of the atoms by decreasing ``Σ ‖α_j d_j‖²`` over the past."""
    energy = sum(part.scale * part.A.diagonal() for part in state.stats)
    energy = energy * np.einsum("ij,ij->i", state.D, state.D)
    return np.argsort(-energy, kind="stable")


def reorder(state: State, order: Array) -> None:
    """Reorder the atoms in place: atom ``order[j]`` becomes atom j."""
    state.D = np.ascontiguousarray(state.D[order])
    state.last_used = state.last_used[order]
    for part in state.stats:
        part.A = np.ascontiguousarray(part.A[np.ix_(order, order)])
        part.B = np.ascontiguousarray(part.B[order])
        part.code_sum = part.code_sum[order]
    store = state.store
    if store is not None:
        coded = np.flatnonzero(store.counts >= 0)
        codes = store.fetch(coded).as_csr(len(order))[:, order]
        codes.sort_indices()
        arrays = codes.indptr.astype(np.int64), codes.indices.astype(np.int32), codes.data
        store.put(coded, Codes(*arrays), store.penalties[coded])
