"""What a source is: rows that can be had by number, and what it may say of itself."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse

from smalto.checks import Array, Role, Rows, as_floats, check_finite
from smalto.sources.order import RowOrder


@runtime_checkable
class Source(Protocol):
    """Rows of data that learning may ask for."""

    @property
    def n_rows(self) -> int:
        """How many there are."""

    @property
    def n_features(self) -> int:
        """How many numbers a row has."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the computation."""

    def rows(self, numbers: Array) -> Rows:
        """The rows with these numbers, checked, in the dtype of the computation."""


@runtime_checkable
class Ordered(Protocol, metaclass=Role):
    """A source whose rows are better read in an order of its own."""

    def order(self, seed: int) -> RowOrder:
        """The order derived from this seed."""


@runtime_checkable
class Warming(Protocol, metaclass=Role):
    """A source that reads from somewhere slow, and had better do so ahead of time."""

    def warm(self, order: RowOrder, epoch: int, place: int) -> None:
        """Read what will be wanted soon after this place."""


def finite_rows(
    batch: Rows, numbers: Array, dtype: np.dtype[Any], *, nan: bool = False, name: str = "X"
) -> Rows:
    """Rows in the dtype of the computation; NaN and infinity are refused, by row number.

    With ``nan`` they are let through: whoever asks for rows checks them.
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
