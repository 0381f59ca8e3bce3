"""Search for the default forgetting rate rho and batch size of the online learner.

Three parts, all with smalto: one pass over many patches for a grid of rho, t0 and batch sizes;
several epochs over few patches with each kind of memory; and a smaller grid on larger patches and
dictionaries. The paper's own choice is rho = 15, t0 = 0.001, batches of 512 (Section 6.1).

Run it with ``python -m benchmarks.peers.defaults``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.peers.common import (
    Array,
    Problem,
    Yardstick,
    add_common,
    announce,
    load,
    machine,
    save,
    table,
)
from smalto import learn
from smalto.coders import Lasso
from smalto.learners import Online

RHOS = (0.0, 2.0, 3.0, 5.0, 8.0, 10.0, 15.0)
BATCHES = (64, 128, 256, 512, 1024, 2048)
PAPER = Online(batch_size=512, rho=15.0, t0=0.001, slack=0.0)
SPACING = 1.25  # ratio of the sample counts at which a dictionary is evaluated


@dataclass(frozen=True)
class Run:
    """A run: its learner, and the test cost against samples seen and seconds."""

    learner: Online
    samples: list[int]
    seconds: list[float]
    cost: list[float]

    def cost_after(self, samples: float) -> float:
        """Return the test cost after this many samples."""
        return float(np.interp(np.log(samples), np.log(self.samples), self.cost))

    def seconds_to(self, target: float) -> float | None:
        """Return the seconds until the test cost reached ``target``; None if it never did."""
        below = np.flatnonzero(np.asarray(self.cost) <= target)
        return self.seconds[below[0]] if below.size else None

    def label(self) -> list[str]:
        """Return the settings, for a table."""
        chosen = self.learner
        mark = " paper" if chosen == PAPER else " default" if chosen == Online() else ""
        rho = "default" if chosen.rho is None else f"{chosen.rho:g}"
        return [chosen.memory, str(chosen.batch_size), rho, f"{chosen.t0:g}", mark]

    def record(self) -> dict[str, Any]:
        """Return the run as a dictionary, for JSON."""
        return {**asdict(self.learner), **{k: v for k, v in vars(self).items() if k != "learner"}}


LABEL = ["memory", "batch", "rho", "t0", ""]


def measure_run(problem: Problem, learner: Online, epochs: int, measure: Yardstick) -> Run:
    """Learn, and evaluate the dictionary at increasing intervals."""
    kept: list[tuple[int, float, Array]] = []
    mark = 1.0

    def watch(state: Any, record: Any) -> None:
        nonlocal mark
        if record.samples >= mark or state.epoch == epochs:
            kept.append((record.samples, record.seconds, state.D.copy()))
            mark = SPACING * record.samples

    learn(
        problem.train,
        len(problem.D0),
        Lasso(problem.lam),
        learner=learner,
        init=problem.D0,
        max_epochs=epochs,
        callbacks=[watch],
        random_state=0,
    )
    return Run(learner, [k[0] for k in kept], [k[1] for k in kept], [measure(k[2]) for k in kept])


def study(problem: Problem, learners: Sequence[Online], epochs: int, deadline: float) -> list[Run]:
    """Run as many learners as time permits, at least the first two."""
    measure = Yardstick(problem)
    few = Problem(
        problem.name,
        problem.train[:4096],
        problem.test,
        problem.D0,
        problem.lam,
        problem.patch_shape,
        problem.source,
    )
    measure_run(few, Online(memory="replace"), 2, measure)  # compile the kernels
    measure_run(few, Online(), 2, measure)
    runs = []
    for number, learner in enumerate(learners):
        if number >= 2 and time.perf_counter() > deadline:
            print(f"out of time: {len(learners) - number} of {len(learners)} runs left out")
            break
        runs.append(measure_run(problem, learner, epochs, measure))
    return runs


def show(problem: Problem, runs: list[Run], marks: Sequence[int], epochs: int) -> None:
    """Print the test costs after given numbers of samples, and the times."""
    print(problem.title())
    passes = "one epoch" if epochs == 1 else f"{epochs} epochs"
    print(f"{passes} over {len(problem.train):,} patches; test cost after this many samples")
    rows = []
    for run in runs:
        values = [f"{run.cost_after(mark):.5f}" for mark in marks]
        rows.append([*run.label(), *values, f"{run.seconds[-1]:.2f}"])
    table([*LABEL, *(f"{mark:,}" for mark in marks), "s in all"], rows)


def excesses(runs: list[Run], marks: Sequence[int]) -> list[list[float]]:
    """Return by how many percent each run's cost exceeds the best of all, at each mark."""
    costs = np.array([[run.cost_after(mark) for mark in marks] for run in runs], dtype=float)
    return (100.0 * (costs / costs.min(axis=0) - 1.0)).tolist()


