"""Batches of a stream, in its own order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from smalto.coders.signals import Missing, as_signals
from smalto.learning.batches.base import Batches, LocalBatch
from smalto.learning.batches.samples import Samples
from smalto.learning.learners.base import Learner, rows_drawn
from smalto.learning.memory.state import State
from smalto.sources import Stream


class StreamBatches(Batches):
    """Batches of a stream, in its own order; with ``missing="nan"``, NaN means missing."""

    def __init__(self, stream: Stream, missing: Missing) -> None:
        self.stream, self.missing = stream, missing
        self.n_rows, self.n_features, self.dtype = None, stream.n_features, stream.dtype
        self.has_missing = missing is not None
        self._barren = False  # whether this epoch has given no sample yet

    def first_samples(self, count: int, seed: int) -> Samples:
        """Return the first samples of the stream, without consuming them."""
        self.stream.seek(0, 0)
        X = self.stream.peek(count, self.patience)
        if X.shape[0] == 0:
            message = "the stream has no samples: all of its batches are empty"
            raise ValueError(message)
        signals = as_signals("the stream", X, None, self.missing)
        return Samples(np.arange(len(signals)), signals)

    def start(self, state: State) -> None:
        """Go to the place in the stream that the state has reached."""
        check_takes_streams(state.learner)
        self.stream.seek(state.epoch, state.place)

    def draw(self, state: State, interrupted: Callable[[], bool]) -> LocalBatch | None:
        """Return the next batch, smaller at the end of the stream; None if nothing is left."""
        X = self.stream.take(rows_drawn(state.learner, state.samples, 0), self.patience)
        count = X.shape[0]
        if count == 0:
            return None
        self._barren = False
        place = state.place + count
        signals = as_signals("the stream", X, None, self.missing)
        samples = Samples(np.arange(state.place, place), signals)
        return LocalBatch(samples.parts(), count, place, ends_epoch=False)

    def begin_epoch(self) -> bool:
        """Begin the stream again; return False if it cannot, or if the last epoch was empty."""
        if self._barren:
            return False
        self._barren = True
        return self.stream.next_epoch()

    def close(self) -> None:
        """Stop reading ahead."""
        self.stream.close()


def check_takes_streams(learner: Learner) -> None:
    """Raise ValueError if the learner draws the whole data set at each step."""
    if learner.whole_data:
        name = type(learner).__name__
        message = f"{name} draws all samples at each step, which a stream cannot give: use Online()"
        raise ValueError(message)
