"""What the loop draws its batches from: a data set in random order, or a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from smalto.coders.base import Coder, Joint
from smalto.coders.signals import Missing, as_signals, check_missing
from smalto.learning.batches.samples import Samples, SampleSet, as_sample_set
from smalto.learning.learners.batch import Batch
from smalto.learning.memory.state import Record, State
from smalto.learning.options import Replacement
from smalto.learning.step import step
from smalto.sources import (
    ArraySource,
    ReadAhead,
    Stream,
    Warming,
    as_source,
)


class Drawn(NamedTuple):
    """The samples of one step."""

    blocks: Iterator[Any]  # of Samples, or of whatever else the feed learns from
    n_new: int
    place: int  # where the epoch is after them
    ends_epoch: bool  # whether that is known to be its end


class MidStep(Exception):
    """An interrupt between the blocks of one step: the dictionary is as before it."""


class Feed(Protocol):
    """Batches, one after another, from where a state stands."""

    def draw(self, state: State, interrupted: Callable[[], bool]) -> Drawn | None:
        """The next batch, read and whole; None if the epoch has no more samples."""

    def learn(self, state: State, drawn: Drawn, n_threads: int) -> Record:
        """Make a step with it."""

    def begin_epoch(self) -> bool:
        """Whether there is another epoch, after one that has ended unforeseen."""

    def close(self) -> None:
        """End what runs in the background."""


@runtime_checkable
class Data(Protocol):
    """What a run learns from, and what it has to know of it."""

    @property
    def n_rows(self) -> int | None:
        """How many samples there are; None for a stream."""

    @property
    def n_features(self) -> int:
        """How many numbers a sample has."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the computation."""

    def beginning(self, count: int) -> SampleSet:
        """What to draw so many samples from that decide how a run starts."""

    def feed(self, state: State) -> Feed:
        """The batches from where a state stands."""


def learn_here(state: State, drawn: Drawn, n_threads: int) -> Record:
    """Make a step with samples that are in this process."""
    replacement = state.replacement or Replacement()
    return step(state, drawn.blocks, drawn.n_new, replacement, state.continuation, n_threads)


class SetFeed:
    """Batches of a data set, in the order that the seed of the state decides.

    What has to be read from somewhere is read ahead in the background.
    """

    def __init__(self, samples: SampleSet, state: State) -> None:
        self._samples = samples
        self._order = samples.order(state.seed)
        self._size = state.learner.rows_per_step(samples.source.n_rows)
        self._lazy = isinstance(state.learner, Batch)
        blocks = self._blocks(state.epoch, state.place)
        self._ahead = ReadAhead(blocks) if isinstance(samples.source, Warming) else None
        self._all: Iterator[tuple[Samples, bool]] = self._ahead or blocks

    def draw(self, state: State, interrupted: Callable[[], bool]) -> Drawn | None:
        """The next batch: blocks that are read, or, of a step over everything, that will be."""
        samples = self._samples
        end, n_new = samples.end_of_batch(self._order, state.epoch, state.place, self._size)
        blocks = self._batch(interrupted)
        if not self._lazy:
            blocks = iter(list(blocks))
        return Drawn(blocks, n_new, end, end == samples.n_draws)

    def learn(self, state: State, drawn: Drawn, n_threads: int) -> Record:
        """Make a step with it."""
        return learn_here(state, drawn, n_threads)

    def begin_epoch(self) -> bool:
        """There always is one."""
        return True

    def close(self) -> None:
        """End reading."""
        if self._ahead is not None:
            self._ahead.close()

    def _batch(self, interrupted: Callable[[], bool]) -> Iterator[Samples]:
        """The blocks of one step."""
        for block, is_last in self._all:
            yield block
            if is_last:
                return
            # Only where a step begins from nothing can it be given up midway.
            if self._lazy and interrupted():
                raise MidStep

    def _blocks(self, epoch: int, place: int) -> Iterator[tuple[Samples, bool]]:
        """All blocks from this place on, without end; True with the last one of a batch."""
        samples, source = self._samples, self._samples.source
        while True:
            end, _ = samples.end_of_batch(self._order, epoch, place, self._size)
            for block, until in samples.drawn(self._order, epoch, place, end):
                yield block, until == end
                if isinstance(source, Warming):
                    source.warm(self._order, epoch, until)
            place = end
            if end == samples.n_draws:
                epoch, place = epoch + 1, 0


