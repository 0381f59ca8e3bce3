"""Section 4: the surrogate becomes the cost, steps shrink as 1/t, gradients meet the normal cone.

The algorithm on setting A with 10⁷ patches, drawn independently as the analysis assumes: without
forgetting (ρ = 0, the algorithm that is analysed), and with ρ = 15 and the authors' floor. f is the
mean cost of 200 000 more patches of the same pictures, f̂ₜ the mean cost of past samples with
their old codes (weighted by β if ρ > 0), and fₜ that of the same samples with optimal codes, while
there are at most 50 000 of them. The residual ‖Π(D − ∇f(D)) − D‖ is zero if and only if −∇f(D) is in
the normal cone of the set at D. Its noise is known from two halves of the test: their residuals r₁
and r₂ have independent errors, so ‖r₁ − r₂‖/2 is the noise floor, and √⟨r₁, r₂⟩ is free of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.paper.curves import mean_cost
from benchmarks.paper.frame import Claim, Key, Part, Study, Task, Verdict, label, new_figure
from benchmarks.peers.common import QUICK_ATOMS, Array, blas_threads, costs, spaced
from smalto import encode, learn
from smalto.coders import Lasso
from smalto.datasets import paper_setting
from smalto.learners import Online
from smalto.sources import Stream

TITLE = "Convergence (Section 4)"
BATCH = 256
RUNS = {"ρ = 0": {"rho": 0.0}, "ρ = 15": {"rho": 15.0, "keep": 0.95}}
PAST = 50_000  # samples up to which fₜ is computed

CLAIMS = (
    Claim(
        "upper",
        "The surrogate f̂ₜ is an upper bound of the empirical cost fₜ.",
        "f̂ₜ(Dₜ) ≥ fₜ(Dₜ) at every measured step of the run with ρ = 0, up to 10⁻⁶ of it.",
    ),
    Claim(
        "surrogate",
        "f(Dₜ) − f̂ₜ(Dₜ) converges to 0 (Proposition 3).",
        "With ρ = 0, |f̂ − f| at the end is below 1 % of f, and below half of what it was at a "
        "hundredth of the run; in part: one of the two.",
    ),
    Claim(
        "cost",
        "f(Dₜ) converges (Proposition 3).",
        "With ρ = 0, f falls by less than 0.2 % over the last half of the steps, and never rises by "
        "more than 0.1 % after a hundredth of the run.",
    ),
    Claim(
        "steps",
        "‖Dₜ₊₁ − Dₜ‖ = O(1/t) (Lemma 1).",
        "With ρ = 0 it falls as t^p with p at most −0.9 over the last nine tenths.",
    ),
    Claim(
        "stationary",
        "Dₜ comes near the stationary points (Proposition 4).",
        "With ρ = 0 the residual free of noise, √⟨r₁, r₂⟩, falls as t^p with p at most −0.2 over the "
        "last ninety-nine hundredths, to less than a quarter of that at step 10; in part: it falls.",
    ),
)


def tasks(study: Study) -> dict[Key, Task]:
    """Return the parts: one for each run."""
    n, n_test = (16_384, 1_000) if study.quick else (10_000_000, 200_000)
    return {
        (name,): Task(
            "convergence",
            {"n": n, "n_test": n_test, "how": how, "batch": BATCH, "quick": study.quick},
            lambda how=how: long_run(study, n, n_test, how),  # type: ignore[misc]
            6.0,
        )
        for name, how in RUNS.items()
    }


def fresh(study: Study, n: int) -> Iterator[Array]:
    """Yield n patches, in blocks drawn one after the other."""
    block = min(n, 500_000)
    for seed in range(n // block):
        yield draw(study, block, 1 + seed)


def draw(study: Study, n: int, seed: int) -> Array:
    """Return patches of the pictures to learn from."""
    return paper_setting("A", n, 1, random_state=seed, images=study.data.pictures).train


def long_run(study: Study, n: int, n_test: int, how: dict[str, float]) -> Part:
    """Learn, and evaluate the dictionary at steps that are further and further apart."""
    test = draw(study, n_test, 0)
    past = draw(study, min(n, 500_000), 1)  # what the stream begins with
    k = QUICK_ATOMS if study.quick else 256
    D0, lam = draw(study, k, 10_000), 1.2 / 8.0
    keys = (
        "t",
        "surrogate",
        "cost",
        "change",
        "residual",
        "floor",
        "free",
        "empirical",
        "nonzeros",
    )
    found: dict[str, list[float]] = {key: [] for key in keys}
    due = set(spaced(10**6, 1.3))
    before = D0.copy()

    def watch(state: Any, record: Any) -> None:
        nonlocal before
        if record.step in due:
            values = {"t": record.step, "surrogate": record.surrogate, "nonzeros": record.mean_nonzeros,
                      "change": float(np.linalg.norm(state.D - before)),
                      **stationarity(test, state.D, lam)}  # fmt: skip
            seen = (
                past[: record.samples] if how["rho"] == 0.0 and record.samples <= PAST else past[:0]
            )
            values["empirical"] = mean_cost(seen, state.D, lam)[0] if len(seen) else float("nan")
            for key, value in values.items():
                found[key].append(value)
        before = state.D.copy()

    learner = Online(BATCH, memory="all", slack=0.0, **how)  # type: ignore[arg-type]
    with blas_threads(1):
        result = learn(
            Stream(fresh(study, n)), k, Lasso(lam), learner=learner, init=D0, callbacks=[watch],
            n_threads=1, random_state=0,
        )  # fmt: skip
    if result.stopped == "interrupt":
        raise KeyboardInterrupt
    return {**found, "replaced": sum(record.replaced for record in result.history)}


def stationarity(X: Array, D: Array, lam: float) -> dict[str, float]:
    """Return the cost, the residual, its noise floor, and the residual free of noise."""
    D = D.astype(np.float64)
    total, gradients = 0.0, []
    for half in np.array_split(X, 2):
        gradient = np.zeros_like(D)
        for rows in np.array_split(half, max(1, len(half) // 10_000)):
            codes = encode(rows, D.astype(X.dtype), Lasso(lam), n_threads=1).astype(np.float64)
            gradient += codes.T @ (codes @ D - rows) / len(half)
            total += float(costs(rows, D, codes, lam).sum())
        gradients.append(gradient)
    first, second, both = (
        moved(D, gradient) for gradient in (*gradients, (gradients[0] + gradients[1]) / 2)
    )
    return {
        "cost": total / len(X),
        "residual": float(np.linalg.norm(both)),
        "floor": float(np.linalg.norm(first - second)) / 2,
        "free": float(np.sqrt(max(0.0, np.vdot(first, second)))),
    }


def moved(D: Array, gradient: Array) -> Array:
    """Return ``Π(D − ∇f(D)) − D`` for the unit ball."""
    to = D - gradient
    return to / np.maximum(1.0, np.linalg.norm(to, axis=1, keepdims=True)) - D


def report(study: Study, parts: dict[Key, Part]) -> None:
    """Judge the claims, draw the figure, write the table."""
    runs = {key[0]: {k: np.array(v, dtype=float) for k, v in part.items() if k in FIELDS}
            for key, part in parts.items()}  # fmt: skip
    rows = []
    for name, run in runs.items():
        for i in np.unique(np.searchsorted(run["t"], np.geomspace(1, run["t"][-1], 7))):
            empirical = run["empirical"][i]
            rows.append([
                name, f"{int(run['t'][i]):,}", f"{run['surrogate'][i]:.5f}",
                None if np.isnan(empirical) else f"{empirical:.5f}", f"{run['cost'][i]:.5f}",
                *(f"{run[key][i]:.2e}" for key in ("change", "residual", "floor", "free")),
            ])  # fmt: skip
    header = ("run", "step t", "f̂ₜ(Dₜ)", "fₜ(Dₜ)", "f(Dₜ)", "‖Dₜ − Dₜ₋₁‖", "residual", "noise floor",
              "free of noise")  # fmt: skip
    notes = [f"Setting A, η = {BATCH}, t₀ = 0, new patches at every step; one thread, float32."]
    study.finish(
        sys.modules[__name__],
        draw_all(runs),
        header,
        rows,
        judge(runs["ρ = 0"]),
        parts,
        runs,
        notes,
    )


FIELDS = ("t", "surrogate", "cost", "change", "residual", "floor", "free", "empirical")


def slope(t: Array, values: Array) -> float:
    """Return the exponent of growth, where there is something."""
    known = values > 0
    if known.sum() < 2:
        return float("nan")
    return float(np.polyfit(np.log(t[known]), np.log(values[known]), 1)[0])


def judge(run: dict[str, Array]) -> dict[str, Verdict]:
    """Judge the claims by the run without forgetting."""
    t, cost, gap = run["t"], run["cost"], run["surrogate"] - run["cost"]
    hundredth, tenth, half = (int(np.searchsorted(t, share * t[-1])) for share in (0.01, 0.1, 0.5))
    above = run["surrogate"] / run["empirical"] - 1
    above = above[np.isfinite(above)]
    small, less = abs(gap[-1]) < 0.01 * cost[-1], abs(gap[-1]) < 0.5 * abs(gap[hundredth])
    falls = float(cost[half] / cost[-1] - 1)
    rises = float((cost[hundredth:] / np.minimum.accumulate(cost[hundredth:]) - 1).max())
    step, free = (
        slope(t[tenth:], run["change"][tenth:]),
        slope(t[hundredth:], run["free"][hundredth:]),
    )
    tenth_step = run["free"][int(np.searchsorted(t, 10))]
    return {
        "upper": Verdict.of(
            above.min() > -1e-6,
            f"(f̂ₜ − fₜ)/fₜ is {100 * above.min():.3f} % or more at {len(above)} steps",
        ),
        "surrogate": Verdict.of(
            small and less,
            f"f̂ − f is {gap[hundredth]:.5f} at a hundredth, {gap[tenth]:.5f} at a tenth and "
            f"{gap[-1]:.5f} at the end ({100 * gap[-1] / cost[-1]:.2f} % of f)",
            small or less,
        ),
        "cost": Verdict.of(
            falls < 0.002 and rises < 0.001,
            f"f falls by {100 * falls:.3f} % over the last half, and rises by at most {100 * rises:.3f} %",
        ),
        "steps": Verdict.of(step <= -0.9, f"it falls as t^{step:.2f}"),
        "stationary": Verdict.of(
            free <= -0.2 and run["free"][-1] < 0.25 * tenth_step,
            f"free of noise it is {tenth_step:.2e} at step 10 and {run['free'][-1]:.2e} at the end, "
            f"falling as t^{free:.2f}; with noise {run['residual'][-1]:.2e}, of which "
            f"{run['floor'][-1]:.2e} is the floor",
            free < 0,
        ),
    }


def draw_all(runs: dict[str, dict[str, Array]]) -> Any:
    """Draw the three panels."""
    figure, axes = new_figure(3, height=3.8)
    for (name, run), color in zip(runs.items(), ("C0", "C3"), strict=True):
        t = run["t"]
        axes[0][0].plot(t, run["surrogate"], color=color, label=f"f̂ₜ(Dₜ), {name}")
        axes[0][0].plot(t, run["cost"], "--", color=color, label=f"f(Dₜ), {name}")
        axes[0][1].loglog(t, run["change"], ".-", color=color, label=f"‖Dₜ − Dₜ₋₁‖, {name}")
        axes[0][1].loglog(
            t, np.abs(run["surrogate"] - run["cost"]), ":", color=color, label=f"|f̂ₜ − f|, {name}"
        )
        axes[0][2].loglog(t, run["residual"], color=color, label=f"residual, {name}")
        axes[0][2].loglog(t, run["free"], ".", color=color, label=f"free of noise, {name}")
    first = runs["ρ = 0"]
    t, middle = first["t"], len(first["t"]) // 2
    axes[0][0].plot(t, first["empirical"], ":", color="k", label="fₜ(Dₜ), ρ = 0")
    axes[0][0].set_xscale("log")
    axes[0][0].set_ylim(0.97 * first["cost"].min(), 1.05 * first["cost"][0])
    axes[0][1].loglog(t, first["change"][middle] * t[middle] / t, "--", color="0.5", label="∝ 1/t")
    axes[0][2].loglog(t, first["floor"], "--", color="0.5", label="noise floor")
    titles = ("the surrogate and the cost", "steps and f̂ₜ − f", "distance from stationarity")
    for ax, title in zip(axes[0], titles, strict=True):
        label(ax, title, "step t", "")
        ax.legend(fontsize=7, frameon=False)
    return figure
