"""Time that each library takes to learn a dictionary of a given quality.

Every method gets the same patches, initial dictionary, penalty, dtype and number of threads. Its
dictionaries are evaluated on held-out patches with its clock stopped. The target is the test cost
of SPAMS's ``trainDL`` after one pass over the patches.

Run it with ``python -m benchmarks.peers.learning``.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.common import (
    Array,
    Problem,
    Yardstick,
    announce,
    blas_threads,
    importable,
    load,
    machine,
    parser,
    save,
    spaced,
    table,
)
from smalto import learn
from smalto.coders import Lasso

BATCH = 512  # of SPAMS: the paper's
SMALTO, SPAMS = "smalto", "SPAMS trainDL"
COLORS = {SMALTO: "C0", SPAMS: "C1", "scikit-learn cd": "C2", "scikit-learn lars": "C3"}


@dataclass(frozen=True)
class Curve:
    """Test cost against training time, with one entry per evaluated dictionary."""

    method: str
    samples: list[int]
    seconds: list[float]
    cost: list[float]

    def seconds_to(self, target: float) -> float | None:
        """Return the time of the first dictionary at least as good as ``target``."""
        return next((s for s, c in zip(self.seconds, self.cost, strict=True) if c <= target), None)


def smalto_run(problem: Problem, threads: int) -> tuple[list[int], list[float], list[Array]]:
    """Return samples, seconds and dictionary at some steps of one pass with smalto's defaults.

    The clock starts before the call, so that checking the data counts.
    """
    samples: list[int] = []
    seconds: list[float] = []
    dictionaries: list[Array] = []
    due = set(spaced(len(problem.train), 1.05))
    stopped = 0.0
    begin = time.perf_counter()

    def watch(state: Any, record: Any) -> None:
        nonlocal stopped
        now = time.perf_counter()
        if record.step in due or state.epoch == 1:
            samples.append(record.samples)
            seconds.append(now - begin - stopped)
            dictionaries.append(state.D.copy())
        stopped += time.perf_counter() - now

    learn(
        problem.train, len(problem.D0), Lasso(problem.lam), init=problem.D0, callbacks=[watch],
        max_epochs=1, n_threads=threads, random_state=0,
    )  # fmt: skip
    seconds[-1] = time.perf_counter() - begin - stopped
    return samples, seconds, dictionaries


def spams_run(X: Array, D0: Array, lam: float, steps: int, threads: int) -> tuple[float, Array]:
    """Return the seconds of ``trainDL`` for a number of mini-batches, and its dictionary (k, m).

    X and D0 are as SPAMS requires: one signal per column, in Fortran order.
    """
    import spams

    first = D0.copy(order="F")
    with blas_threads(threads):
        begin = time.perf_counter()
        D = spams.trainDL(
            X, D=first, lambda1=lam, iter=steps, batchsize=BATCH, numThreads=threads,
            verbose=False,
        )  # fmt: skip
        seconds = time.perf_counter() - begin
    return seconds, np.ascontiguousarray(D.T)


def compare(
    problem: Problem, threads: Sequence[int], repeats: int, measure: Yardstick
) -> dict[int, list[Curve]]:
    """Run smalto and SPAMS with each number of threads, alternating between them."""
    steps = max(1, len(problem.train) // BATCH)
    has_spams = importable("spams")
    X, D0 = np.asfortranarray(problem.train.T), np.asfortranarray(problem.D0.T)
    ours: dict[int, list[Any]] = {count: [] for count in threads}
    theirs: dict[int, list[Any]] = {count: [] for count in threads}
    for _ in range(repeats):
        for count in threads:
            ours[count].append(smalto_run(problem, count))
            if has_spams and not _is_starved(theirs, count):
                theirs[count].append(spams_run(X, D0, problem.lam, steps, count))
    # SPAMS has no callback, and a run continued from its model starts again with the first
    # patches. But it is deterministic: a shorter run is the beginning of a longer one.
    shorter = [2**i for i in range(math.ceil(math.log2(steps)))] if has_spams else []
    curves: dict[int, list[Curve]] = {}
    for count in threads:
        samples, _, dictionaries = ours[count][0]
        for other in (run for runs in ours.values() for run in runs):
            assert np.array_equal(other[2][-1], dictionaries[-1]), "all runs must be identical"
        # All runs give the same dictionaries: each gets the shortest time of any run.
        seconds = np.min([run[1] for run in ours[count]], axis=0).tolist()
        curves[count] = [Curve(SMALTO, samples, seconds, [measure(D) for D in dictionaries])]
        if has_spams:
            numbers = [] if _is_starved(theirs, count) else shorter
            points = [spams_run(X, D0, problem.lam, number, count) for number in numbers]
            points.append(min(theirs[count], key=lambda run: run[0]))
            curves[count].append(
                Curve(
                    SPAMS,
                    [BATCH * number for number in [*numbers, steps]],
                    [min(point[0] for point in points[i:]) for i in range(len(points))],
                    [measure(point[1]) for point in points],
                )
            )
    return curves


def _is_starved(runs: dict[int, list[Any]], count: int) -> bool:
    """Return whether more threads only make it slower, so that one run is enough.

    SPAMS's threads wait for each other in a busy loop. On a busy machine it can take twenty times
    as long with two threads as with one.
    """
    best = [min(run[0] for run in kept) for kept in runs.values() if kept]
    return bool(runs[count]) and min(run[0] for run in runs[count]) > 1.5 * min(best)


class _Enough(Exception):
    """Raised to end scikit-learn's loop."""


