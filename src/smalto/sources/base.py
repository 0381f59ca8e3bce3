"""The base class of sources: rows that can be read by number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, Rows, as_floats, as_rows, check_finite, is_built_in, named
from smalto.sources.order import Order, RowOrder


class Source(ABC):
    """Rows of data that can be read by number; subclass it to learn from another kind of data.

    A subclass sets the attributes ``n_rows``, ``n_features`` and ``dtype`` (the dtype to compute
    in, float32 or float64) and implements `rows`.

    See Also
    --------
    ChunkedSource : For rows that lie in chunks.
    Stream : For data that can only be iterated over.
    """

    n_rows: int
    n_features: int
    dtype: np.dtype[Any]

    reads_ahead: bool = False
    """Whether reading is slow enough that a background thread should read ahead."""

    @abstractmethod
    def rows(self, numbers: Array) -> Rows:
        """Return the rows with these numbers, in ``dtype``; raise ValueError if not finite."""

    def order(self, seed: int) -> RowOrder:
        """Return a random order, derived from the seed, in which the rows are fast to read."""
        return Order(self.n_rows, seed)

    def warm(self, order: RowOrder, epoch: int, place: int) -> None:
        """Read in advance what comes after this place of the order; called if `reads_ahead`."""


def read_rows(source: Source, numbers: Array, *, nan: bool = False) -> Rows:
    """Return rows of a source; raise, with its name, if a user's own one returns anything else.

    With ``nan=True`` NaN and infinity are allowed: the caller checks for them.
    """
    with named(source, "rows"):
        batch = source.rows(numbers)
    if is_built_in(source):
        return batch
    name = f"what {type(source).__name__}.rows returned"
    batch, wanted = as_rows(name, batch), (len(numbers), source.n_features)
    if batch.shape != wanted:
        message = f"{name} has shape {batch.shape}, expected {wanted}"
        raise ValueError(message)
    return finite_rows(batch, numbers, source.dtype, nan=nan, name=name)


def finite_rows(
    batch: Rows, numbers: Array, dtype: np.dtype[Any], *, nan: bool = False, name: str = "X"
) -> Rows:
    """Return rows in this dtype; raise ValueError for NaN and infinity, with the row number.

    With ``nan=True`` dense rows are not checked: the caller does that. From sparse ones, entries
    cannot be missing.
    """
    batch = as_floats(batch, dtype)
    if nan and not scipy.sparse.issparse(batch):
        return batch
    try:
        check_finite(name, batch)
    except ValueError:
        bad = [i for i in range(len(numbers)) if not _is_finite(batch[[i]])]
        first = min(bad, key=lambda i: int(numbers[i]))
        row = batch[[first]]
        check_finite(name, row, int(numbers[first]), whole=False, can_miss=True)
        raise
    return batch


def _is_finite(row: Rows) -> bool:
    return bool(np.all(np.isfinite(row.data if scipy.sparse.issparse(row) else row)))
