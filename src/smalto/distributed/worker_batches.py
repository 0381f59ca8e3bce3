"""Batches that are coded by the workers of a cluster."""

from __future__ import annotations

import os
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import dask
import numpy as np

from smalto.checks import Array, Rows
from smalto.coders.base import Coder
from smalto.coders.codes import Codes
from smalto.coders.coding import ROWS_AT_ONCE, warn_of_zeros
from smalto.coders.preparing import Prepared, prepare
from smalto.coders.signals import Signals
from smalto.distributed.blocks import ClusterSource, gather
from smalto.kernels.compiling import count_as_compiling, seconds_of_compiling
from smalto.learning.batches.base import Batches, CodedBatch, MidStep, MiniBatch, recalibrate
from smalto.learning.batches.code_samples import code_samples
from smalto.learning.batches.samples import Samples
from smalto.learning.learners.base import rows_drawn
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

ROUND = 1 << 16  # samples submitted at a time


class Round(NamedTuple):
    """A part of a batch: its tasks, submitted, and how to submit them again."""

    submit: Callable[[], list[Any]]
    futures: list[Any]
    numbers: list[Array]


class Submitted(NamedTuple):
    """A batch of which at least the first round has been submitted."""

    rounds: Iterator[Round]
    futures: list[Any]  # of the first round
    coder: Coder
    n_new: int
    place: int  # in the epoch, after this batch
    ends_epoch: bool


@dataclass
class WorkerBatch(MiniBatch):
    """A batch whose codes come from the workers, in the order in which they were submitted."""

    parts: Iterator[Part]
    n_samples: int
    place: int
    ends_epoch: bool
    stale: bool  # whether it was coded over an older dictionary

    def code(self, state: State, n_threads: int) -> CodedBatch:
        """Return the samples as coded by the workers."""
        if self.stale:
            # The codes are no minima over the current dictionary: their cost over it is unknown.
            state.surrogate = float("nan")
        return CodedBatch(self.parts, None)


