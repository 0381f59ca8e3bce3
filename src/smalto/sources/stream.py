"""Rows from an iterable of batches."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import scipy

from smalto.checks import Rows, as_rows, check_integer, float_dtype
from smalto.data_frames import check_columns, column_names
from smalto.sources.base import finite_rows
from smalto.sources.read_ahead import ReadAhead


class Stream:
    """Samples from an iterable of batches of any size, in the order of the iterable.

    The size of the batches does not matter: each step of the learner draws as many rows as it
    needs.

    Parameters
    ----------
    batches : iterable or callable
        An iterable that can restart (a PyTorch DataLoader, a list of arrays) allows any number of
        epochs. An iterator, such as a generator, allows one: the run ends with it. A function is
        called with the number of each epoch, from 0, and returns an iterable. Each batch is an
        array or CSR array (rows are samples), or a tuple whose first member is one.
    from_start : bool, optional
        Where the iterable begins when a run is resumed in the middle of an epoch. If True, at the
        first sample of that epoch: samples already seen are skipped. If False, where the run
        stopped. The default is False for an iterator and True for everything else.
    read_ahead : int, optional
        Number of batches that a background thread reads ahead. The default is 2, and 0 for an
        iterator: batches read ahead are lost if the run ends before the iterator does.

    See Also
    --------
    as_source : Makes it from an iterable.
    smalto.learning.OneByOne : Samples that arrive one at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import learn
    >>> from smalto.coders import Lasso
    >>> from smalto.sources import Stream
    >>> def batches(epoch):
    ...     rng = np.random.default_rng(epoch)
    ...     for _ in range(20):
    ...         yield rng.standard_normal((100, 8))
    >>> learn(Stream(batches), 12, Lasso(0.5), max_epochs=2, random_state=0).state.samples
    4000
    """

    def __init__(
        self,
        batches: Iterable[Any] | Callable[[int], Iterable[Any]],
        *,
        from_start: bool | None = None,
        read_ahead: int | None = None,
    ) -> None:
        self._made = batches if callable(batches) else None
        if self._made is None and not isinstance(batches, Iterable):
            message = f"batches must be iterable or a function of the epoch, got {batches!r}"
            raise TypeError(message)
        self._batches = batches
        self.restarts = self._made is not None or not isinstance(batches, Iterator)
        self.from_start = self.restarts if from_start is None else bool(from_start)
        if read_ahead is None:
            read_ahead = 2 if self.restarts else 0
        self._depth = check_integer("read_ahead", read_ahead, low=0)
        self.nan = False  # whether NaN and infinity are allowed
        self._iterator: Any = None
        self._epoch = 0
        self._place = 0  # rows of this epoch that were read
        self._count = 0  # batches of this epoch that were read
        self._pending: deque[Rows] = deque()
        self._kind: tuple[int, np.dtype[Any], bool] | None = None
        self.names: list[str] | None = None  # of the columns, from the first batch that has some

    @property
    def n_features(self) -> int:
        """The number of features, from the first batch."""
        return self._known()[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype to compute in, from the first batch."""
        return self._known()[1]

    def peek(self, count: int, patience: float = math.inf) -> Rows:
        """Return up to ``count`` of the next rows without consuming them; see `take`."""
        rows = self._collect(count, patience)
        if rows.shape[0]:
            self._pending.appendleft(rows)
        return rows

    def take(self, count: int, patience: float = math.inf) -> Rows:
        """Return the next ``count`` rows; fewer at the end of the epoch, none after it.

        After so many seconds of ``patience``, those that have come are enough.
        """
        return self._collect(count, patience)

    def seek(self, epoch: int, place: int) -> None:
        """Go to this place of this epoch, unless the stream is already there."""
        if self._iterator is not None and (epoch, place) == (self._epoch, self._taken()):
            return
        if not self.from_start:
            self._place, self._epoch = place + self._held(), epoch
            return
        if self._iterator is not None and self.restarts:
            self._end()
        self._epoch = epoch
        while self._taken() < place:
            skipped = self._collect(min(place - self._taken(), 8192))
            if skipped.shape[0] == 0:
                message = (
                    f"the stream ended after {self._taken()} samples of epoch {epoch}, but the "
                    f"run to resume had seen {place}"
                )
                raise ValueError(message)

    def next_epoch(self) -> bool:
        """Start the next epoch; return False if the stream cannot restart."""
        if not self.restarts:
            return False
        self._end()
        self._epoch += 1
        return True

    def close(self) -> None:
        """Stop the thread that reads ahead, if there is one."""
        if isinstance(self._iterator, ReadAhead):
            self._end()

    def _end(self) -> None:
        if isinstance(self._iterator, ReadAhead):
            self._iterator.close()
        self._iterator, self._place, self._count = None, 0, 0
        self._pending.clear()

    def _held(self) -> int:
        return sum(rows.shape[0] for rows in self._pending)

    def _taken(self) -> int:
        """Return the number of rows of this epoch that were consumed."""
        return self._place - self._held()

    def _collect(self, count: int, patience: float = math.inf) -> Rows:
        parts: list[Rows] = []
        missing, began = count, time.perf_counter()
        while missing:
            if parts and not self._pending and time.perf_counter() - began > patience:
                break
            if not self._pending and not self._fetch():
                break
            rows = self._pending.popleft()
            if rows.shape[0] > missing:
                self._pending.appendleft(rows[missing:])
                rows = rows[:missing]
            parts.append(rows)
            missing -= rows.shape[0]
        if len(parts) == 1:
            return parts[0]
        width, dtype, is_sparse = self._known()
        if is_sparse:
            empty = scipy.sparse.csr_array((0, width), dtype=dtype)
            return scipy.sparse.vstack([empty, *parts], format="csr")
        return np.concatenate([np.empty((0, width), dtype), *parts])

    def _known(self) -> tuple[int, np.dtype[Any], bool]:
        if self._kind is None:
            self._fetch()
        if self._kind is None:
            message = "the stream has no samples"
            raise ValueError(message)
        return self._kind

    def _fetch(self) -> bool:
        """Read the next batch that is not empty; return False at the end of the iterator."""
        if self._iterator is None:
            self._iterator = self._start()
        while True:
            try:
                item = next(self._iterator)
            except StopIteration:
                return False
            except Exception as error:
                error.add_note(f"It came from batch {self._count} of the stream.")
                raise
            rows = self._checked(item)
            self._count += 1
            if rows.shape[0]:
                self._pending.append(rows)
                self._place += rows.shape[0]
                return True

    def _start(self) -> Any:
        batches: Any = self._batches
        if self._made is not None:
            try:
                batches = self._made(self._epoch)
            except Exception as error:
                error.add_note(f"It came from the function that makes epoch {self._epoch}.")
                raise
        if not isinstance(batches, Iterable):
            message = f"the function given as batches must return an iterable, got {batches!r}"
            raise TypeError(message)
        iterator = iter(batches)
        return ReadAhead(iterator, self._depth) if self._depth else iterator

    def _checked(self, item: Any) -> Rows:
        """Return a batch in the dtype to compute in; raise unless it is like the first one."""
        if isinstance(item, tuple | list) and len(item) and getattr(item[0], "ndim", 0) == 2:
            item = item[0]  # (samples, labels), as from data loaders
        name = f"batch {self._count} of the stream (from sample {self._place} on)"
        rows = as_rows(name, item)
        kind = (rows.shape[1], float_dtype(rows.dtype), scipy.sparse.issparse(rows))
        if self._kind is None:
            self._kind = kind
        width, dtype, is_sparse = self._kind
        if kind[0] != width:
            message = f"{name} has {kind[0]} features, but the first had {width}"
            raise ValueError(message)
        if kind[1:] != (dtype, is_sparse):
            shown = [f"{'sparse' if s else 'dense'} {d}" for d, s in (kind[1:], (dtype, is_sparse))]
            message = f"{name} is {shown[0]}, but the first was {shown[1]}"
            raise TypeError(message)
        check_columns(name, item, self.names, "earlier batches")
        self.names = column_names(item) if self.names is None else self.names
        numbers = np.arange(self._place, self._place + rows.shape[0])
        # Copy: the caller may reuse the buffer of a batch for the next one.
        return finite_rows(rows.copy(), numbers, dtype, nan=self.nan, name="the stream")
