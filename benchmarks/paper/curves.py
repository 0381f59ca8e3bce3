"""Cost against training time for the settings A, B and C of Section 6.1.

Patches are drawn as in the paper: those to learn from and those of the test come from the same
pictures. A second test set comes from other pictures. Time is processor time of one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from benchmarks.paper.data import Data
from benchmarks.paper.frame import Part, Study, Task, label
from benchmarks.peers.common import QUICK_ATOMS, Array, blas_threads, costs
from smalto import encode, learn
from smalto.coders import Lasso
from smalto.datasets import paper_setting
from smalto.learners import Online, Replacement

FIRST, SPACING = 0.08, 1.6  # the first second that is measured, and the ratio of later ones
OL1 = Online(512, rho=15.0, t0=0.001, slack=0.0, keep=0.95)  # keep: as the authors' program does
OL2 = Online(512, rho=10.0, t0=0.001, slack=0.0, keep=0.95)
OL3 = Online(512, rho=15.0, t0=0.0, slack=0.0, keep=0.95)
OL1_BARE = Online(512, rho=15.0, t0=0.001, slack=0.0)  # beta = (1 - 1/t)^rho from t = 2 on
DEFAULT = Online()
DEFAULT_NAME = "smalto's defaults"
RATE = {"A": 300_000, "B": 45_000, "C": 23_000}  # samples per second of one core, about
STYLES: dict[str, dict[str, Any]] = {
    "OL1": {"color": "C0"},
    "OL2": {"color": "C2", "linestyle": "--"},
    "OL3": {"color": "C1", "linestyle": ":"},
    "OL1, bare formula": {"color": "C0", "linestyle": ":", "alpha": 0.7},
    DEFAULT_NAME: {"color": "k"},
    "SPAMS": {"color": "C8", "linestyle": "-.", "marker": ".", "markersize": 4},
    "scikit-learn": {"color": "C9", "linestyle": "-.", "marker": ".", "markersize": 4},
}

# The dictionaries at some times: samples seen, seconds, D.
Trace = list[tuple[int, float, Array]]


@dataclass(frozen=True)
class Sizes:
    """Numbers of patches: to learn from, and to measure by."""

    n: int = 1_000_000
    test: int = 20_000
    other: int = 5_000
    train: int = 5_000  # of those learned from, for the training objective
    end: int = 250_000  # of the test, for the last dictionary


FULL, QUICK = Sizes(), Sizes(4_096, 200, 100, 100, 400)


@dataclass(frozen=True)
class Limit:
    """When a curve ends: after so many samples or seconds, whichever is first."""

    samples: float = np.inf
    seconds: float = np.inf


@dataclass(frozen=True)
class Curve:
    """Costs against samples seen and seconds.

    ``cost`` is that of the test, ``other`` of other pictures, and ``train`` of patches learned from.
    """

    samples: Array
    seconds: Array
    cost: Array
    other: Array
    train: Array

    def at(self, seconds: Any, column: str = "cost") -> Array:
        """Return the cost at a time, interpolated in log time; the last cost after the end."""
        return np.interp(np.log(seconds), np.log(self.seconds), getattr(self, column))

    def after(self, samples: float, column: str = "cost") -> float:
        """Return the cost after this many samples."""
        return float(np.interp(np.log(samples), np.log(self.samples), getattr(self, column)))

    def seconds_to(self, target: float) -> float | None:
        """Return the time at which the cost reached ``target``; None if it never did."""
        below = np.flatnonzero(self.cost <= target)
        return float(self.seconds[below[0]]) if below.size else None


@dataclass(frozen=True, eq=False)
class Pool:
    """The patches of a setting."""

    train: Array
    test: Array
    other: Array
    k: int
    lam: float


@lru_cache(maxsize=1)  # B and C are large
def _pool(name: Literal["A", "B", "C"], size: Sizes, data: Data, quick: bool) -> Pool:
    """Draw the patches: those of the test after those to learn from, out of the same pictures."""
    setting = paper_setting(
        name, size.n + size.end, size.other, random_state=0, images=data.pictures
    )
    k = QUICK_ATOMS if quick else setting.n_atoms
    return Pool(setting.train[: size.n], setting.train[size.n :], setting.test, k, setting.lam)


class Bench:
    """One of the settings A, B, C with its patches, drawn when they are first needed."""

    def __init__(self, study: Study, name: Any) -> None:
        self.study, self.name = study, name
        self.sizes = QUICK if study.quick else FULL

    @property
    def pool(self) -> Pool:
        """The patches."""
        return _pool(self.name, self.sizes, self.study.data, self.study.quick)

    def first(self, start: int) -> Array:
        """Return random patches, as in the paper: the first dictionary of every method."""
        chosen = np.random.default_rng(start).permutation(self.sizes.n)[: self.pool.k]
        return self.pool.train[np.sort(chosen)]

    def task(
        self, method: Any, start: int, limit: Limit, *, n: int | None = None, end: bool = False
    ) -> Task:
        """Return the part that computes a curve on one thread, from the first n patches.

        ``method`` is a learner, or a function that returns a trace. ``end`` also measures the last
        dictionary on all of the test.
        """
        training = min(limit.seconds, limit.samples / RATE[self.name])
        points = 1 + max(0.0, np.log(training / FIRST) / np.log(SPACING))
        measured = points * (self.sizes.test + self.sizes.other + self.sizes.train)
        measured += self.sizes.end if end else 0
        settings = {
            "set": self.name, "method": getattr(method, "__name__", repr(method)), "start": start,
            "n": n or self.sizes.n, "limit": repr(limit), "end": end, "sizes": repr(self.sizes),
            "k": QUICK_ATOMS if self.study.quick else "the paper's",
        }  # fmt: skip
        return Task(
            "curve",
            settings,
            lambda: self._curve(method, start, limit, n, end=end),
            (training + measured / RATE[self.name]) / 60.0,
        )

    def _curve(self, method: Any, start: int, limit: Limit, n: int | None, *, end: bool) -> Part:
        X, D0, lam = self.pool.train[:n], self.first(start), self.pool.lam
        trace: Callable[..., Trace] = method if callable(method) else trace_learner
        with blas_threads(1):
            if not callable(method):  # compile the kernels before time is measured
                trace_learner(X[:2048], D0, lam, Limit(1), start, method)
            found = trace(X, D0, lam, limit, start, method)
        columns = {"cost": self.pool.test[: self.sizes.test], "other": self.pool.other,
                   "train": self.pool.train[: min(self.sizes.train, len(X))]}  # fmt: skip
        part: Part = {
            "samples": [samples for samples, _, _ in found],
            "seconds": [seconds for _, seconds, _ in found],
            "first": {key: mean_cost(rows, D0, lam)[0] for key, rows in columns.items()},
        }
        for key, rows in columns.items():
            part[key] = [mean_cost(rows, D, lam)[0] for _, _, D in found]
        part["nonzeros"] = mean_cost(columns["cost"], found[-1][2], lam)[1]
        if end:
            part["end"] = mean_cost(self.pool.test, found[-1][2], lam)[0]
        return part


def trace_learner(X: Array, D0: Array, lam: float, limit: Limit, seed: int, learner: Any) -> Trace:
    """Learn on one thread; the clock stops while a dictionary is copied."""
    kept: Trace = []
    stopped, begin = 0.0, time.process_time()

    def watch(state: Any, record: Any) -> bool:
        nonlocal stopped
        now = time.process_time()
        used = now - begin - stopped
        over = record.samples >= limit.samples or used >= limit.seconds
        if over or used >= (SPACING * kept[-1][1] if kept else FIRST):
            kept.append((record.samples, used, state.D.copy()))
        stopped += time.process_time() - now
        return over

    # The paper replaces unused atoms by random samples; the defaults do as they do.
    replacement = None if learner == DEFAULT else Replacement(random=True)
    result = learn(
        X, len(D0), Lasso(lam), learner=learner, init=D0, max_epochs=10**6, callbacks=[watch],
        replacement=replacement, n_threads=1, random_state=seed,
    )  # fmt: skip
    if result.stopped == "interrupt":
        raise KeyboardInterrupt
    return kept


def mean_cost(X: Array, D: Array, lam: float) -> tuple[float, float]:
    """Return the mean cost with exact codes, summed up in float64, and the mean of nonzeros."""
    total, nonzeros = 0.0, 0
    D = np.ascontiguousarray(D, X.dtype)
    for first in range(0, len(X), 10_000):
        rows = X[first : first + 10_000]
        codes = encode(rows, D, Lasso(lam), n_threads=1)
        total += float(costs(rows, D, codes, lam).sum())
        nonzeros += codes.nnz
    return total / len(X), nonzeros / len(X)


def as_curve(part: Part) -> Curve:
    """Return the curve of a part."""
    keys = ("samples", "seconds", "cost", "other", "train")
    return Curve(*(np.array(part[key]) for key in keys))


def mean_curve(curves: Sequence[Curve], by: str = "seconds") -> Curve:
    """Return the average of several curves at the same seconds, or samples, where all have a value."""
    places = [np.log(getattr(curve, by)) for curve in curves]
    first, last = max(x[0] for x in places), min(x[-1] for x in places)
    at = np.linspace(first, max(last, first), max(map(len, places)))
    means = {
        name: np.mean(
            [np.interp(at, x, getattr(c, name)) for x, c in zip(places, curves, strict=True)],
            axis=0,
        )
        for name in vars(curves[0])
    }
    return Curve(**(means | {by: np.exp(at)}))


def draw(
    ax: Any,
    runs: dict[str, list[Curve]],
    title: str,
    styles: dict[str, dict[str, Any]],
    *,
    by: str = "seconds",
    column: str = "cost",
) -> None:
    """Draw the mean cost against time or samples, with a band from the least to the most."""
    for name, curves in runs.items():
        style = styles.get(name, {})
        mean = mean_curve(curves, by)
        x = getattr(mean, by)
        (line,) = ax.plot(x, getattr(mean, column), label=name, linewidth=1.5, **style)
        if len(curves) > 1:
            each = np.array(
                [np.interp(np.log(x), np.log(getattr(c, by)), getattr(c, column)) for c in curves]
            )
            ax.fill_between(
                x,
                each.min(axis=0),
                each.max(axis=0),
                color=line.get_color(),
                alpha=0.2,
                linewidth=0,
            )
    ax.set_xscale("log")
    if by == "seconds":
        ax.set_xlim(left=0.1)  # as in the paper
    every = [getattr(curve, column) for curves in runs.values() for curve in curves]
    low = min(values.min() for values in every)
    high = min(max(values[0] for values in every), 1.12 * low)
    ax.set_ylim(low - 0.04 * (high - low), high)
    x_label = "processor seconds" if by == "seconds" else "samples seen"
    label(ax, title, x_label, "cost" if column == "cost" else f"cost ({column})")


def records(runs: dict[str, list[Curve]]) -> dict[str, list[dict[str, Array]]]:
    """Return the curves for JSON."""
    return {name: [dict(vars(run)) for run in each] for name, each in runs.items()}
