"""Fits along a path: each starts from the atoms of an earlier one, and takes a part of its time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from smalto.checks import Array, Rows
from smalto.choosing.grid import Grid, Point, Visit
from smalto.choosing.held_out import HeldOut, Round
from smalto.choosing.prediction import Predicted, known_means, predict_held_out
from smalto.estimators.base import Factorization
from smalto.learning.callbacks.base import Callback, Share
from smalto.learning.memory.atom_order import by_energy
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State


class Job(NamedTuple):
    """A path: the number of its round, and of its start."""

    round: int
    start: int


class Fit(NamedTuple):
    """What came of one fit."""

    predicted: Predicted
    cost: float  # of the data that was learned from, mean per sample
    seconds: float  # of learning
    D: Array  # atoms, by decreasing energy


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
        self.effort, self._interrupted = effort, interrupted
        self._share: Share = lambda record: None

    def begin(self, state: State, share: Share) -> None:
        """Keep what tells how much of the run is done."""
        self._share = share

    def __call__(self, state: State, record: Record) -> bool:
        """Return whether enough is done."""
        share = self._share(record)
        return self._interrupted() or (share is not None and share >= self.effort)


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
        """Make the fits of one path that are not done yet; pass each to ``keep``."""
        n, m = X.shape
        held = self.held_out.round(job.round, n, m, self.seed)
        learned = X if held.mask is not None else X[held.learned]
        center = known_means(X, held)
        atoms: dict[Point, Array] = {}
        for visit in self.grid.path():
            fit = done.get(visit.point)
            if fit is None:
                start = None if visit.parent is None else atoms[visit.parent]
                fit = self._fit(X, learned, held, center, visit, start, job, n_threads, interrupted)
                if fit is None:
                    return
                keep(visit.point, fit)
            atoms[visit.point] = fit.D

    def _fit(
        self,
        X: Rows,
        learned: Rows,
        held: Round,
        center: Array,
        visit: Visit,
        start: Array | None,
        job: Job,
        n_threads: int,
        interrupted: Callable[[], bool],
    ) -> Fit | None:
        """Fit and test one setting; return None if that was interrupted."""
        if interrupted():
            return None
        model = self.grid.estimator(self.template, visit.point)
        effort = 1.0 if start is None else self.effort
        seed = np.random.SeedSequence([self.seed, 3, *job]).generate_state(1, np.uint64)[0]
        options: dict[str, Any] = {
            "n_threads": n_threads,
            "random_state": int(seed >> np.uint64(2)),
            "callbacks": (Shortened(effort, interrupted),),
        }
        if start is not None:
            options["init"] = start[: visit.point.n_atoms]
        model.set_params(**options)
        model.fit(learned, **({} if held.mask is None else {"mask": held.mask}))
        if interrupted():
            return None
        predicted = predict_held_out(model, X, held, center, n_threads)
        return Fit(predicted, final_cost(model), model.state_.seconds, ordered_atoms(model))


def ordered_atoms(model: Factorization) -> Array:
    """Return the atoms of a fitted model by decreasing energy in the data."""
    order = by_energy(model.state_)
    return np.ascontiguousarray(model.state_.D[order])


def final_cost(model: Factorization) -> float:
    """Return the mean cost of the samples at the end of learning."""
    if not model.history_:
        return float("inf")
    last = model.history_[-1]
    return last.batch_cost if last.surrogate is None else last.surrogate
