"""Data in blocks of rows that the workers of a cluster load, keep and may lose."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from dask.delayed import Delayed
from distributed import Client
from distributed.client import FutureCancelledError, FuturesCancelledError
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from smalto.checks import Array, Rows, float_dtype
from smalto.sources import ChunkedSource, ChunkOrder, Order, RowOrder, as_set
from smalto.sources.base import Source, finite_rows
from smalto.sources.chunked import even_starts

TASK_ROWS = 4096  # maximum number of samples that one task codes
BLOCK_BYTES = 8 << 20  # size of blocks for a source without chunks
ATTEMPTS = 20  # to run tasks that are lost with their worker
_LOST = (KilledWorker, FutureCancelledError, FuturesCancelledError, CommClosedError)


@dataclass(frozen=True)
class Blocks:
    """Blocks of rows that a worker can load at any time, and load again if they are lost."""

    make: list[Delayed]  # one task per block
    starts: Array  # (blocks + 1,) the first row of each block, followed by the number of rows
    n_features: int
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, source: Any, client: Client) -> Blocks:
        """Cut a Dask array, a Dask bag or a list of parts into blocks."""
        if isinstance(source, Delayed) or not dask.is_dask_collection(source):
            many = isinstance(source, list | tuple)
            return cls._of_parts(list(source) if many else [source], client)
        if hasattr(source, "to_delayed") and hasattr(source, "chunks"):
            return cls._of_array(source)
        parts = [dask.delayed(_as_table)(part) for part in source.to_delayed()]
        return cls._of_parts(parts, client)

    @classmethod
    def _of_array(cls, X: Any) -> Blocks:
        if X.ndim != 2:
            message = f"X must be two-dimensional (rows are samples), got shape {X.shape}"
            raise ValueError(message)
        X = X.rechunk({1: -1})
        sizes = np.asarray(X.chunks[0], np.float64)
        if not np.isfinite(sizes).all():
            message = "the chunks of the Dask array have unknown sizes: call compute_chunk_sizes()"
            raise ValueError(message)
        filled = [
            block for block, size in zip(X.to_delayed().ravel(), sizes, strict=True) if size > 0
        ]
        return cls._checked(filled, sizes[sizes > 0].astype(np.int64), X.shape[1], X.dtype)

    @classmethod
    def _of_parts(cls, parts: list[Any], client: Client) -> Blocks:
        """Cut arrays, sources or paths into blocks; the workers that read a part open it."""
        delayed = [part if isinstance(part, Delayed) else dask.delayed(part) for part in parts]
        layouts = client.gather(client.compute([dask.delayed(_layout)(p) for p in delayed]))
        kinds = {(layout[1], layout[2]) for layout in layouts}
        if len(kinds) != 1:
            shown = ", ".join(f"{width} features of {dtype}" for width, dtype in sorted(kinds))
            message = f"the parts must agree in features and dtype, got {shown or 'no parts'}"
            raise ValueError(message)
        make, sizes = [], []
        for part, (starts, _, _) in zip(delayed, layouts, strict=True):
            for a, b in itertools.pairwise(starts.tolist()):
                make.append(dask.delayed(_rows_of)(part, a, b))
                sizes.append(b - a)
        width, dtype = kinds.pop()
        return cls._checked(make, np.asarray(sizes, np.int64), width, np.dtype(dtype))

    @classmethod
    def _checked(cls, make: list[Delayed], sizes: Array, width: int, dtype: Any) -> Blocks:
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        if starts[-1] == 0 or width == 0:
            message = f"X has no samples or no features: its shape is {(int(starts[-1]), width)}"
            raise ValueError(message)
        return cls(make, starts, int(width), float_dtype(dtype))


def _as_table(samples: Iterable[Any]) -> Array:
    return np.stack([np.asarray(sample) for sample in samples])


def _layout(part: Any) -> tuple[Array, int, str]:
    """Return the boundaries of the blocks of a part, its number of features and its dtype."""
    source = as_set(part, nan=True)
    if isinstance(source, ChunkedSource):
        starts = source.starts
    else:
        row = source.n_features * source.dtype.itemsize
        starts = even_starts(source.n_rows, BLOCK_BYTES // row)
    return np.asarray(starts), source.n_features, str(source.dtype)


def _rows_of(part: Any, a: int, b: int) -> Rows:
    return as_set(part, nan=True).rows(np.arange(a, b))


class ClusterSource(Source):
    """Rows in blocks on the workers, which keep only the blocks in use and those that follow."""

    def __init__(self, blocks: Blocks, client: Client, at_once: int) -> None:
        self.blocks, self.client = blocks, client
        self.n_rows, self.n_features = int(blocks.starts[-1]), blocks.n_features
        self.dtype = blocks.dtype
        self._at_once = min(at_once, len(blocks.make))
        self._held: dict[int, Any] = {}

    def order(self, seed: int) -> RowOrder:
        """Return an order that goes a few blocks at a time, or that of an array if they are all."""
        if self._at_once == len(self.blocks.make):
            return Order(self.n_rows, seed)
        return ChunkOrder(self.blocks.starts, self._at_once, seed)

    def pieces(self, numbers: Array) -> list[tuple[int, Array]]:
        """Split row numbers into tasks: pairs of a block and places in ``numbers``."""
        which = np.searchsorted(self.blocks.starts, numbers, side="right") - 1
        places = np.argsort(which, kind="stable")
        cuts = np.flatnonzero(np.diff(which[places])) + 1
        return [
            (int(which[piece[0]]), piece[a : a + TASK_ROWS])
            for piece in np.split(places, cuts)
            for a in range(0, len(piece), TASK_ROWS)
        ]

    def block(self, number: int) -> Any:
        """Return a block as a future; the workers load it again if it is lost."""
        self.hold([number])
        return self._held[number]

    def hold(self, numbers: Iterable[int]) -> None:
        """Load these blocks on the workers, in one graph, since they may share work."""
        missing = [number for number in dict.fromkeys(numbers) if number not in self._held]
        if missing:
            futures = self.client.compute([self.blocks.make[number] for number in missing])
            self._held.update(zip(missing, futures, strict=True))

    def keep(self, order: RowOrder, epoch: int, place: int) -> None:
        """Keep the blocks in use and those that follow; release the others."""
        if isinstance(order, ChunkOrder):
            now, following, _ = order.around(epoch, place)
            wanted = [*now.tolist(), *following.tolist()]
            self.hold(wanted)
            self._held = {number: self._held[number] for number in wanted}

    def rows(self, numbers: Array) -> Rows:
        """Return the rows with these numbers, fetched from the workers."""
        pieces = self.pieces(numbers)

        def submit() -> list[Any]:
            starts = self.blocks.starts
            self.hold(b for b, _ in pieces)
            return [
                self.client.submit(_take, self.block(b), numbers[at] - starts[b], pure=False)
                for b, at in pieces
            ]

        parts = gather(self.client, submit)
        batch = np.empty((len(numbers), self.n_features), self.dtype)
        for (_, places), part in zip(pieces, parts, strict=True):
            batch[places] = part.toarray() if hasattr(part, "toarray") else part
        return finite_rows(batch, numbers, self.dtype)

    def release(self) -> None:
        """Release all blocks."""
        self._held.clear()


def _take(block: Rows, local: Array) -> Rows:
    return block[local]


def gather(client: Client, submit: Callable[[], list[Any]], first: Any = None) -> list[Any]:
    """Return the results of tasks; submit them again if they are lost with a worker.

    ``first`` are the futures of the tasks if they have been submitted already.
    """
    for attempt in range(ATTEMPTS):
        try:
            return list(
                client.gather(submit() if first is None else first, direct=is_local(client))
            )
        except _LOST:
            if attempt + 1 == ATTEMPTS:
                raise
            first = None
            client.wait_for_workers(1, timeout=60)
            time.sleep(0.1 * attempt)
    raise AssertionError


def is_local(client: Client) -> bool:
    """Return whether this process started the cluster and can reach workers directly."""
    return client.cluster is not None
