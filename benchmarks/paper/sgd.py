"""Figure 1, right: online learning against stochastic gradient descent on A, B and C.

SG1, SG2 and SG3 are the paper's learning rates a/(ηt + b), with gradients summed over the
mini-batch. Below, how the cost on A depends on a and b, early and after 10⁶ samples: powers of ten
for both, then 100 000·2^i for i = −3..3, as the paper searched; and b = 0, which it describes in
words.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from benchmarks.paper.curves import (
    DEFAULT,
    DEFAULT_NAME,
    OL1,
    STYLES,
    Bench,
    Curve,
    Limit,
    as_curve,
    draw,
    mean_curve,
    records,
)
from benchmarks.paper.frame import Claim, Key, Part, Study, Task, Verdict, label, legend, new_figure
from benchmarks.paper.online_batch import HEADER, SAMPLES, STARTS, grouped, spans, table
from smalto.learners import SGD

TITLE = "Figure 1, right: online against stochastic gradient descent"
ONLINE = {"OL1": OL1, DEFAULT_NAME: DEFAULT}
RATES = {"SG1": SGD(200_000, 400_000), "SG2": SGD(400_000, 400_000), "SG3": SGD(50_000, 100_000)}
SGD_STYLES = STYLES | {
    "SG1": {"color": "C3", "linestyle": "--"},
    "SG2": {"color": "C1", "linestyle": ":"},
    "SG3": {"color": "C4", "linestyle": "-."},
}
COARSE = tuple(10.0**e for e in range(3, 8))
FINE = tuple(100_000 * 2.0**i for i in range(-3, 4))
LONG = ((25_000.0, 0.0), (25_000.0, 12_500.0))  # the best after 10⁶ samples, run as long as SG1
EARLY = 30_000  # samples
EQUAL = 0.005  # of the cost: differences up to this count as equal
MUCH = 0.001  # what is "much better", at least

CLAIMS = (
    *(
        Claim(
            f"{name} SG1",
            f"{name}: SGD with tuned a and b (SG1) leads to similar results as online learning.",
            "At the end SG1's mean test cost is within 0.5 % of OL1's.",
        )
        for name in "ABC"
    ),
    *(
        Claim(
            f"{name} SG2",
            f"{name}: SG2 (larger a) is worse during the first iterations and good in the end.",
            "SG2's mean test cost is above SG1's after 60 000 and 200 000 samples (the paper points to "
            "1 to 100 s, about 3·10⁴ to 3·10⁶ samples), and within 0.5 % of it at the end; in part: "
            "one of the two.",
        )
        for name in "ABC"
    ),
    Claim(
        "SG3",
        "SG3 (a, b too small) is as good as SG1 on A and B, asymptotically slightly worse on C.",
        "At the end SG3's mean test cost is within 0.2 % of SG1's, or lower, on A and B, and higher "
        "than SG1's on C; in part: on some of the sets.",
    ),
    Claim(
        "choice",
        "(a, b) = (200 000, 400 000) is the best pair.",
        "After 10⁶ samples of A its training cost is within 0.1 % of the best of all pairs tried; in "
        "part: within 0.5 %.",
    ),
    Claim(
        "tuning",
        "Good performance of SGD requires carefully choosing a and b.",
        "After 10⁶ samples of A some pair is within 0.5 % of OL1, but fewer than half of the powers of "
        "ten are.",
    ),
    Claim(
        "large a",
        "With a/(ηt), a high a increases the cost dramatically at first.",
        "With b = 0 and a = 10⁶ the test cost is 5 % above OL1's at some time up to 60 000 samples.",
    ),
    Claim(
        "small a",
        "With a/(ηt), a small a leads to bad asymptotic results.",
        "With b = 0 and a = 1 000 the test cost after 10⁶ samples is over 0.5 % above OL1's.",
    ),
    Claim(
        "compromise",
        "Rates a/(ηt + b) are much better than a/(ηt).",
        "The test cost of the best pair with b > 0 is lower than that of the best a with b = 0 by more "
        "than 0.1 %, after 30 000 and after 10⁶ samples; in part: after one of them.",
    ),
)


def pairs(study: Study) -> list[tuple[float, float]]:
    """Return the pairs (a, b) to try on A."""
    if study.quick:
        return [(1e3, 0.0), (1e6, 0.0), (2e5, 4e5), (1e5, 1e5)]
    tried = [(a, b) for grid in (COARSE, FINE) for a in grid for b in grid]
    return list(dict.fromkeys([*tried, *((a, 0.0) for a in (*COARSE, *FINE))]))


def tasks(study: Study) -> dict[Key, Task]:
    """Return the parts."""
    found: dict[Key, Task] = {}
    for name, span in spans(study).items():
        bench = Bench(study, name)
        for start in range(1 if study.quick else STARTS):
            for method, learner in {**ONLINE, **RATES}.items():
                limit = Limit(span.samples)
                found[name, method, start] = bench.task(learner, start, limit, end=True)
    bench = Bench(study, "A")
    limit = Limit(8_192 if study.quick else 1e6)
    for a, b in pairs(study):
        found["grid", a, b] = bench.task(SGD(a, b), 0, limit)
    found["grid", "OL1"] = bench.task(OL1, 0, limit)
    if not study.quick:
        for a, b in LONG:
            found["long", a, b] = bench.task(
                SGD(a, b), 0, Limit(spans(study)["A"].samples), end=True
            )
    return found


def report(study: Study, parts: dict[Key, Part]) -> None:
    """Judge the claims, draw the figure, write the table."""
    names = list(spans(study))
    figure, axes = new_figure(3, 2, height=3.5)
    rows: list[list[Any]] = []
    verdicts: dict[str, Verdict] = {}
    results: dict[str, Any] = {}
    ends: dict[str, dict[str, float]] = {}
    for ax, name in zip(axes[0], names, strict=False):
        runs = grouped(parts, name)
        draw(ax, runs, f"{name}: SGD and online", SGD_STYLES)
        results[name] = {"curves": records(runs)}
        rows += table(parts, name)
        means = {method: mean_curve(each) for method, each in runs.items()}
        ends[name] = {method: float(curve.cost[-1]) for method, curve in means.items()}
        verdicts[f"{name} SG1"] = tuned(means)
        verdicts[f"{name} SG2"] = larger(means)
    for ax in axes[0][len(names) :]:
        ax.set_axis_off()
    verdicts["SG3"] = third(ends)
    grid = {key[1:]: as_curve(part) for key, part in parts.items() if key[0] == "grid"}
    online = grid.pop(("OL1",))
    results["grid"] = {f"{a:g} {b:g}": by_samples(curve) for (a, b), curve in grid.items()}
    results["grid OL1"] = by_samples(online)
    verdicts |= judge_grid(grid, online)
    long = {key[1:]: part["end"] for key, part in parts.items() if key[0] == "long"}
    results["long"] = {f"{a:g} {b:g}": end for (a, b), end in long.items()}
    rows += [
        ["A", f"({a:,.0f}, {b:,.0f})", *[None] * 4, f"{end:.4f}", None, None]
        for (a, b), end in long.items()
    ]
    draw_map(axes[1][0], grid, online, FINE, EARLY)
    draw_map(axes[1][1], grid, online, FINE, None)
    draw_zero(axes[1][2], grid, online)
    legend(figure, axes[:1], 5)
    notes = [
        (
            f"{SAMPLES}; one thread, float32, η = 512, mean of three starts, with a band from the least "
            "to the most. The maps and the curves with b = 0 are of one start on A; they are not "
            "timed; the high load is theirs."
        ),
    ]
    study.finish(sys.modules[__name__], figure, HEADER, rows, verdicts, parts, results, notes)


def by_samples(curve: Curve) -> dict[str, Any]:
    """Return a curve for JSON without its seconds."""
    return {key: value for key, value in vars(curve).items() if key != "seconds"}


def draw_map(
    ax: Any, grid: dict[Any, Curve], online: Curve, values: Any, samples: int | None
) -> None:
    """Draw by how many percent the test cost of each pair is above that of OL1."""
    shown = [value for value in values if any(key[0] == value for key in grid)]
    excess = np.full((len(shown), len(shown)), np.nan)
    for i, a in enumerate(shown):
        for j, b in enumerate(shown):
            if (a, b) in grid:
                excess[i, j] = 100 * above(grid[a, b], online, samples)
    ax.imshow(excess, cmap="YlOrRd", vmin=0, vmax=5, aspect="auto")
    for (i, j), value in np.ndenumerate(excess):
        if np.isfinite(value):
            color = "w" if value > 3.5 else "k"
            shown_value = f"{round(value, 1) + 0.0:.1f}"  # without −0.0
            ax.text(j, i, shown_value, ha="center", va="center", fontsize=8, color=color)
    ax.grid(visible=False)
    names = [f"{value / 1000:g}k" for value in shown]
    ax.set_xticks(range(len(shown)), names, fontsize=7)
    ax.set_yticks(range(len(shown)), names, fontsize=8)
    when = "at the end" if samples is None else f"after {samples:,}"
    label(ax, f"A, {when}: % above OL1", "b", "a")


def draw_zero(ax: Any, grid: dict[Any, Curve], online: Curve) -> None:
    """Draw the curves with b = 0."""
    for i, a in enumerate(COARSE):
        if (a, 0.0) in grid:
            curve = grid[a, 0.0]
            ax.plot(curve.samples, curve.cost, f"C{i + 1}", label=f"a = {a:g}", linewidth=1.3)
    ax.plot(online.samples, online.cost, color="C0", label="OL1")
    ax.set_xscale("log")
    ax.set_ylim(0.97 * online.cost[-1], 1.25 * online.cost[-1])
    ax.legend(fontsize=7, frameon=False)
    label(ax, "A: rates a/(ηt)", "samples seen", "cost")


def above(curve: Curve, online: Curve, samples: float | None) -> float:
    """Return by which share a test cost is above that of OL1, after some samples or at the end."""
    if samples is None:
        return float(curve.cost[-1] / online.cost[-1] - 1)
    return curve.after(samples) / online.after(samples) - 1


def tuned(means: dict[str, Curve]) -> Verdict:
    """Compare SG1 with online learning, when the shorter of the two runs ends."""
    gap = means["SG1"].cost[-1] / means["OL1"].cost[-1] - 1
    last = min(means[method].seconds[-1] for method in ("SG1", DEFAULT_NAME))
    other = means["SG1"].at(last) / means[DEFAULT_NAME].at(last) - 1
    return Verdict.of(
        abs(gap) < EQUAL,
        f"at the end SG1 costs {100 * gap:+.2f} % against OL1; when {DEFAULT_NAME} end, after {last:.0f} s, "
        f"{100 * other:+.2f} % against them",
    )


def larger(means: dict[str, Curve]) -> Verdict:
    """Compare SG2 with SG1."""
    early = [means["SG2"].after(n) / means["SG1"].after(n) - 1 for n in (6e4, 2e5)]
    late = float(means["SG2"].cost[-1] / means["SG1"].cost[-1] - 1)
    first = max(means[method].seconds[0] for method in ("SG1", "SG2"))
    before = means["SG2"].at(first) / means["SG1"].at(first) - 1
    said = ", ".join(f"{100 * gap:+.2f}" for gap in (*early, late))
    good = min(early) > 0, late < EQUAL
    evidence = (
        f"SG2 against SG1 after 60 000, 200 000 and all samples: {said} %; at the very beginning, "
        f"{first:.1f} s, {100 * before:+.2f} %"
    )
    return Verdict.of(all(good), evidence, any(good))


def third(ends: dict[str, dict[str, float]]) -> Verdict:
    """Compare SG3 with SG1."""
    gaps = {name: end["SG3"] / end["SG1"] - 1 for name, end in ends.items()}
    good = [gap > 0 if name == "C" else gap < 0.002 for name, gap in gaps.items()]
    said = ", ".join(f"{name} {100 * gap:+.2f} %" for name, gap in gaps.items())
    return Verdict.of(all(good), f"SG3 against SG1 at the end: {said}", any(good))


def judge_grid(grid: dict[Any, Curve], online: Curve) -> dict[str, Verdict]:
    """Judge what the paper says about the choice of a and b."""
    train = {pair: float(curve.train[-1]) for pair, curve in grid.items()}
    best = min(train, key=train.__getitem__)
    worse = train[2e5, 4e5] / train[best] - 1
    coarse_pairs = [pair for pair in train if pair[0] in COARSE and pair[1] in COARSE]
    first = min(coarse_pairs, key=train.__getitem__)
    late = {pair: above(curve, online, None) for pair, curve in grid.items()}
    early = {pair: above(curve, online, EARLY) for pair, curve in grid.items()}
    coarse = [gap for pair, gap in late.items() if pair[0] in COARSE and pair[1] in COARSE]
    good = sum(gap < EQUAL for gap in coarse)
    zero, more = (
        [pair for pair in grid if (pair[1] > 0) == positive] for positive in (False, True)
    )
    gains = [min(gaps[p] for p in zero) - min(gaps[p] for p in more) for gaps in (early, late)]
    large = grid[1e6, 0.0]
    worst = max(above(large, online, n) for n in (*large.samples[large.samples < 60_000], 60_000))
    return {
        "choice": Verdict.of(
            worse < 0.001,
            f"by training cost the best of {len(grid)} pairs is ({best[0]:,.0f}, {best[1]:,.0f}); the "
            f"paper's is {100 * worse:.2f} % above it; the best powers of ten are ({first[0]:,.0f}, "
            f"{first[1]:,.0f}), for the paper (100 000, 100 000)",
            worse < EQUAL,
        ),
        "tuning": Verdict.of(
            min(late.values()) < EQUAL and good < 0.5 * len(coarse),
            f"{good} of {len(coarse)} powers of ten come within 0.5 % of OL1, the best pair at "
            f"{100 * min(late.values()):+.2f} %, the worst at {100 * max(late.values()):+.1f} %",
        ),
        "large a": Verdict.of(worst > 0.05, f"a = 10⁶ is up to {100 * worst:.1f} % above OL1"),
        "small a": Verdict.of(
            late[1e3, 0.0] > EQUAL, f"a = 1 000 ends {100 * late[1e3, 0.0]:+.1f} % above OL1"
        ),
        "compromise": Verdict.of(
            min(gains) > MUCH,
            f"the best b = 0 is {100 * gains[0]:+.2f} % of the cost worse than the best b > 0 after "
            f"{EARLY:,} samples, {100 * gains[1]:+.2f} % at the end",
            max(gains) > MUCH,
        ),
    }
