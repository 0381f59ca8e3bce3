"""Figure 1, left: online against batch learning on the settings A, B and C.

Online learning draws from 10⁶ patches; batch learning runs on 10⁴, 10⁵ and all of them. OL1, OL2
and OL3 are the paper's settings of t₀ and ρ, with the authors' floor: a step keeps at least 95 % of
the past, which is how their program starts to forget "after a few iterations". Without it, OL1 is
the bare formula. All methods start from the same three dictionaries of random patches.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.paper import rivals
from benchmarks.paper.curves import (
    DEFAULT,
    DEFAULT_NAME,
    OL1,
    OL1_BARE,
    OL2,
    OL3,
    STYLES,
    Bench,
    Curve,
    Limit,
    as_curve,
    draw,
    mean_cost,
    mean_curve,
    records,
    trace_learner,
)
from benchmarks.paper.frame import Claim, Key, Part, Study, Task, Verdict, legend, new_figure
from benchmarks.peers.common import QUICK_ATOMS
from smalto.datasets import paper_setting
from smalto.learners import Batch

TITLE = "Figure 1, left: online against batch"
ONLINE = {
    "OL1": OL1,
    "OL2": OL2,
    "OL3": OL3,
    "OL1, bare formula": OL1_BARE,
    DEFAULT_NAME: DEFAULT,
}
OTHERS = {"SPAMS": rivals.spams, "scikit-learn": rivals.scikit_learn}
STARTS = 3
PAPER_NONZEROS = {"A": 10.0, "B": 40.0, "C": 40.0}


@dataclass(frozen=True)
class Span:
    """How far curves go: samples of online learning, seconds of batch learning on subsets."""

    samples: float
    seconds: float
    iterations: int  # of batch learning on everything
    subsets: tuple[int, ...] = (10_000, 100_000)


# Seconds: at least as long as online learning takes, and three decades of time.
FULL = {"A": Span(1e7, 90.0, 20), "B": Span(4e6, 110.0, 8), "C": Span(2e6, 110.0, 6)}
QUICK = {"A": Span(16_384, 0.3, 3, (1_024,))}
SEEN = (6_000, 60_000)  # samples after which nonzeros are counted
SAMPLES = "10⁷ samples on A, 4·10⁶ on B, 2·10⁶ on C"

CLAIMS = (
    *(
        Claim(
            f"{name} batch",
            f"{name}: online beats batch for every training set size and desired precision.",
            "OL1's mean test cost is lower at every measured time, from 0.1 s on, of the mean curves "
            "of batch learning on 10⁴, 10⁵ and 10⁶ patches; in part: at nine of ten.",
        )
        for name in FULL
    ),
    *(
        Claim(
            f"{name} alike",
            f"{name}: OL1, OL2 and OL3 are very difficult to distinguish.",
            "Mean test costs differ by less than a twentieth of what learning gains from 1 s on, and "
            "by less than a fiftieth at the end; in part: only the latter.",
        )
        for name in FULL
    ),
    Claim(
        "smaller",
        "Similar experiments give similar results on smaller data sets: online beats batch.",
        "On 10⁴ and on 10⁵ patches of A, OL1 that draws from these alone is below batch learning on "
        "them at nine of ten measured times; in part: on one of the two.",
    ),
    Claim(
        "starts",
        "Different initialisations lead to very similar values of the objective.",
        "The standard deviation over three starts of the last test cost (250 000 patches) is below "
        "0.1 % of it for OL1, OL2 and OL3 on all sets.",
    ),
    Claim(
        "variance",
        "The variance of the experiments is insignificant after 10 seconds.",
        "From 10 s on the standard deviation over three starts stays below 0.2 % of the test cost for "
        "OL1, OL2 and OL3 on all sets.",
    ),
    Claim(
        "nonzeros",
        "λ = 1.2/√m yields about 10 nonzeros on A and 40 on B and C.",
        "The mean over the test, with OL1's last dictionary, is within a quarter of that; in part: on "
        "some sets.",
    ),
)


def spans(study: Study) -> dict[str, Span]:
    """Return the settings, and how far their curves go."""
    return QUICK if study.quick else FULL


def tasks(study: Study) -> dict[Key, Task]:
    """Return the parts."""
    found: dict[Key, Task] = {}
    for name, span in spans(study).items():
        bench = Bench(study, name)
        seconds, n_all = Limit(seconds=span.seconds), bench.sizes.n
        for start in range(1 if study.quick else STARTS):
            once = start > 0 and name != "A"  # what takes longest on B and C has one start
            for label, learner in ONLINE.items():
                if not (once and learner is OL1_BARE):
                    limit = Limit(span.samples)
                    found[name, label, start] = bench.task(learner, start, limit, end=True)
            for n in span.subsets:
                found[name, f"batch, {n:,}", start] = bench.task(Batch(), start, seconds, n=n)
                if name == "A":
                    found[name, f"OL1 on {n:,}", start] = bench.task(OL1, start, seconds, n=n)
            if not once:
                full = Limit(span.iterations * n_all)
                found[name, f"batch, {n_all:,}", start] = bench.task(Batch(), start, full, end=True)
        for label, program in OTHERS.items():
            found[name, label, 0] = bench.task(program, 0, seconds)
        found["nonzeros", name] = counting(bench)
    return found


def counting(bench: Bench) -> Task:
    """Return the part that counts nonzeros while OL1 learns, also on other pictures."""
    study, rows = bench.study, bench.sizes.other

    def compute() -> Part:
        setting = paper_setting(
            bench.name, SEEN[-1] + rows, rows, random_state=0, images=study.data.pictures
        )
        X, test, lam = setting.train[: SEEN[-1]], setting.train[SEEN[-1] :], setting.lam
        first = X[: QUICK_ATOMS if study.quick else setting.n_atoms]
        part: Part = {"test": [], "other": []}
        for n in (0, *SEEN):
            D = first if n == 0 else trace_learner(X, first, lam, Limit(n), 0, OL1)[-1][2]
            part["test"].append(mean_cost(test, D, lam)[1])
            part["other"].append(mean_cost(setting.test, D, lam)[1])
        return part

    settings = {"set": bench.name, "seen": list(SEEN), "rows": rows, "quick": study.quick}
    return Task("nonzeros", settings, compute, 0.3)


def report(study: Study, parts: dict[Key, Part]) -> None:
    """Judge the claims, draw the figure, write the table."""
    names = list(spans(study))
    figure, axes = new_figure(2, 2, height=3.9)
    panels = dict(zip((*names, "smaller"), axes.flat, strict=False))
    rows: list[list[Any]] = []
    verdicts: dict[str, Verdict] = {}
    results: dict[str, Any] = {}
    for name in names:
        runs = grouped(parts, name)
        shown = {label: each for label, each in runs.items() if " on " not in label}
        draw(panels[name], shown, f"{name}: batch and online", styles(shown))
        results[name] = {"curves": records(runs), "first": first_cost(parts, name)}
        rows += table(parts, name)
        means = {label: mean_curve(each) for label, each in runs.items()}
        verdicts[f"{name} batch"] = against_batch(means)
        verdicts[f"{name} alike"] = alike(means, results[name]["first"])
        if name == "A":
            verdicts["smaller"] = smaller(means)
            alone = [label for label in runs if " on " in label]
            beside = [label.replace("OL1 on", "batch,") for label in alone]
            few = {label: runs[label] for label in (*beside, *alone)}
            draw(panels["smaller"], few, "A: from the same few patches", styles(runs))
    for ax in list(axes.flat)[len(panels) :]:
        ax.set_axis_off()
    legend(figure, axes, 4)
    verdicts["starts"] = spread(parts, names)
    verdicts["variance"] = variance(parts, names)
    verdicts["nonzeros"] = nonzeros(parts, names)
    notes = [
        (
            f"{SAMPLES}; batch learning on subsets and the other programs as long as that takes; full "
            f"batches of {', '.join(str(span.iterations) for span in spans(study).values())} iterations."
        ),
        (
            "One thread, float32; mean of three starts, with a band from the least to the most (one start: "
            "SPAMS, scikit-learn, and on B and C the full batch and the bare formula)."
        ),
    ]
    study.finish(sys.modules[__name__], figure, HEADER, rows, verdicts, parts, results, notes)


HEADER = ("set", "method", "0.3 s", "3 s", "30 s", "end", "250 000", "other pictures", "seconds")


def grouped(parts: dict[Key, Part], name: str) -> dict[str, list[Curve]]:
    """Return the curves of a set by method."""
    runs: dict[str, list[Curve]] = {}
    for (where, label, *_), part in parts.items():
        if where == name:
            runs.setdefault(label, []).append(as_curve(part))
    return runs


def first_cost(parts: dict[Key, Part], name: str) -> float:
    """Return the mean test cost of the first dictionaries."""
    return float(np.mean([part["first"]["cost"] for key, part in parts.items() if key[0] == name]))


def table(parts: dict[Key, Part], name: str) -> list[list[Any]]:
    """Return a row for each method: its cost at some times, and at the end."""
    rows = []
    for method, curves in grouped(parts, name).items():
        mean = mean_curve(curves)
        ends = [
            part["end"]
            for key, part in parts.items()
            if key[:2] == (name, method) and "end" in part
        ]
        rows.append([
            name, method, *(known(mean, t) for t in (0.3, 3.0, 30.0)), f"{mean.cost[-1]:.4f}",
            f"{np.mean(ends):.4f}" if ends else None, f"{mean.other[-1]:.4f}", f"{mean.seconds[-1]:.3g}",
        ])  # fmt: skip
    return rows


def known(curve: Curve, seconds: float) -> str | None:
    """Return the cost at a time, None before the first and after the last."""
    inside = curve.seconds[0] * 0.9 <= seconds <= curve.seconds[-1] * 1.1
    return f"{curve.at(seconds):.4f}" if inside else None


def styles(runs: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the styles of the lines: batches, the larger the darker, have markers."""
    batches = [label for label in runs if label.startswith("batch")]
    colors = ("#e8a0a0", "#d04040", "#701010")[-len(batches) :]
    online = ({"color": "C0", "marker": "."}, {"color": "#103070", "marker": "."})
    few = [label for label in runs if " on " in label]
    return (
        STYLES
        | dict(zip(few, online, strict=False))
        | {
            label: {"color": color, "marker": "s", "markersize": 3}
            for label, color in zip(batches, colors, strict=True)
        }
    )


