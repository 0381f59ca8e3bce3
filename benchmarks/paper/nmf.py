"""Figure 2: non-negative matrix factorization and non-negative sparse coding on D, E and F.

Cost of the data set against processor time. Online learning with the paper's settings (η = 512,
ρ = 0, t₀ = 0) and smalto's `NMF` are compared with the rules of Lee and Seung for NMF, with
Hoyer's for NNSC, with SPAMS, and with scikit-learn (for NMF only: its penalties define a problem
other than NNSC); online NMF also with the last code of each sample only (Section 3.4.1), and with
ρ = 15. All start from the same random D ≥ 0 and run on one thread in float32, except smalto in NMF,
which is in float64 here. The time of a method that learns only D includes coding all the data once,
as in the paper. Methods are compared by when they come within 10, 5, 2 and 1 % of the lowest cost that
any of them has reached.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.paper import multiplicative
from benchmarks.paper.frame import Claim, Key, Part, Study, Task, Verdict, label, legend, new_figure
from benchmarks.peers.common import Array, blas_threads, importable
from smalto import NMF, encode, learn
from smalto.coders import Lasso
from smalto.constraints import L2Ball
from smalto.learners import Online

TITLE = "Figure 2: NMF and NNSC"
SPACING = 1.5  # between the times at which a factorization is measured
FOREVER = 10**6  # epochs: runs stop by time
ONLINE, ESTIMATOR = "online, as in the paper", "smalto NMF"
RULES = {"NMF": "Lee and Seung", "NNSC": "Hoyer"}
PAPER = Online(512, rho=0.0, slack=0.0)
VARIANTS = {  # why online learning is slow where it is
    "online, last codes only": replace(PAPER, memory="replace"),
    "online, ρ = 15": replace(PAPER, rho=15.0),
}
STARTS = 3
PRECISIONS = (0.1, 0.05, 0.02, 0.01)  # above the lowest cost
SOONER = 2.0  # times: what "a significant improvement in speed" means


@dataclass(frozen=True)
class Size:
    """Maximum number of samples, number of atoms, and seconds of a curve."""

    n: int
    k: int
    seconds: float


FULL = {"D": Size(2_429, 49, 10.0), "E": Size(2_414, 49, 60.0), "F": Size(100_000, 64, 60.0)}
QUICK = {"D": Size(300, 16, 0.1), "F": Size(500, 16, 0.1)}

CLAIMS = tuple(
    Claim(
        f"{problem} {name}",
        f"{problem} on {name}: online learning is significantly faster than {rule}.",
        "Online learning, as in the paper, comes within 10 % of the lowest cost at least 2 times "
        "sooner, and so for each of 5, 2 and 1 % that one of the two reaches (not reached: the time "
        "of the whole run); in part: for some of them.",
    )
    for problem, rule in RULES.items()
    for name in FULL
)


@dataclass(frozen=True, eq=False)
class Work:
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

    def __init__(self, work: Work) -> None:
        self.work, self.seconds, self.cost = work, [], []
        self._begin, self._stopped = time.process_time(), 0.0

    def now(self) -> float:
        """Return the seconds that the method has run."""
        return time.process_time() - self._begin - self._stopped

    def __call__(self, codes: Any, D: Array) -> bool:
        """Record a point if one is due; return whether the time is over."""
        now = self.now()
        over = now >= self.work.seconds
        if over or not self.seconds or now >= SPACING * self.seconds[-1]:
            begin = time.process_time()
            self.seconds.append(now)
            self.cost.append(self.work.cost(codes, D))
            self._stopped += time.process_time() - begin
        return over


def run_rules(work: Work) -> Part:
    """Run the rules of Lee and Seung if there is no penalty, else those of Hoyer."""
    rng = np.random.default_rng(work.seed)
    D = work.D0.copy()
    codes = rng.random((len(work.X), len(D))).astype(D.dtype) / len(D)
    watch = Watch(work)
    if work.lam == 0.0:
        multiplicative.lee_seung(work.X, D, codes, watch)
    else:
        multiplicative.hoyer(work.X, D, codes, work.lam, watch)
    return {"seconds": watch.seconds, "cost": watch.cost}


def run_online(work: Work, learner: Online = PAPER) -> Part:
    """Run online learning, by default with the paper's settings."""

    def fit(watch: Any) -> None:
        learn(
            work.X,
            len(work.D0),
            Lasso(work.lam, positive=True),
            L2Ball(positive=True),
            learner,
            init=work.D0,
            max_epochs=FOREVER,
            callbacks=[watch],
            n_threads=1,
            random_state=work.seed,
        )

    return watched(work, fit)


def run_estimator(work: Work) -> Part:
    """Run smalto's estimator, which alternates between codes and atoms."""

    def fit(watch: Any) -> None:
        NMF(
            len(work.D0),
            lam=work.lam,
            init=work.D0,
            max_epochs=FOREVER,
            tol=0.0,
            callbacks=(watch,),
            n_threads=1,
            random_state=work.seed,
        ).fit(work.X)

    return watched(work, fit)


