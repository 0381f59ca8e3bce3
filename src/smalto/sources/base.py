"""What a source is: rows that can be read by number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy import sparse

from smalto.checks import Array, Rows, as_floats, check_finite
from smalto.sources.order import Order, RowOrder


class Source(ABC):
    """Rows of data that can be read by number: subclass it to learn from data of another kind.

    A subclass has the attributes ``n_rows``, ``n_features`` and ``dtype`` (of the computation:
    float32 or float64) and the method `rows`.
    """

    n_rows: int
    n_features: int
    dtype: np.dtype[Any]

    reads_ahead: bool = False
    """Whether rows come from somewhere slow, so that a thread should read them ahead of time."""

    @abstractmethod
    def rows(self, numbers: Array) -> Rows:
        """Return the rows with these numbers, finite, in the dtype of the computation."""

    def order(self, seed: int) -> RowOrder:
        """Return the order derived from this seed in which rows are best read."""
        return Order(self.n_rows, seed)

    def warm(self, order: RowOrder, epoch: int, place: int) -> None:
        """Read what will be wanted soon after this place of the order (if `reads_ahead`)."""


def finite_rows(
    batch: Rows, numbers: Array, dtype: np.dtype[Any], *, nan: bool = False, name: str = "X"
) -> Rows:
    """Return rows in the dtype of the computation; raise for NaN and infinity, by row number.

    With ``nan`` they are let through: the caller checks them.
    """
    batch = as_floats(batch, dtype)
    if nan:
        return batch
    try:
        check_finite(name, batch)
    except ValueError:
        bad = [i for i in range(len(numbers)) if not _is_finite(batch[[i]])]
        first = min(bad, key=lambda i: int(numbers[i]))
        check_finite(name, batch[[first]], int(numbers[first]))
        raise
    return batch


def _is_finite(row: Rows) -> bool:
    return bool(np.all(np.isfinite(row.data if sparse.issparse(row) else row)))