def below(online: Curve, batch: Curve) -> tuple[int, int]:
    """Return at how many of its points, from 0.1 s on, a batch curve is above; and their number."""
    times = batch.seconds[batch.seconds >= max(0.1, online.seconds[0])]
    return int((online.at(times) < batch.at(times)).sum()), len(times)


def against_batch(means: dict[str, Curve]) -> Verdict:
    """Compare OL1 with all batches at all times."""
    batches = {label: curve for label, curve in means.items() if label.startswith("batch")}
    said, counts = [], {}
    for online in ("OL1", "OL1, bare formula", DEFAULT_NAME):
        counts[online] = np.sum([below(means[online], curve) for curve in batches.values()], axis=0)
        said.append(f"{counts[online][0]} ({online})")
    sooner = []
    for label, curve in batches.items():
        when = means["OL1"].seconds_to(curve.cost[-1])
        ratio = "never" if when is None else f"{curve.seconds[-1] / when:.0f}"
        sooner.append(f"{ratio} ({label.removeprefix('batch, ')})")
    lower, points = counts["OL1"]
    return Verdict.of(
        lower == points,
        f"below batch at {', '.join(said)} of {points} points; OL1 reaches the cost at which the batches "
        f"were stopped {', '.join(sooner)} times sooner",
        lower >= 0.9 * points,
    )


