"""The base classes of batches: what a run draws its samples from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from smalto.checks import Array
from smalto.coders.coding import warn_of_zeros
from smalto.coders.preparing import padded_atoms, prepare
from smalto.coders.products import Packed, gram
from smalto.coders.signals import Signals
from smalto.learning.batches.code_samples import code_samples
from smalto.learning.batches.samples import Samples
from smalto.learning.memory.contributions import Part
from smalto.learning.memory.state import State


class MidStep(Exception):
    """Raised by Ctrl-C during a step that can be abandoned, with the dictionary unchanged."""


class CodedBatch(NamedTuple):
    """The coded samples of one step."""

    parts: Iterator[Part]
    G: Array | None  # the Gram matrix of the dictionary, if it was computed


class MiniBatch(ABC):
    """The samples of one step."""

    n_samples: int
    place: int  # the place in the epoch after these samples
    ends_epoch: bool  # whether the epoch is known to end with them

    @abstractmethod
    def code(self, state: State, n_threads: int) -> CodedBatch:
        """Code the samples over the dictionary of the state."""


class Batches(ABC):
    """Abstract base class of batches: from a shuffled data set, a stream or a cluster."""

    n_rows: int | None  # samples of the data set; None for a stream
    n_features: int
    dtype: np.dtype[Any]
    has_missing: bool = False
    in_memory: bool = False  # whether all samples are in memory
    is_reading: bool = False  # True after an exception: it came from reading
    patience: float = math.inf  # seconds to wait for samples of a stream, if some have come
    n_threads: int = 1  # that copy rows of an array

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Mark that samples are being read, so that a failure of the source is told from others."""
        self.is_reading = True
        yield
        self.is_reading = False

    @abstractmethod
    def first_samples(self, count: int, seed: int) -> Samples:
        """Return at most ``count`` samples, from which the first dictionary and λ are chosen."""

    @abstractmethod
    def start(self, state: State) -> None:
        """Go to the place in the data that the state has reached."""

    @abstractmethod
    def draw(self, state: State, interrupted: Callable[[], bool]) -> MiniBatch | None:
        """Return the next batch, or None if the epoch has no more samples."""

    def begin_epoch(self) -> bool:
        """Begin another epoch after `draw` has returned None; return whether there is one."""
        return True

    def close(self) -> None:
        """Stop reading in the background."""


@dataclass
class LocalBatch(MiniBatch):
    """Samples read by this process, in blocks that are coded at once."""

    blocks: Iterator[Samples]
    n_samples: int
    place: int
    ends_epoch: bool

    def code(self, state: State, n_threads: int) -> CodedBatch:
        """Code the samples block by block, on the features that the learner looks at."""
        first = next(self.blocks)
        G = recalibrate(state, first.by_weight, n_threads)
        view = state.learner.view(state)
        D = state.D
        if view is not None:
            D, G = view.rows(D), None
        prepared = prepare(D, state.coder_now(), n_threads, state.slack_after(state.samples), G)

        def parts() -> Iterator[Part]:
            block: Samples | None = first
            while block is not None:
                start = None if state.store is None else state.store.fetch(block.numbers)
                part = code_samples(block, state.D, prepared, start, n_threads, view)
                if state.step == 0 and part.nonzeros == 0:
                    warn_of_zeros(prepared.coder, block.signals.X, state.D)
                yield part
                block = next(self.blocks, None)

        return CodedBatch(parts(), prepared.G if prepared.exponents is None else None)


def recalibrate(state: State, signals: Callable[[], Signals], n_threads: int) -> Array | None:
    """Let an undecided coder choose its parameters anew, after steps 1, 2, 4, 8, ...

    Returns the Gram matrix of the padded dictionary if it was computed.
    """
    if not (state.coder.undecided and is_power_of_two(state.step)):
        return None
    G = gram(Packed(padded_atoms(state.D)), n_threads)
    state.coder = state.coder.resolve_for(signals(), state.D, n_threads, G)
    return G


def is_power_of_two(number: int) -> bool:
    """Return whether the number is 1, 2, 4, 8, ..."""
    return number > 0 and number & (number - 1) == 0
