"""Inside an iteration: what Sections 3.2 and 3.3 say about coding and the dictionary update.

OL1 with 1, 2 and 5 sweeps over the atoms per update on A; how much of A = Σ αᵀα is on its diagonal
after 10⁵ samples of A, B and C; and, over these dictionaries, the time that LARS takes against
coordinate descent, both in SPAMS, the program of the paper's authors.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
import scipy

from benchmarks.paper.curves import OL1, Bench, Limit, as_curve, draw, mean_curve, trace_learner
from benchmarks.paper.frame import Claim, Key, Part, Study, Task, Verdict, label, new_figure
from benchmarks.peers.common import Array, blas_threads, costs
from smalto import encode
from smalto.coders import Lasso

TITLE = "Inside an iteration (Sections 3.2 and 3.3)"
SWEEPS = (1, 2, 5)
STARTS = 3
PRECISION = 1e-4  # of the cost, above its optimum
PRECISIONS = (1e-3, PRECISION, 1e-5)

CLAIMS = (
    Claim(
        "sweeps",
        "A single iteration of Algorithm 2 is sufficient for the dictionary update.",
        "After 10⁶ samples of A the mean test cost with one sweep is less than 0.1 % above that with "
        "2 and with 5.",
    ),
    Claim(
        "diagonal",
        "The coefficients of A are often concentrated on the diagonal.",
        "On A, B and C after 10⁵ samples, a diagonal entry is over ten times the mean size of the "
        "other entries of its row, for nine of ten atoms; in part: on some of the sets.",
    ),
    Claim(
        "LARS",
        "LARS is at least as fast as methods of soft thresholding for this problem.",
        f"SPAMS's LARS takes no longer than its coordinate descent takes to come within {PRECISION:g} "
        "of the optimal cost, on A, B and C; in part: on some of them.",
    ),
)


def tasks(study: Study) -> dict[Key, Task]:
    """Return the parts."""
    found: dict[Key, Task] = {}
    bench = Bench(study, "A")
    limit = Limit(8_192 if study.quick else 1e6)
    for count in SWEEPS:
        for start in range(1 if study.quick else STARTS):
            learner = replace(OL1, sweeps=count)
            found["sweeps", count, start] = bench.task(learner, start, limit)
    for name in "A" if study.quick else "ABC":
        bench = Bench(study, name)
        samples, rows = (4_096, 100) if study.quick else (100_000, 5_000)
        settings = {"set": name, "samples": samples, "rows": rows, "quick": study.quick, "runs": 3}

        def compute(bench: Bench = bench, samples: int = samples, rows: int = rows) -> Part:
            return look_inside(bench, samples, rows)

        found["inside", name] = Task("inside", settings, compute, 1.0)
    return found


def look_inside(bench: Bench, samples: int, rows: int) -> Part:
    """Learn a dictionary; describe A, and time two ways to code."""
    pool = bench.pool
    with blas_threads(1):
        D = trace_learner(pool.train, bench.first(0), pool.lam, Limit(samples), 0, OL1)[-1][2]
        X = pool.test[:rows]
        codes = encode(X, D, Lasso(pool.lam), n_threads=1)
        A = np.abs((codes.T @ codes).toarray()).astype(np.float64)
        diagonal = A.diagonal()
        off = (A.sum(axis=1) - diagonal) / (len(A) - 1)
        used = diagonal > 0
        return {
            "ratios": (diagonal[used] / np.maximum(off[used], 1e-300)).tolist(),
            "squares": float((diagonal**2).sum() / (A**2).sum()),
            **time_coders(X, D, pool.lam, float(costs(X, D, codes, pool.lam).mean())),
        }


def time_coders(X: Array, D: Array, lam: float, optimum: float) -> Part:
    """Return the seconds of SPAMS's LARS, and those of its coordinate descent with its excess."""
    import spams

    signals, atoms = np.asfortranarray(X.T), np.asfortranarray(D.T)
    none = scipy.sparse.csc_matrix((len(D), len(X)), dtype=X.dtype)

    def excess(found: Any) -> float:
        return float(costs(X, D, found.T.tocsr(), lam).mean()) / optimum - 1

    def by_lars() -> Any:
        return spams.lasso(signals, D=atoms, lambda1=lam, mode=2, numThreads=1)

    def by_descent(rounds: int) -> Any:
        return spams.cd(
            signals, atoms, none, lambda1=lam, mode=2, itermax=rounds, tol=0.0, numThreads=1
        )

    seconds, found = shortest(by_lars)
    part: Part = {"lars": seconds, "lars_excess": excess(found), "cd": [], "cd_excess": []}
    rounds = 1
    while rounds <= 1024 and (not part["cd"] or part["cd_excess"][-1] > 0.01 * PRECISION):
        seconds, found = shortest(lambda rounds=rounds: by_descent(rounds))
        part["cd"].append(seconds)
        part["cd_excess"].append(excess(found))
        rounds *= 2
    return part


