"""The study of the batch size η described in Section 6.1: powers of two on setting A.

Online learning as in OL1, with η = 1, 2, 4, …, 1024, and SGD as in SG1. η is chosen as in the
paper, by the training cost.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from benchmarks.paper.curves import OL1, Bench, Curve, Limit, as_curve, draw, mean_curve, records
from benchmarks.paper.frame import Claim, Key, Part, Study, Task, Verdict, legend, new_figure
from smalto.learners import SGD

TITLE = "The size of mini-batches"
SIZES = tuple(2**i for i in range(11))
SGD_SIZES = (1, 8, 64, 512)
STARTS, SECONDS = 3, 30.0
SIMILAR = 0.005  # of the cost

CLAIMS = (
    Claim(
        "512",
        "η = 512 is a good choice, by the lowest cost on the training set and on the test set.",
        "After 30 s the mean training and test costs of η = 512 are within 0.1 % of the lowest; in "
        "part: one of them.",
    ),
    Claim(
        "similar",
        "η = 64, 128, 256 and 1024 give very similar performance.",
        "After 30 s their mean test costs are within 0.5 % of that of η = 512.",
    ),
    Claim(
        "1",
        "The difference with the choice η = 1 is significant.",
        "After 30 s η = 1 has a test cost above that of η = 512 by more than 0.5 %, and by more than "
        "three times the largest deviation between starts.",
    ),
    Claim(
        "SGD",
        "SGD needs mini-batches too: η = 512 is significantly better than η = 1.",
        "After 30 s SG1 with η = 1 has a test cost over 0.5 % above that with η = 512.",
    ),
)


def tasks(study: Study) -> dict[Key, Task]:
    """Return the parts."""
    bench = Bench(study, "A")
    limit = Limit(seconds=0.2 if study.quick else SECONDS)
    sizes, others = ((1, 64, 128, 256, 512, 1024), (1, 512)) if study.quick else (SIZES, SGD_SIZES)
    learners = {f"η = {size}": replace(OL1, batch_size=size) for size in sizes}
    learners |= {f"SGD, η = {size}": SGD(batch_size=size) for size in others}
    return {
        (name, start): bench.task(learner, start, limit)
        for name, learner in learners.items()
        for start in range(1 if study.quick else STARTS)
    }


def report(study: Study, parts: dict[Key, Part]) -> None:
    """Judge the claims, draw the figure, write the table."""
    runs: dict[str, list[Curve]] = {}
    for (name, _), part in parts.items():
        runs.setdefault(name, []).append(as_curve(part))
    online = {name: each for name, each in runs.items() if "SGD" not in name}
    others = {name: each for name, each in runs.items() if "SGD" in name}
    figure, axes = new_figure(3, height=4.4)
    from matplotlib import colormaps

    shades = {name: {"color": colormaps["viridis"](0.95 * i / max(1, len(online) - 1))}
              for i, name in enumerate(online)}  # fmt: skip
    draw(axes[0][0], online, "A: OL1", shades)
    draw(axes[0][1], online, "the same by samples", shades, by="samples")
    draw(axes[0][2], others, "SG1", {})
    axes[0][2].set_ylim(axes[0][0].get_ylim())
    legend(figure, axes, 6)
    means = {name: mean_curve(each) for name, each in runs.items()}
    rows = [
        [
            name, f"{curve.samples[-1]:,.0f}", *(f"{curve.at(t):.4f}" for t in (0.3, 3.0)),
            *(f"{getattr(curve, column)[-1]:.4f}" for column in ("cost", "train", "other")),
        ]
        for name, curve in means.items()
    ]  # fmt: skip
    header = ("", "samples seen", "0.3 s", "3 s", "end", "end, training", "end, other pictures")
    notes = [f"{SECONDS:g} s of one thread each, float32, mean of three starts."]
    study.finish(
        sys.modules[__name__], figure, header, rows, judge(runs, means), parts, records(runs), notes
    )


def judge(runs: dict[str, list[Curve]], means: dict[str, Curve]) -> dict[str, Verdict]:
    """Judge the claims."""
    last = {name: float(curve.cost[-1]) for name, curve in means.items()}
    online = [name for name in last if "SGD" not in name]
    excess = {}
    for column in ("train", "cost"):
        ends = {name: float(getattr(means[name], column)[-1]) for name in online}
        excess[column] = ends["η = 512"] / min(ends.values()) - 1, min(ends, key=ends.__getitem__)
    good = [gap < 0.001 for gap, _ in excess.values()]
    usual = {size: last[f"η = {size}"] / last["η = 512"] - 1 for size in (64, 128, 256, 1024)}
    one = last["η = 1"] / last["η = 512"] - 1
    deviation = max(
        float(max(c.cost[-1] for c in each) - min(c.cost[-1] for c in each)) / last["η = 512"]
        for each in (runs["η = 1"], runs["η = 512"])
    )
    sgd = last["SGD, η = 1"] / last["SGD, η = 512"] - 1
    said = ", ".join(f"η = {size} {100 * gap:+.2f} %" for size, gap in usual.items())
    return {
        "512": Verdict.of(
            all(good),
            f"η = 512 is {100 * excess['train'][0]:.2f} % above the lowest training cost "
            f"({excess['train'][1]}) and {100 * excess['cost'][0]:.2f} % above the lowest test cost "
            f"({excess['cost'][1]})",
            any(good),
        ),
        "similar": Verdict.of(
            max(map(abs, usual.values())) < SIMILAR, f"against η = 512 at the end: {said}"
        ),
        "1": Verdict.of(
            one > max(SIMILAR, 3 * deviation),
            f"η = 1 ends {100 * one:.2f} % above η = 512; starts differ by {100 * deviation:.2f} %",
        ),
        "SGD": Verdict.of(sgd > SIMILAR, f"SG1 with η = 1 ends {100 * sgd:.2f} % above η = 512"),
    }
