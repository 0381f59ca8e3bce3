"""Batches that are coded by the workers of a cluster."""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import dask
import numpy as np

from smalto.checks import Array, Rows
from smalto.coders.base import Coder, Codes
from smalto.coders.coding import ROWS_AT_ONCE, Prepared, prepare, warn_of_zeros
from smalto.coders.signals import Signals
from smalto.distributed.blocks import ClusterSource, persistent
from smalto.learning.batches.base import Batches, CodedBatch, MidStep, MiniBatch, recalibrate
from smalto.learning.batches.coded import code_samples
from smalto.learning.batches.samples import Samples
from smalto.learning.clock import count_as_compiling, seconds_of_compiling
from smalto.learning.memory.contributions import (
    Contribution,
    Part,
    Summary,
    statistics_are_cheaper,
)
from smalto.learning.memory.state import State
from smalto.sources.base import finite_rows
from smalto.sources.order import FIRST_SAMPLES
from smalto.threads import single_threaded_blas

ROUND = 1 << 16  # samples that are given out at a time


class Round(NamedTuple):
    """Some samples of a batch, as they were given out."""

    submit: Callable[[], list[Any]]
    futures: list[Any]
    numbers: list[Array]


class Given(NamedTuple):
    """A batch that has been given out, at least its beginning."""

    rounds: Iterator[Round]
    futures: list[Any]  # of the first of them
    coder: Coder
    n_new: int
    place: int  # where the epoch is after it
    ends_epoch: bool


@dataclass
class WorkerBatch(MiniBatch):
    """Samples whose codes come from the workers, in the order in which they were given out."""

    parts: Iterator[Part]
    n_samples: int
    place: int
    ends_epoch: bool
    stale: bool  # coded over an older dictionary

    def code(self, state: State, n_threads: int) -> CodedBatch:
        """Return what the workers have coded."""
        if self.stale:
            # Codes over older dictionaries are no minima: what they cost now is not known.
            state.surrogate = float("nan")
        return CodedBatch(self.parts, None)


