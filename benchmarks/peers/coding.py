"""Sparse coding of signals over learned dictionaries.

smalto's ``encode``, SPAMS's ``lasso`` and scikit-learn's ``sparse_encode`` solve
``min_α ½‖x − αD‖² + lam ‖α‖₁`` for the same held-out patches, over dictionaries that smalto has
learned from other patches. Codes are compared in float64, by their cost and by their largest
violation of the optimality conditions,
``|dᵀ(x − αD) − lam sign(α)|`` at nonzeros and ``max(0, |dᵀ(x − αD)| − lam)`` elsewhere.

Run it with ``python -m benchmarks.peers.coding``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.peers.common import (
    Array,
    Problem,
    announce,
    blas_threads,
    costs,
    importable,
    load,
    machine,
    parser,
    save,
    table,
    timed,
)
from smalto import encode, learn
from smalto.coders import Lasso

SMALTO, SPAMS = "smalto encode", "SPAMS lasso"


def violation(X: Array, D: Array, codes: Any, lam: float) -> float:
    """Return the largest violation of optimality relative to lam, in float64."""
    D = D.astype(np.float64)
    worst = 0.0
    for begin in range(0, len(X), 1000):
        rows = slice(begin, begin + 1000)
        a = codes[rows].astype(np.float64)
        gradient = (X[rows].astype(np.float64) - a @ D) @ D.T
        dense = a.toarray()
        off = np.where(
            dense != 0.0, np.abs(gradient - lam * np.sign(dense)), np.abs(gradient) - lam
        )
        worst = max(worst, float(off.max()))
    return max(worst, 0.0) / lam


def methods(
    X: Array, D: Array, lam: float, threads: int, few: int
) -> list[tuple[str, int, int, Callable[[], Any]]]:
    """Return for each method its name, number of signals, whether it is repeated, and its call."""
    found: list[tuple[str, int, int, Callable[[], Any]]] = [
        (SMALTO, len(X), True, lambda: encode(X, D, Lasso(lam), n_threads=threads))
    ]
    if importable("spams"):
        import spams

        columns, atoms = np.asfortranarray(X.T), np.asfortranarray(D.T)

        def lasso() -> Any:
            return spams.lasso(
                columns, D=atoms, lambda1=lam, lambda2=0.0, mode=2, numThreads=threads
            )

        found.append((SPAMS, len(X), True, lasso))
    if importable("sklearn"):
        from sklearn.decomposition import sparse_encode

        for algorithm, count in (("lasso_cd", few), ("lasso_lars", max(few // 4, 1))):

            def call(algorithm: str = algorithm, count: int = count) -> Any:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    return sparse_encode(X[:count], D, algorithm=algorithm, alpha=lam)

            found.append((f"scikit-learn {algorithm}", min(count, len(X)), False, call))
    return found


def run(
    problem: Problem, D: Array, threads: int, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Run all methods with this many threads, alternating between their repeats."""
    X, lam = problem.test, problem.lam
    table_of = methods(X, D, lam, threads, options.sklearn_signals)
    encode(X[:256], D, Lasso(lam), n_threads=threads)  # compile the kernels and start the threads
    seconds: dict[str, list[float]] = {name: [] for name, *_ in table_of}
    codes: dict[str, Any] = {}
    with blas_threads(threads):
        for turn in range(options.repeats):
            for name, _, again, call in table_of:
                if again or turn == 0:
                    time, codes[name] = timed(call)
                    seconds[name].append(time)
    entries = []
    ours: Array = np.zeros(0)
    for name, count, _, _ in table_of:
        code = sparse.csr_array(codes[name].T if name == SPAMS else codes[name])
        each = costs(X[:count], D, code, lam)
        if name == SMALTO:
            ours = each
        entries.append(
            {
                "setting": problem.name,
                "dtype": problem.dtype,
                "threads": threads,
                "method": name,
                "signals": count,
                "microseconds": 1e6 * min(seconds[name]) / count,
                "nonzeros": code.nnz / count,
                "cost": float(each.mean()),
                # relative to the cost of the same signals with smalto's codes
                "excess": float((each - ours[:count]).mean() / ours[:count].mean()),
                "violation": violation(X[:count], D, code, lam),
            }
        )
    return entries


def compare_fewer_threads(entries: list[dict[str, Any]]) -> None:
    """Return ratios to smalto's time, each peer with its best number of threads up to this one."""
    for this in entries:
        same = [
            other
            for other in entries
            if all(other[key] == this[key] for key in ("setting", "dtype"))
            and other["threads"] <= this["threads"]
        ]
        ours = next(e for e in same if e["method"] == SMALTO and e["threads"] == this["threads"])
        mine = [e["microseconds"] for e in same if e["method"] == this["method"]]
        best = ours["microseconds"] if this["method"] == SMALTO else min(mine)
        this["ratio"] = best / ours["microseconds"]


def show(problem: Problem, entries: list[dict[str, Any]]) -> None:
    """Print the table of one setting."""
    print(problem.title())
    rows = []
    for number, e in enumerate(entries):
        first = number == 0 or e["method"] == SMALTO
        rows.append(
            [
                str(e["threads"]) if first else "",
                e["dtype"] if first else "",
                e["method"],
                f"{e['signals']:,}",
                f"{e['microseconds']:.1f}",
                f"{e['ratio']:.2f}",
                f"{e['nonzeros']:.2f}",
                f"{e['cost']:.7f}",
                f"{e['excess']:.1e}",
                f"{e['violation']:.1e}",
            ]
        )
    table(
        [
            "threads",
            "dtype",
            "method",
            "signals",
            "us/signal",
            "x smalto",
            "nonzeros",
            "mean cost",
            "rel. excess",
            "KKT/lam",
        ],
        rows,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison."""
    arguments_of = parser("Sparse coding over learned dictionaries.", n=100_000, repeats=5)
    add = arguments_of.add_argument
    add("--signals", type=int, default=10_000, help="number of signals to code")
    add(
        "--sklearn-signals", type=int, default=400, help="number of these to code with scikit-learn"
    )
    options = arguments_of.parse_args(arguments)
    if options.quick:
        options.settings, options.threads = ["A"], [1, 2]
        options.n, options.signals, options.repeats, options.sklearn_signals = 2_048, 300, 1, 20
    about = machine()
    announce(about)
    everything: list[dict[str, Any]] = []
    for name in options.settings:
        base = load(name, options.n, options.signals, quick=options.quick)
        learned = learn(
            base.train, len(base.D0), Lasso(base.lam), init=base.D0, max_epochs=1, random_state=0
        ).D
        entries: list[dict[str, Any]] = []
        for dtype in options.dtypes:
            problem = base.as_dtype(dtype)
            for threads in options.threads:
                entries += run(problem, learned.astype(dtype), threads, options)
        compare_fewer_threads(entries)
        show(base, entries)
        everything += entries
    save(options.out, "coding", about, options, runs=everything)


if __name__ == "__main__":
    main()
