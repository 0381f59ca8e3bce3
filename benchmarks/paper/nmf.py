"""Figure 2: non-negative matrix factorization and non-negative sparse coding on D, E and F.

Cost of the data set against processor time. Online learning with the paper's settings (η = 512,
ρ = 0, t₀ = 0) and smalto's `NMF` are compared with the rules of Lee and Seung for NMF, with
Hoyer's for NNSC, with SPAMS, and with scikit-learn (for NMF only: its penalties define a problem
other than NNSC). All start from the same random D ≥ 0 and run on one thread in float32. The time
of a method that learns only D includes coding all the data once. Means of three starts.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.paper import multiplicative
from benchmarks.paper.curves import Curve, draw, mean_curve
from benchmarks.paper.frame import Part, Study, Verdict, new_figure
from benchmarks.peers.common import Array, blas_threads, importable
from smalto import NMF, encode, learn
from smalto.coders import Lasso
from smalto.constraints import L2Ball
from smalto.learners import Online

TITLE = "Figure 2: NMF and NNSC"
SPACING = 1.7  # between the times at which a factorization is measured
FOREVER = 10**6  # epochs: runs stop by time
ONLINE, ESTIMATOR = "online, as in the paper", "smalto NMF"
RULES = {"NMF": "Lee and Seung", "NNSC": "Hoyer"}


@dataclass(frozen=True)
class Size:
    """Maximum number of samples, number of atoms, and share of the time."""

    n: int
    k: int
    share: float


FULL = {"D": Size(2_429, 49, 0.15), "E": Size(2_414, 49, 0.45), "F": Size(30_000, 64, 0.4)}
QUICK = {"D": Size(300, 16, 0.5), "F": Size(500, 16, 0.5)}


@dataclass(frozen=True, eq=False)
class Task:
    """A data set, an initial dictionary, a penalty and a time limit."""

    X: Array
    D0: Array
    lam: float
    seconds: float
    seed: int

    def cost(self, codes: Any, D: Array) -> float:
        """Return the mean cost of the data set, in float64."""
        total = 0.0
        for first in range(0, len(self.X), 2048):
            part = codes[first : first + 2048].astype(np.float64)
            residual = self.X[first : first + 2048] - part @ D.astype(np.float64)
            total += 0.5 * float(np.vdot(residual, residual)) + self.lam * float(part.sum())
        return total / len(self.X)


class Watch:
    """Record points of a curve while a method runs, with its clock stopped."""

    def __init__(self, task: Task) -> None:
        self.task, self.seconds, self.cost = task, [], []
        self._begin, self._stopped = time.process_time(), 0.0

    def now(self) -> float:
        """Return the seconds that the method has run."""
        return time.process_time() - self._begin - self._stopped

    def __call__(self, codes: Any, D: Array) -> bool:
        """Record a point if one is due; return whether the time is over."""
        now = self.now()
        over = now >= self.task.seconds
        if over or not self.seconds or now >= SPACING * self.seconds[-1]:
            begin = time.process_time()
            self.seconds.append(now)
            self.cost.append(self.task.cost(codes, D))
            self._stopped += time.process_time() - begin
        return over


def run_rules(task: Task) -> Part:
    """Run the rules of Lee and Seung if there is no penalty, else those of Hoyer."""
    rng = np.random.default_rng(task.seed)
    D = task.D0.copy()
    codes = rng.random((len(task.X), len(D))).astype(D.dtype) / len(D)
    watch = Watch(task)
    if task.lam == 0.0:
        multiplicative.lee_seung(task.X, D, codes, watch)
    else:
        multiplicative.hoyer(task.X, D, codes, task.lam, watch)
    return {"seconds": watch.seconds, "cost": watch.cost}


def run_online(task: Task) -> Part:
    """Run online learning with the paper's settings."""

    def fit(watch: Any) -> None:
        learn(
            task.X,
            len(task.D0),
            Lasso(task.lam, positive=True),
            L2Ball(positive=True),
            Online(512, rho=0.0, slack=0.0),
            init=task.D0,
            max_epochs=FOREVER,
            callbacks=[watch],
            n_threads=1,
            random_state=task.seed,
        )

    return watched(task, fit)


def run_estimator(task: Task) -> Part:
    """Run smalto's estimator, which alternates between codes and atoms."""

    def fit(watch: Any) -> None:
        NMF(
            len(task.D0),
            lam=task.lam,
            init=task.D0,
            max_epochs=FOREVER,
            tol=0.0,
            callbacks=(watch,),
            n_threads=1,
            random_state=task.seed,
        ).fit(task.X)

    return watched(task, fit)


