"""Storage of the last code of every sample, for exact replacement and warm starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.coders.codes import Codes
from smalto.kernels.learning.code_table import fetch_rows, merge_atom, put_rows


@dataclass
class CodeStore:
    """Codes of n samples, in a table with one row per sample."""

    counts: Array  # (n,) nonzeros of each code, −1 for samples that have not been coded yet
    indices: Array  # (n, slots) int32; there are enough slots for the longest code
    values: Array  # (n, slots)
    penalties: Array  # (n,) ψ of each code when it was made

    @classmethod
    def empty(cls, n: int, dtype: np.dtype[Any]) -> CodeStore:
        """Return a store in which no sample has been coded."""
        slots = 16
        return cls(
            np.full(n, -1, np.int32),
            np.zeros((n, slots), np.int32),
            np.zeros((n, slots), dtype),
            np.zeros(n),
        )

    def fetch(self, numbers: Array) -> Codes:
        """Return the codes of these samples, empty for those not coded yet."""
        counts = np.maximum(self.counts[numbers], 0)
        indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        indices = np.empty(indptr[-1], np.int32)
        values = np.empty(indptr[-1], self.values.dtype)
        fetch_rows(self.indices, self.values, numbers, indptr, indices, values)
        return Codes(indptr, indices, values)

    def put(self, numbers: Array, codes: Codes, penalties: Array) -> None:
        """Store these codes as the last ones of these samples."""
        needed = int(np.diff(codes.indptr).max(initial=0))
        slots = self.indices.shape[1]
        if needed > slots:
            more = ((0, 0), (0, max(needed, 2 * slots) - slots))
            self.indices, self.values = np.pad(self.indices, more), np.pad(self.values, more)
        self.penalties[numbers] = penalties
        put_rows(*codes, numbers, self.counts, self.indices, self.values)

    def merge(self, j: int, into: int, sign: float) -> None:
        """Add the coefficients of atom j, times ``sign``, to ``into``, or drop them if it is −1."""
        merge_atom(self.counts, self.indices, self.values, j, into, sign)

    def copy(self) -> CodeStore:
        """Return an independent copy."""
        return CodeStore(
            self.counts.copy(), self.indices.copy(), self.values.copy(), self.penalties.copy()
        )
