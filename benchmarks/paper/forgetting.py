"""The studies of ρ and t₀ described in Section 6.1.

ρ is 0, 5, …, 25 after many epochs over 10⁴, 3·10⁴ and 10⁵ patches of A, two over 10⁶, and one over 10⁶
patches of B and of C; t₀ is a power of 10. The rest is as in OL1, with the authors' floor (a step
keeps at least 95 % of the past) and, on A, without it. Costs are compared by samples seen:
forgetting takes no time. The paper calls ρ useful for n ≥ 100 000 and useless for n ≤ 100 000: that
size is shown without a verdict.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.paper.curves import OL1, Bench, Curve, Limit, as_curve, mean_curve
from benchmarks.paper.frame import Claim, Key, Part, Study, Task, Verdict, label, new_figure

TITLE = "Forgetting (ρ) and a slow start (t₀)"
RHOS = (0.0, 5.0, 10.0, 15.0, 20.0, 25.0)
T0S = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
BORDER = 100_000  # samples: for the paper ρ is useful from there on, and useless up to there
EPOCHS = {("A", 10_000): 100, ("A", 30_000): 40, ("A", BORDER): 20, ("A", 1_000_000): 2,
          ("B", 1_000_000): 1, ("C", 1_000_000): 1}  # fmt: skip
FLOORS = {"": 0.95, ", bare": 0.0}
STARTS = 3
SLOW = (10_000, 30_000)  # samples at which a slow start shows

CLAIMS = (
    *(
        Claim(
            f"rho {n:,}",
            f"ρ does not bring any benefit on smaller data sets: n = {n:,}.",
            "At the end the lowest mean test cost of ρ > 0 is less than 0.1 % below that of ρ = 0.",
        )
        for n in (10_000, 30_000)
    ),
    Claim(
        "rho large",
        "ρ improves the convergence on large data sets.",
        "On 10⁶ patches of A, B and C, after the last epoch, ρ = 15 has a test cost over 0.1 % below "
        "that of ρ = 0; in part: on some of them.",
    ),
    Claim(
        "robust",
        "The method is robust to the choice of ρ: 10 and 20 behave as 15 does.",
        "On 10⁶ patches of A, B and C, after the last epoch, the test costs of ρ = 10, 15, 20 differ "
        "by less than 0.3 %; in part: on some of them.",
    ),
    Claim(
        "choice",
        "(t₀, ρ) = (0.001, 15) has the best training objective on the three sets.",
        "Its training cost after the last epoch over 10⁶ patches is within 0.1 % of the lowest of all "
        "ρ (A, B, C) and all t₀ (A); in part: on some of them.",
    ),
    Claim(
        "t0",
        "The influence of t₀ is very limited.",
        "After an epoch over 10⁶ patches of A the test costs of t₀ = 0 and t₀ ≤ 0.001 differ by less "
        "than 0.1 %.",
    ),
    Claim(
        "slow",
        "A t₀ too big slightly slows down the first epoch.",
        "t₀ = 1 has a test cost over 0.5 % above the lowest after 10 000 or 30 000 samples, and within "
        "0.5 % of it after the epoch.",
    ),
)

USUAL = {"ρ": 15.0, "t₀": 0.001}  # what OL1 has
FROM = 5_000  # samples seen, in the figure


def tasks(study: Study) -> dict[Key, Task]:
    """Return the parts."""
    if study.quick:
        epochs, rhos, t0s = (
            {("A", 1_024): 2, ("A", 4_096): 1},
            (0.0, 10.0, 15.0, 20.0),
            (0.0, 1e-3, 1.0),
        )
    else:
        epochs, rhos, t0s = EPOCHS, RHOS, T0S
    found: dict[Key, Task] = {}
    for (name, n), count in epochs.items():
        bench = Bench(study, name)
        for start in range(STARTS if name == "A" and not study.quick else 1):
            for how, keep in FLOORS.items() if name == "A" else [("", 0.95)]:
                for rho in rhos:
                    found["ρ", name, n, how, rho, start] = bench.task(
                        replace(OL1, rho=rho, keep=keep), start, Limit(n * count), n=n
                    )
    bench = Bench(study, "A")
    for start in range(1 if study.quick else STARTS):
        for how, keep in FLOORS.items():
            for t0 in t0s:
                found["t₀", "A", bench.sizes.n, how, t0, start] = bench.task(
                    replace(OL1, t0=t0, keep=keep), start, Limit(bench.sizes.n)
                )
    return found


def report(study: Study, parts: dict[Key, Part]) -> None:
    """Judge the claims, draw the figure, write the table."""
    runs: dict[Key, list[Curve]] = {}
    for key, part in parts.items():
        runs.setdefault(key[:-1], []).append(as_curve(part))
    means = {key: mean_curve(each, "samples") for key, each in runs.items()}
    families: dict[Key, dict[float, Curve]] = {}
    for key, curve in means.items():
        families.setdefault(key[:-1], {})[key[-1]] = curve
    with_floor = [key for key in families if not key[3]]
    figure, axes = new_figure(3, -(-len(with_floor) // 3), height=3.0)
    for ax, key in zip(axes.flat, with_floor, strict=False):
        draw(ax, {value: runs[*key, value] for value in families[key]}, key)
    for ax in axes.flat[len(with_floor) :]:
        ax.set_axis_off()
    rows: list[list[Any]] = []
    for key, curves in families.items():
        what = f"{key[0]} on {key[1]}, n = {key[2]:,}{key[3]}"
        rows.append([f"**{what}**", *(f"**{value:g}**" for value in curves)])
        first = min(key[2], 20_000)
        for text, costs in (
            (f"after {first:,}", [curve.after(first) for curve in curves.values()]),
            ("test, end", [curve.cost[-1] for curve in curves.values()]),
            ("training, end", [curve.train[-1] for curve in curves.values()]),
            ("other pictures, end", [curve.other[-1] for curve in curves.values()]),
        ):
            rows.append([text, *(f"{cost:.5f}" for cost in costs)])
    width = max(map(len, rows))
    header = ("cost", *[""] * (width - 1))
    filled = [row + [None] * (width - len(row)) for row in rows]
    results = {
        " ".join(map(str, key)): [vars(curve) for curve in each] for key, each in runs.items()
    }
    notes = [
        "η = 512; t₀ = 0.001 where ρ varies, ρ = 15 where t₀ varies. Three starts on A, one on B and C.",
        "Without the mark *bare*: a step keeps at least 95 % of the past, as in the authors' program.",
    ]
    study.finish(
        sys.modules[__name__], figure, header, filled, judge(families), parts, results, notes
    )


def draw(ax: Any, runs: dict[float, list[Curve]], key: Key) -> None:
    """Draw by how many percent costs are above those of OL1, with a band over the starts."""
    from matplotlib import colormaps

    usual = USUAL[key[0]]
    reference = mean_curve(runs[usual], "samples")
    for number, (value, each) in enumerate(runs.items()):
        color = "k" if value == usual else colormaps["viridis"](0.95 * number / (len(runs) - 1))
        n = mean_curve(each, "samples").samples
        n = n[n >= min(FROM, n[-1])]
        excess = [[100.0 * (c.after(m) / reference.after(m) - 1.0) for m in n] for c in each]
        name = f"{key[0]} = {value:g}"
        ax.plot(n, np.mean(excess, axis=0), label=name, color=color, linewidth=1.3)
        ax.fill_between(
            n, np.min(excess, 0), np.max(excess, 0), color=color, alpha=0.2, linewidth=0
        )
    ax.set_xscale("log")
    ax.legend(fontsize=8, frameon=False)
    label(
        ax, f"{key[0]} on {key[1]}, n = {key[2]:,}", "samples seen", f"% above {key[0]} = {usual:g}"
    )


def judge(families: dict[Key, dict[float, Curve]]) -> dict[str, Verdict]:
    """Judge the claims, by the runs with the floor."""
    found: dict[str, Verdict] = {}
    sizes = {n for kind, _, n, _ in families if kind == "ρ"}
    for n in sorted(sizes - {BORDER})[:-1]:
        said = []
        gains = []
        for how in FLOORS:
            ends = {rho: float(curve.cost[-1]) for rho, curve in families["ρ", "A", n, how].items()}
            best = min(ends, key=ends.__getitem__)
            gains.append(1 - min(cost for rho, cost in ends.items() if rho) / ends[0.0])
            said.append(f"best ρ = {best:g}, ρ > 0 gains {100 * gains[-1]:+.2f} %{how}")
        found[f"rho {n:,}"] = Verdict.of(gains[0] < 0.001, "; ".join(said))
    large = {name: curves for (kind, name, n, how), curves in families.items()
             if kind == "ρ" and n == max(sizes) and not how}  # fmt: skip
    gain = {name: 1 - float(c[15.0].cost[-1] / c[0.0].cost[-1]) for name, c in large.items()}
    found["rho large"] = over_sets(gain, lambda value: value > 0.001, "ρ = 15 gains")
    ends = {
        name: [float(c[rho].cost[-1]) for rho in (10.0, 15.0, 20.0)] for name, c in large.items()
    }
    apart = {name: max(values) / min(values) - 1 for name, values in ends.items()}
    found["robust"] = over_sets(apart, lambda value: value < 0.003, "ρ = 10, 15, 20 differ by")
    slow = {how: families["t₀", "A", max(sizes), how] for how in FLOORS}
    excess = {
        name: float(c[15.0].train[-1] / min(x.train[-1] for x in c.values())) - 1
        for name, c in large.items()
    }
    excess["A, t₀"] = (
        float(slow[""][1e-3].train[-1] / min(c.train[-1] for c in slow[""].values())) - 1
    )
    found["choice"] = over_sets(
        excess, lambda value: value < 0.001, "above the lowest training cost by"
    )
    small = [float(curve.cost[-1]) for t0, curve in slow[""].items() if t0 <= 1e-3]
    apart_t0 = max(small) / min(small) - 1
    found["t0"] = Verdict.of(apart_t0 < 0.001, f"they differ by {100 * apart_t0:.3f} %")
    said = []
    answers = []
    for how, curves in slow.items():
        costs = [
            *({t0: c.after(n) for t0, c in curves.items()} for n in SLOW),
            {t0: float(c.cost[-1]) for t0, c in curves.items()},
        ]
        gaps = [cost[1.0] / min(cost.values()) - 1 for cost in costs]
        answers.append(max(gaps[:2]) > 0.005 and gaps[2] < 0.005)
        said.append(", ".join(f"{100 * gap:+.2f} %" for gap in gaps) + how)
    evidence = "t₀ = 1 against the best after 10 000, 30 000 and all samples: " + "; ".join(said)
    found["slow"] = Verdict.of(answers[0], evidence)
    return found


def over_sets(values: dict[str, float], good: Any, what: str) -> Verdict:
    """Return a verdict that is "in part" if it holds for some."""
    answers = [good(value) for value in values.values()]
    said = ", ".join(f"{name} {100 * value:.2f} %" for name, value in values.items())
    return Verdict.of(all(answers), f"{what} {said}", any(answers))
