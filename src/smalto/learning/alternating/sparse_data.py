"""Products of sparse samples with atoms, and with codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.coders.products import as_columns, sparse_matrix
from smalto.kernels import aligned
from smalto.kernels.sparse_products import SparseMatrix, sparse_products
from smalto.threads import run_tasks

_FEATURES = 1024  # that one task multiplies with the codes


class SparseData:
    """Sparse samples, by rows and by columns."""

    def __init__(self, X: Any, n_atoms: int) -> None:
        self.n_atoms = n_atoms
        self.rows, self.columns = sparse_matrix(X), sparse_matrix(X.T.tocsr())

    def by_samples(self, atoms: Array, rows: slice) -> Array:
        """Return ``D xᵀ`` for some samples, from their columns (`as_columns`)."""
        return self._product(self.rows, atoms, rows)

    def by_features(self, codes: Array, out: Array, n_threads: int) -> None:
        """Write the product of all codes, one per column, and the samples; features are cut into tasks."""
        table, m = as_columns(codes), out.shape[1]

        def task(number: int) -> None:
            some = slice(number * _FEATURES, min((number + 1) * _FEATURES, m))
            out[:, some] = self._product(self.columns, table, some)

        run_tasks(task, -(-m // _FEATURES), n_threads)

    def _product(self, X: SparseMatrix, table: Array, rows: slice) -> Array:
        """Return the product of some rows and a table, transposed."""
        width = table.shape[1]
        out = aligned.empty((rows.stop - rows.start, width), table.dtype)
        sparse_products(X, table.reshape(-1), width, rows.start, rows.stop, out.reshape(-1))
        return np.ascontiguousarray(out[:, : self.n_atoms].T)
