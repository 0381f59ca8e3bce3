"""Section 4: the surrogate becomes the cost, steps shrink as 1/t, gradients meet the normal cone.

One long run of the basic algorithm (Algorithm 1, without forgetting) on setting A, in one epoch,
so that each step sees new samples, as the analysis assumes. The cost f is measured on other
patches of the same pictures. The surrogate f̂_t is the mean cost of past samples with their old
codes, and the step is the Frobenius norm ‖D_t − D_{t−1}‖. The stationarity residual is
‖Π(D − ∇f(D)) − D‖, which is zero if and only if −∇f(D) is in the normal cone of the set at D.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.paper.frame import Part, Study, Verdict, new_figure
from benchmarks.peers.common import Array, costs, load, spaced
from smalto import encode, learn
from smalto.coders import Lasso
from smalto.learners import Online

TITLE = "Convergence (Section 4)"


def run(study: Study) -> None:
    """Run the experiment."""
    n, n_test = (8_192, 1_000) if study.quick else (1_500_000, 50_000)
    batch = 64 if study.quick else 256
    seconds = 0.7 * study.seconds
    settings = {
        "n": n,
        "n_test": n_test,
        "batch": batch,
        "seconds": round(seconds, 2),
        "quick": study.quick,
    }
    part = study.part("convergence", settings, lambda: long_run(study, n, n_test, batch, seconds))
    t = np.array(part["t"], dtype=float)
    late = t >= 0.1 * t[-1]
    gap = np.array(part["surrogate"]) - np.array(part["cost"])
    change, residual = np.array(part["change"]), np.array(part["residual"])
    fits = {
        name: slope(t[late], np.abs(values[late]))
        for name, values in (
            ("surrogate − cost", gap),
            ("‖Dₜ − Dₜ₋₁‖", change),
            ("residual", residual),
        )
    }
    figure = draw_all(t, part, gap, change, residual)
    rows = [
        [
            f"{int(t[i]):,}",
            f"{t[i] * batch:,.0f}",
            f"{part['surrogate'][i]:.5f}",
            f"{part['cost'][i]:.5f}",
            f"{gap[i]:.5f}",
            f"{change[i]:.2e}",
            f"{residual[i]:.2e}",
        ]
        for i in np.unique(np.searchsorted(t, np.geomspace(1, t[-1], 8)))
    ]
    tenth = int(np.searchsorted(t, 0.1 * t[-1]))
    early = int(np.searchsorted(t, 10))
    verdicts = [
        Verdict(
            "f(Dₜ) − f̂ₜ(Dₜ) converges to 0 (Proposition 3).",
            bool(abs(gap[-1]) < 0.5 * abs(gap[early]) and abs(gap[-1]) < 0.02 * part["cost"][-1]),
            f"f̂ − f is {gap[early]:.4f} at step {int(t[early])}, "
            f"{gap[tenth]:.4f} at a tenth of the run and {gap[-1]:.4f} at its end "
            f"({100 * gap[-1] / part['cost'][-1]:.2f} % of f)",
        ),
        Verdict(
            "‖Dₜ₊₁ − Dₜ‖ = O(1/t) (Lemma 1).",
            fits["‖Dₜ − Dₜ₋₁‖"] < -0.9,
            f"over the last nine tenths it falls as t^{fits['‖Dₜ − Dₜ₋₁‖']:.2f}; t‖Dₜ − Dₜ₋₁‖ "
            f"was {t[tenth] * change[tenth]:.1f} at a tenth and is {t[-1] * change[-1]:.1f} "
            "at the end",
        ),
        Verdict(
            "Dₜ comes near the stationary points (Proposition 4).",
            bool(residual[-1] < 0.5 * residual[early] and fits["residual"] < 0),
            f"the residual on other patches is {residual[0]:.4f} after one step, "
            f"{residual[early]:.4f} after {int(t[early])}, {residual[-1]:.4f} at the end; it falls "
            f"as t^{fits['residual']:.2f}",
        ),
    ]
    header = [
        "step t",
        "samples",
        "surrogate",
        "test cost",
        "difference",
        "‖Dₜ − Dₜ₋₁‖",
        "residual",
    ]
    note = (
        f"setting A, η = {batch}, ρ = 0, t₀ = 0, new patches at every step, "
        f"{int(t[-1]):,} steps; f from {n_test:,} other patches"
    )
    notes = [note]
    study.finish(TITLE, figure, header, rows, verdicts, {**part, "exponents": fits}, notes)


def long_run(study: Study, n: int, n_test: int, batch: int, seconds: float) -> Part:
    """Learn, and evaluate the dictionary at steps that are further and further apart."""
    # f is an expectation over the training distribution: other patches of the same pictures.
    problem = load("A", n + n_test, 1, quick=study.quick, images=study.data.pictures)
    test, train = np.split(problem.train, [n_test])
    found: dict[str, list[float]] = {
        key: [] for key in ("t", "surrogate", "cost", "change", "residual", "nonzeros")
    }
    due = set(spaced(10**6, 1.25))
    before = problem.D0.copy()

    def watch(state: Any, record: Any) -> None:
        nonlocal before
        if record.step in due:
            cost, residual = stationarity(test, state.D, problem.lam)
            found["t"].append(record.step)
            found["surrogate"].append(record.surrogate)
            found["cost"].append(cost)
            found["change"].append(float(np.linalg.norm(state.D - before)))
            found["residual"].append(residual)
            found["nonzeros"].append(record.mean_nonzeros)
        before = state.D.copy()

    result = learn(
        train,
        len(problem.D0),
        Lasso(problem.lam),
        learner=Online(batch, rho=0.0, memory="all", slack=0.0),
        init=problem.D0,
        max_epochs=1,
        max_seconds=seconds,
        callbacks=[watch],
        n_threads=1,
        random_state=0,
    )
    if result.stopped == "interrupt":
        raise KeyboardInterrupt
    return {**found, "replaced": sum(record.replaced for record in result.history)}


def stationarity(X: Array, D: Array, lam: float) -> tuple[float, float]:
    """Return the mean cost f of the patches, and ‖Π(D − ∇f(D)) − D‖ with the exact gradient."""
    X, D = X.astype(np.float64), D.astype(np.float64)
    codes = encode(X, D, Lasso(lam), n_threads=1)
    gradient = codes.T @ (codes @ D - X) / len(X)
    moved = D - gradient
    moved /= np.maximum(1.0, np.linalg.norm(moved, axis=1, keepdims=True))
    return float(costs(X, D, codes, lam).mean()), float(np.linalg.norm(moved - D))


def slope(t: Array, values: Array) -> float:
    """Return the exponent of growth."""
    return float(np.polyfit(np.log(t), np.log(values), 1)[0])


def draw_all(t: Array, part: Part, gap: Array, change: Array, residual: Array) -> Any:
    """Draw the three panels."""
    figure, axes = new_figure(3)
    ax = axes[0][0]
    ax.plot(t, part["surrogate"], label="surrogate f̂ₜ(Dₜ)")
    ax.plot(t, part["cost"], label="cost f(Dₜ) of other patches")
    ax.set_ylim(min(part["cost"]) * 0.98, part["cost"][0] * 1.1)
    ax.set_title("the surrogate and the cost", fontsize=9)
    ax = axes[0][1]
    ax.plot(t, change, ".-", label="‖Dₜ − Dₜ₋₁‖")
    ax.plot(t, change[len(t) // 2] * t[len(t) // 2] / t, "--", color="0.5", label="∝ 1/t")
    ax.plot(t, np.abs(gap), label="|f̂ₜ(Dₜ) − f(Dₜ)|")
    ax.set_yscale("log")
    ax.set_title("the step and the difference", fontsize=9)
    ax = axes[0][2]
    ax.plot(t, residual, ".-", label="‖Π(D − ∇f) − D‖")
    ax.set_yscale("log")
    ax.set_title("distance from stationarity", fontsize=9)
    for ax in axes[0]:
        ax.set_xscale("log")
        ax.set_xlabel("step t", fontsize=8)
        ax.grid(visible=True, color="0.92")
        ax.legend(fontsize=7, frameon=False)
    return figure
