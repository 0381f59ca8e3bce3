"""Another order of the atoms, everywhere in a state."""

from __future__ import annotations

import numpy as np

from smalto.checks import Array
from smalto.coders.base import Codes
from smalto.learning.memory.state import State


def by_energy(state: State) -> Array:
    """The numbers of the atoms, those first whose part ``Σ ‖α_j d_j‖²`` of the past is largest."""
    energy = sum(part.scale * part.A.diagonal() for part in state.stats)
    energy = energy * np.einsum("ij,ij->i", state.D, state.D)
    return np.argsort(-energy, kind="stable")


def reorder(state: State, order: Array) -> None:
    """Let atom ``order[j]`` become atom j, in place."""
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
