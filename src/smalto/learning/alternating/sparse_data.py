"""Products of sparse samples with atoms, and with codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.kernels import aligned
from smalto.kernels.learning.sparse_products import SparseMatrix, sparse_products
from smalto.kernels.simd import WIDTH
from smalto.threads import run_tasks

_FEATURES = 1024  # that one task multiplies with the codes


class SparseData:
    """Sparse samples, by rows and by columns."""

    def __init__(self, X: Any, n_atoms: int) -> None:
        lanes = WIDTH // X.dtype.itemsize
        self.n_atoms, self.width = n_atoms, -(-n_atoms // lanes) * lanes
        self.rows, self.columns = _matrix(X), _matrix(X.T.tocsr())

    def table(self, factors: Array) -> Array:
        """Return atoms, or codes, as columns that are filled up to whole vectors."""
        table = aligned.empty((factors.shape[1], self.width), factors.dtype)
        table[:, : self.n_atoms] = factors.T
        table[:, self.n_atoms :] = 0.0
        return table

    def by_samples(self, atoms: Array, rows: slice) -> Array:
        """Return ``D xᵀ`` for some samples, from the `table` of atoms."""
        return self._product(self.rows, atoms, rows)

    def by_features(self, codes: Array, out: Array, n_threads: int) -> None:
        """Write the product of all codes, one per column, and the samples; features are cut into tasks."""
        table, m = self.table(codes), out.shape[1]

        def task(number: int) -> None:
            some = slice(number * _FEATURES, min((number + 1) * _FEATURES, m))
            out[:, some] = self._product(self.columns, table, some)

        run_tasks(task, -(-m // _FEATURES), n_threads)

    def _product(self, X: SparseMatrix, table: Array, rows: slice) -> Array:
        """Return the product of some rows and a table, transposed."""
        out = aligned.empty((rows.stop - rows.start, self.width), table.dtype)
        sparse_products(X, table.reshape(-1), self.width, rows.start, rows.stop, out.reshape(-1))
        return np.ascontiguousarray(out[:, : self.n_atoms].T)


def _matrix(X: Any) -> SparseMatrix:
    indices = X.indices.astype(np.int32, copy=False)
    return SparseMatrix(X.indptr.astype(np.int64, copy=False), indices, X.data)
