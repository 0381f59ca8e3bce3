"""Groups of signals with missing entries, coded one group after the other in float64."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import scipy

from smalto.checks import Array
from smalto.coders.chunks import Chunk, all_if_none
from smalto.coders.codes import Codes

# Codes of a group, and its number of rounds, from X (zero where missing), D and what is missing.
CodeGroup: TypeAlias = Callable[[Array, Array, Array], tuple[Array, int]]


def coded_groups(chunk: Chunk, code: CodeGroup) -> Codes:
    """Return the codes of a chunk of groups, each of which ``code`` has coded."""
    own = chunk.own
    assert own is not None
    assert own.missing is not None
    assert own.signals is not None
    D = np.ascontiguousarray(own.features.T, np.float64)
    X = own.signals.astype(np.float64)
    used = np.flatnonzero(D.any(axis=1))  # the others only pad the dictionary
    D, parts = D[used], []
    groups = all_if_none(chunk.groups, len(X))
    for begin, end in itertools.pairwise(groups):
        rows = slice(begin, end)
        found, chunk.rounds[rows] = code(X[rows], D, own.missing[rows])
        parts.append(scipy.sparse.csr_array(found))
    csr = scipy.sparse.vstack(parts, "csr") if parts else scipy.sparse.csr_array((0, len(used)))
    indices = used.astype(np.int32)[csr.indices]
    return Codes(csr.indptr.astype(np.int64), indices, csr.data.astype(chunk.Q.dtype))
