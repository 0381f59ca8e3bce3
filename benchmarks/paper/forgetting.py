"""The studies of ρ and t₀ described in Section 6.1.

ρ is 0, 5, …, 25, after several epochs over 10⁴ and 10⁵ patches of setting A, and one over 10⁶;
t₀ is a power of 10. Everything else is as in OL1. Costs are compared by samples seen, not by
time, because forgetting takes no time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.paper.curves import OL1, Bench, Curve, mean_curve
from benchmarks.paper.frame import Study, Verdict, new_figure

TITLE = "Forgetting (ρ) and a slow start (t₀)"
RHOS = (0.0, 5.0, 10.0, 15.0, 20.0, 25.0)
T0S = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
FOREVER = 1e4  # seconds: epochs end the runs


def run(study: Study) -> None:
    """Run the experiment."""
    if study.quick:
        sizes, rhos, t0s, n_test, starts = (
            {1_024: 2, 4_096: 1},
            (0.0, 15.0),
            (0.0, 1e-3, 1.0),
            200,
            1,
        )
    else:
        # Total number of samples: as many as the time allows, at about 15 microseconds each.
        starts = 2
        budget = study.seconds / 15e-6 / starts / (3 * len(RHOS) + 1)
        largest = int(min(1_000_000, max(100_000, budget)))
        sizes = {10_000: 20, 100_000: max(2, min(8, int(budget / 100_000))), largest: 1}
        rhos, t0s, n_test = RHOS, T0S, 4_000
    figure, axes = new_figure(len(sizes) + 1)
    rows: list[list[Any]] = []
    results: dict[str, Any] = {"rho": {}, "t0": {}}
    verdicts: list[Verdict] = []
    biggest = max(sizes)
    for ax, (n, epochs) in zip(axes[0], sizes.items(), strict=False):
        bench = Bench(study, "A", n, n_test)
        curves = {
            rho: mean_curve(
                bench.curves(replace(OL1, rho=rho), starts, seconds=FOREVER, epochs=epochs)
            )
            for rho in rhos
        }
        what = f"{epochs} epochs over {n:,}" if epochs > 1 else f"one epoch over {n:,}"
        draw_by_samples(ax, {f"ρ = {rho:g}": curve for rho, curve in curves.items()}, what)
        ends = {rho: float(curve.cost[-1]) for rho, curve in curves.items()}
        first = {rho: curve.after(min(n, curve.samples[-1])) for rho, curve in curves.items()}
        rows.append([f"ρ, {what}: after one epoch", *(f"{first[rho]:.4f}" for rho in rhos)])
        if epochs > 1:
            rows.append([f"ρ, {what}: at the end", *(f"{ends[rho]:.4f}" for rho in rhos)])
        results["rho"][str(n)] = {"epochs": epochs, "end": ends, "first_epoch": first}
        verdicts.append(rho_verdict(n, epochs, ends))
    axes[0][0].legend(fontsize=7, frameon=False)
    bench = Bench(study, "A", biggest, n_test)
    slow = {
        t0: mean_curve(bench.curves(replace(OL1, t0=t0), starts, seconds=FOREVER, epochs=1))
        for t0 in t0s
    }
    draw_by_samples(axes[0][-1], {f"t₀ = {t0:g}": c for t0, c in slow.items()}, "t₀, ρ = 15")
    axes[0][-1].legend(fontsize=7, frameon=False)
    early = min(20_000, biggest // 4)
    at_first = {t0: curve.after(early) for t0, curve in slow.items()}
    at_last = {t0: float(curve.cost[-1]) for t0, curve in slow.items()}
    results["t0"] = {"n": biggest, "early": early, "at_first": at_first, "at_last": at_last}
    verdicts += t0_verdicts(early, at_first, at_last)
    width = max(len(rhos), len(t0s))
    filled = [row + [None] * (width + 1 - len(row)) for row in rows]
    filled.append(["**t₀** (ρ = 15)", *(f"**{t0:g}**" for t0 in t0s), *[None] * (width - len(t0s))])
    for label, costs in ((f"after {early:,} samples", at_first), ("at the end", at_last)):
        row = [label, *(f"{costs[t0]:.4f}" for t0 in t0s)]
        filled.append(row + [None] * (width + 1 - len(row)))
    header = ["test cost", *(f"ρ = {rho:g}" for rho in rhos), *[""] * (width - len(rhos))]
    notes = [f"setting A, η = 512, t₀ = 0.001 where ρ varies; mean of {starts} starts"]
    study.finish(TITLE, figure, header, filled, verdicts, results, notes)


def draw_by_samples(ax: Any, curves: dict[str, Curve], title: str) -> None:
    """Draw cost against samples."""
    for label, curve in curves.items():
        ax.plot(curve.samples, curve.cost, label=label, linewidth=1.3)
    ends = [curve.cost[-1] for curve in curves.values()]
    ax.set_xscale("log")
    ax.set_ylim(min(ends) * 0.998, min(ends) * 1.06)
    ax.set_title(title, fontsize=9)
    ax.set_xlabel("samples seen", fontsize=8)
    ax.set_ylabel("cost of the test set", fontsize=8)
    ax.grid(visible=True, color="0.92")


def rho_verdict(n: int, epochs: int, ends: dict[float, float]) -> Verdict:
    """Check that ρ > 0 gains nothing if n is small, and something if it is large."""
    best = min(ends, key=ends.__getitem__)
    gain = 100 * (1 - ends[best] / ends[0.0])
    robust = [ends[rho] for rho in ends if 10 <= rho <= 20]
    spread = 100 * (max(robust) / min(robust) - 1)
    detail = (
        f"after {epochs} epochs over {n:,} the best is ρ = {best:g}, {gain:.2f} % below ρ = 0; "
        f"ρ from 10 to 20 differ by {spread:.2f} %"
    )
    if n <= 100_000:
        return Verdict(f"n = {n:,}: ρ brings no benefit (n ≤ 100 000).", gain < 0.1, detail)
    return Verdict(
        f"n = {n:,}: ρ is useful, and its choice not critical.", gain > 0.1 and spread < 0.5, detail
    )


def t0_verdicts(
    early: int, at_first: dict[float, float], at_last: dict[float, float]
) -> list[Verdict]:
    """Check that a small t₀ matters little and a large one slows the first epoch down."""
    small = [at_last[t0] for t0 in at_last if t0 <= 1e-3]
    spread = 100 * (max(small) / min(small) - 1)
    largest = max(at_first)
    least = min(at_first.values())
    slow = 100 * (at_first[largest] / least - 1)
    return [
        Verdict(
            "The influence of t₀ is very limited.",
            spread < 0.2,
            f"t₀ up to 0.001 differ by {spread:.2f} % at the end",
        ),
        Verdict(
            "A t₀ too big slightly slows the first epoch down.",
            slow > 0.5,
            f"after {early:,} samples t₀ = {largest:g} costs {slow:.2f} % more than the best, at "
            f"the end {100 * (at_last[largest] / min(at_last.values()) - 1):.2f} %",
        ),
    ]