def alike(means: dict[str, Curve], first: float) -> Verdict:
    """Compare OL1, OL2 and OL3 with each other."""
    three = [means[label] for label in ("OL1", "OL2", "OL3")]
    last = min(curve.seconds[-1] for curve in three)
    times = np.geomspace(min(1.0, 0.5 * last), last, 30)
    each = np.array([curve.at(times) for curve in three])
    apart = (each.max(axis=0) - each.min(axis=0)) / (first - each[:, -1].min())
    return Verdict.of(
        apart.max() < 0.05 and apart[-1] < 0.02,
        f"from {times[0]:.2g} s on they differ by at most {100 * apart.max():.1f} % of what learning gains, "
        f"and at the end by {100 * apart[-1]:.1f} % of it "
        f"({100 * (each[:, -1].max() / each[:, -1].min() - 1):.2f} % of the cost)",
        apart[-1] < 0.02,
    )


def smaller(means: dict[str, Curve]) -> Verdict:
    """Compare OL1 with batch learning on the same few patches."""
    found = {
        label.removeprefix("OL1 on "): below(curve, means[label.replace("OL1 on", "batch,")])
        for label, curve in means.items()
        if label.startswith("OL1 on")
    }
    good = [lower >= 0.9 * points for lower, points in found.values()]
    said = ", ".join(f"{n}: {lower} of {points}" for n, (lower, points) in found.items())
    return Verdict.of(all(good), f"OL1 is below batch learning at its points on {said}", any(good))