class ClusterBatches(Batches):
    """Batches of data on a cluster, coded by the workers.

    With ``staleness`` s, the next s batches are submitted before the results of one are awaited.
    """

    def __init__(self, source: ClusterSource, staleness: int) -> None:
        self.n_rows, self.n_features, self.dtype = source.n_rows, source.n_features, source.dtype
        self._source, self._staleness = source, staleness
        self._submitted: deque[Submitted] = deque()
        self._run = uuid.uuid4().hex
        self._sent: tuple[int, Any] = (-1, None)  # a step, and its dictionary as a future

    def first_samples(self, count: int, seed: int) -> Samples:
        """Return random samples, in the order of the data."""
        numbers = np.sort(self._source.order(seed).take(FIRST_SAMPLES, 0, count))
        return Samples(numbers, Signals(self._source.rows(numbers)))

    def start(self, state: State) -> None:
        """Go to the epoch and place of a state."""
        self._order = self._source.order(state.seed)
        self._in_parts = state.learner.whole_data
        if self._staleness and (self._in_parts or state.store is not None):
            what = "Batch()" if self._in_parts else "memory='replace'"
            message = f"staleness must be 0 with {what}, got {self._staleness}"
            raise ValueError(message)
        if state.learner.view(state) is not None:
            message = "features= is not supported on a cluster: workers code whole samples"
            raise ValueError(message)
        self._epoch, self._place = state.epoch, state.place  # of the next batch to submit

    def draw(self, state: State, interrupted: Callable[[], bool]) -> WorkerBatch:
        """Return the next batch, coded; if it is the whole data set, its parts as they arrive."""
        size = min(ROWS_AT_ONCE, rows_drawn(state.learner, state.samples, self._source.n_rows))
        end = min(self._place + size, self._source.n_rows)
        first = (self._epoch, self._place, end)
        recalibrate(state, lambda: Signals(self._source.rows(self._order.take(*first))), 1)
        while len(self._submitted) <= self._staleness:
            self._submitted.append(self._submit(state))
        batch = self._submitted.popleft()
        parts = self._collect(batch, state, interrupted)
        if not self._in_parts:
            parts = iter(list(parts))
        stale = self._staleness > 0
        return WorkerBatch(parts, batch.n_new, batch.place, batch.ends_epoch, stale)

    def close(self) -> None:
        """Cancel the tasks in progress and release all blocks."""
        in_progress = [future for batch in self._submitted for future in batch.futures]
        if in_progress:
            self._source.client.cancel(in_progress)
        self._submitted.clear()
        self._sent = (-1, None)
        self._source.release()

    def _submit(self, state: State) -> Submitted:
        """Submit the first round of the next batch."""
        epoch, place, n_rows = self._epoch, self._place, self._source.n_rows
        step = state.step + len(self._submitted)
        coder = state.coder
        if state.continuation is not None:
            coder = state.continuation.at(coder, step)
        before = state.samples + sum(batch.n_new for batch in self._submitted)
        end = min(place + rows_drawn(state.learner, before, n_rows), n_rows)
        rounds = self._rounds(state, coder, state.slack_after(before), epoch, place, end)
        self._epoch, self._place = (epoch + 1, 0) if end == n_rows else (epoch, end)
        first = next(rounds)
        ends = end == n_rows
        return Submitted(_one_ahead(first, rounds), first.futures, coder, end - place, end, ends)

    def _rounds(
        self, state: State, coder: Coder, slack: float, epoch: int, place: int, end: int
    ) -> Iterator[Round]:
        """Submit a batch, `ROUND` samples at a time."""
        source, client = self._source, self._source.client
        D, version = state.D.copy(), state.step
        key = f"{self._run}-{version}-{coder}-{slack}"
        whole = version == 0 or state.store is not None or state.replacement.random
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
                        code_piece,
                        source.block(b),
                        some - first[b],
                        some,
                        sent,
                        coder,
                        slack,
                        key,
                        start,
                        whole,
                        pure=False,
                    )
                    for (b, _), some, start in zip(pieces, chosen, starts, strict=True)
                ]

            yield Round(submit, submit(), chosen)
            source.keep(self._order, epoch, min(begin + ROUND, end))

    def _send(self, D: Array, version: int) -> Any:
        """Return the dictionary of a step as a future.

        It is the result of a task instead of scattered data: so it moves along with the tasks
        that need it, and is computed again if its worker is lost.
        """
        if self._sent[0] != version:
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
                self._sent = version, self._source.client.submit(_itself, D, pure=False)
        return self._sent[1]

    def _collect(
        self, batch: Submitted, state: State, interrupted: Callable[[], bool]
    ) -> Iterator[Part]:
        """Yield the coded parts of a batch, round by round."""
        k = len(state.D)
        for number, round_ in enumerate(batch.rounds):
            if number and self._in_parts and interrupted():
                raise MidStep
            with self.reading():
                results = gather(self._source.client, round_.submit, round_.futures)
            # Workers compile at the same time: the client has waited for the slowest.
            elsewhere = [one.compiling for one in results if one.process != os.getpid()]
            count_as_compiling(max(elsewhere, default=0.0))
            for numbers, (new, nonzeros, short, *_) in zip(round_.numbers, results, strict=True):
                if isinstance(new, Sent):
                    new = Contribution.listed(
                        new.codes, new.X, k, new.norms, new.costs, new.penalties, None
                    )
                part = Part(numbers, new, nonzeros, short)
                if state.step == 0 and nonzeros == 0 and isinstance(new, Contribution):
                    warn_of_zeros(batch.coder, new.X, state.D)
                yield part


def _one_ahead(waiting: Round, rounds: Iterator[Round]) -> Iterator[Round]:
    """Yield rounds, each one after the next has been submitted."""
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
    """The result of a task on a worker."""

    new: Sent | Summary
    nonzeros: int
    short: int
    compiling: float  # seconds that compiling took
    process: int  # which may be that of the client


def _itself(D: Array) -> Array:
    return D


_lock = threading.Lock()
_ready: tuple[str, Prepared] | None = None  # the last dictionary, prepared for coding


def code_piece(
    block: Rows,
    local: Array,
    numbers: Array,
    D: Array,
    coder: Coder,
    slack: float,
    key: str,
    start: Codes | None,
    whole: bool,
) -> Coded:
    """Code some rows of a block, on a worker.

    Returns codes, or their statistics if these are less work for the client; always codes if
    ``whole``.
    """
    X = finite_rows(block[local], numbers, D.dtype)
    before = seconds_of_compiling()
    with single_threaded_blas():
        prepared = _prepared(D, coder, slack, key)
        part = code_samples(Samples(numbers, Signals(X)), D, prepared, start, 1)
        new: Any = part.new
        sent: Sent | Summary
        if not whole and statistics_are_cheaper(new):
            sent = Summary.of(new)
        else:
            sent = Sent(new.codes, new.X, new.norms, new.costs, new.penalties)
    return Coded(sent, part.nonzeros, part.short, seconds_of_compiling() - before, os.getpid())


def _prepared(D: Array, coder: Coder, slack: float, key: str) -> Prepared:
    """Return the dictionary prepared for coding, once for all tasks of a step on this worker."""
    global _ready
    with _lock:
        if _ready is None or _ready[0] != key:
            _ready = key, prepare(D, coder, 1, slack)
        return _ready[1]
