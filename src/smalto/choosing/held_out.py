"""Entries of the data that a model does not see and has to predict."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from smalto.checks import Array, check_integer, check_kind, check_number


class Round(NamedTuple):
    """What one round leaves out: the samples to learn from, and the entries to predict."""

    learned: Array  # numbers of the samples to learn from
    mask: Array | None  # (n, m) entries that are missing in learning and in coding
    tested: Array  # numbers of the samples with entries to predict
    columns: tuple[Array, ...]  # without a mask: sets of features, each predicted from the others


class HeldOut(ABC):
    """Abstract base class: which entries are held out.

    See Also
    --------
    Blocks : Blocks of samples and features.
    Entries : Random entries.
    """

    needs_masks: ClassVar[bool] = False

    @property
    @abstractmethod
    def n_rounds(self) -> int:
        """Number of rounds, each with a fit of its own."""

    @abstractmethod
    def round(self, number: int, n: int, m: int, seed: int) -> Round:
        """Return what a round leaves out of n samples of m features."""

    @abstractmethod
    def check(self, n: int, m: int) -> None:
        """Raise ValueError if there are too few samples or features."""


@dataclass(frozen=True)
class Blocks(HeldOut):
    """Blocks of samples and features: bi-cross-validation.

    Samples are cut into folds at random, features as well. A model is learned from all samples but
    those of one fold. These are then coded from all features but those of one fold, and predict
    them. So every entry is predicted once, from a dictionary that has not seen its sample, and from
    a code that has not seen its feature. Nothing is missing while learning: it is as fast as usual,
    and sparse arrays stay sparse.

    Parameters
    ----------
    n_row_folds : int, default 5
        Number of folds of the samples, each of which is a round.
    n_column_folds : int, default 5
        Number of folds of the features.
    contiguous : bool, default False
        Whether a fold of the features is a run of neighbors. If neighboring features are alike, as
        in series and pictures, random ones are too easy to predict.

    See Also
    --------
    Entries : Random entries, missing while learning.

    Examples
    --------
    >>> from smalto.choosing import Blocks
    >>> Blocks(n_row_folds=3).n_rounds
    3
    """

    n_row_folds: int = 5
    n_column_folds: int = 5
    contiguous: bool = False

    def __post_init__(self) -> None:
        check_integer("n_row_folds", self.n_row_folds, low=2)
        check_integer("n_column_folds", self.n_column_folds, low=2)
        check_kind("contiguous", self.contiguous, bool | np.bool_, "True or False")

    @property
    def n_rounds(self) -> int:
        """Number of rounds: one per fold of the samples."""
        return self.n_row_folds

    def check(self, n: int, m: int) -> None:
        """Raise ValueError unless every fold gets a sample, and a feature."""
        for name, folds, count, what in (
            ("n_row_folds", self.n_row_folds, n, "samples"),
            ("n_column_folds", self.n_column_folds, m, "features"),
        ):
            if count < 2:
                message = f"blocks are held out of at least 2 {what}, got {count}"
                raise ValueError(message)
            if folds > count:
                message = (
                    f"{name} must be at most the number of {what}, {count}, got {folds}: give fewer, "
                    f"as in held_out=Blocks({name}=2)"
                )
                raise ValueError(message)

    def round(self, number: int, n: int, m: int, seed: int) -> Round:
        """Return the fold of the samples with this number."""
        fold = np.random.default_rng([seed, 0]).permutation(n) % self.n_row_folds
        rng = np.random.default_rng([seed, 1, number])
        if self.contiguous:
            # The first fold begins anywhere, so that rounds cut at different places.
            order = (np.arange(m) + int(rng.integers(m))) % m
            columns = np.array_split(order, self.n_column_folds)
        else:
            columns = np.array_split(rng.permutation(m), self.n_column_folds)
        return Round(
            np.flatnonzero(fold != number),
            None,
            np.flatnonzero(fold == number),
            tuple(np.sort(part) for part in columns),
        )


@dataclass(frozen=True)
class Entries(HeldOut):
    """Random entries of the whole table, which are missing while learning and coding.

    Parameters
    ----------
    share : float, default 0.1
        Share of the entries that a round holds out.
    n_rounds : int, default 5
        Number of rounds, each with other entries.

    See Also
    --------
    Blocks : Blocks of samples and features, with nothing missing while learning.

    Notes
    -----
    All samples are learned from, which matters if there are few of them. The data must be dense,
    and the estimator must take a mask (`SparsePCA` does not).

    Examples
    --------
    >>> from smalto.choosing import Entries
    >>> Entries(0.2).round(0, 10, 10, seed=0).mask.shape
    (10, 10)
    """

    share: float = 0.1
    n_rounds: int = 5  # type: ignore[assignment, unused-ignore]

    needs_masks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        share = check_number("share", self.share, low=0, high=1, strict=True)
        if share == 1.0:
            message = f"share must be below 1, got {self.share!r}: something must be left to learn"
            raise ValueError(message)
        check_integer("n_rounds", self.n_rounds, low=2)

    def check(self, n: int, m: int) -> None:
        """Raise ValueError unless at least one entry is held out."""
        if self.share * n * m < 1.0:
            message = f"share={self.share:g} of {n} x {m} entries is less than one: raise share"
            raise ValueError(message)

    def round(self, number: int, n: int, m: int, seed: int) -> Round:
        """Return the entries of the round with this number."""
        rng = np.random.default_rng([seed, 2, number])
        count = max(1, round(self.share * n * m))
        mask = np.zeros((n, m), np.bool_)
        mask.reshape(-1)[rng.choice(n * m, count, replace=False)] = True
        tested = np.flatnonzero(mask.any(axis=1))
        return Round(np.arange(n), mask, tested, ())


def row_slices(n: int, at_once: int) -> Iterator[slice]:
    """Yield slices of at most so many consecutive rows that cover all n."""
    for first in range(0, n, at_once):
        yield slice(first, min(first + at_once, n))