def watched(task: Task, fit: Callable[[Any], None]) -> Part:
    """Learn D until the time is over; each point of the curve codes all the data once."""
    kept: list[tuple[float, Array]] = []
    begin = time.process_time()  # recording costs only a copy of D now and then
    last: float | None = None

    def watch(state: Any, record: Any) -> bool:
        nonlocal last
        now = time.process_time() - begin
        last = now
        over = now >= task.seconds
        if over or not kept or now >= SPACING * kept[-1][0]:
            kept.append((now, state.D.copy()))
        return over

    fit(watch)
    if last is None or last < task.seconds:
        raise KeyboardInterrupt  # it stops by time only
    coder = Lasso(task.lam, positive=True)
    return coded(task, kept, lambda D: encode(task.X, D, coder, n_threads=1))


def run_spams(task: Task) -> Part:
    """Run what ``spams.nmf`` and ``spams.nnsc`` call, from the given initial dictionary."""
    import spams

    X, D0 = np.asfortranarray(task.X.T), np.asfortranarray(task.D0.T)

    def fit(steps: int) -> tuple[Any, Array]:
        D = spams.trainDL(
            X,
            D=D0.copy(order="F"),
            lambda1=task.lam,
            mode=2,
            posAlpha=True,
            posD=True,
            iter=steps,
            batchsize=512,
            numThreads=1,
            verbose=False,
        )
        codes = spams.lasso(X, D=D, lambda1=task.lam, mode=2, pos=True, numThreads=1)
        return codes.T.tocsr(), np.ascontiguousarray(D.T)

    return doubling(task, fit)


def run_sklearn(task: Task, solver: str) -> Part:
    """Run scikit-learn's NMF."""
    from sklearn.decomposition import non_negative_factorization
    from sklearn.exceptions import ConvergenceWarning

    rng = np.random.default_rng(task.seed)
    codes0 = rng.random((len(task.X), len(task.D0))).astype(task.D0.dtype) / len(task.D0)

    def fit(iterations: int) -> tuple[Any, Array]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            codes, D, _ = non_negative_factorization(
                task.X,
                W=codes0.copy(),
                H=task.D0.copy(),
                init="custom",
                solver=solver,
                tol=0.0,
                n_components=len(task.D0),
                max_iter=iterations,
            )
        return codes, D

    return doubling(task, fit)


def doubling(task: Task, fit: Callable[[int], tuple[Any, Array]]) -> Part:
    """Run a method without callbacks separately for 1, 2, 4, ... iterations."""
    found: Part = {"seconds": [], "cost": []}
    iterations = 1
    while not found["seconds"] or found["seconds"][-1] < 0.6 * task.seconds:
        begin = time.process_time()
        codes, D = fit(iterations)
        found["seconds"].append(time.process_time() - begin)
        found["cost"].append(task.cost(codes, D))
        iterations *= 2
    return found


def coded(task: Task, kept: list[tuple[float, Array]], code: Callable[[Array], Any]) -> Part:
    """Add the time of coding all the data once to each point."""
    found: Part = {"seconds": [], "cost": []}
    for seconds, D in kept:
        begin = time.process_time()
        codes = code(D)
        found["seconds"].append(seconds + time.process_time() - begin)
        found["cost"].append(task.cost(codes, D))
    return found


def methods(problem: str) -> dict[str, Callable[[Task], Part]]:
    """Return the methods to run."""
    found: dict[str, Callable[[Task], Part]] = {
        ONLINE: run_online,
        ESTIMATOR: run_estimator,
        RULES[problem]: run_rules,
    }
    if importable("spams"):
        found["SPAMS"] = run_spams
    if problem == "NMF":
        found["scikit-learn cd"] = lambda task: run_sklearn(task, "cd")
        found["scikit-learn mu"] = lambda task: run_sklearn(task, "mu")
    return found


