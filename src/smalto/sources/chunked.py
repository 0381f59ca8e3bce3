"""Rows of chunked data: memory maps, HDF5, zarr, Dask arrays, Parquet."""

from __future__ import annotations

import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from smalto.checks import Array, Rows, check_integer, float_dtype
from smalto.sources.base import Source, finite_rows
from smalto.sources.order import ChunkOrder, Order, RowOrder

BUFFER_BYTES = 64 << 20  # default size of a buffer, within which rows are shuffled
READ_BYTES = 1 << 20  # smaller chunks are joined, and read together
LEAST_CHUNKS = 2  # in a buffer: rows of a single chunk are often too similar


class ChunkedSource(Source):
    """Rows that are read chunk by chunk, from data that may be larger than memory.

    In each epoch the chunks come in random order. A few at a time fill a buffer, and the rows of a
    buffer are shuffled. Two buffers are in memory: the one in use and the next one, which is read
    in the meantime. If all rows fit into one buffer, the order is that of an array.

    Parameters
    ----------
    read : callable
        ``read(a, b)`` returns rows a to b, as an array that the next call may overwrite.
    shape : tuple (n, m)
        Number of rows and of features.
    dtype : dtype
        The dtype of what ``read`` returns.
    starts : array (c + 1,), optional
        The first row of each chunk, followed by n. By default chunks of a size that reads fast.
    buffer_rows : int, optional
        Number of rows to shuffle together, about; 64 MB of them by default. A buffer holds at
        least two chunks.
    files : tuple of paths
        Files that must not change while they are read.
    remember : bool, default True
        Keep a checksum of each chunk, and raise RuntimeError if it differs in a later epoch.

    See Also
    --------
    Source : Rows in any order.
    ChunkOrder : The order in which chunks are read.
    """

    reads_ahead = True

    def __init__(
        self,
        read: Callable[[int, int], Array],
        shape: tuple[int, int],
        dtype: Any,
        starts: Array | None = None,
        *,
        buffer_rows: int | None = None,
        files: tuple[Path, ...] = (),
        remember: bool = True,
    ) -> None:
        self.n_rows, self.n_features = int(shape[0]), int(shape[1])
        self.dtype = float_dtype(np.dtype(dtype))
        row_bytes = max(self.n_features * np.dtype(dtype).itemsize, 1)
        if buffer_rows is None:
            buffer_rows = max(BUFFER_BYTES // row_bytes, 1)
        buffer_rows = check_integer("buffer_rows", buffer_rows)
        wanted = min(READ_BYTES // row_bytes, buffer_rows // 16)
        if starts is None:
            starts = even_starts(self.n_rows, wanted)
        self._starts = _join_small(starts, wanted)
        largest = int(np.diff(self._starts).max())
        count = len(self._starts) - 1
        self._per_buffer = min(max(buffer_rows // largest, LEAST_CHUNKS), count)
        self.nan = False  # whether NaN and infinity are allowed
        self._read = read
        self._files = [(path, _signature(path)) for path in files]
        self._sums: dict[int, int] | None = {} if remember else None
        self._held: OrderedDict[int, int] = (
            OrderedDict()
        )  # chunk: its slot, most recently used last
        self._slots, self._slot_rows = min(2 * self._per_buffer, count), largest
        self._free = list(range(self._slots - 1, -1, -1))
        # All slots are in one array, so that a batch is gathered from all chunks at once.
        self._slab = np.empty((self._slots * largest, self.n_features), dtype)
        self._places = np.zeros(count, np.int64)  # first row in the slab of each chunk in memory
        self._lock = threading.Lock()

    @property
    def starts(self) -> Array:
        """The first row of each chunk (small chunks are joined), followed by the number of rows."""
        return self._starts

    def order(self, seed: int) -> RowOrder:
        """Return a random order by chunks, or that of an array if one buffer holds all rows."""
        if self._per_buffer == len(self._starts) - 1:
            return Order(self.n_rows, seed)
        return ChunkOrder(self._starts, self._per_buffer, seed)

    def rows(self, numbers: Array) -> Rows:
        """Return the rows with these numbers; raise ValueError for NaN unless allowed."""
        which = np.searchsorted(self._starts, numbers, side="right") - 1
        needed = np.unique(which)
        if len(needed) <= self._slots:
            batch = self._gather(numbers, which, needed)
        else:
            batch = np.empty((len(numbers), self.n_features), self._slab.dtype)
            for some in np.array_split(needed, -(-len(needed) // self._slots)):
                rows = np.flatnonzero((which >= some[0]) & (which <= some[-1]))
                batch[rows] = self._gather(numbers[rows], which[rows], some)
        return finite_rows(batch, numbers, self.dtype, nan=self.nan)

    def warm(self, order: RowOrder, epoch: int, place: int) -> None:
        """Read the next buffer during the first third of this one; drop older buffers."""
        if not isinstance(order, ChunkOrder):
            return
        now, following, share = order.around(epoch, place)
        wanted = {*now.tolist(), *following.tolist()}
        due = int(np.ceil(min(3.0 * share, 1.0) * len(following)))
        with self._lock:
            for chunk in [chunk for chunk in self._held if chunk not in wanted]:
                self._free.append(self._held.pop(chunk))
            self._hold(following[:due].tolist())

    def _gather(self, numbers: Array, which: Array, chunks: Array) -> Array:
        """Return rows by number; ``which`` is the chunk of each, ``chunks`` all of them."""
        with self._lock:
            self._hold(chunks.tolist())
            found: Array = self._slab[self._places[which] + (numbers - self._starts[which])]
            return found

    def _hold(self, chunks: list[int]) -> None:
        """Load the chunks that are not in memory, in place of the least recently used ones."""
        missing = [chunk for chunk in chunks if chunk not in self._held]
        for chunk in chunks:
            if chunk in self._held:
                self._held.move_to_end(chunk)
        for chunk in missing:
            rows = self._read_chunk(chunk)
            slot = self._free.pop() if self._free else self._held.popitem(last=False)[1]
            place = slot * self._slot_rows
            self._slab[place : place + len(rows)] = rows
            self._held[chunk], self._places[chunk] = slot, place

    def _read_chunk(self, chunk: int) -> Array:
        a, b = int(self._starts[chunk]), int(self._starts[chunk + 1])
        for path, signature in self._files:
            if _signature(path) != signature:
                message = f"{path} changed while it was being read (at rows {a} to {b})"
                raise RuntimeError(message)
        rows = np.ascontiguousarray(self._read(a, b))
        if rows.shape != (b - a, self.n_features):
            message = (
                f"rows {a} to {b} of the source have shape {rows.shape}, expected "
                f"{(b - a, self.n_features)}: it has changed since it was opened"
            )
            raise RuntimeError(message)
        if self._sums is not None:
            content: Any = rows.reshape(-1).view(np.uint8)
            total = zlib.crc32(content)
            if self._sums.setdefault(chunk, total) != total:
                message = f"rows {a} to {b} of the source have changed since they were last read"
                raise RuntimeError(message)
        return rows


def _join_small(starts: Array, wanted: int) -> Array:
    """Join adjacent chunks until each has at least ``wanted`` rows; return the boundaries."""
    starts = np.asarray(starts, np.int64)
    kept = [0]
    for start in starts[1:-1].tolist():
        if start - kept[-1] >= wanted:
            kept.append(start)
    return np.array([*kept, int(starts[-1])], np.int64)


def _signature(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return (-1, -1)
    return status.st_size, status.st_mtime_ns


def even_starts(n_rows: int, rows: int) -> Array:
    """Return the boundaries of chunks of ``rows`` rows each; the last one may be shorter."""
    return np.append(np.arange(0, n_rows, max(rows, 1)), n_rows)
