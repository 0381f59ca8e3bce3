"""Codes that kernels write into arrays of a guessed length, which grow where they are too short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.coders.codes import Codes
from smalto.kernels.coding.arguments import SparseRows


class GrowingCodes:
    """Room for the codes of n rows.

    A kernel writes codes to ``rows`` for as long as another active set of ``room`` atoms fits, and
    returns the first row that it has not done. Then either the arrays or the active set become
    larger, and it is called again.

    Parameters
    ----------
    n : int
        How many rows there are.
    dtype : dtype
        Type of the coefficients.
    room : int
        How many atoms may be active, to begin with.
    most : int
        How many atoms there are: the largest ``room`` that makes sense.
    per_row : int
        How many nonzeros a row is expected to have, at most.
    """

    def __init__(self, n: int, dtype: np.dtype[Any], room: int, most: int, per_row: int) -> None:
        self.room, self.most = room, most
        size = n * per_row + room
        self.rows = SparseRows(
            np.zeros(n + 1, np.int64), np.empty(size, np.int32), np.empty(size, dtype)
        )

    def fill(self, run: Callable[[int, int], int], groups: Array | None = None) -> Codes:
        """Call ``run(first, room)`` until all rows are done, with more room each time.

        ``run`` codes from the row, or from the group of rows, ``first`` on and returns the first
        one not done. Group g holds the rows from groups[g] to groups[g + 1].
        """
        ends = np.arange(len(self.rows.indptr)) if groups is None else groups
        first = run(0, self.room)
        while first < len(ends) - 1:
            self._grow(int(ends[first]), int(ends[first + 1]))
            first = run(first, self.room)
        indptr, indices, values = self.rows
        end = indptr[ends[-1]]
        return Codes(indptr, indices[:end], values[:end])

    def _grow(self, begin: int, end: int) -> None:
        """Make room for the rows from ``begin`` to ``end``, or else for a larger active set."""
        indptr, indices, values = self.rows
        size = len(indices)
        needed = int(indptr[begin]) + (end - begin) * self.room
        if needed > size:
            more = max(needed, 2 * size) - size
            indices, values = (
                np.concatenate([array, np.empty(more, array.dtype)]) for array in (indices, values)
            )
            self.rows = SparseRows(indptr, indices, values)
        else:
            self.room = min(2 * self.room, self.most)
