"""Rows of a source minus their mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, Rows
from smalto.coders.coding import ROWS_AT_ONCE
from smalto.sources import RowOrder, Source, Stream, as_source
from smalto.sources.base import read_rows


class CenteredSource(Source):
    """The rows of a source minus a mean, which is subtracted on reading."""

    def __init__(self, source: Source, mean: Array) -> None:
        self.source, self.mean = source, mean
        self.n_rows, self.n_features, self.dtype = source.n_rows, source.n_features, source.dtype
        self.reads_ahead = source.reads_ahead

    def rows(self, numbers: Array) -> Rows:
        """Return the rows with these numbers, centered."""
        return centered(read_rows(self.source, numbers), self.mean, self.dtype)

    def order(self, seed: int) -> RowOrder:
        """Return the order of the underlying source."""
        return self.source.order(seed)

    def warm(self, order: RowOrder, epoch: int, place: int) -> None:
        """Read in advance what comes after this place of the order."""
        self.source.warm(order, epoch, place)


def rows_of(X: Any) -> Source:
    """Return X as a source that can be read repeatedly; raise TypeError for a stream."""
    source = as_source(X)
    if isinstance(source, Stream):
        message = (
            "fit reads the samples several times, but a stream can be read only once: pass its "
            "batches to partial_fit"
        )
        raise TypeError(message)
    return source


def row_blocks(source: Source) -> Iterator[Rows]:
    """Yield all rows in order, in blocks that fit into memory."""
    for first in range(0, source.n_rows, ROWS_AT_ONCE):
        numbers = np.arange(first, min(first + ROWS_AT_ONCE, source.n_rows))
        yield read_rows(source, numbers)


def column_means(X: Any) -> Array:
    """Return the means of the columns, in float64."""
    source = rows_of(X)
    total = np.zeros(source.n_features)
    for block in row_blocks(source):
        total += column_sums(block)
    return np.asarray(total / source.n_rows)


def column_sums(X: Rows) -> Array:
    """Return the sums of the columns, in float64."""
    return np.asarray(X.sum(axis=0, dtype=np.float64)).reshape(-1)


def centered(X: Rows, mean: Array, dtype: np.dtype[Any]) -> Array:
    """Return the rows minus the mean as a dense array of this dtype."""
    dense = X.toarray() if scipy.sparse.issparse(X) else np.asarray(X)
    return np.asarray(np.subtract(dense, mean.astype(dtype), dtype=dtype))
