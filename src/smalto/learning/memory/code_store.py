"""The last code of every sample of a fixed data set, for exact replacement and warm starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.coders.base import Codes
from smalto.kernels.learning.code_table import fetch_rows, merge_atom, put_rows


@dataclass
class CodeStore:
    """Codes of n samples: each sample has a row of slots, as many as the fullest needs."""

    counts: Array  # (n,) nonzeros of each sample, −1 where it has not been coded yet
    indices: Array  # (n, slots) int32
    values: Array  # (n, slots)
    penalties: Array  # (n,) ψ of each code when it was made

    @classmethod
    def empty(cls, n: int, dtype: np.dtype[Any]) -> CodeStore:
        """A store in which no sample has been coded."""
        slots = 16
        return cls(
            np.full(n, -1, np.int32),
            np.zeros((n, slots), np.int32),
            np.zeros((n, slots), dtype),
            np.zeros(n),
        )

    def fetch(self, numbers: Array) -> Codes:
        """The codes of these samples; a sample without one has an empty code."""
        counts = np.maximum(self.counts[numbers], 0)
        indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        indices = np.empty(indptr[-1], np.int32)
        values = np.empty(indptr[-1], self.values.dtype)
        fetch_rows(self.indices, self.values, numbers, indptr, indices, values)
        return Codes(indptr, indices, values)

    def put(self, numbers: Array, codes: Codes, penalties: Array) -> None:
        """Keep these codes as the last ones of these samples."""
        needed = int(np.diff(codes.indptr).max(initial=0))
        slots = self.indices.shape[1]
        if needed > slots:
            more = ((0, 0), (0, max(needed, 2 * slots) - slots))
            self.indices, self.values = np.pad(self.indices, more), np.pad(self.values, more)
        self.penalties[numbers] = penalties
        put_rows(*codes, numbers, self.counts, self.indices, self.values)

    def merge(self, j: int, into: int, sign: float) -> None:
        """Give the coefficients of atom j, times ``sign``, to atom ``into`` (−1: drop them)."""
        merge_atom(self.counts, self.indices, self.values, j, into, sign)

    def copy(self) -> CodeStore:
        """An independent copy."""
        return CodeStore(
            self.counts.copy(), self.indices.copy(), self.values.copy(), self.penalties.copy()
        )