def sklearn_run(
    problem: Problem, algorithm: str, threads: int, target: float, limit: float, measure: Yardstick
) -> Curve:
    """Run scikit-learn until it reaches the target or has trained for ``limit`` seconds."""
    from sklearn.decomposition import MiniBatchDictionaryLearning

    method = f"scikit-learn {algorithm}"
    curve = Curve(method, [], [], [])
    model: Any = None
    due = set(spaced(len(problem.train), 1.1))
    stopped = 0.0

    def watch(variables: dict[str, Any]) -> None:
        nonlocal stopped
        now = time.perf_counter()
        seconds, step = now - begin - stopped, variables["i"] + 1
        over = seconds > limit
        if step in due or over:
            curve.samples.append(step * model.batch_size)
            curve.seconds.append(seconds)
            curve.cost.append(measure(variables["dictionary"]))
            if over or curve.cost[-1] <= target:
                raise _Enough
        stopped += time.perf_counter() - now

    model = MiniBatchDictionaryLearning(
        len(problem.D0), alpha=problem.lam, fit_algorithm=algorithm, dict_init=problem.D0.copy(),
        max_iter=1000, tol=0.0, max_no_improvement=None, random_state=0, callback=watch,
    )  # fmt: skip
    with blas_threads(threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.perf_counter()
        with contextlib.suppress(_Enough):
            model.fit(problem.train)
    return curve


def warm_up(problem: Problem, threads: int, measure: Yardstick) -> None:
    """Compile the kernels, load the libraries, start the threads."""
    few = min(len(problem.train), 16 * len(problem.D0))
    small = replace(problem, train=problem.train[:few])
    smalto_run(small, threads)
    measure(problem.D0)
    if importable("spams"):
        X, D0 = np.asfortranarray(small.train.T), np.asfortranarray(problem.D0.T)
        spams_run(X, D0, problem.lam, 1, threads)


def run(problem: Problem, options: argparse.Namespace, measure: Yardstick) -> list[dict[str, Any]]:
    """Run all methods on one problem, with each number of threads."""
    for threads in options.threads:
        warm_up(problem, threads, measure)
    found = []
    for threads, curves in compare(problem, options.threads, options.repeats, measure).items():
        target = curves[-1].cost[-1]
        if problem.name in options.sklearn:
            curves += [
                sklearn_run(problem, algorithm, threads, target, options.sklearn_seconds, measure)
                for algorithm in ("cd", "lars")
            ]
        found.append({
            "setting": problem.name,
            "threads": threads,
            "dtype": problem.dtype,
            "target": target,
            "first_cost": measure(problem.D0),
            "methods": [
                {**vars(curve), "to_target": curve.seconds_to(target), "last": curve.seconds[-1]}
                for curve in curves
            ],
        })  # fmt: skip
    return found


def compare_fewer_threads(runs: list[dict[str, Any]]) -> None:
    """Return ratios to smalto's time, each method with its best number of threads up to this one.

    Methods that are slower with two threads than with one are compared with one.
    """
    for this in runs:
        same = [
            other
            for other in runs
            if (other["setting"], other["dtype"]) == (this["setting"], this["dtype"])
            and other["threads"] <= this["threads"]
        ]
        ours = this["methods"][0]["to_target"]
        for number, entry in enumerate(this["methods"]):
            entries = [other["methods"][number] for other in same] if number else [entry]
            reached = [e["to_target"] for e in entries if e["to_target"] is not None]
            entry["at_least"] = not reached
            best = min(reached) if reached else max(e["last"] for e in entries)
            entry["with_fewer"] = bool(reached) and best != entry["to_target"]
            entry["ratio"] = None if ours is None else best / ours


def show(problem: Problem, runs: list[dict[str, Any]]) -> None:
    """Print the table of one setting."""
    print(problem.title())
    print(
        f"{len(problem.train):,} patches to learn from, {len(problem.test):,} to test on; target: "
        "the test cost of SPAMS after one pass"
    )
    rows = []
    for this in runs:
        label = [str(this["threads"]), this["dtype"], f"{this['target']:.5f}"]
        for entry in this["methods"]:
            missed = entry["to_target"] is None
            ratio = entry["ratio"]
            rows.append([
                *label,
                entry["method"],
                f"> {entry['last']:.3g}" if missed else f"{entry['to_target']:.3g}",
                "" if ratio is None else f"{'> ' if entry['at_least'] else ''}{ratio:.3g}",
                f"{entry['samples'][-1]:,}",
                f"{entry['last']:.3g}",
                f"{entry['cost'][-1]:.5f}",
            ])  # fmt: skip
            label = ["", "", ""]
    table(
        [
            "threads", "dtype", "target", "method", "s to target", "x smalto", "samples",
            "s in all", "last cost",
        ],
        rows,
    )  # fmt: skip
    if any(entry["with_fewer"] for this in runs for entry in this["methods"]):
        print(
            "Where a peer was slower with more threads, as beside other work, its time with fewer "
            "is what\nsmalto is compared with.\n"
        )


def show_speed_up(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Print how much faster smalto is with more threads, for the whole pass."""
    found = []
    for this in runs:
        for other in runs:
            if (
                (this["setting"], this["dtype"]) == (other["setting"], other["dtype"])
                and this["threads"] == 1
                and other["threads"] > 1
            ):
                one, more = (r["methods"][0]["last"] for r in (this, other))
                found.append({
                    "setting": this["setting"], "dtype": this["dtype"],
                    "threads": other["threads"], "seconds_one": one, "seconds": more,
                    "speed_up": one / more,
                })  # fmt: skip
    if found:
        print("smalto's pass with more threads")
        table(
            ["setting", "dtype", "threads", "s with 1", "s", "speed-up"],
            [
                [f["setting"], f["dtype"], f["threads"], f"{f['seconds_one']:.3g}",
                 f"{f['seconds']:.3g}", f"{f['speed_up']:.2f}"]
                for f in found
            ],
        )  # fmt: skip
    return found


def plot(problem: Problem, runs: list[dict[str, Any]], out: Path) -> None:
    """Draw test cost against time, one panel for each dtype and number of threads."""
    from matplotlib.figure import Figure

    dtypes = list(dict.fromkeys(r["dtype"] for r in runs))
    threads = list(dict.fromkeys(r["threads"] for r in runs))
    figure = Figure(figsize=(5 * len(threads), 3.6 * len(dtypes)), layout="constrained")
    axes = figure.subplots(len(dtypes), len(threads), squeeze=False, sharex=True, sharey=True)
    for this in runs:
        ax = axes[dtypes.index(this["dtype"])][threads.index(this["threads"])]
        for entry in this["methods"]:
            ax.plot(
                entry["seconds"], entry["cost"], ".-", label=entry["method"],
                color=COLORS[entry["method"]],
            )  # fmt: skip
        ax.axhline(this["target"], color="0.7", lw=1, zorder=0)
        ax.set(xscale="log", title=f"{this['dtype']}, threads: {this['threads']}")
        ax.grid(alpha=0.2)
    for ax in axes[-1]:
        ax.set_xlabel("seconds of training")
    for ax in axes[:, 0]:
        ax.set_ylabel("cost on held-out patches")
    axes[0][0].legend()
    shape = "x".join(map(str, problem.patch_shape))
    figure.suptitle(f"Setting {problem.name}: {shape} patches, {len(problem.D0)} atoms")
    for ending in ("png", "svg"):
        path = out / f"learning-{problem.name}.{ending}"
        figure.savefig(path, dpi=120)
        print(f"written: {path}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison."""
    arguments_of = parser(
        "Test cost against training time: smalto, SPAMS, scikit-learn.", n=100_000
    )
    add = arguments_of.add_argument
    add("--test", type=int, default=5_000, help="number of test patches")
    add(
        "--sklearn", nargs="*", choices="ABC", default=["A"],
        help="settings on which scikit-learn also runs (it is slow)",
    )  # fmt: skip
    add("--sklearn-seconds", type=float, default=60.0, help="stop scikit-learn after these")
    options = arguments_of.parse_args(arguments)
    if options.quick:
        options.settings, options.threads, options.dtypes = ["A"], [1, 2], ["float32"]
        options.n, options.test, options.repeats, options.sklearn_seconds = 2_048, 200, 1, 0.5
    if not importable("spams"):
        print('SPAMS is not installed (pip install "smalto[bench]"): the target is smalto\'s own')
    about = machine()
    announce(about)
    options.out.mkdir(parents=True, exist_ok=True)
    all_runs: list[dict[str, Any]] = []
    for name in options.settings:
        base = load(name, options.n, options.test, quick=options.quick)
        runs = []
        for dtype in options.dtypes:
            problem = base.as_dtype(dtype)
            measure = Yardstick(problem)
            runs += run(problem, options, measure)
        compare_fewer_threads(runs)
        show(base, runs)
        all_runs += runs
        if importable("matplotlib"):
            plot(base, runs, options.out)
    speed_up = show_speed_up(all_runs)
    save(options.out, "learning", about, options, runs=all_runs, speed_up=speed_up)


if __name__ == "__main__":
    main()