def show_ranking(runs: list[Run], marks: Sequence[int], best: int = 8) -> None:
    """Rank runs by their largest excess over the best cost at any of the marks."""
    print("Percent above the best cost of all runs after this many samples, ranked by the largest")
    table_of = excesses(runs, marks)
    order = sorted(range(len(runs)), key=lambda i: max(table_of[i]))
    chosen = [
        i for place, i in enumerate(order) if place < best or runs[i].learner in (PAPER, Online())
    ]
    rows = [[*runs[i].label(), *(f"{value:.3f}" for value in table_of[i])] for i in chosen]
    table([*LABEL, *(f"{mark:,}" for mark in marks)], rows)


def show_overall(parts: dict[str, tuple[list[Run], Sequence[int]]]) -> list[dict[str, Any]]:
    """Rank settings that ran in every part by their largest excess in any of them."""
    by_learner: dict[Online, dict[str, float]] = {}
    for name, (runs, marks) in parts.items():
        for run, values in zip(runs, excesses(runs, marks), strict=True):
            by_learner.setdefault(run.learner, {})[name] = max(values)
    found = [
        {**asdict(learner), "excess": values, "largest": max(values.values())}
        for learner, values in by_learner.items()
        if len(values) == len(parts) and learner.rho is not None
    ]
    found.sort(key=lambda entry: entry["largest"])
    print("What was run in every part: largest excess over the best, in per cent")
    rows = [
        [
            str(entry["batch_size"]),
            f"{entry['rho']:g}",
            f"{entry['t0']:g}",
            *(f"{entry['excess'][name]:.3f}" for name in parts),
            f"{entry['largest']:.3f}",
        ]
        for entry in found
    ]
    table(["batch", "rho", "t0", *parts, "largest"], rows)
    if found:
        first = found[0]
        print(f"supported: batch_size={first['batch_size']}, rho={first['rho']:g}\n")
    return found


def show_times(runs: list[Run], marks: Sequence[int]) -> None:
    """Print when each run reached the cost of the paper's settings after these samples."""
    paper = next(run for run in runs if run.learner == PAPER)
    targets = [paper.cost_after(mark) for mark in marks]
    print("Seconds to the test cost of the paper's settings after this many samples")
    rows = []
    for run in runs:
        times = [run.seconds_to(target) for target in targets]
        rows.append([*run.label(), *("never" if t is None else f"{t:.3f}" for t in times)])
    table([*LABEL, *(f"{mark:,}" for mark in marks)], rows)


