"""Products of signals and atoms, ``x Dᵀ``, of atoms, ``D Dᵀ``, and of sums of codes and atoms, ``A D``."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from smalto.cached import cached_property
from smalto.checks import Array, Rows
from smalto.kernels import aligned
from smalto.kernels.dense_products import mirror, multiply, pack, pack_terms, vectors_at_once
from smalto.kernels.simd import WIDTH
from smalto.kernels.sparse_products import SparseMatrix, sparse_products
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

    @cached_property
    def columns(self) -> Array:
        """Dᵀ, see `as_columns`."""
        return as_columns(self.atoms)

    def products(self, x: Rows, out: Array | None = None) -> Array:
        """Return ``x Dᵀ`` (n, k), C-contiguous; in ``out`` if it is given."""
        if out is None:
            out = aligned.empty((x.shape[0], len(self.atoms)), self.atoms.dtype)
        if scipy.sparse.issparse(x):
            n, columns = x.shape[0], self.columns
            exact = columns.shape[1] == len(self.atoms)
            room = out if exact else aligned.empty((n, columns.shape[1]), out.dtype)
            flat = columns.reshape(-1), columns.shape[1], 0, n, room.reshape(-1)
            sparse_products(sparse_matrix(x.astype(out.dtype, copy=False)), *flat)
            if not exact:
                out[...] = room[:, : len(self.atoms)]
        elif self.width == len(self.atoms):
            self.multiply(x, out, self.width)
        else:
            room = aligned.empty((len(x), self.width), out.dtype)
            self.multiply(x, room, self.width)
            out[...] = room[:, : len(self.atoms)]
        return out

    def multiply(self, x: Array, out: Array, width: int) -> None:
        """Write the first ``width`` columns of ``x Dᵀ``, whole vectors, into rows of a larger array."""
        assert out.flags.c_contiguous, "the result would be lost"
        n, m = x.shape
        if not m:
            out[:, :width] = 0.0
        x = np.require(x, self.atoms.dtype, ["C", "W"])  # read-only rows would be compiled for, too
        rows, to, stride = x.reshape(-1), out.reshape(-1), out.shape[1]
        multiply(rows, n, m, 0, m, self.panels, width, self.vectors, to, stride)


class PackedTerms:
    """A dictionary (k, m) as the right factor of ``A D``, which follows its changes."""

    def __init__(self, D: Array) -> None:
        k, m = D.shape
        lanes = WIDTH // D.itemsize
        self.D, self.width, self.vectors = D, -(-m // lanes) * lanes, vectors_at_once()
        self.panels = aligned.empty(k * self.width, D.dtype)
        self.renew(slice(0, k))

    def renew(self, atoms: slice) -> None:
        """Take over atoms that have changed."""
        pack_terms(self.D, atoms.start, atoms.stop, self.vectors, self.width, self.panels)

    def products(self, A: Array, atoms: slice) -> Array:
        """Return ``Σ_j a_j d_j`` over some atoms j for each row a of A (n, k)."""
        (n, k), m = A.shape, self.D.shape[1]
        out = aligned.reused((n, self.width), self.D.dtype, "terms")
        given = A.reshape(-1), n, k, atoms.start, atoms.stop, self.panels, self.width, self.vectors
        multiply(*given, out.reshape(-1), self.width)
        return out[:, :m]


def as_columns(factors: Array) -> Array:
    """Return atoms, or codes, as columns, with zeros added to fill whole vectors."""
    k, m = factors.shape
    lanes = WIDTH // factors.itemsize
    table = aligned.empty((m, -(-k // lanes) * lanes), factors.dtype)
    table[:, :k] = factors.T
    table[:, k:] = 0.0
    return table


def sparse_matrix(x: Any) -> SparseMatrix:
    """Return a CSR array as kernels take it."""
    indices = x.indices.astype(np.int32, copy=False)
    return SparseMatrix(x.indptr.astype(np.int64, copy=False), indices, x.data)


def gram(packed: Packed, n_threads: int) -> Array:
    """Return ``D Dᵀ``: the lower triangle by blocks of rows, the rest by symmetry."""
    D = packed.atoms
    k = len(D)
    block = BLOCK if k < MANY else LARGE_BLOCK
    G = aligned.empty((k, packed.width), D.dtype)
    count = -(-k // block)

    def task(number: int) -> None:  # the longest rows first, so that threads end together
        a, b = (count - 1 - number) * block, min((count - number) * block, k)
        packed.multiply(D[a:b], G[a:b], b if b < k else packed.width)
        mirror(G, a, b)

    run_tasks(task, count, n_threads if count > FEW_BLOCKS else 1)
    return G if packed.width == k else np.ascontiguousarray(G[:, :k])
