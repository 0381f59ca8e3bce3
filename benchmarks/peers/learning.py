"""Time that each library takes to learn a dictionary of a given quality.

Every method gets the same patches, first dictionary, penalty and dtype, and one thread. Its
dictionaries are evaluated on held-out patches with its clock stopped. The targets are the held-out
costs of SPAMS's ``trainDL`` after some of its steps. Patches come from every second picture: what was
changed last in smalto's defaults was chosen on the others.

Run it with ``python -m benchmarks.peers.learning``. Each setting and start is a part of its own,
which is kept in the JSON file: a part that is there is not measured again (``--fresh`` does), and
``--settings B --starts 1`` measures one part only. The table and the figure show all parts.
"""

from __future__ import annotations

import argparse
import contextlib
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.common import (
    Array,
    Problem,
    Yardstick,
    add_common,
    announce,
    blas_threads,
    importable,
    load,
    machine,
    parts_of,
    save,
    spaced,
    table,
)
from smalto import learn
from smalto.coders import Lasso
from smalto.datasets import ImageSet, natural_images

BATCH = 512  # of SPAMS: the paper's
STEPS = (5, 10, 30, 60)  # of SPAMS, whose costs are targets, as is that after one pass
SIZES = {"A": (100_000, 5_000), "B": (100_000, 3_000), "C": (60_000, 2_000)}  # patches, held out
REPEATS = {"A": 5, "B": 2, "C": 1}
PAIRS = 5  # of runs on one thread and on two, at least
SMALTO, SPAMS = "smalto", "SPAMS trainDL"
COLORS = {SMALTO: "C0", SPAMS: "C1", "scikit-learn cd": "C2", "scikit-learn lars": "C3"}


@dataclass(frozen=True)
class Curve:
    """Held-out cost against training time, with one entry per evaluated dictionary."""

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


def spams_run(X: Array, D0: Array, lam: float, steps: int) -> tuple[float, Array]:
    """Return the seconds of ``trainDL`` for a number of mini-batches, and its dictionary (k, m).

    X and D0 are as SPAMS requires: one signal per column, in Fortran order.
    """
    import spams

    first = D0.copy(order="F")
    with blas_threads(1):
        begin = time.perf_counter()
        D = spams.trainDL(
            X, D=first, lambda1=lam, iter=steps, batchsize=BATCH, numThreads=1, verbose=False
        )
        seconds = time.perf_counter() - begin
    return seconds, np.ascontiguousarray(D.T)