def watched(work: Work, fit: Callable[[Any], None]) -> Part:
    """Learn D until the time is over; each point of the curve codes all the data once."""
    kept: list[tuple[float, Array]] = []
    begin = time.process_time()  # recording costs only a copy of D now and then
    last: float | None = None

    def watch(state: Any, record: Any) -> bool:
        nonlocal last
        now = time.process_time() - begin
        last = now
        over = now >= work.seconds
        if over or not kept or now >= SPACING * kept[-1][0]:
            kept.append((now, state.D.copy()))
        return over

    fit(watch)
    if last is None or last < work.seconds:
        raise KeyboardInterrupt  # it stops by time only
    coder = Lasso(work.lam, positive=True)
    return coded(work, kept, lambda D: encode(work.X, D, coder, n_threads=1))


def run_spams(work: Work) -> Part:
    """Run what ``spams.nmf`` and ``spams.nnsc`` call, from the given initial dictionary."""
    import spams

    X, D0 = np.asfortranarray(work.X.T), np.asfortranarray(work.D0.T)

    def fit(steps: int) -> tuple[Any, Array]:
        D = spams.trainDL(
            X,
            D=D0.copy(order="F"),
            lambda1=work.lam,
            mode=2,
            posAlpha=True,
            posD=True,
            iter=steps,
            batchsize=512,
            numThreads=1,
            verbose=False,
        )
        codes = spams.lasso(X, D=D, lambda1=work.lam, mode=2, pos=True, numThreads=1)
        return codes.T.tocsr(), np.ascontiguousarray(D.T)

    return doubling(work, fit)


def run_sklearn(work: Work, solver: str) -> Part:
    """Run scikit-learn's NMF."""
    from sklearn.decomposition import non_negative_factorization
    from sklearn.exceptions import ConvergenceWarning

    rng = np.random.default_rng(work.seed)
    codes0 = rng.random((len(work.X), len(work.D0))).astype(work.D0.dtype) / len(work.D0)

    def fit(iterations: int) -> tuple[Any, Array]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            codes, D, _ = non_negative_factorization(
                work.X,
                W=codes0.copy(),
                H=work.D0.copy(),
                init="custom",
                solver=solver,
                tol=0.0,
                n_components=len(work.D0),
                max_iter=iterations,
            )
        return codes, D

    return doubling(work, fit)


def doubling(work: Work, fit: Callable[[int], tuple[Any, Array]]) -> Part:
    """Run a method without callbacks separately for 1, 2, 4, ... iterations."""
    found: Part = {"seconds": [], "cost": []}
    iterations = 1
    while not found["seconds"] or found["seconds"][-1] < 0.6 * work.seconds:
        begin = time.process_time()
        codes, D = fit(iterations)
        found["seconds"].append(time.process_time() - begin)
        found["cost"].append(work.cost(codes, D))
        iterations *= 2
    return found


def coded(work: Work, kept: list[tuple[float, Array]], code: Callable[[Array], Any]) -> Part:
    """Add the time of coding all the data once to each point."""
    found: Part = {"seconds": [], "cost": []}
    for seconds, D in kept:
        begin = time.process_time()
        codes = code(D)
        found["seconds"].append(seconds + time.process_time() - begin)
        found["cost"].append(work.cost(codes, D))
    return found


def methods(problem: str) -> dict[str, Callable[[Work], Part]]:
    """Return the methods to run."""
    found: dict[str, Callable[[Work], Part]] = {
        ONLINE: run_online,
        ESTIMATOR: run_estimator,
        RULES[problem]: run_rules,
    }
    if importable("spams"):
        found["SPAMS"] = run_spams
    if problem == "NMF":
        found["scikit-learn cd"] = lambda work: run_sklearn(work, "cd")
        found["scikit-learn mu"] = lambda work: run_sklearn(work, "mu")
        for name, learner in VARIANTS.items():
            found[name] = partial(run_online, learner=learner)
    return found


def tasks(study: Study) -> dict[Key, Task]:
    """Return the parts."""
    found: dict[Key, Task] = {}
    for name, size in (QUICK if study.quick else FULL).items():
        for problem, rule in RULES.items():
            for method, run in methods(problem).items():
                ours = method in (ONLINE, ESTIMATOR, rule)
                for start in range(STARTS if ours and not study.quick else 1):
                    settings = {"problem": problem, "set": name, "n": size.n, "k": size.k,
                                "method": method, "start": start, "seconds": size.seconds}  # fmt: skip

                    def compute(
                        problem: str = problem, name: str = name, size: Size = size, run: Any = run,
                        start: int = start, method: str = method,
                    ) -> Part:  # fmt: skip
                        X = study.data.vectors(name, size.n, center=False)[0]
                        if problem == "NMF" and method in (ONLINE, ESTIMATOR, *VARIANTS):
                            X = X.astype(np.float64)
                        D0 = random_dictionary(size.k, X.shape[1], start).astype(X.dtype)
                        lam = 0.0 if problem == "NMF" else 1.0 / np.sqrt(X.shape[1])
                        with blas_threads(1):
                            run(Work(X[:64], D0, lam, 0.0, start))  # compile the kernels
                            return run(Work(X, D0, lam, size.seconds, start))

                    minutes = size.seconds / 60.0 * (1.3 if ours or method in VARIANTS else 2.5)
                    found[problem, name, method, start] = Task("nmf", settings, compute, minutes)
    return found


