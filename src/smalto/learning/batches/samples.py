"""The samples that a run draws: rows of a source, and what is known about each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from smalto.checks import Array, Rows, check_finite
from smalto.coders.base import Coder, Joint
from smalto.coders.coding import ROWS_AT_ONCE
from smalto.coders.signals import (
    Missing,
    Signals,
    as_groups,
    as_mask,
    as_signals,
    blocks,
    check_missing,
    refuse_groups,
    refuse_missing,
)
from smalto.sources import ArraySource, Order, Ordered, RowOrder, Source, as_set
from smalto.sources.base import finite_rows


@dataclass(frozen=True)
class Samples:
    """Some samples: their numbers in the data set, their rows, and their weights."""

    numbers: Array
    signals: Signals
    weights: Array | None = None  # of each sample in the cost, float64

    def __len__(self) -> int:
        return len(self.signals)

    def part(self, rows: slice) -> Samples:
        """Some of them (whole groups)."""
        weights = None if self.weights is None else self.weights[rows]
        return Samples(self.numbers[rows], self.signals.part(rows), weights)

    def parts(self) -> Iterator[Samples]:
        """All of them, as many at once as are coded at once."""
        for rows in blocks(len(self), ROWS_AT_ONCE, self.signals.groups):
            yield self.part(rows)


@dataclass(frozen=True)
class SampleSet:
    """A source with the mask, the weights and the groups of its samples, where it has any.

    What is drawn, in the order of an epoch, is samples or, where there are groups, whole groups.
    """

    source: Source
    mask: Array | None = None  # (n, m)
    missing: Missing = None
    weights: Array | None = None
    groups: tuple[Array, Array] | None = None  # pointers into, and the samples by group

    @property
    def n_draws(self) -> int:
        """How many samples or groups an epoch draws."""
        return self.source.n_rows if self.groups is None else len(self.groups[0]) - 1

    def order(self, seed: int) -> RowOrder:
        """The order in which samples, or groups of them, are drawn."""
        if self.groups is None and isinstance(self.source, Ordered):
            return self.source.order(seed)
        return Order(self.n_draws, seed)

    def take(self, numbers: Array, groups: Array | None = None) -> Samples:
        """The samples with these numbers."""
        X = self.source.rows(numbers)
        signals = Signals(X, None, None, groups)
        if self.mask is not None or self.missing is not None:
            mask = None if self.mask is None else self.mask[numbers]
            try:
                signals = replace(as_signals("X", X, mask, self.missing), groups=groups)
            except ValueError:  # of rows by their places in the batch: name them as they are
                holes = np.isnan(X) if self.missing == "nan" else np.zeros(X.shape, np.bool_)
                known = np.where(holes if mask is None else holes | mask, 0, X)
                finite_rows(known, numbers, self.source.dtype)
                raise
        weights = None if self.weights is None else self.weights[numbers]
        return Samples(numbers, signals, weights)

    def whole(self) -> Samples:
        """All samples, groups side by side: the next batch of a stream."""
        if self.groups is None:
            return self.take(np.arange(self.source.n_rows))
        pointers, members = self.groups
        return self.take(members, pointers)

    def end_of_batch(self, order: RowOrder, epoch: int, place: int, size: int) -> tuple[int, int]:
        """Where a batch of so many samples from a place on ends, and how many it really has."""
        last = min(place + size, self.n_draws)
        if self.groups is None:
            return last, last - place
        counts = np.cumsum(np.diff(self.groups[0])[order.take(epoch, place, last)])
        drawn = min(int(np.searchsorted(counts, size)) + 1, len(counts))
        return place + drawn, int(counts[drawn - 1])

    def drawn(
        self, order: RowOrder, epoch: int, place: int, end: int
    ) -> Iterator[tuple[Samples, int]]:
        """The samples at these places of an epoch's order, as many at once as are coded at once.

        With each of these blocks comes the place where it ends.
        """
        while place < end:
            if self.groups is None:
                until = min(place + ROWS_AT_ONCE, end)
                yield self.take(order.take(epoch, place, until)), until
            else:
                until = min(self.end_of_batch(order, epoch, place, ROWS_AT_ONCE)[0], end)
                pointers, members = self.groups
                chosen = order.take(epoch, place, until)
                counts = np.diff(pointers)[chosen]
                ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
                places = np.repeat(pointers[chosen] - ends[:-1], counts) + np.arange(ends[-1])
                yield self.take(members[places], ends), until
            place = until


def as_sample_set(
    source: Any, mask: Any, missing: Missing, sample_weight: Any, groups: Any, coder: Coder
) -> SampleSet:
    """Check what a user says about samples, and put it together."""
    check_missing(missing)
    if mask is not None or missing is not None or isinstance(source, np.ma.MaskedArray):
        refuse_missing(coder)
    if isinstance(source, np.ma.MaskedArray):
        own = np.ma.getmaskarray(source)
        mask, source = own if mask is None else own | np.asarray(mask), source.data
    lets_nan = missing == "nan"
    if mask is not None and isinstance(source, np.ndarray):
        mask = as_mask(mask, source)
        if isinstance(source, np.memmap):
            lets_nan = True
        else:
            source = np.where(mask, 0, source)
    data = as_set(source, nan=lets_nan)
    holes = None
    if mask is not None:
        stored = data.X if isinstance(data, ArraySource) else None
        shape = (data.n_rows, data.n_features)
        holes = as_mask(mask, np.broadcast_to(0.0, shape) if stored is None else stored)
    weights = None if sample_weight is None else as_sample_weight(sample_weight, data.n_rows)
    drawn = None
    refuse_groups(groups, coder)
    if groups is not None:
        pointers, order = as_groups(groups, data.n_rows)
        drawn = (pointers, np.arange(data.n_rows) if order is None else order)
        if weights is not None:
            check_one_weight_each(weights[drawn[1]], pointers)
    elif isinstance(coder, Joint):
        message = f"{type(coder).__name__} needs groups: a label for each sample"
        raise ValueError(message)
    return SampleSet(data, holes, missing, weights, drawn)


def as_sample_weight(sample_weight: Any, n: int) -> Array:
    """Weights of the samples in float64: at least zero, not all zero."""
    weights = np.asarray(sample_weight, np.float64)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        message = f"sample_weight must have shape ({n},), got {weights.shape}"
        raise ValueError(message)
    check_finite("sample_weight", weights)
    if (weights < 0).any():
        place = int(np.argmax(weights < 0))
        message = f"sample_weight must be >= 0, got {weights[place]} for sample {place}"
        raise ValueError(message)
    if not weights.any():
        message = "sample_weight is zero for every sample"
        raise ValueError(message)
    return weights


def check_one_weight_each(weights: Array, groups: Array) -> None:
    """Refuse weights that differ within a group: its codes minimise the group's cost as a whole."""
    differ = np.repeat(weights[groups[:-1]], np.diff(groups)) != weights
    if differ.any():
        place = int(np.argmax(differ))
        first = weights[groups[np.searchsorted(groups, place, side="right") - 1]]
        message = (
            f"sample_weight must be the same for all samples of a group, got {first} and "
            f"{weights[place]} in one"
        )
        raise ValueError(message)


def filled(signals: Signals, codes: Any, D: Array) -> Rows:
    """The rows with their missing entries filled from their codes: ``αD`` there.

    ``½‖x̃ − αD‖²`` with x̃ so filled bounds the cost over the known entries from above, for every
    D, and equals it for this one. So the statistics of filled samples make a surrogate of the
    cost over known entries, just as those of whole samples do.
    """
    if signals.missing is None:
        return signals.X
    holes = signals.missing
    return np.where(holes, (codes @ D).astype(D.dtype), signals.X.astype(D.dtype, copy=False))