def compare(
    problem: Problem, repeats: int, measure: Yardstick
) -> tuple[list[Curve], dict[str, float]]:
    """Run smalto and SPAMS, alternating between them; return their curves, and smalto's threads."""
    X, D0 = np.asfortranarray(problem.train.T), np.asfortranarray(problem.D0.T)
    last = max(1, len(problem.train) // BATCH)
    # SPAMS has no callback, and a run continued from its model starts again with the first
    # patches. But it is deterministic: a shorter run is the beginning of a longer one.
    numbers = [step for step in STEPS if step < last] + [last]
    ours, on_two = [], []
    theirs: list[tuple[int, float, Array]] = []
    for _ in range(repeats):
        theirs += [(number, *spams_run(X, D0, problem.lam, number)) for number in numbers]
        ours.append(smalto_run(problem, 1))
        on_two.append(smalto_run(problem, 2))
    samples, _, dictionaries = ours[0]
    for other in [*ours, *on_two]:
        assert np.array_equal(other[2][-1], dictionaries[-1]), "all runs must be identical"
    # All runs give the same dictionaries: each gets the shortest time of any run. A longer run of
    # SPAMS has gone through the shorter ones.
    fastest = np.min([run[1] for run in ours], axis=0).tolist()
    seconds = [min(s for n, s, _ in theirs if n >= number) for number in numbers]
    final = {number: D for number, _, D in theirs}
    curves = [
        Curve(SMALTO, samples, fastest, [measure(D) for D in dictionaries]),
        Curve(SPAMS, [BATCH * n for n in numbers], seconds, [measure(final[n]) for n in numbers]),
    ]
    for _ in range(repeats, PAIRS):  # a ratio of two short runs needs more of them than a curve
        ours.append(smalto_run(problem, 1))
        on_two.append(smalto_run(problem, 2))
    one, two = (min(run[1][-1] for run in runs) for runs in (ours, on_two))
    return curves, {"one": one, "two": two, "speed_up": one / two}


class _Enough(Exception):
    """Raised to end scikit-learn's loop."""


def sklearn_run(
    problem: Problem, algorithm: str, target: float, limit: float, measure: Yardstick
) -> Curve:
    """Run scikit-learn until it reaches the target or has trained for ``limit`` seconds."""
    from sklearn.decomposition import MiniBatchDictionaryLearning

    curve = Curve(f"scikit-learn {algorithm}", [], [], [])
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
    with blas_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.perf_counter()
        with contextlib.suppress(_Enough):
            model.fit(problem.train)
    return curve


def warm_up(problem: Problem, measure: Yardstick) -> None:
    """Compile the kernels, load the libraries, start the threads."""
    few = min(len(problem.train), 16 * len(problem.D0))
    small = replace(problem, train=problem.train[:few])
    for threads in (1, 2):
        smalto_run(small, threads)
    measure(problem.D0)
    spams_run(np.asfortranarray(small.train.T), np.asfortranarray(problem.D0.T), problem.lam, 1)


def run(problem: Problem, start: int, options: argparse.Namespace) -> dict[str, Any]:
    """Run all methods on one problem."""
    measure = Yardstick(problem)
    warm_up(problem, measure)
    repeats = REPEATS[problem.name] if options.repeats is None else options.repeats
    curves, threads = compare(problem, repeats, measure)
    ours, theirs = curves[:2]
    if problem.name in options.sklearn and start == 0:
        goal, limit = theirs.cost[-1], options.sklearn_seconds
        curves += [sklearn_run(problem, kind, goal, limit, measure) for kind in ("cd", "lars")]
    targets = []
    points = zip(theirs.samples, theirs.seconds, theirs.cost, strict=True)
    for samples, seconds, cost in points:
        needed = ours.seconds_to(cost)
        ratio = None if needed is None else seconds / needed
        targets.append({
            "steps": samples // BATCH, "cost": cost, "spams": seconds, "smalto": needed,
            "ratio": ratio,
        })  # fmt: skip
    return {
        "setting": problem.name, "start": start, "dtype": problem.dtype,
        "first_cost": measure(problem.D0), "title": problem.title(), "targets": targets,
        "threads": threads, "methods": [asdict(curve) for curve in curves],
    }  # fmt: skip


def show(runs: list[dict[str, Any]]) -> None:
    """Print how many times sooner smalto reaches each target: the worst, median and best start."""
    rows = []
    for name in dict.fromkeys(run["setting"] for run in runs):
        same = [run for run in runs if run["setting"] == name]
        for number, first in enumerate(same[0]["targets"]):
            these = [run["targets"][number] for run in same]
            reached = [target["ratio"] for target in these if target["ratio"] is not None]
            times = [target["smalto"] for target in these if target["smalto"] is not None]
            rows.append([
                name, first["steps"], len(these),
                f"{np.median([target['spams'] for target in these]):.3g}",
                f"{np.median(times):.3g}" if times else "not reached",
                *(f"{f(reached):.1f}" if reached else "" for f in (np.min, np.median, np.max)),
            ])  # fmt: skip
    table(
        ["setting", "steps", "starts", "s of SPAMS", "s of smalto", "x least", "median", "most"],
        rows,
    )
    pairs = [(run["setting"], run["start"], run["threads"]) for run in runs]
    table(
        ["setting", "start", "s on one thread", "s on two", "speed-up"],
        [[a, b, f"{c['one']:.3g}", f"{c['two']:.3g}", f"{c['speed_up']:.2f}"] for a, b, c in pairs],
    )
    for run in runs:
        for entry in run["methods"][2:]:
            curve = Curve(**entry)
            took = curve.seconds_to(run["targets"][-1]["cost"])
            ours = run["targets"][-1]["smalto"] or float("nan")
            sign, seconds = ("> ", curve.seconds[-1]) if took is None else ("", took)
            print(
                f"{run['setting']}: {curve.method} needs {sign}{seconds:.3g} s, "
                f"{sign}{seconds / ours:.3g} x smalto, to SPAMS's cost after one pass"
            )


def plot(runs: list[dict[str, Any]], out: Path) -> None:
    """Draw held-out cost against time, one panel for each setting, one line for each start."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(run["setting"] for run in runs))
    figure = Figure(figsize=(4.2 * len(names), 3.6), layout="constrained")
    axes = figure.subplots(1, len(names), squeeze=False)[0]
    for this in runs:
        ax = axes[names.index(this["setting"])]
        for entry in this["methods"]:
            label = entry["method"] if this["start"] == 0 else None
            style = ".-" if entry["method"] == SPAMS else "-"
            ax.plot(
                entry["seconds"], entry["cost"], style, label=label,
                color=COLORS[entry["method"]], lw=1.2,
            )  # fmt: skip
        ax.set(xscale="log", title=f"Setting {this['setting']}", xlabel="seconds of learning")
        ax.grid(alpha=0.2)
    axes[0].set_ylabel("cost on held-out patches")
    axes[0].legend(frameon=False)
    for ending in ("png", "svg"):
        path = out / f"learning.{ending}"
        figure.savefig(path, dpi=120)
        print(f"written: {path}")


def _pictures(*, quick: bool) -> ImageSet:
    """Return every second picture; defaults were chosen on the others."""
    every = natural_images()
    if quick:
        return every
    return ImageSet(every.images[1::2], every.names[1::2], every.source)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(
        description="Held-out cost against training time: smalto, SPAMS, scikit-learn.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--settings", nargs="*", choices="ABC", default=list("ABC"), help="settings of the paper")
    add("--starts", nargs="+", type=int, default=[0, 1, 2], help="seeds of patches and first atoms")
    add("--repeats", type=int, help="of which the fastest counts; by default 5, 2, 1 for A, B, C")
    add("--fresh", action="store_true", help="measure parts again that are in the JSON file")
    add("--sklearn", nargs="*", choices="ABC", default=["A"], help="settings for scikit-learn")
    add("--sklearn-seconds", type=float, default=20.0, help="stop scikit-learn after these")
    add_common(parser)
    options = parser.parse_args(arguments)
    if not importable("spams"):
        parser.error('SPAMS is not installed: pip install "smalto[bench]"')
    sizes = SIZES
    if options.quick:
        options.settings, options.starts, options.repeats = ["A"], [0], 1
        options.sklearn_seconds, sizes = 0.5, {"A": (4_096, 200)}
    about, path = machine(), options.out / "learning.json"
    announce(about)
    kept = parts_of(path, "setting", "start")
    images = _pictures(quick=options.quick)
    for name in options.settings:
        for start in options.starts:
            if (name, start) in kept and not options.fresh:
                continue
            problem = load(name, *sizes[name], quick=options.quick, seed=start, images=images)
            print(f"start {start}, {len(problem.train):,} patches. {problem.title()}", flush=True)
            kept[name, start] = run(problem, start, options)
            runs = [kept[key] for key in sorted(kept)]
            save(options.out, "learning", about, options, runs=runs)
    runs = [kept[key] for key in sorted(kept)]
    show(runs)
    if importable("matplotlib"):
        plot(runs, options.out)


if __name__ == "__main__":
    main()