class StreamFeed:
    """Batches of a stream, in its own order."""

    def __init__(self, stream: Stream, state: State, missing: Missing) -> None:
        self._stream, self._missing = stream, missing
        self._size = state.learner.rows_per_step(0)
        if self._size < 1:
            name = type(state.learner).__name__
            message = f"{name} draws all samples at each step: a stream has no known number of them"
            raise ValueError(message)
        stream.seek(state.epoch, state.place)
        self._barren = False  # whether this epoch has had no sample yet

    def draw(self, state: State, interrupted: Callable[[], bool]) -> Drawn | None:
        """As many of the next samples as a step wants, or as there are."""
        X = self._stream.take(self._size)
        count = X.shape[0]
        if count == 0:
            return None
        self._barren = False
        numbers = np.arange(state.place, state.place + count)
        batch = Samples(numbers, as_signals("the stream", X, None, self._missing))
        return Drawn(batch.parts(), count, state.place + count, False)

    def learn(self, state: State, drawn: Drawn, n_threads: int) -> Record:
        """Make a step with it."""
        return learn_here(state, drawn, n_threads)

    def begin_epoch(self) -> bool:
        """Whether the stream can begin again, and had something to give when it last did."""
        if self._barren:
            return False
        self._barren = True
        return self._stream.next_epoch()

    def close(self) -> None:
        """End reading."""
        self._stream.close()


@dataclass(frozen=True)
class SetData:
    """A data set, as a run sees it."""

    samples: SampleSet

    @property
    def n_rows(self) -> int | None:
        """How many samples there are."""
        return self.samples.source.n_rows

    @property
    def n_features(self) -> int:
        """How many numbers a sample has."""
        return self.samples.source.n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the computation."""
        return self.samples.source.dtype

    def beginning(self, count: int) -> SampleSet:
        """What decides how a run starts: samples can be drawn from all of it."""
        return self.samples

    def feed(self, state: State) -> Feed:
        """The batches from where a state stands."""
        return SetFeed(self.samples, state)


@dataclass(frozen=True)
class StreamData:
    """A stream, as a run sees it."""

    stream: Stream
    missing: Missing

    @property
    def n_rows(self) -> int | None:
        """Unknown."""
        return None

    @property
    def n_features(self) -> int:
        """How many numbers a sample has: the first batch says so."""
        return self.stream.n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the computation."""
        return self.stream.dtype

    def beginning(self, count: int) -> SampleSet:
        """What decides how a run starts: the first samples of the stream, which stay in it."""
        self.stream.seek(0, 0)
        rows = ArraySource.of(self.stream.peek(count), nan=self.missing is not None)
        return SampleSet(rows, missing=self.missing)

    def feed(self, state: State) -> Feed:
        """The batches from where a state stands."""
        return StreamFeed(self.stream, state, self.missing)


def as_data(
    source: Any, mask: Any, missing: Missing, sample_weight: Any, groups: Any, coder: Coder
) -> Data:
    """Check what a user gives to learn from."""
    check_missing(missing)
    if isinstance(source, Data):
        given = {"mask": mask, "sample_weight": sample_weight, "groups": groups, "missing": missing}
        _refuse(given, "cannot be used with data on a cluster")
        return source
    if not isinstance(source, np.ndarray):  # those may have a mask of their own
        source = as_source(source, nan=missing is not None or mask is not None)
    if not isinstance(source, Stream):
        return SetData(as_sample_set(source, mask, missing, sample_weight, groups, coder))
    given = {"mask": mask, "sample_weight": sample_weight, "groups": groups}
    given["a joint coder"] = coder if isinstance(coder, Joint) else None
    _refuse(given, "needs data of known length: a stream has none")
    return StreamData(source, missing)


def _refuse(given: dict[str, Any], reason: str) -> None:
    for name, value in given.items():
        if value is not None:
            message = f"{name} {reason}"
            raise ValueError(message)
