"""Coded samples as a step takes them in, wherever they were coded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from smalto.checks import Array, Rows
from smalto.coders.base import Coder, Codes, Reaching, penalties
from smalto.coders.coding import Prepared, code_rows, count_out_of_reach, warn_if_all_zero
from smalto.learning.batches.samples import Samples, filled
from smalto.learning.dictionary.feature_sweep import View
from smalto.learning.memory.statistics import Contribution, Stats


class Addition(Protocol):
    """What learners ask of coded samples: a `Contribution`, or what is left of one."""

    @property
    def uses(self) -> Array:
        """How many of the samples use each atom."""

    def add_to(self, stats: Stats, weight: float, n_threads: int) -> None:
        """Add these samples to the statistics, each with this weight."""

    def weighted_costs(self) -> Array:
        """The costs of the samples, times their weights."""

    def total_weight(self) -> float:
        """The sum of the weights."""

    def worst(self) -> tuple[Rows, Array]:
        """A few of the samples, those with the largest costs, and these."""


class Part(NamedTuple):
    """Some of the samples of a step, coded."""

    numbers: Array
    new: Any  # an Addition
    nonzeros: int
    short: int  # for how many a coder's bound on the error was out of reach


def code_samples(
    samples: Samples,
    D: Array,
    prepared: Prepared,
    start: Codes | None,
    n_threads: int,
    view: View | None = None,
) -> Part:
    """Code samples over a dictionary, as far as both are seen."""
    k, coder = len(D), prepared.coder
    seen = samples.signals if view is None else view.signals(samples.signals)
    coded = code_rows(seen, prepared, start, n_threads)
    codes = coded.codes.as_csr(k)
    new = Contribution.of(
        coded, filled(samples.signals, codes, D), k, penalties(coder, codes, samples.signals.groups),
        samples.weights,
        filled=view is not None or samples.signals.missing is not None,
    )  # fmt: skip
    promised = coder.promised() if isinstance(coder, Reaching) else None
    short = (
        0
        if promised is None
        else count_out_of_reach(promised, coded, D.dtype, samples.signals.groups)
    )
    return Part(samples.numbers, new, len(coded.codes.indices), short)


def warn_of_zeros(part: Part, samples: Samples, coder: Coder, D: Array) -> None:
    """Say which λ would be of use when the first samples of a run have only zeros as codes."""
    if part.nonzeros == 0:
        warn_if_all_zero(coder, samples.signals.X, D)


@dataclass(frozen=True)
class Summary:
    """The statistics of coded samples: all that the dictionary needs of them, for sending.

    It is smaller than the codes and the samples where these are many.
    """

    stats: Stats
    uses: Array
    costs: Array
    weight: float
    worst_rows: Rows
    worst_costs: Array

    @classmethod
    def of(cls, new: Contribution) -> Summary:
        """Sum up."""
        stats = Stats.zeros(len(new.atom_ptr) - 1, new.X.shape[1])
        new.add_to(stats, 1.0, 1)
        rows, costs = new.worst()
        return cls(stats, new.uses, new.weighted_costs(), new.total_weight(), rows, costs)

    def add_to(self, stats: Stats, weight: float, n_threads: int) -> None:
        """Add these samples to the statistics, each with this weight."""
        stats.add(self.stats, weight)

    def weighted_costs(self) -> Array:
        """The costs of the samples, times their weights."""
        return self.costs

    def total_weight(self) -> float:
        """The sum of the weights."""
        return self.weight

    def worst(self) -> tuple[Rows, Array]:
        """A few of the samples, those with the largest costs, and these."""
        return self.worst_rows, self.worst_costs


def statistics_are_cheaper(new: Contribution) -> bool:
    """Whether to send the statistics of coded samples rather than these, and add those up.

    By the time that either takes whoever receives it, at a gigabyte a second and half a
    nanosecond for each product; it depends on the samples alone, not on who codes them.
    """
    k, m = len(new.atom_ptr) - 1, new.X.shape[1]
    n, nonzeros = len(new.costs), len(new.codes.indices)
    X: Any = new.X
    rows = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes
    sent = rows + sum(part.nbytes for part in new.codes) + 24 * n
    as_codes = 1e-9 * sent + 0.5e-9 * nonzeros * (nonzeros / max(n, 1) + m)
    as_statistics = (1e-9 * 8 + 1e-9) * (k * k + k * m)
    return bool(as_statistics < as_codes)
