"""Appendix B: the cost of projections against the length m and the number of pieces s.

The elastic-net ball (Algorithm 3, O(m) expected) for m up to 10⁷; the fused-lasso ball by the
paper's homotopy (O(ms)) and by merging from below (O(m log m)), against m, and against s for one
m. One thread, float64, the shortest of several processor times.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.paper.frame import Claim, Key, Part, Study, Task, Verdict, new_figure
from benchmarks.peers.common import Array
from smalto.projections import project_elastic_net_ball, project_fused_lasso_ball

TITLE = "The projections of Appendix B"
GAMMAS = (0.1, 1.0)


CLAIMS = (
    Claim(
        "elastic",
        "The projection onto the elastic-net ball takes linear time.",
        "From m = 10⁴ to 10⁷ the time grows as m^p with p below 1.1, for γ = 0.1 and 1.",
    ),
    Claim(
        "fused",
        "The fused-lasso homotopy takes O(ms).",
        "The time grows as m^p with p below 1.25 on a given number of steps, and as s^q with q below "
        "1.1 at a given m.",
    ),
)


def sizes(study: Study) -> tuple[tuple[int, ...], tuple[int, ...], int, tuple[float, ...]]:
    """Return the lengths for both balls, and the length and weights for the number of pieces."""
    if study.quick:
        return (10**4, 10**5), (10**2, 10**3), 10**3, (1.0, 0.1, 0.01)
    levels = tuple(10.0 ** (-e / 2) for e in range(-1, 8))
    return tuple(10**e for e in range(2, 8)), (10**2, 10**3, 10**4, 10**5), 10**4, levels


def tasks(study: Study) -> dict[Key, Task]:
    """Return the parts."""
    lengths, fused_lengths, at, levels = sizes(study)
    return {
        ("elastic",): Task("elastic", {"m": lengths}, lambda: elastic_net(lengths), 0.5),
        ("fused",): Task(
            "fused", {"m": fused_lengths}, lambda: fused_by_length(fused_lengths), 0.5
        ),
        ("pieces",): Task(
            "pieces", {"m": at, "levels": levels}, lambda: fused_by_pieces(at, levels), 0.5
        ),
    }


def report(study: Study, parts: dict[Key, Part]) -> None:
    """Judge the claims, draw the figure, write the table."""
    lengths, fused_lengths, at, _ = sizes(study)
    elastic, by_m, by_s = (parts[name,] for name in ("elastic", "fused", "pieces"))
    figure, axes = new_figure(3)
    rows: list[list[Any]] = []
    exponents = {}
    for gamma in GAMMAS:
        times = elastic[f"gamma {gamma:g}"]
        long = [(m, t) for m, t in zip(lengths, times, strict=True) if m >= 10**4]
        exponents[f"elastic {gamma:g}"] = slope(*zip(*long, strict=True))
        axes[0][0].loglog(lengths, times, "o-", label=f"γ = {gamma:g}")
        rows += [
            ["elastic net", f"γ = {gamma:g}", m, None, t * 1e6]
            for m, t in zip(lengths, times, strict=True)
        ]
    axes[0][0].loglog(
        lengths, [times[-1] * m / lengths[-1] for m in lengths], "--", color="0.6", label="∝ m"
    )
    axes[0][0].set_title("elastic-net ball against m", fontsize=11)
    for method in ("homotopy", "merge", "auto"):
        times = by_m[method]
        exponents[f"fused {method}"] = slope(fused_lengths, times)
        axes[0][1].loglog(fused_lengths, times, "o-", label=method)
        rows += [
            ["fused lasso", method, m, s, t * 1e6]
            for m, s, t in zip(fused_lengths, by_m["pieces"], times, strict=True)
        ]
        axes[0][2].loglog(by_s["pieces"], by_s[method], "o-", label=method)
        rows += [
            ["fused lasso", method, at, s, t * 1e6]
            for s, t in zip(by_s["pieces"], by_s[method], strict=True)
        ]
    axes[0][1].set_title("fused-lasso ball against m", fontsize=11)
    axes[0][2].set_title("fused-lasso ball against s", fontsize=11)
    pieces = f"pieces s of the result (m = {at:,})"
    for ax, label in zip(axes[0], ("m", "m", pieces), strict=True):
        ax.set_xlabel(label, fontsize=10)
        ax.set_ylabel("seconds", fontsize=10)
        ax.legend(fontsize=8, frameon=False)
    verdicts = judge(exponents, by_s, at)
    results = {
        "elastic": elastic,
        "fused": by_m,
        "pieces": by_s,
        "exponents": exponents,
        "lengths": lengths,
        "fused_lengths": fused_lengths,
        "at": at,
    }
    header = ["set", "how", "m", "pieces s", "µs"]
    note = (
        "standard normal vectors (elastic net), 20 noisy steps (fused lasso); one thread, float64"
    )
    notes = [note]
    study.finish(sys.modules[__name__], figure, header, rows, verdicts, parts, results, notes)


def elastic_net(lengths: tuple[int, ...]) -> Part:
    """Return the seconds for one vector of each length."""
    rng = np.random.default_rng(0)
    found: Part = {}
    for gamma in GAMMAS:
        times = []
        for m in lengths:
            v = rng.standard_normal(m)
            times.append(least(lambda v=v, g=gamma: project_elastic_net_ball(v, g, n_threads=1)))
        found[f"gamma {gamma:g}"] = times
    return found


def stairs(m: int, steps: int = 20) -> Array:
    """Return a noisy step function."""
    rng = np.random.default_rng(m)
    levels = 3.0 * rng.standard_normal(min(steps, m))
    return levels[np.arange(m) * len(levels) // m] + 0.3 * rng.standard_normal(m)


def fused_by_length(lengths: tuple[int, ...]) -> Part:
    """Return the seconds on noisy steps of each length, for each method."""
    found: Part = {"pieces": []}
    for m in lengths:
        v = stairs(m)
        found["pieces"].append(pieces(project_fused_lasso_ball(v, 0.1, 0.1)))
        for method in ("homotopy", "merge", "auto"):
            seconds = least(
                lambda v=v, how=method: project_fused_lasso_ball(v, 0.1, 0.1, method=how)
            )
            found.setdefault(method, []).append(seconds)
    return found


def fused_by_pieces(m: int, levels: tuple[float, ...]) -> Part:
    """Return the seconds at one length, for smaller and smaller weights of the jumps."""
    v = stairs(m) / np.sqrt(2.0 * m)  # outside all the balls
    found: Part = {"pieces": [], "gamma2": []}
    for gamma2 in levels:
        count = pieces(project_fused_lasso_ball(v, 0.0, gamma2))
        if found["pieces"] and count <= found["pieces"][-1]:
            continue
        found["pieces"].append(count)
        found["gamma2"].append(gamma2)
        for method in ("homotopy", "merge", "auto"):
            seconds = least(
                lambda g=gamma2, how=method: project_fused_lasso_ball(v, 0.0, g, method=how)
            )
            found.setdefault(method, []).append(seconds)
    return found


def pieces(u: Array) -> int:
    """Return the number of constant pieces."""
    return 1 + int(np.count_nonzero(np.diff(u)))


def least(call: Callable[[], Any], seconds: float = 0.5, runs: int = 15) -> float:
    """Return the shortest processor time of a call, after one warm-up."""
    call()
    times: list[float] = []
    while len(times) < runs and sum(times) < seconds:
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return min(times)


def slope(sizes: Any, times: Any) -> float:
    """Return the exponent of growth."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def judge(exponents: dict[str, float], by_s: Part, at: int) -> dict[str, Verdict]:
    """Check the complexities stated in the appendix."""
    s, homotopy = np.array(by_s["pieces"], dtype=float), np.array(by_s["homotopy"])
    growth = slope(s[s >= 3], homotopy[s >= 3]) if (s >= 3).sum() > 1 else float("nan")
    merge = by_s["merge"]
    elastic = [exponents[f"elastic {gamma:g}"] for gamma in GAMMAS]
    return {
        "elastic": Verdict.of(
            max(elastic) < 1.1,
            f"cost ∝ m^{min(elastic):.2f} to m^{max(elastic):.2f}",
        ),
        "fused": Verdict.of(
            exponents["fused homotopy"] < 1.25 and not growth > 1.1,
            f"cost ∝ m^{exponents['fused homotopy']:.2f} on a given number of steps, and "
            f"∝ s^{growth:.2f} at m = {at:,}; merging ∝ m^{exponents['fused merge']:.2f}, and "
            f"{max(merge) / min(merge):.1f} times from the fewest to the most pieces",
        ),
    }