class ClusterBatches(Batches):
    """Batches of data on a cluster, coded by the workers.

    With ``staleness`` s, s more batches are given out before the results of one are awaited.
    """

    def __init__(self, source: ClusterSource, staleness: int) -> None:
        self.n_rows, self.n_features, self.dtype = source.n_rows, source.n_features, source.dtype
        self._source, self._staleness = source, staleness
        self._given: deque[Given] = deque()
        self._run = uuid.uuid4().hex
        self._sent: tuple[int, Any] = (-1, None)  # the dictionary of a step, as a future

    def first_samples(self, count: int, seed: int) -> Rows:
        """Return random samples, in the order of the data."""
        numbers = self._source.order(seed).take(FIRST_SAMPLES, 0, count)
        return self._source.rows(np.sort(numbers))

    def start(self, state: State) -> None:
        """Go to where a state stands."""
        self._order = self._source.order(state.seed)
        self._size = state.learner.rows_per_step(self._source.n_rows)
        self._in_parts = state.learner.whole_data
        if self._staleness and (self._in_parts or state.store is not None):
            what = "Batch()" if self._in_parts else "memory='replace'"
            message = f"staleness must be 0 with {what}, got {self._staleness}"
            raise ValueError(message)
        if state.learner.view(state) is not None:
            message = "features= is for one machine: workers code whole samples"
            raise ValueError(message)
        self._epoch, self._place = state.epoch, state.place  # of what is given out next

    def draw(self, state: State, interrupted: Callable[[], bool]) -> WorkerBatch:
        """Return the next batch, coded; of a whole data set the parts, as they come."""
        end = min(self._place + ROWS_AT_ONCE, self._place + self._size, self._source.n_rows)
        first = (self._epoch, self._place, end)
        recalibrate(state, lambda: self._source.rows(self._order.take(*first)), 1)
        while len(self._given) <= self._staleness:
            self._given.append(self._give_out(state))
        batch = self._given.popleft()
        parts = self._collect(batch, state, interrupted)
        if not self._in_parts:
            parts = iter(list(parts))
        stale = self._staleness > 0
        return WorkerBatch(parts, batch.n_new, batch.place, batch.ends_epoch, stale)

    def close(self) -> None:
        """Let go of what is under way and of all blocks."""
        under_way = [future for batch in self._given for future in batch.futures]
        if under_way:
            self._source.client.cancel(under_way)
        self._given.clear()
        self._sent = (-1, None)
        self._source.release()

    def _give_out(self, state: State) -> Given:
        epoch, place, n_rows = self._epoch, self._place, self._source.n_rows
        step = state.step + len(self._given)
        coder = state.coder
        if state.continuation is not None:
            coder = state.continuation.at(coder, step)
        end = min(place + self._size, n_rows)
        rounds = self._rounds(state, coder, epoch, place, end)
        self._epoch, self._place = (epoch + 1, 0) if end == n_rows else (epoch, end)
        first = next(rounds)
        ends = end == n_rows
        return Given(_one_ahead(first, rounds), first.futures, coder, end - place, end, ends)

    def _rounds(
        self, state: State, coder: Coder, epoch: int, place: int, end: int
    ) -> Iterator[Round]:
        """Give out a batch, so many samples at a time."""
        source, client = self._source, self._source.client
        D, version = state.D.copy(), state.step
        key = f"{self._run}-{version}-{coder}"
        whole = version == 0 or state.store is not None
        for begin in range(place, end, ROUND):
            numbers = self._order.take(epoch, begin, min(begin + ROUND, end))
            pieces = source.pieces(numbers)
            chosen = [numbers[at] for _, at in pieces]
            starts = [None if state.store is None else state.store.fetch(some) for some in chosen]

            def submit(
                pieces: Any = pieces, chosen: Any = chosen, starts: Any = starts
            ) -> list[Any]:
                sent = self._send(D, version)
                source.hold(b for b, _ in pieces)
                first = source.blocks.starts
                return [
                    client.submit(
                        code_piece, source.block(b), some - first[b], some, sent, coder, key, start,
                        whole, pure=False,
                    )
                    for (b, _), some, start in zip(pieces, chosen, starts, strict=True)
                ]  # fmt: skip

            yield Round(submit, submit(), chosen)
            source.keep(self._order, epoch, min(begin + ROUND, end))

    def _send(self, D: Array, version: int) -> Any:
        """The dictionary of a step, where the workers can get it.

        As the result of a task, and not scattered: so it travels with the tasks that want it,
        and is there again when the worker that had it is lost.
        """
        if self._sent[0] != version:
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
                self._sent = version, self._source.client.submit(_itself, D, pure=False)
        return self._sent[1]

    def _collect(
        self, batch: Given, state: State, interrupted: Callable[[], bool]
    ) -> Iterator[Part]:
        k = len(state.D)
        for number, given in enumerate(batch.rounds):
            if number and self._in_parts and interrupted():
                raise MidStep
            results = persistent(self._source.client, given.submit, given.futures)
            # Workers compile side by side: the one that took longest was waited for.
            count_as_compiling(max((result.compiling for result in results), default=0.0))
            for numbers, (new, nonzeros, short, _) in zip(given.numbers, results, strict=True):
                if isinstance(new, Sent):
                    new = Contribution.listed(
                        new.codes, new.X, k, new.norms, new.costs, new.penalties, None
                    )
                part = Part(numbers, new, nonzeros, short)
                if state.step == 0 and nonzeros == 0 and isinstance(new, Contribution):
                    warn_of_zeros(batch.coder, new.X, state.D)
                yield part


def _one_ahead(waiting: Round, rounds: Iterator[Round]) -> Iterator[Round]:
    """A first round and those that follow it, each one given out before its turn."""
    for upcoming in rounds:
        yield waiting
        waiting = upcoming
    yield waiting


class Sent(NamedTuple):
    """Coded samples on their way to the client."""

    codes: Codes
    X: Rows
    norms: Array
    costs: Array
    penalties: Array


class Coded(NamedTuple):
    """What a worker returns for a task."""

    new: Sent | Summary
    nonzeros: int
    short: int
    compiling: float  # seconds


def _itself(D: Array) -> Array:
    return D


_lock = threading.Lock()
_ready: tuple[str, Prepared] | None = None  # what the last dictionary was made into


def code_piece(
    block: Rows, local: Array, numbers: Array, D: Array, coder: Coder, key: str,
    start: Codes | None, whole: bool,
) -> Coded:  # fmt: skip
    """On a worker: code some rows of a block, and send what is less work for the client.

    ``whole`` asks for the codes in any case.
    """
    X = finite_rows(block[local], numbers, D.dtype)
    before = seconds_of_compiling()
    with single_threaded_blas():
        prepared = _prepared(D, coder, key)
        part = code_samples(Samples(numbers, Signals(X)), D, prepared, start, 1)
        new: Any = part.new
        sent: Sent | Summary
        if not whole and statistics_are_cheaper(new):
            sent = Summary.of(new)
        else:
            sent = Sent(new.codes, new.X, new.norms, new.costs, new.penalties)
    return Coded(sent, part.nonzeros, part.short, seconds_of_compiling() - before)


def _prepared(D: Array, coder: Coder, key: str) -> Prepared:
    """A dictionary made ready for coding, once for all tasks of a step on this worker."""
    global _ready
    with _lock:
        if _ready is None or _ready[0] != key:
            _ready = key, prepare(D, coder, 1)
        return _ready[1]
