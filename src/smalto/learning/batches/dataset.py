"""Batches of a data set, in random order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.coders.coding import ROWS_AT_ONCE
from smalto.coders.signals import (
    Missing,
    Signals,
    as_groups,
    as_mask,
    as_signals,
    without_mask,
)
from smalto.learning.batches.base import Batches, LocalBatch, MidStep
from smalto.learning.batches.samples import (
    Samples,
    as_sample_weight,
    check_one_weight_each,
)
from smalto.learning.learners.base import rows_drawn
from smalto.learning.memory.state import State
from smalto.sources import ArraySource, Order, ReadAhead, Source, as_set
from smalto.sources.base import finite_rows, read_rows
from smalto.sources.order import FIRST_SAMPLES


class DatasetBatches(Batches):
    """Batches of a data set, in a random order that the seed of the state determines.

    Samples are drawn one by one or, if there are groups, as whole groups. Slow sources are read
    ahead in the background.

    Parameters
    ----------
    source : Source
        The rows.
    mask : array of bool (n, m), optional
        True where an entry is missing.
    missing : {None, "nan"}
        Whether NaN means missing.
    weights : array (n,), optional
        Weights of the samples.
    groups : (array, array), optional
        Pointers and members: group g has the samples ``members[pointers[g] : pointers[g + 1]]``.
    """

    def __init__(
        self,
        source: Source,
        mask: Array | None = None,
        missing: Missing = None,
        weights: Array | None = None,
        groups: tuple[Array, Array] | None = None,
    ) -> None:
        self.source, self.mask, self.missing = source, mask, missing
        self.weights, self.groups = weights, groups
        self.n_rows, self.n_features, self.dtype = source.n_rows, source.n_features, source.dtype
        self.has_missing = mask is not None or missing is not None
        self.in_memory = isinstance(source, ArraySource)
        self.n_draws = source.n_rows if groups is None else len(groups[0]) - 1
        self._zeroed = False  # whether masked entries are zero and all others finite
        self._ahead: ReadAhead[tuple[Samples, int, int]] | None = None

    @classmethod
    def of(
        cls, source: Any, mask: Any, missing: Missing, sample_weight: Any, groups: Any
    ) -> DatasetBatches:
        """Check the data and the options of `learn` that describe its samples; return batches."""
        source, mask = without_mask(source, mask)
        lets_nan, zeroed = missing == "nan", False
        if mask is not None and isinstance(source, np.ndarray):
            mask = as_mask(mask, source)
            if isinstance(source, np.memmap):
                lets_nan = True
            else:
                source, zeroed = np.where(mask, 0, source), True
        data = as_set(source, nan=lets_nan)
        if mask is not None and not isinstance(source, np.ndarray):
            shape = np.broadcast_to(0.0, (data.n_rows, data.n_features))
            mask = as_mask(mask, data.X if isinstance(data, ArraySource) else shape)
        weights = None if sample_weight is None else as_sample_weight(sample_weight, data.n_rows)
        listed = None
        if groups is not None:
            pointers, order = as_groups(groups, data.n_rows)
            listed = (pointers, np.arange(data.n_rows) if order is None else order)
            if weights is not None:
                check_one_weight_each(weights[listed[1]], pointers)
        batches = cls(data, mask, missing, weights, listed)
        batches._zeroed = zeroed and missing is None
        return batches

    def first_samples(self, count: int, seed: int) -> Samples:
        """Return random samples, sorted by their place in the data, but none of weight 0."""
        numbers = np.sort(self.source.order(seed).take(FIRST_SAMPLES, 0, count))
        if self.weights is not None and self.weights[numbers].any():
            numbers = numbers[self.weights[numbers] > 0]
        return self._take(numbers)

    def whole(self, place: int = 0) -> LocalBatch:
        """Return all samples as one batch, ordered by group; ``place`` is the place after it."""
        if self.groups is None:
            samples = self._take(np.arange(self.source.n_rows))
        else:
            pointers, members = self.groups
            samples = self._take(members, pointers)
        return LocalBatch(samples.parts(), len(samples), place, ends_epoch=False)

    def start(self, state: State) -> None:
        """Go to the place in the data that the state has reached, and start reading ahead."""
        self._order = self.source.order(state.seed)
        if self.groups is not None:
            self._order = Order(self.n_draws, state.seed)
        self._learner = state.learner
        self._in_parts = state.learner.whole_data
        self._blocks: Iterator[tuple[Samples, int, int]] = self._read(
            state.epoch, state.place, state.samples
        )
        if self.source.reads_ahead:
            self._blocks = self._ahead = ReadAhead(self._blocks)

    def draw(self, state: State, interrupted: Callable[[], bool]) -> LocalBatch:
        """Return the next batch, read completely unless it is the whole data set."""
        first, n_samples, end = next(self._blocks)
        blocks = self._batch(first, n_samples, interrupted)
        if not self._in_parts:
            blocks = iter(list(blocks))
        return LocalBatch(blocks, n_samples, end, end == self.n_draws)

    def close(self) -> None:
        """Stop reading ahead."""
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

    def _batch(
        self, block: Samples, n_samples: int, interrupted: Callable[[], bool]
    ) -> Iterator[Samples]:
        """Yield the blocks of one step; ``block`` is the first of them."""
        yield block
        done = len(block)
        while done < n_samples:
            # Only a step that forgets the past can be abandoned midway.
            if self._in_parts and interrupted():
                raise MidStep
            with self.reading():
                block, _, _ = next(self._blocks)
            done += len(block)
            yield block

    def _read(self, epoch: int, place: int, samples: int) -> Iterator[tuple[Samples, int, int]]:
        """Yield blocks from this place on, after so many samples, epoch after epoch, without end.

        Each comes with the number of samples in its batch, and the place where the batch ends.
        """
        while True:
            size = rows_drawn(self._learner, samples, self.source.n_rows)
            end, n_samples = self._end_of_batch(epoch, place, size)
            samples += n_samples
            while place < end:
                block, place = self._next_block(epoch, place, end)
                yield block, n_samples, end
                if self.source.reads_ahead:
                    self.source.warm(self._order, epoch, place)
            if end == self.n_draws:
                epoch, place = epoch + 1, 0

    def _end_of_batch(self, epoch: int, place: int, size: int) -> tuple[int, int]:
        """Return where a batch of about ``size`` samples ends, and its exact number of samples."""
        last = min(place + size, self.n_draws)
        if self.groups is None:
            return last, last - place
        counts = np.cumsum(np.diff(self.groups[0])[self._order.take(epoch, place, last)])
        drawn = min(int(np.searchsorted(counts, size)) + 1, len(counts))
        return place + drawn, int(counts[drawn - 1])

    def _next_block(self, epoch: int, place: int, end: int) -> tuple[Samples, int]:
        """Return the block of samples at a place, and the place where it ends."""
        if self.groups is None:
            until = min(place + ROWS_AT_ONCE, end)
            return self._take(self._order.take(epoch, place, until)), until
        until = min(self._end_of_batch(epoch, place, ROWS_AT_ONCE)[0], end)
        pointers, members = self.groups
        chosen = self._order.take(epoch, place, until)
        counts = np.diff(pointers)[chosen]
        ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        places = np.repeat(pointers[chosen] - ends[:-1], counts) + np.arange(ends[-1])
        return self._take(members[places], ends), until

    def _take(self, numbers: Array, groups: Array | None = None) -> Samples:
        """Return the samples with these numbers."""
        if isinstance(self.source, ArraySource):
            X = self.source.rows_by(self.n_threads, numbers)
        else:
            X = read_rows(self.source, numbers, nan=self.has_missing)
        signals = Signals(X, groups=groups)
        mask = None if self.mask is None else self.mask[numbers]
        if self._zeroed and mask is not None:
            signals = Signals(X, mask if mask.any() else None, groups=groups)
        elif self.has_missing:
            try:
                signals = replace(as_signals("X", X, mask, self.missing), groups=groups)
            except ValueError:  # its rows are numbered within the batch: number them as in the data
                holes = np.isnan(X) if self.missing == "nan" else np.zeros(X.shape, np.bool_)
                known = np.where(holes if mask is None else holes | mask, 0, X)
                finite_rows(known, numbers, self.source.dtype)
                raise
        weights = None if self.weights is None else self.weights[numbers]
        return Samples(numbers, signals, weights)
