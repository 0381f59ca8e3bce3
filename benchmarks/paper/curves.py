"""Test cost against training time for the settings A, B and C: the left and right of Figure 1.

Time is processor time of one thread: wall-clock time on a busy machine would include the work of
others.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.paper.frame import Part, Study
from benchmarks.peers.common import QUICK_ATOMS, Array, Problem, Yardstick, load
from smalto import learn
from smalto.coders import Lasso
from smalto.learners import Online

SPACING = 1.3  # between the times at which a dictionary is measured
OL1 = Online(batch_size=512, rho=15.0, t0=0.001, slack=0.0)
OL2 = Online(batch_size=512, rho=10.0, t0=0.001, slack=0.0)
OL3 = Online(batch_size=512, rho=15.0, t0=0.0, slack=0.0)
DEFAULT = Online()
DEFAULT_NAME = "smalto's defaults"


@dataclass(frozen=True)
class Curve:
    """Test cost against samples seen and seconds."""

    samples: Array
    seconds: Array
    cost: Array

    def at(self, seconds: Array | float) -> Array:
        """Return the cost at a time, interpolated in log time; the last cost after the end."""
        return np.interp(np.log(seconds), np.log(self.seconds), self.cost)

    def after(self, samples: float) -> float:
        """Return the cost after this many samples."""
        return float(np.interp(np.log(samples), np.log(self.samples), self.cost))

    def seconds_to(self, target: float) -> float | None:
        """Return the time at which the cost reached ``target``; None if it never did."""
        below = np.flatnonzero(self.cost <= target)
        return float(self.seconds[below[0]]) if below.size else None


class Bench:
    """One of the settings A, B, C with its patches, loaded when they are first needed."""

    def __init__(self, study: Study, name: str, n_train: int, n_test: int) -> None:
        self.study, self.name = study, name
        self.n_train, self.n_test = n_train, n_test
        self._warm: set[Any] = set()

    @cached_property
    def problem(self) -> Problem:
        """The training and test patches."""
        return load(
            self.name,
            self.n_train,
            self.n_test,
            quick=self.study.quick,
            images=self.study.data.pictures,
        )

    @cached_property
    def measure(self) -> Yardstick:
        """Return the mean cost of the test patches."""
        return Yardstick(self.problem)

    def curve(
        self,
        learner: Any,
        *,
        seconds: float,
        start: int = 0,
        n: int | None = None,
        epochs: int | None = None,
    ) -> Curve:
        """Learn on one thread from the first n patches, for a number of processor seconds."""
        settings = {
            "set": self.name,
            "n": n or self.n_train,
            "learner": repr(learner),
            "start": start,
            "epochs": epochs,
            "seconds": round(seconds, 3),
            "n_all": self.n_train,
            "n_test": self.n_test,
            "quick": self.study.quick,
        }
        part = self.study.part(
            "curve", settings, lambda: self._learn(learner, seconds, start, n, epochs)
        )
        return Curve(*(np.array(part[key]) for key in ("samples", "seconds", "cost")))

    def curves(self, learner: Any, starts: int, **how: Any) -> list[Curve]:
        """Learn from several initial dictionaries."""
        return [self.curve(learner, start=start, **how) for start in range(starts)]

    def _learn(
        self, learner: Any, seconds: float, start: int, n: int | None, epochs: int | None
    ) -> Part:
        problem = self.problem
        X = problem.train[:n]
        D0 = first_dictionary(X, len(problem.D0), start)
        kept: list[tuple[int, float, Array]] = []
        self._warm_up(learner)
        stopped, begin = 0.0, time.process_time()

        def watch(state: Any, record: Any) -> bool:
            nonlocal stopped
            now = time.process_time()
            used = now - begin - stopped
            if not kept or used >= SPACING * kept[-1][1] or used >= seconds:
                kept.append((record.samples, used, state.D.copy()))
            stopped += time.process_time() - now
            return used >= seconds

        result = learn(
            X,
            len(D0),
            Lasso(problem.lam),
            learner=learner,
            init=D0,
            max_epochs=epochs or 10**6,
            callbacks=[watch],
            n_threads=1,
            random_state=start,
        )
        if result.stopped == "interrupt":
            raise KeyboardInterrupt
        last = result.history[-1]
        if last.samples > kept[-1][0]:
            kept.append((last.samples, time.process_time() - begin - stopped, result.D))
        return {
            "samples": [samples for samples, _, _ in kept],
            "seconds": [used for _, used, _ in kept],
            "cost": [self.measure(D) for _, _, D in kept],
            "replaced": sum(record.replaced for record in result.history),
            "nonzeros": last.mean_nonzeros,
        }

    def _warm_up(self, learner: Any) -> None:
        """Compile the kernels before time is measured."""
        if type(learner) not in self._warm:
            self._warm.add(type(learner))
            few = self.problem.train[:256]
            k = min(QUICK_ATOMS, len(few))
            learn(few, k, Lasso(self.problem.lam), learner=learner, max_steps=2, n_threads=1)


def first_dictionary(X: Array, k: int, start: int) -> Array:
    """Return random patches, as in the paper; different ones for each start."""
    return X[np.random.default_rng(start).permutation(len(X))[:k]]


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """Return the average of several curves, where all of them have a value."""
    first = max(curve.seconds[0] for curve in curves)
    last = min(curve.seconds[-1] for curve in curves)
    times = np.geomspace(first, max(last, first), max(len(curve.cost) for curve in curves))
    samples = np.mean([np.interp(times, c.seconds, c.samples) for c in curves], axis=0)
    return Curve(samples, times, np.mean([curve.at(times) for curve in curves], axis=0))


def draw(ax: Any, curves: dict[str, Curve], title: str, styles: dict[str, dict[str, Any]]) -> None:
    """Draw cost against time, on a logarithmic axis."""
    for name, curve in curves.items():
        ax.plot(curve.seconds, curve.cost, label=name, linewidth=1.4, **styles.get(name, {}))
    ax.set_xscale("log")
    ax.set_xlabel("processor seconds of training", fontsize=8)
    ax.set_ylabel("cost of the test set", fontsize=8)
    ax.set_title(title, fontsize=9)
    ax.grid(visible=True, color="0.92")
    lows = [curve.cost.min() for curve in curves.values()]
    highs = [curve.cost[0] for curve in curves.values()]
    margin = 0.05 * (max(highs) - min(lows))
    ax.set_ylim(min(lows) - margin, min(max(highs) + margin, 1.25 * min(lows)))


def records(curves: dict[str, list[Curve]]) -> dict[str, list[dict[str, list[float]]]]:
    """Return the curve as lists, for JSON."""
    return {
        name: [{key: value.tolist() for key, value in vars(run).items()} for run in runs]
        for name, runs in curves.items()
    }