def verdict(name: str, runs: list[Run], marks: Sequence[int]) -> list[dict[str, Any]]:
    """Print and return the comparison of smalto's default with the paper's settings."""
    default = next(run for run in runs if run.learner == Online())
    paper = next(run for run in runs if run.learner == PAPER)
    found = []
    for mark in marks:
        a, b = default.cost_after(mark), paper.cost_after(mark)
        found.append({"setting": name, "samples": mark, "default": a, "paper": b})
        verb = "beats" if a < b else "equals" if a == b else "loses to"
        print(
            f"{name}, {mark:,} samples: the default {verb} the paper's settings, "
            f"{a:.5f} against {b:.5f} ({100 * (a / b - 1):+.2f} %)"
        )
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    command = argparse.ArgumentParser(
        description="Which rho and batch size are the best default.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    command.add_argument("--n", type=int, default=1_000_000, help="patches of the single pass")
    command.add_argument("--test", type=int, default=5_000, help="number of test patches")
    command.add_argument("--minutes", type=float, default=28.0, help="time limit in all")
    command.add_argument(
        "--parts",
        nargs="+",
        choices=("pass", "epochs", "large"),
        default=["pass", "epochs", "large"],
        help="which parts of the study",
    )
    add_common(command)
    options = command.parse_args(arguments)
    rhos, batches, few_batches = RHOS, BATCHES, (256, 512, 1024)
    larger, small, n_large, epochs = ("B", "C"), (10_000, 100_000), 100_000, (20, 5)
    if options.quick:
        rhos, batches, few_batches = (0.0, 5.0), (256, 512), (512,)
        larger, small, n_large, epochs = ("B",), (2_048,), 2_048, (3,)
        options.n, options.test, options.minutes = 10_000, 200, 0.4
    about = machine()
    announce(about)
    begin = time.perf_counter()
    seconds = 60 * options.minutes
    # The most important runs come first, in case time runs out.
    basic = [Online(), PAPER]
    parts: dict[str, tuple[list[Run], Sequence[int]]] = {}
    verdicts: list[dict[str, Any]] = []

    if "pass" in options.parts:
        problem = load("A", options.n, options.test, quick=options.quick)
        marks = [n for n in (10_000, 30_000, 100_000, 300_000, 1_000_000) if n <= options.n]
        learners = [
            *basic,
            *(Online(512, rho=rho) for rho in rhos),
            *(Online(b, rho=rho) for b in batches if b != 512 for rho in rhos),
            *(Online(512, rho=rho, t0=0.001) for rho in rhos if rho != PAPER.rho),
        ]
        runs = study(problem, learners, 1, begin + 0.6 * seconds)
        show(problem, runs, marks, 1)
        show_ranking(runs, marks)
        show_times(runs, marks)
        verdicts += verdict("A", runs, marks)
        parts["A"] = (runs, marks)

    if "epochs" in options.parts:
        for n, count in zip(small, epochs, strict=True):
            problem = load("A", n, options.test, quick=options.quick)
            marks = [n * e for e in (1, 2, 3, 5, 10, 20) if e <= count]
            learners = [
                *basic,
                Online(memory="replace"),
                *(Online(512, rho=rho) for rho in rhos),
                *(Online(512, rho=rho, memory="all") for rho in rhos),
                *(Online(b, memory="replace") for b in few_batches if b != 512),
                *(Online(b, rho=rho) for b in few_batches if b != 512 for rho in rhos),
            ]
            share = 0.7 if n < 100_000 else 0.8
            runs = study(problem, learners, count, begin + share * seconds)
            show(problem, runs, marks, count)
            show_ranking(runs, marks)
            verdicts += verdict(f"A with n = {n:,}", runs, marks)
            parts[f"A n={n}"] = (runs, marks)

    if "large" in options.parts:
        for number, name in enumerate(larger):
            problem = load(name, n_large, options.test, quick=options.quick)
            marks = [n for n in (10_000, 30_000, 100_000) if n <= n_large] or [n_large]
            learners = [
                *basic,
                *(Online(512, rho=rho) for rho in rhos if rho not in (2.0, 10.0)),
                *(
                    Online(b, rho=rho)
                    for b in few_batches
                    if b != 512
                    for rho in rhos
                    if rho not in (0.0, 2.0, 10.0)
                ),
            ]
            share = 0.8 + 0.2 * (number + 1) / len(larger)
            runs = study(problem, learners, 1, begin + share * seconds)
            show(problem, runs, marks, 1)
            show_ranking(runs, marks)
            show_times(runs, marks)
            verdicts += verdict(name, runs, marks)
            parts[name] = (runs, marks)

    print()
    overall = show_overall(parts)
    records = {name: [run.record() for run in runs] for name, (runs, _) in parts.items()}
    save(options.out, "defaults", about, options, parts=records, overall=overall, verdicts=verdicts)


if __name__ == "__main__":
    main()