def shortest(run: Any) -> tuple[float, Any]:
    """Return the shortest of three runs, in processor seconds, and the result."""
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        found = run()
        seconds.append(time.process_time() - begin)
    return min(seconds), found


def report(study: Study, parts: dict[Key, Part]) -> None:
    """Judge the claims, draw the figure, write the table."""
    runs: dict[str, Any] = {}
    for (kind, count, *_), part in parts.items():
        if kind == "sweeps":
            runs.setdefault(f"{count} sweep{'s' * (count > 1)}", []).append(as_curve(part))
    inside = {key[1]: part for key, part in parts.items() if key[0] == "inside"}
    figure, axes = new_figure(3)
    draw(axes[0][0], runs, "A: sweeps per update", {}, by="samples")
    axes[0][0].legend(fontsize=8, frameon=False)
    rows = []
    for name, part in inside.items():
        axes[0][1].hist(np.log10(part["ratios"]), 40, histtype="step", label=name)
        (line,) = axes[0][2].loglog(
            part["cd"], np.maximum(part["cd_excess"], 1e-9), ".-", label=f"{name}, coord. descent"
        )
        reached = max(abs(part["lars_excess"]), 1e-8)
        axes[0][2].plot(part["lars"], reached, "*", color=line.get_color(), label=f"{name}, LARS")
        rows.append([
            name, f"{np.median(part['ratios']):.0f}", f"{100 * part['squares']:.0f} %",
            f"{part['lars']:.3f}", f"{part['lars_excess']:.1e}",
            *(f"{seconds_of_descent(part, to):.3f}" for to in PRECISIONS),
        ])  # fmt: skip
    label(axes[0][1], "diagonal of Σ αᵀα / others of a row", "log₁₀ of the ratio", "atoms")
    label(axes[0][2], "coding in SPAMS", "seconds", "excess of the cost")
    for ax in axes[0][1:]:
        ax.legend(fontsize=8, frameon=False, loc="upper right")
    axes[0][2].set_xlim(right=60.0)  # room for the legend
    header = ("set", "median of diagonal / others", "squares on the diagonal", "LARS, s",
              "its excess", *(f"coordinate descent to {to:g}, s" for to in PRECISIONS))  # fmt: skip
    results = {
        "sweeps": {name: [vars(run) for run in each] for name, each in runs.items()},
        "inside": inside,
    }
    study.finish(sys.modules[__name__], figure, header, rows, judge(runs, inside), parts, results)


def seconds_of_descent(part: Part, precision: float = PRECISION) -> float:
    """Return how long coordinate descent takes to a precision; infinity if it never gets there."""
    good = [s for s, e in zip(part["cd"], part["cd_excess"], strict=True) if e <= precision]
    return good[0] if good else float("inf")


def judge(runs: dict[str, Any], inside: dict[str, Part]) -> dict[str, Verdict]:
    """Judge the claims."""
    ends = {name: float(mean_curve(each, "samples").cost[-1]) for name, each in runs.items()}
    more = ends["1 sweep"] / min(ends.values()) - 1
    share = {name: float(np.mean(np.array(part["ratios"]) > 10)) for name, part in inside.items()}
    ratio = {name: seconds_of_descent(part) / part["lars"] for name, part in inside.items()}
    rough = {name: seconds_of_descent(part, 1e-3) / part["lars"] for name, part in inside.items()}
    good = [value >= 0.9 for value in share.values()], [value >= 1.0 for value in ratio.values()]
    return {
        "sweeps": Verdict.of(
            more < 0.001,
            "costs with " + ", ".join(f"{name} {cost:.5f}" for name, cost in ends.items()),
        ),
        "diagonal": Verdict.of(
            all(good[0]),
            "share of such atoms: " + ", ".join(f"{n} {100 * v:.0f} %" for n, v in share.items()),
            any(good[0]),
        ),
        "LARS": Verdict.of(
            all(good[1]),
            f"coordinate descent takes {times(ratio)} times as long; to within 1e-3 of the cost, "
            f"{times(rough)} times",
            any(good[1]),
        ),
    }


def times(ratio: dict[str, float]) -> str:
    """Return ratios as text."""
    return ", ".join(f"{value:.1f} ({name})" for name, value in ratio.items())
