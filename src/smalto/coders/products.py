"""Products of signals and atoms, ``x Dᵀ``, and the Gram matrix ``D Dᵀ``."""

from __future__ import annotations

import numpy as np
import scipy

from smalto.checks import Array, Rows
from smalto.kernels import aligned
from smalto.kernels.dense_products import multiply, pack, vectors_at_once
from smalto.kernels.simd import WIDTH
from smalto.threads import run_tasks

BLOCK = 96  # rows of the Gram matrix computed as one task ...
LARGE_BLOCK = 192  # ... and of many atoms, where more rows at a time are faster
MANY = 4096  # atoms
FEW_BLOCKS = 2  # which are computed before another thread has begun


class Packed:
    """Atoms (k, m) as the right factor of products, in the order in which kernels read them."""

    def __init__(self, atoms: Array) -> None:
        k, m = atoms.shape
        lanes = WIDTH // atoms.itemsize
        self.atoms, self.width = atoms, -(-k // lanes) * lanes
        self.vectors = vectors_at_once()
        self.panels = aligned.empty(self.width * m, atoms.dtype)
        pack(np.require(atoms, requirements=["C", "W"]), self.vectors, self.width, self.panels)

    def products(self, x: Rows, out: Array | None = None) -> Array:
        """Return ``x Dᵀ`` (n, k), C-contiguous; in ``out`` if it is given."""
        if out is None:
            out = aligned.empty((x.shape[0], len(self.atoms)), self.atoms.dtype)
        if scipy.sparse.issparse(x):
            out[...] = x @ self.atoms.T
        elif self.width == len(self.atoms):
            self.multiply(x, out, self.width)
        else:
            room = aligned.empty((len(x), self.width), out.dtype)
            self.multiply(x, room, self.width)
            out[...] = room[:, : len(self.atoms)]
        return out

    def multiply(self, x: Array, out: Array, width: int) -> None:
        """Write the first ``width`` columns of ``x Dᵀ``, whole vectors, into rows of a larger array."""
        n, m = x.shape
        if not m:
            out[:, :width] = 0.0
        x = np.require(x, self.atoms.dtype, ["C", "W"])  # read-only rows would be compiled for, too
        multiply(
            x.reshape(-1), n, m, self.panels, width, self.vectors, out.reshape(-1), out.shape[1]
        )


def gram(D: Array, n_threads: int) -> Array:
    """Return ``D Dᵀ``: the lower triangle by blocks of rows, the rest by symmetry."""
    k = len(D)
    block = BLOCK if k < MANY else LARGE_BLOCK
    packed = Packed(D)
    G = aligned.empty((k, packed.width), D.dtype)
    count = -(-k // block)

    def task(number: int) -> None:  # the longest rows first, so that threads end together
        a, b = (count - 1 - number) * block, min((count - number) * block, k)
        packed.multiply(D[a:b], G[a:b], b if b < k else packed.width)
        G[:a, a:b] = G[a:b, :a].T

    run_tasks(task, count, n_threads if count > FEW_BLOCKS else 1)
    return G if packed.width == k else np.ascontiguousarray(G[:, :k])
