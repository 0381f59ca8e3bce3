"""Rows of arrays and CSR arrays in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, Rows, as_floats, as_rows, check_finite, float_dtype
from smalto.sources.base import Source
from smalto.threads import run_tasks

_ROWS = 256  # copied as one task


@dataclass(frozen=True)
class ArraySource(Source):
    """Rows of an array or a CSR array; only the rows that are read are copied.

    Attributes
    ----------
    X : array or CSR array (n, m)
        The rows.
    n_rows, n_features, dtype
        Their number, their length, and the dtype to compute in.

    See Also
    --------
    as_source : Makes it from an array.
    """

    X: Rows
    n_rows: int
    n_features: int
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, X: Any, *, nan: bool = False) -> ArraySource:
        """Check an array, a CSR array or nested lists; allow NaN and infinity if ``nan``.

        Those of a sparse array are never allowed: entries can only be missing from a dense one.
        """
        X = as_rows("X", X)
        check_not_empty(X.shape)
        if not nan or scipy.sparse.issparse(X):  # which has no missing entries
            check_finite("X", X, can_miss=True)
        return cls(X, X.shape[0], X.shape[1], float_dtype(X.dtype))

    def rows(self, numbers: Array) -> Rows:
        """Return the rows with these numbers, which `of` has checked."""
        X = self.X
        return as_floats(X.take(numbers, 0) if self._takes_fast else X[numbers], self.dtype)

    def rows_by(self, n_threads: int, numbers: Array) -> Rows:
        """Return the same, copied by several threads; the numbers must be those of rows."""
        X: Any = self.X
        if n_threads == 1 or not self._takes_fast or X.dtype != self.dtype:
            return self.rows(numbers)
        rows = np.empty((len(numbers), self.n_features), self.dtype)

        def task(number: int) -> None:
            some = slice(number * _ROWS, (number + 1) * _ROWS)
            X.take(numbers[some], 0, rows[some], mode="clip")  # other modes copy twice

        run_tasks(task, -(-len(numbers) // _ROWS), n_threads)
        return rows

    @property
    def _takes_fast(self) -> bool:
        """Whether `take` is three times as fast as an index; it would copy all of another layout."""
        X = self.X
        return isinstance(X, np.ndarray) and X.flags.c_contiguous and X.flags.aligned


def check_not_empty(shape: tuple[int, ...]) -> None:
    """Raise ValueError if there are no samples."""
    if shape[0] == 0:
        message = f"X has no samples: its shape is {shape}"
        raise ValueError(message)
