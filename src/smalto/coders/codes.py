"""Sparse codes as CSR arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy

from smalto.checks import Array


class Codes(NamedTuple):
    """Sparse codes of several signals, one per row, as the arrays of a CSR matrix."""

    indptr: Array  # int64, one more than rows
    indices: Array  # int32, increasing within a row
    values: Array

    def as_csr(self, n_atoms: int) -> Any:
        """Return these codes as a SciPy array (n, n_atoms) that shares indices and values."""
        shape = (len(self.indptr) - 1, n_atoms)
        # SciPy needs both index arrays to have the same type, the smaller one where it suffices.
        kind = np.int32 if len(self.indices) < 2**31 else np.int64
        indptr, indices = self.indptr.astype(kind), self.indices.astype(kind, copy=False)
        codes = scipy.sparse.csr_array((self.values, indices, indptr), shape=shape)
        codes.has_canonical_format = True
        return codes

    def take(self, rows: Array) -> Codes:
        """Return the codes of these rows, in this order."""
        counts = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        places = np.repeat(self.indptr[rows] - indptr[:-1], counts) + np.arange(indptr[-1])
        return Codes(indptr, self.indices[places], self.values[places])

    def part(self, rows: slice) -> Codes:
        """Return the codes of consecutive rows, sharing indices and values."""
        begin, end = self.indptr[rows.start], self.indptr[rows.stop]
        indptr = self.indptr[rows.start : rows.stop + 1] - begin
        return Codes(indptr, self.indices[begin:end], self.values[begin:end])

    def put(self, rows: Array, new: Codes) -> Codes:
        """Return these codes with those of ``rows`` (increasing) replaced by ``new``."""
        order = np.arange(len(self.indptr) - 1)
        order[rows] = len(order) + np.arange(len(rows))
        return stack([self, new]).take(order)


def stack(parts: list[Codes]) -> Codes:
    """Return the codes of consecutive blocks of rows as one."""
    if len(parts) == 1:
        return parts[0]
    indptr = [parts[0].indptr]
    for part in parts[1:]:
        indptr.append(part.indptr[1:] + indptr[-1][-1])
    return Codes(
        np.concatenate(indptr),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


def compressed(codes: Any) -> Codes:
    """Return the codes of a dense or sparse array, without zeros."""
    csr = scipy.sparse.csr_array(codes)
    csr.sort_indices()
    return Codes(csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data)
