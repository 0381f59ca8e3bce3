"""Figure 1, right: online learning against stochastic gradient descent on A, B and C.

SG1, SG2 and SG3 are the paper's learning rates a/(ηt + b). A second row of panels shows how the
cost after a short run depends on a and b, also with b = 0, which the paper describes in words.
One thread, float32, η = 512, the mean over three initial dictionaries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.paper.curves import (
    DEFAULT,
    DEFAULT_NAME,
    OL1,
    Bench,
    Curve,
    draw,
    mean_curve,
    records,
)
from benchmarks.paper.frame import Study, Verdict, new_figure
from benchmarks.paper.online_batch import STARTS, seconds_per_curve, sizes
from smalto.learners import SGD

TITLE = "Figure 1, right: online against stochastic gradient descent"
METHODS = {
    "OL1": OL1,
    DEFAULT_NAME: DEFAULT,
    "SG1": SGD(200_000, 400_000),
    "SG2": SGD(400_000, 400_000),
    "SG3": SGD(50_000, 100_000),
}
STYLES: dict[str, dict[str, Any]] = {
    "OL1": {"color": "C0"},
    DEFAULT_NAME: {"color": "k"},
    "SG1": {"color": "C3", "linestyle": "--"},
    "SG2": {"color": "C1", "linestyle": ":"},
    "SG3": {"color": "C4", "linestyle": "-."},
}
GRID = tuple(100_000 * 2.0**i for i in (-6, -3, -1, 1, 3))
EQUAL = 0.005  # of the cost: differences up to this count as equal


def run(study: Study) -> None:
    """Run the experiment."""
    starts = 1 if study.quick else STARTS
    figure, axes = new_figure(len(sizes(study)) + 1)
    rows, verdicts, results = [], [], {}
    for ax, (name, size) in zip(axes[0], sizes(study).items(), strict=False):
        bench = Bench(study, name, size.n, size.n_test)
        seconds = seconds_per_curve(study, name)
        runs = {
            label: bench.curves(learner, starts, seconds=seconds)
            for label, learner in METHODS.items()
        }
        means = {label: mean_curve(each) for label, each in runs.items()}
        draw(ax, means, f"{name}, {size.n:,} patches", STYLES)
        results[name] = {"n": size.n, "n_test": size.n_test, "curves": records(runs)}
        for label, curve in means.items():
            costs = [f"{curve.at(share * seconds):.4f}" for share in (0.02, 0.1, 0.3, 1.0)]
            rows.append([name, label, *costs])
        verdicts += [tuned(name, means), early(name, means)]
    axes[0][0].legend(fontsize=7, frameon=False)
    grid = tuning(study)
    draw_grid(axes[0][-1], grid)
    results["tuning"] = grid
    verdicts += not_tuned(grid)
    header = ["set", "method", *(f"at {100 * s:g} % of the time" for s in (0.02, 0.1, 0.3, 1.0))]
    times = ", ".join(f"{name} {seconds_per_curve(study, name):g} s" for name in sizes(study))
    notes = [
        f"training time of a curve (processor): {times}; one thread, float32, mean of {starts} starts"
    ]
    study.finish(TITLE, figure, header, rows, verdicts, results, notes)


def tuning(study: Study) -> dict[str, Any]:
    """Return the cost on A after one pass over some patches, for many a and b."""
    n = 2_048 if study.quick else 200_000
    values = GRID[1::2] if study.quick else GRID
    bench = Bench(study, "A", n, 200 if study.quick else 2_000)
    limit = 1e3  # seconds: the epoch ends sooner
    costs = {
        (a, b): float(bench.curve(SGD(a, b), seconds=limit, epochs=1).cost[-1])
        for a in values
        for b in (0.0, *values)
    }
    online = float(bench.curve(DEFAULT, seconds=limit, epochs=1).cost[-1])
    return {
        "n": n,
        "a": list(values),
        "b": [0.0, *values],
        "online": online,
        "cost": [[costs[a, b] for b in (0.0, *values)] for a in values],
    }


def draw_grid(ax: Any, grid: dict[str, Any]) -> None:
    """Draw how much higher the cost of each rate is than that of online learning, in percent."""
    excess = 100.0 * (np.array(grid["cost"]) / grid["online"] - 1.0)
    image = ax.imshow(np.clip(excess, 0, 10), cmap="YlOrRd", vmin=0, vmax=10)
    for i, line in enumerate(excess):
        for j, value in enumerate(line):
            ax.text(
                j,
                i,
                f"{value:.1f}",
                ha="center",
                va="center",
                fontsize=7,
                color="w" if value > 6 else "k",
            )
    ax.set_xticks(range(len(grid["b"])), [f"{b / 1000:g}k" for b in grid["b"]], fontsize=7)
    ax.set_yticks(range(len(grid["a"])), [f"{a / 1000:g}k" for a in grid["a"]], fontsize=7)
    ax.set_xlabel("b", fontsize=8)
    ax.set_ylabel("a", fontsize=8)
    ax.set_title(f"A, {grid['n']:,} samples: % above online", fontsize=9)
    ax.figure.colorbar(image, ax=ax, shrink=0.7)


def tuned(name: str, means: dict[str, Curve]) -> Verdict:
    """Check that the tuned rate ends where online learning does."""
    sg1 = float(means["SG1"].cost[-1])
    gaps = {label: 100 * (sg1 / means[label].cost[-1] - 1) for label in ("OL1", DEFAULT_NAME)}
    return Verdict(
        f"{name}: SGD with tuned a and b (SG1) leads to similar results as online learning.",
        all(abs(gap) < 100 * EQUAL for gap in gaps.values()),
        "at the end SG1 costs " + ", ".join(f"{v:+.2f} % against {k}" for k, v in gaps.items()),
    )


def early(name: str, means: dict[str, Curve]) -> Verdict:
    """Check that a larger a is worse at first and good in the end."""
    last = float(means["SG1"].seconds[-1])
    first = max(means["SG1"].seconds[0], means["SG2"].seconds[0], 0.02 * last)
    early, late = (float(means["SG2"].at(t) / means["SG1"].at(t) - 1) for t in (first, last))
    third = float(means["SG3"].at(last) / means["SG1"].at(last) - 1)
    return Verdict(
        f"{name}: SG2 (larger a) is worse during the first iterations and good in the end.",
        early > 0 and late < EQUAL,
        f"SG2 against SG1: {100 * early:+.2f} % early on, {100 * late:+.2f} % at the end; "
        f"SG3 at the end {100 * third:+.2f} %",
    )


def not_tuned(grid: dict[str, Any]) -> list[Verdict]:
    """Check that few rates are as good as online learning, and none of those with b = 0."""
    excess = np.array(grid["cost"]) / grid["online"] - 1.0
    good = int((excess < EQUAL).sum())
    without = excess[:, 0]
    bad = int((excess > EQUAL).sum())
    return [
        Verdict(
            "SGD needs both a and b tuned; rates a/(ηt) are worse; online learning needs none.",
            bool(bad > 0.5 * excess.size and without.min() > excess[:, 1:].min()),
            f"both at once: {bad} of {excess.size} pairs are over {100 * EQUAL:g} % worse, and the "
            f"best with b = 0 is {100 * without.min():+.2f} %; apart in the next two lines",
        ),
        Verdict(
            "SGD is as good as online learning only when a and b are tuned.",
            bool(excess.min() < EQUAL and good < 0.5 * excess.size),
            f"A, one pass over {grid['n']:,}: {good} of {excess.size} pairs come within "
            f"{100 * EQUAL:g} % of online learning with its defaults, the best at "
            f"{100 * excess.min():+.2f} %, the worst at {100 * excess.max():+.1f} %",
        ),
        Verdict(
            "Rates a/(ηt), with b = 0, are worse: too large at first or too small in the end.",
            bool(without.min() > excess[:, 1:].min() + 0.2 * EQUAL),
            f"with b = 0 the costs are {', '.join(f'{100 * value:+.1f}' for value in without)} % "
            f"above online learning for a from {grid['a'][0]:,.0f} to {grid['a'][-1]:,.0f}; the "
            f"best with b > 0 is {100 * excess[:, 1:].min():+.2f} %",
        ),
    ]
