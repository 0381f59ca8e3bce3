"""Sources of samples: anything that can hand out rows by number, in a fresh random order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse

from smalto.checks import Array, Rows, as_floats, as_rows, check_finite, float_dtype
from smalto.kernels.order import permute


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


@dataclass(frozen=True)
class ArraySource:
    """The rows of an array, a memory map or a CSR array; only what is asked for is copied."""

    X: Rows
    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    nan: bool = False  # whether NaN is let through

    def rows(self, numbers: Array) -> Rows:
        """The rows with these numbers; NaN (unless it is let through) and infinity are refused."""
        batch = as_floats(self.X[numbers], self.dtype)
        if self.nan:
            return batch
        try:
            check_finite("X", batch)
        except ValueError:
            first = min(int(i) for i in numbers if not _row_is_finite(self.X[[int(i)]]))
            check_finite("X", self.X[[first]], first)
            raise
        return batch


def _row_is_finite(row: Rows) -> bool:
    return bool(np.all(np.isfinite(row.data if sparse.issparse(row) else row)))


def as_source(X: Any, *, nan: bool = False) -> Source:
    """Make a source of what is given: an array, a memory map, CSR, nested lists, or a source.

    Data in memory is checked at once, a memory map as it is read; with ``nan`` whoever asks
    for rows checks them.
    """
    if isinstance(X, Source):
        return X
    in_memory = not isinstance(X, np.memmap)
    X = as_rows("X", X)
    if X.shape[0] == 0:
        message = f"X has no samples: its shape is {X.shape}"
        raise ValueError(message)
    if in_memory and not nan:
        check_finite("X", X)
    return ArraySource(X, X.shape[0], X.shape[1], float_dtype(X.dtype), nan)


@dataclass(frozen=True)
class Order:
    """A pseudo-random order of n numbers, a new one for each epoch, in constant memory.

    A keyed permutation instead of a shuffled list: it needs no memory however large n is, and
    "where were we" is two integers.
    """

    n: int
    seed: int

    def take(self, epoch: int, begin: int, end: int) -> Array:
        """The numbers at places ``begin`` to ``end`` of this epoch's order."""
        bits = max(self.n - 1, 1).bit_length()
        keys = np.random.SeedSequence([self.seed, epoch]).generate_state(4, np.uint64)
        out = np.empty(max(min(end, self.n) - begin, 0), np.int64)
        with np.errstate(over="ignore"):  # wanted, and only seen when kernels run uncompiled
            permute(begin, self.n, -(-bits // 2), keys, out)
        return out
