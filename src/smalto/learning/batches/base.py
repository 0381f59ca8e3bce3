"""What a run draws from: batches, one after another, from where a state stands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from smalto.checks import Array, Rows
from smalto.coders.coding import prepare, warn_of_zeros
from smalto.learning.batches.coded import code_samples
from smalto.learning.batches.samples import Samples
from smalto.learning.memory.contributions import Part
from smalto.learning.memory.state import State


class MidStep(Exception):
    """An interrupt within a step that can be given up: the dictionary is as before it."""


class CodedBatch(NamedTuple):
    """The coded samples of one step."""

    parts: Iterator[Part]
    G: Array | None  # Gram matrix of the dictionary they were coded over, where it is at hand


class MiniBatch(ABC):
    """The samples of one step."""

    n_samples: int
    place: int  # where the epoch is after them
    ends_epoch: bool  # whether that is known to be its end

    @abstractmethod
    def code(self, state: State, n_threads: int) -> CodedBatch:
        """Code the samples over the dictionary of the state."""


class Batches(ABC):
    """Batches of samples, one after another: a data set in random order, a stream, a cluster."""

    n_rows: int | None  # samples of the data set; None for a stream
    n_features: int
    dtype: np.dtype[Any]
    has_missing: bool = False

    @abstractmethod
    def first_samples(self, count: int, seed: int) -> Rows:
        """Return at most ``count`` samples, from which the first dictionary and λ are chosen."""

    @abstractmethod
    def start(self, state: State) -> None:
        """Go to where a state stands."""

    @abstractmethod
    def draw(self, state: State, interrupted: Callable[[], bool]) -> MiniBatch | None:
        """Return the next batch, read as a whole; None if the epoch has no more samples."""

    def begin_epoch(self) -> bool:
        """Return whether there is another epoch, after one whose end was not foreseen."""
        return True

    def close(self) -> None:
        """End what runs in the background."""


@dataclass
class LocalBatch(MiniBatch):
    """Samples that are in this process, in blocks of as many as are coded at once."""

    blocks: Iterator[Samples]
    n_samples: int
    place: int
    ends_epoch: bool

    def code(self, state: State, n_threads: int) -> CodedBatch:
        """Code the samples, block by block, over what the learner looks at of the dictionary."""
        first = next(self.blocks)
        recalibrate(state, lambda: first.signals.X, n_threads)
        view = state.learner.view(state)
        D = state.D if view is None else view.rows(state.D)
        prepared = prepare(D, state.coder_now(), n_threads)

        def parts() -> Iterator[Part]:
            block: Samples | None = first
            while block is not None:
                start = None if state.store is None else state.store.fetch(block.numbers)
                part = code_samples(block, state.D, prepared, start, n_threads, view)
                if state.step == 0 and part.nonzeros == 0:
                    warn_of_zeros(prepared.coder, block.signals.X, state.D)
                yield part
                block = next(self.blocks, None)

        return CodedBatch(parts(), prepared.G)


def recalibrate(state: State, rows: Callable[[], Rows], n_threads: int) -> None:
    """After steps 1, 2, 4, 8, ... decide again what the coder has left open, from the next rows."""
    if state.coder.undecided and is_power_of_two(state.step):
        state.coder = state.coder.resolve(rows(), state.D, n_threads)


def is_power_of_two(number: int) -> bool:
    """Return whether the number is 1, 2, 4, 8, ..."""
    return number > 0 and number & (number - 1) == 0
