"""Figure 1, left: online against batch learning on the settings A, B and C.

Online learning draws from the whole training set; batch learning runs on 10⁴, 10⁵ and all of the
patches. OL1, OL2 and OL3 are the paper's settings of t₀ and ρ. One thread, float32, the mean over
three initial dictionaries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.paper.curves import (
    DEFAULT,
    DEFAULT_NAME,
    OL1,
    OL2,
    OL3,
    Bench,
    Curve,
    draw,
    mean_curve,
    records,
)
from benchmarks.paper.frame import Study, Verdict, new_figure
from smalto.learners import Batch

TITLE = "Figure 1, left: online against batch"
ONLINE = {"OL1": OL1, "OL2": OL2, "OL3": OL3, DEFAULT_NAME: DEFAULT}
STARTS = 3


@dataclass(frozen=True)
class Size:
    """Size of a setting, and its share of the time."""

    n: int
    n_test: int
    subsets: tuple[int, ...]
    share: float


FULL = {
    "A": Size(1_000_000, 4_000, (10_000, 100_000), 0.2),
    "B": Size(200_000, 2_000, (10_000, 100_000), 0.3),
    "C": Size(200_000, 2_000, (10_000, 100_000), 0.5),
}
QUICK = {"A": Size(4_096, 200, (1_024,), 1.0)}


def sizes(study: Study) -> dict[str, Size]:
    """Return the settings and their sizes."""
    return QUICK if study.quick else FULL


def seconds_per_curve(study: Study, name: str) -> float:
    """Return the training time of one curve; measuring it takes about as long."""
    curves = STARTS * (len(ONLINE) + 1 + len(FULL["A"].subsets))
    return float(f"{0.7 * study.seconds * sizes(study)[name].share / curves:.2g}")


def run(study: Study) -> None:
    """Run the experiment."""
    starts = 1 if study.quick else STARTS
    figure, axes = new_figure(len(sizes(study)))
    rows, verdicts, results = [], [], {}
    spread = []
    for ax, (name, size) in zip(axes[0], sizes(study).items(), strict=True):
        bench = Bench(study, name, size.n, size.n_test)
        seconds = seconds_per_curve(study, name)
        runs = {}
        for label, learner in ONLINE.items():
            runs[label] = bench.curves(learner, starts, seconds=seconds)
        for n in (*size.subsets, size.n):
            runs[f"batch, {n:,}"] = bench.curves(Batch(), starts, seconds=seconds, n=n)
        means = {label: mean_curve(each) for label, each in runs.items()}
        draw(ax, means, f"{name}, {size.n:,} patches", STYLES)
        results[name] = {"n": size.n, "n_test": size.n_test, "curves": records(runs)}
        for label, curve in means.items():
            marks = [
                curve.at(t)
                if t <= curve.seconds[-1] * 1.05 and t >= curve.seconds[0] * 0.95
                else None
                for t in _marks(seconds)
            ]
            rows.append([name, label, *(None if v is None else f"{v:.4f}" for v in marks)])
        verdicts.append(against_batch(name, means))
        verdicts.append(alike(name, means))
        spread.append((name, max(np.std([r.cost[-1] for r in runs[o]]) for o in ONLINE)))
    axes[0][-1].legend(fontsize=7, frameon=False)
    if starts > 1:
        evidence = ", ".join(f"{name} {value:.1e}" for name, value in spread)
        verdicts.append(
            Verdict(
                "Different initialisations lead to very similar values of the objective.",
                all(value < 1e-3 for _, value in spread),
                f"largest standard deviation of the final cost over {starts} starts: {evidence}",
            )
        )
    marks = [f"at {100 * share:g} % of the time" for share in SHARES]
    times = ", ".join(f"{name} {seconds_per_curve(study, name):g} s" for name in sizes(study))
    notes = [
        f"training time of a curve (processor): {times}; one thread, float32, mean of {starts} starts"
    ]
    study.finish(TITLE, figure, ["set", "method", *marks], rows, verdicts, results, notes)


SHARES = (0.02, 0.1, 0.3, 1.0)
STYLES = {
    "OL1": {"color": "C0"},
    "OL2": {"color": "C2", "linestyle": "--"},
    "OL3": {"color": "C1", "linestyle": ":"},
    DEFAULT_NAME: {"color": "k"},
    **{
        f"batch, {n:,}": {"color": color, "marker": marker, "markersize": 3}
        for n, color, marker in (
            (1_024, "C3", "s"),
            (4_096, "C4", "^"),
            (10_000, "C3", "s"),
            (100_000, "C5", "o"),
            (200_000, "C4", "^"),
            (1_000_000, "C4", "^"),
        )
    },
}


def _marks(seconds: float) -> list[float]:
    return [share * seconds for share in SHARES]


def against_batch(name: str, means: dict[str, Curve]) -> Verdict:
    """Check that the online curves are below every batch curve, wherever both are defined."""
    batches = {label: curve for label, curve in means.items() if label.startswith("batch")}
    below, points, gains = {"OL1": 0, DEFAULT_NAME: 0}, 0, []
    for curve in batches.values():
        here = curve.seconds >= max(means[label].seconds[0] for label in below)
        points += int(here.sum())
        for label in below:
            online = means[label].at(curve.seconds[here])
            below[label] += int((online < curve.cost[here]).sum())
        sooner = means[DEFAULT_NAME].seconds_to(curve.cost[-1])
        if sooner is not None:
            gains.append(f"{curve.seconds[-1] / sooner:.0f}")
    said = " and ".join(f"{label} below {count}" for label, count in below.items())
    return Verdict(
        f"{name}: online beats batch for every training set size and desired precision.",
        all(count == points for count in below.values()),
        f"of {points} points of the batch curves, {said}; the defaults reach the last cost of "
        f"batch on {', '.join(label.removeprefix('batch, ') for label in batches)} patches "
        f"{', '.join(gains) or 'no'} times sooner",
    )


def alike(name: str, means: dict[str, Curve]) -> Verdict:
    """Check that OL1, OL2 and OL3 are hard to distinguish."""
    three = [means[label] for label in ("OL1", "OL2", "OL3")]
    first = max(curve.seconds[0] for curve in three)
    last = min(curve.seconds[-1] for curve in three)
    times = np.geomspace(max(first, 0.02 * last), last, 30)
    costs = np.array([curve.at(times) for curve in three])
    gap = (costs.max(axis=0) - costs.min(axis=0)) / costs.min(axis=0)
    range_ = three[0].cost[0] - costs.min()
    return Verdict(
        f"{name}: OL1, OL2 and OL3 are very difficult to distinguish.",
        bool(gap[-1] < 0.005 and gap.max() < 0.02),
        f"they differ by at most {100 * gap.max():.2f} % of the cost in the last 98 % of the time "
        f"and by {100 * gap[-1]:.2f} % at its end (learning lowers it by "
        f"{100 * range_ / costs.min():.1f} %)",
    )