def spread(parts: dict[Key, Part], names: list[str]) -> Verdict:
    """Compare the last costs of different starts."""
    worst = {
        name: max(relative_deviation([part["end"] for key, part in parts.items() if key[:2] == (name, o)])
                  for o in ("OL1", "OL2", "OL3"))
        for name in names
    }  # fmt: skip
    said = ", ".join(f"{name} {100 * value:.3f} %" for name, value in worst.items())
    return Verdict.of(max(worst.values()) < 0.001, f"largest deviation of the last cost: {said}")


def variance(parts: dict[Key, Part], names: list[str]) -> Verdict:
    """Look at the deviation of different starts after 10 seconds."""
    worst = {}
    for name in names:
        runs = grouped(parts, name)
        values = []
        for o in ("OL1", "OL2", "OL3"):
            last = min(curve.seconds[-1] for curve in runs[o])
            times = np.geomspace(min(10.0, 0.5 * last), last, 20)
            values += [
                relative_deviation(costs)
                for costs in zip(*(c.at(times) for c in runs[o]), strict=True)
            ]
        worst[name] = max(values)
    said = ", ".join(f"{name} {100 * value:.3f} %" for name, value in worst.items())
    return Verdict.of(max(worst.values()) < 0.002, f"largest deviation from 10 s on: {said}")


def relative_deviation(values: Any) -> float:
    """Return the standard deviation as a share of the mean; 0 of a single value."""
    values = np.array(values)
    return float(values.std(ddof=1) / values.mean()) if len(values) > 1 else 0.0


def nonzeros(parts: dict[Key, Part], names: list[str]) -> Verdict:
    """Compare the numbers of nonzeros with the paper's."""
    found = {name: parts[name, "OL1", 0]["nonzeros"] for name in names}
    good = [abs(value / PAPER_NONZEROS[name] - 1) < 0.25 for name, value in found.items()]
    said = ", ".join(f"{name} {value:.1f}" for name, value in found.items())
    earlier = "; ".join(
        f"{name} {listed(parts['nonzeros', name]['test'])}, on other pictures "
        f"{listed(parts['nonzeros', name]['other'])}"
        for name in names
    )
    return Verdict.of(
        all(good),
        f"mean nonzeros with OL1's last dictionary: {said}; before learning and after "
        f"{' and '.join(f'{n:,}' for n in SEEN)} samples: {earlier}",
        any(good),
    )


def listed(values: Any) -> str:
    """Return numbers with one digit."""
    return " / ".join(f"{value:.1f}" for value in values)