def run(study: Study) -> None:
    """Run the experiment."""
    sizes = QUICK if study.quick else FULL
    starts = 1 if study.quick else 3
    figure, axes = new_figure(len(sizes), 2)
    rows, verdicts, results = [], [], {}
    for line, problem in zip(axes, RULES, strict=True):
        for ax, (name, size) in zip(line, sizes.items(), strict=True):
            curves = data_set(study, problem, name, size, starts)
            draw(ax, curves, f"{problem} on {name}", {label: {"marker": "."} for label in curves})
            ends = [curve.cost[-1] for curve in curves.values()]
            ax.set_yscale("log")
            ax.set_ylim(0.9 * min(ends), 1.1 * max(curve.cost[0] for curve in curves.values()))
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_minor_formatter("")
            ax.set_ylabel("cost of the data set", fontsize=8)
            ax.set_xlabel("processor seconds, coding included", fontsize=8)
            results[f"{problem} {name}"] = {
                label: {"seconds": curve.seconds.tolist(), "cost": curve.cost.tolist()}
                for label, curve in curves.items()
            }
            rule = curves[RULES[problem]]
            for label, curve in curves.items():
                rows.append(
                    [
                        problem,
                        name,
                        label,
                        f"{curve.seconds[0]:.2f}",
                        f"{curve.cost[0]:.5f}",
                        f"{curve.seconds[-1]:.1f}",
                        f"{curve.cost[-1]:.5f}",
                        _ratio(curve, rule),
                    ]
                )
            verdicts.append(judge(problem, name, curves))
        line[0].legend(fontsize=6, frameon=False)
    header = [
        "",
        "set",
        "method",
        "first s",
        "cost",
        "last s",
        "cost",
        "times sooner at the rule's last cost",
    ]
    note = (
        f"processor seconds, one thread, float32, mean of {starts} starts from the same random D ≥ 0; F has "
        f"{sizes['F'].n:,} patches"
    )
    notes = [note]
    study.finish(TITLE, figure, header, rows, verdicts, results, notes)


def data_set(study: Study, problem: str, name: str, size: Size, starts: int) -> dict[str, Curve]:
    """Return the mean curve of each method."""
    chosen = methods(problem)
    seconds = float(f"{0.6 * study.seconds * size.share / starts / 9:.2g}")
    X: Array | None = None
    found = {}
    for label, method in chosen.items():
        runs = []
        for start in range(starts):
            settings = {
                "problem": problem,
                "set": name,
                "n": size.n,
                "k": size.k,
                "method": label,
                "start": start,
                "seconds": seconds,
            }

            def compute(method: Any = method, start: int = start) -> Part:
                nonlocal X
                if X is None:
                    X = study.data.vectors(name, size.n, center=False)[0]
                D0 = random_dictionary(size.k, X.shape[1], start)
                lam = 0.0 if problem == "NMF" else 1.0 / np.sqrt(X.shape[1])
                with blas_threads(1):
                    method(Task(X[:64], D0, lam, 0.0, start))  # compile the kernels
                    return method(Task(X, D0, lam, seconds, start))

            part = study.part("nmf", settings, compute)
            points = np.array(part["seconds"]), np.array(part["cost"])
            runs.append(Curve(np.arange(1.0, 1.0 + len(points[0])), *points))
        found[label] = mean_curve(runs)
    return found


def random_dictionary(k: int, m: int, seed: int) -> Array:
    """Return non-negative random atoms of norm 1."""
    D = np.random.default_rng(1000 + seed).random((k, m), dtype=np.float32)
    return D / np.linalg.norm(D, axis=1, keepdims=True)


def _ratio(curve: Curve, rule: Curve) -> str | None:
    when = curve.seconds_to(float(rule.cost[-1]))
    return None if when is None else f"{rule.seconds[-1] / when:.1f}"


def judge(problem: str, name: str, curves: dict[str, Curve]) -> Verdict:
    """Check that the online method is well ahead of the rules."""
    rule = curves[RULES[problem]]
    target = float(rule.cost[-1])
    when = {label: curves[label].seconds_to(target) for label in (ONLINE, ESTIMATOR)}
    said = ", ".join(
        f"{label} {'never' if at is None else f'{rule.seconds[-1] / at:.1f} times sooner'}"
        for label, at in when.items()
    )
    others = {label: float(curve.cost[-1]) for label, curve in curves.items()}
    best = min(others, key=others.__getitem__)
    return Verdict(
        f"{problem} on {name}: online learning is significantly faster than {RULES[problem]}.",
        when[ONLINE] is not None and rule.seconds[-1] > 1.5 * when[ONLINE],
        f"the cost that {RULES[problem]} has after {rule.seconds[-1]:.1f} s ({target:.5f}) is "
        f"reached: {said}; the lowest cost at the end is that of {best} ({others[best]:.5f})",
    )
