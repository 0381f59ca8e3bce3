"""Samples with their numbers and weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from smalto.checks import Array, Rows, check_finite, check_not_masked, check_real
from smalto.coders.codes import Codes
from smalto.coders.coding import ROWS_AT_ONCE
from smalto.coders.signals import Signals, blocks


@dataclass(frozen=True)
class Samples:
    """Samples: their numbers in the data set, their signals and their weights."""

    numbers: Array
    signals: Signals
    weights: Array | None = None  # of each sample in the cost, float64

    def __len__(self) -> int:
        return len(self.signals)

    def part(self, rows: slice) -> Samples:
        """Return a range of the samples, which must not split a group."""
        weights = None if self.weights is None else self.weights[rows]
        return Samples(self.numbers[rows], self.signals.part(rows), weights)

    def parts(self) -> Iterator[Samples]:
        """Yield the samples in blocks that are coded at once."""
        for rows in blocks(len(self), ROWS_AT_ONCE, self.signals.groups):
            yield self.part(rows)

    def by_weight(self) -> Signals:
        """Return as many signals, in proportion to their weights, to choose parameters from.

        Heavy ones are repeated, and light ones may be left out, but not if all others are zero;
        groups stay as they are.
        """
        if self.weights is None or self.signals.groups is not None or not self.weights.any():
            return self.signals
        ends = np.cumsum(self.weights / self.weights.max())
        places = (np.arange(len(self)) + 0.5) / len(self) * ends[-1]
        chosen = self.signals.take(np.searchsorted(ends, places))
        return chosen if abs(chosen.X).max() > 0 else self.signals


def as_sample_weight(sample_weight: Any, n: int) -> Array:
    """Return sample weights in float64; raise ValueError unless they are >= 0 and not all zero."""
    check_not_masked("sample_weight", sample_weight)
    weights = np.asarray(sample_weight)
    if weights.dtype != object:
        check_real("sample_weight", weights)
    weights = weights.astype(np.float64)
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
    """Raise ValueError if weights differ within a group, which is coded as a whole."""
    differ = np.repeat(weights[groups[:-1]], np.diff(groups)) != weights
    if differ.any():
        place = int(np.argmax(differ))
        first = weights[groups[np.searchsorted(groups, place, side="right") - 1]]
        message = (
            f"sample_weight must be the same for all samples of a group, got {first} and "
            f"{weights[place]} in the same group"
        )
        raise ValueError(message)


def filled(signals: Signals, codes: Codes, D: Array) -> Rows:
    """Return the rows with their missing entries replaced by those of ``αD``.

    With x̃ filled in this way, ``½‖x̃ − αD‖²`` is an upper bound of the cost over the known
    entries for every D, and equal to it for this D. The statistics of filled samples are
    therefore a surrogate of that cost, like those of complete samples.
    """
    if signals.missing is None:
        return signals.X
    guess = (codes.as_csr(len(D)) @ D).astype(D.dtype)
    return np.where(signals.missing, guess, signals.X.astype(D.dtype, copy=False))
