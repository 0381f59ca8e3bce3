"""Fits along a path: each starts from the atoms of an earlier one, and takes a part of its time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from smalto.checks import Array, Rows, float_dtype
from smalto.choosing.grid import Grid, Point
from smalto.choosing.held_out import HeldOut, Round
from smalto.choosing.merging import merged
from smalto.choosing.prediction import (
    Predicted,
    in_memory,
    predict_held_out,
    some_rows,
    total_squares,
)
from smalto.coders import encode
from smalto.estimators.base import Factorization
from smalto.estimators.sparse_pca import SparsePCA
from smalto.learning.callbacks.base import Callback, Share
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State
from smalto.threads import single_threaded_blas
from smalto.warn import without_warnings


class Job(NamedTuple):
    """A path: the number of its round, and of its start."""

    round: int
    start: int


class Fit(NamedTuple):
    """What came of one fit."""

    predicted: Predicted
    cost: float  # of the data that was learned from, mean per sample
    misfit: float  # of several starts the one with the lowest counts: `comparable_cost`
    seconds: float  # of learning
    share: float  # of the limits of the estimator that it took
    may_be_short: bool  # whether fits from its atoms may end sooner
    D: Array  # atoms
    A: Array  # sums of products of their coefficients, from which fewer atoms are made

    def start(self, point: Point) -> Array:
        """Return the first atoms of a setting with at most as many atoms."""
        return merged(self.D, self.A, point.n_atoms)


NEVER = 2.0  # share of a run that it does not reach


class Shortened(Callback):
    """A callback that ends a run after a share of it, or when asked to.

    Parameters
    ----------
    effort : float
        Share of the run after which it ends.
    interrupted : callable
        Whether to end it at once.
    """

    def __init__(self, effort: float, interrupted: Callable[[], bool]) -> None:
        self.effort, self.interrupted = effort, interrupted
        self._share: Share = lambda record: None
        self.done = 1.0  # share of the run after the last step; 1 if that is unknown

    def begin(self, state: State, share: Share) -> None:
        """Keep what tells how much of the run is done."""
        self._share = share

    def __call__(self, state: State, record: Record) -> bool:
        """Return whether enough is done."""
        share = self._share(record)
        if share is not None:
            self.done = share
        return self.interrupted() or (share is not None and share >= self.effort)


@dataclass(frozen=True)
class Problem:
    """All that the fits of a choice have in common."""

    template: Factorization
    grid: Grid
    held_out: HeldOut
    effort: float
    seed: int

    def walk(
        self,
        X: Rows,
        job: Job,
        n_threads: int,
        done: Mapping[Point, Fit],
        keep: Callable[[Point, Fit], None],
        interrupted: Callable[[], bool],
    ) -> None:
        """Make the fits of one path that are not done yet; pass each to ``keep``.

        The first fit takes as long as the estimator wants. All others start from the atoms of an
        earlier one, and take at most a share of the time of the first: unless they also have to
        find a set in which atoms have the density wanted.
        """
        made: dict[Point, Fit] = {}
        effort = 1.0
        with single_threaded_blas(), without_warnings():
            n, m = X.shape
            table = Table.of(X, self.held_out.round(job.round, n, m, self.seed))
            for point, parent in self.grid.path():
                fit = done.get(point)
                if fit is None:
                    start = None if parent is None else made[parent].start(point)
                    stop = Shortened(effort, interrupted)
                    model = self._model(point, start, job, n_threads)
                    fit = _fitted(model, table, stop, n_threads)
                    if fit is None:
                        return
                    keep(point, fit)
                if parent is None:
                    effort = self.effort * fit.share if fit.may_be_short else NEVER
                made[point] = fit

    def work(self, point: Point) -> float:
        """Return about how long a fit takes, in any unit: the first one of a path is longest."""
        whole = isinstance(self.template, SparsePCA) or point == self.grid.path()[0].point
        return point.n_atoms * (1.0 if whole else self.effort)

    def _model(self, point: Point, start: Array | None, job: Job, n_threads: int) -> Factorization:
        """Return the estimator of one setting, with its first atoms if it has some."""
        model = self.grid.estimator(self.template, point)
        seed = np.random.SeedSequence([self.seed, 3, *job]).generate_state(1, np.uint64)[0]
        model.set_params(n_threads=n_threads, random_state=int(seed >> np.uint64(2)))
        if start is not None:
            model.set_params(init=start)
        return model


class Table(NamedTuple):
    """Data with held-out entries."""

    X: Rows
    learned: Rows  # the samples to learn from
    held: Round
    total: float  # squared differences of the held-out entries from the means of their features

    @classmethod
    def of(cls, X: Rows, held: Round) -> Table:
        """Hold out the entries of a round."""
        learned = X if held.mask is not None else X[held.learned]
        return cls(X, learned, held, total_squares(X, held))


def _fitted(model: Factorization, table: Table, stop: Shortened, n_threads: int) -> Fit | None:
    """Fit and test one setting; return None if that was interrupted."""
    if stop.interrupted():
        return None
    held = table.held
    model.set_params(callbacks=(stop,))
    seconds = fit_whole(model, table.learned, stop.interrupted, held.mask)
    if stop.interrupted():
        return None
    predicted = predict_held_out(model, table.X, held, table.total, n_threads)
    cost = measured_cost(model, table.learned, held.mask)
    may_be_short = not model.state_.constraint.adapts
    misfit = comparable_cost(model, table.learned, held.mask, cost)
    return Fit(predicted, cost, misfit, seconds, stop.done, may_be_short, *_learned(model))


def fit_whole(
    model: Factorization, X: Any, interrupted: Callable[[], bool], mask: Array | None = None
) -> float:
    """Fit a model; return the seconds of learning.

    One pass from the first atoms of its own, in which it also has to find the set of a density, is
    followed by another one. Other fits of a path start from atoms with about that density.
    """
    options = {} if mask is None else {"mask": mask}
    model.fit(X, **options)
    state = model.state_
    if model.init is None and state.constraint.adapts and state.epoch <= 1 and not interrupted():
        model.set_params(init=state.D)
        model.fit(X, **options)
        model.set_params(init=None)
        return state.seconds + model.state_.seconds
    return state.seconds


def measured_cost(model: Factorization, X: Rows, mask: Array | None) -> float:
    """Return the mean cost of samples, coded by the fitted model: minus its score."""
    rows = in_memory(some_rows(X))
    return -model._score(rows, None if mask is None else some_rows(mask))


def comparable_cost(model: Factorization, X: Rows, mask: Array | None, cost: float) -> float:
    """Return what starts of one setting are compared by: the cost, if all minimize the same one.

    Where each start has chosen a penalty of its own, as for a number of nonzeros, the cost is
    higher where the penalty is. It is then left out: what remains is half the squared error.
    """
    if not model.state_.coder.undecided:
        return cost
    signals = model._signals(in_memory(some_rows(X)))
    hidden = None if mask is None else some_rows(mask)
    D = np.ascontiguousarray(model.components_, float_dtype(signals.dtype))
    options: dict[str, Any] = {"missing": model.missing, "n_threads": model.n_threads}
    codes = encode(signals, D, model.coder_, mask=hidden, **options)
    return cost - float(np.mean(model.coder_.penalty(codes)))


def _learned(model: Factorization) -> tuple[Array, Array]:
    """Return the atoms of a fitted model, and the sums of products of their coefficients."""
    state = model.state_
    return state.D, np.sum([part.scale * part.A for part in state.stats], axis=0)


def final_cost(model: Factorization) -> float:
    """Return the mean cost of the samples at the end of learning."""
    if not model.history_:
        return float("inf")
    last = model.history_[-1]
    return last.batch_cost if last.surrogate is None else last.surrogate
