"""Arrays that kernels write codes to, and scratch that a thread keeps for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.coders.codes import Codes
from smalto.kernels.coding.arguments import SparseRows
from smalto.kernels.coding.lasso import Search, make_search

_MOST_KEPT = 256  # active atoms
_kept = threading.local()


def of_thread(make: Callable[..., Any], width: int, room: int, *sizes: Any) -> Any:
    """Return ``make(width, room, *sizes)``, made once by each thread as long as the sizes stay.

    Those with more and less room are kept, too.
    """
    if room > _MOST_KEPT:
        return make(width, room, *sizes)
    made: dict[Any, Any] = vars(_kept)
    name, key = make.__name__, (width, *sizes)
    if name not in made or made[name][0] != key:
        made[name] = key, {}
    rooms = made[name][1]
    if room not in rooms:
        rooms[room] = make(width, room, *sizes)
    return rooms[room]


def search_of_thread(width: int, room: int, dtype: np.dtype[Any]) -> Search:
    """Return `make_search` as this thread keeps it."""
    search: Search = of_thread(make_search, width, room, dtype)
    search.active.work.fill(0.0)
    search.used.fill(False)
    return search


class GrowingCodes:
    """Arrays for the codes of n rows, which grow when they are full.

    A kernel writes codes to ``rows`` as long as there is room for another active set of ``room``
    atoms, and returns the first row that it has not coded. Then either the arrays or the active
    set are enlarged, and the kernel is called again.

    Parameters
    ----------
    n : int
        Number of rows.
    dtype : dtype
        Type of the coefficients.
    room : int
        Initial limit on the size of the active set.
    most : int
        Number of atoms, which ``room`` never exceeds.
    per_row : int
        Nonzeros per row for which memory is allocated at first.
    """

    def __init__(self, n: int, dtype: np.dtype[Any], room: int, most: int, per_row: int) -> None:
        self.room, self.most = room, most
        size = n * per_row + room
        self.rows = SparseRows(
            np.zeros(n + 1, np.int64), np.empty(size, np.int32), np.empty(size, dtype)
        )

    def fill(self, run: Callable[[int, int], int], groups: Array | None = None) -> Codes:
        """Call ``run(first, room)``, with more room each time, until all rows are coded.

        ``run`` starts at row ``first`` (at group ``first`` if there are groups) and returns the
        first row or group that it has not coded. Group g is the rows groups[g] to groups[g + 1].
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