def random_dictionary(k: int, m: int, seed: int) -> Array:
    """Return non-negative random atoms of norm 1."""
    D = np.random.default_rng(1000 + seed).random((k, m), dtype=np.float32)
    return D / np.linalg.norm(D, axis=1, keepdims=True)


def report(study: Study, parts: dict[Key, Part]) -> None:
    """Judge the claims, draw the figure, write the table."""
    names = list(dict.fromkeys(key[1] for key in parts))
    figure, axes = new_figure(len(names), 2, height=3.6)
    rows: list[list[Any]] = []
    verdicts, results = {}, {}
    for line, problem in zip(axes, RULES, strict=True):
        for ax, name in zip(line, names, strict=True):
            runs: dict[str, list[Part]] = {}
            for key, part in parts.items():
                if key[:2] == (problem, name):
                    runs.setdefault(key[2], []).append(part)
            lowest = min(min(part["cost"]) for each in runs.values() for part in each)
            draw(ax, runs, f"{problem} on {name}", lowest)
            when = {method: [reach(each, lowest * (1 + p)) for p in PRECISIONS]
                    for method, each in runs.items()}  # fmt: skip
            for method, each in runs.items():
                last = np.mean([part["cost"][-1] for part in each])
                seconds = np.mean([part["seconds"][-1] for part in each])
                times = [None if np.isinf(t) else f"{t:.2g}" for t in when[method]]
                rows.append([problem, name, method, *times, f"{last:.5f}", f"{seconds:.3g}"])
            verdicts[f"{problem} {name}"] = judge(when, RULES[problem], longest(runs))
            results[f"{problem} {name}"] = {
                method: [{key: part[key] for key in ("seconds", "cost")} for part in each]
                for method, each in runs.items()
            }
    legend(figure, axes, 4)
    header = ("", "set", "method", *(f"s to {100 * p:g} %" for p in PRECISIONS), "last cost", "s")
    sizes = QUICK if study.quick else FULL
    notes = [
        (
            "Processor seconds of one thread, coding included; mean of three starts (SPAMS, "
            f"scikit-learn and variants of online learning: one). Curves of {', '.join(f'{s.seconds:g} s ({n})' for n, s in sizes.items())}."
        ),
        "An empty cell: not reached.",
    ]
    study.finish(sys.modules[__name__], figure, header, rows, verdicts, parts, results, notes)


def draw(ax: Any, runs: dict[str, list[Part]], title: str, lowest: float) -> None:
    """Draw the excess over the lowest cost against time, from 0.1 s on, a line for each start."""
    for number, (method, each) in enumerate(runs.items()):
        for part in each:
            excess = np.maximum(np.array(part["cost"]) / lowest - 1, 1e-4)
            ax.plot(part["seconds"], excess, ".-", color=f"C{number}", markersize=3, linewidth=1.2,
                    label=method)  # fmt: skip
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(left=0.1)
    ax.set_ylim(5e-4, 3)
    label(ax, title, "processor seconds", "cost / lowest − 1")


def reach(runs: list[Part], target: float) -> float:
    """Return the mean time at which the cost is reached; infinity if a start does not."""
    times = []
    for part in runs:
        below = [s for s, c in zip(part["seconds"], part["cost"], strict=True) if c <= target]
        times.append(below[0] if below else np.inf)
    return float(np.mean(times))


def longest(runs: dict[str, list[Part]]) -> float:
    """Return the length of the longest run."""
    return max(part["seconds"][-1] for each in runs.values() for part in each)


def judge(when: dict[str, list[float]], rule: str, end: float) -> Verdict:
    """Compare online learning with the rule at each precision that one of them reaches."""
    said, answers = [], []
    for precision, ours, theirs in zip(PRECISIONS, when[ONLINE], when[rule], strict=True):
        if np.isinf(ours) and np.isinf(theirs):
            said.append(f"{100 * precision:g} %: neither")
            answers += [False] if precision == PRECISIONS[0] else []
            continue
        ratio = min(theirs, end) / min(ours, end)
        bound = "over " if np.isinf(theirs) else "under " if np.isinf(ours) else ""
        answers.append(bool(ratio >= SOONER))
        said.append(f"{100 * precision:g} %: {bound}{ratio:.1f}")
    return Verdict.of(all(answers), "times sooner, to " + ", ".join(said), any(answers))
