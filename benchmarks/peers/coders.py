"""The other sparse coding problems: a radius, an error bound, a number of nonzeros.

smalto's ``encode`` with ``L1Ball``, ``ErrorBound`` and ``OMP`` against SPAMS's ``lasso`` (modes 0
and 1) and ``omp`` and scikit-learn's ``orthogonal_mp_gram``, on held-out patches over dictionaries
that smalto has learned from other patches. The radius and the error bound are the means of what
the lasso gives at the paper's lam. Codes are judged in float64 by what their problem minimises
(``‖x − αD‖²``, or ``‖α‖₁`` under an error bound) and by how far they break its constraint.

Run it with ``python -m benchmarks.peers.coders``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.peers.common import (
    Array,
    Problem,
    announce,
    blas_threads,
    importable,
    load,
    machine,
    parser,
    save,
    table,
    timed,
)
from smalto import encode, learn
from smalto.coders import OMP, Coder, ErrorBound, L1Ball, Lasso

SMALTO = "smalto encode"
NONZEROS = {"A": 10, "B": 20, "C": 20}


class Task(NamedTuple):
    """A problem, smalto's coder for it, its bound, and the peers' calls on so many signals."""

    name: str
    coder: Coder
    bound: float
    peers: list[tuple[str, int, Callable[[], Any]]]


def tasks(problem: Problem, X: Array, D: Array, threads: int, few: int) -> list[Task]:
    """The three problems, with whichever peers are installed."""
    codes = encode(X, D, Lasso(problem.lam), n_threads=threads)
    radius = float(abs(codes).sum(axis=1).mean())
    eps = float(np.sum((X - codes @ D) ** 2, axis=1).mean())
    nonzeros = min(NONZEROS[problem.name], len(D))
    found = [
        Task("radius", L1Ball(radius), radius, []),
        Task("error", ErrorBound(eps), eps, []),
        Task("nonzeros", OMP(nonzeros), nonzeros, []),
    ]
    if importable("spams"):
        import spams

        columns, atoms = np.asfortranarray(X.T), np.asfortranarray(D.T)
        for task, mode in zip(found[:2], (0, 1), strict=True):

            def lasso(bound: float = task.bound, mode: int = mode) -> Any:
                return spams.lasso(
                    columns, D=atoms, lambda1=bound, lambda2=0.0, mode=mode, numThreads=threads
                ).T

            task.peers.append((f"SPAMS lasso, mode {mode}", len(X), lasso))

        def omp() -> Any:
            return spams.omp(columns, D=atoms, L=nonzeros, eps=0.0, numThreads=threads).T

        found[2].peers.append(("SPAMS omp", len(X), omp))
    if importable("sklearn"):
        from sklearn.linear_model import orthogonal_mp_gram

        def by_sklearn() -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return orthogonal_mp_gram(D @ D.T, D @ X[:few].T, n_nonzero_coefs=nonzeros).T

        found[2].peers.append(("scikit-learn orthogonal_mp_gram", min(few, len(X)), by_sklearn))
    return found


def judge(task: str, X: Array, D: Array, codes: Any, bound: float) -> tuple[Array, float]:
    """What each signal's code costs, and the largest relative excess over the bound."""
    X, D, codes = X.astype(np.float64), D.astype(np.float64), codes.astype(np.float64)
    error = np.sum((X - codes @ D) ** 2, axis=1)
    size = np.asarray(abs(codes).sum(axis=1)).reshape(-1)
    used = {"radius": size, "error": error, "nonzeros": np.diff(codes.indptr)}[task]
    return size if task == "error" else error, float(np.max(used / bound - 1.0))


def run(
    problem: Problem, D: Array, threads: int, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """All methods with so many threads; their repeats take turns."""
    X = problem.test
    entries = []
    for task in tasks(problem, X, D, threads, options.sklearn_signals):

        def ours(coder: Coder = task.coder) -> Any:
            return encode(X, D, coder, n_threads=threads)

        encode(X[:256], D, task.coder, n_threads=threads)  # kernels are compiled
        calls = [(SMALTO, len(X), ours), *task.peers]
        seconds: dict[str, list[float]] = {name: [] for name, *_ in calls}
        codes: dict[str, Any] = {}
        with blas_threads(threads):
            for turn in range(options.repeats):
                for name, count, call in calls:
                    if count == len(X) or turn == 0:
                        time, codes[name] = timed(call)
                        seconds[name].append(time)
        best: Array = np.zeros(0)
        fastest = min(seconds[SMALTO]) / len(X)
        for name, count, _ in calls:
            each, excess = judge(
                task.name, X[:count], D, sparse.csr_array(codes[name]), task.bound
            )  # fmt: skip
            best = each if name == SMALTO else best
            entries.append({
                "setting": problem.name,
                "dtype": problem.dtype,
                "threads": threads,
                "problem": task.name,
                "method": name,
                "signals": count,
                "microseconds": 1e6 * min(seconds[name]) / count,
                "ratio": min(seconds[name]) / count / fastest,
                "nonzeros": np.count_nonzero(sparse.csr_array(codes[name]).data) / count,
                "objective": float(each.mean()),
                # the objective of the same signals with smalto's codes, relative
                "excess": float((each - best[:count]).mean() / best[:count].mean()),
                "broken": excess,
            })  # fmt: skip
    return entries


def show(problem: Problem, entries: list[dict[str, Any]]) -> None:
    """Print the table of one setting."""
    print(problem.title())
    rows = [
        [
            str(e["threads"]), e["dtype"], e["problem"], e["method"], f"{e['signals']:,}",
            f"{e['microseconds']:.1f}", f"{e['ratio']:.2f}", f"{e['nonzeros']:.2f}",
            f"{e['objective']:.7f}", f"{e['excess']:.1e}", f"{e['broken']:.1e}",
        ]
        for e in entries
    ]  # fmt: skip
    table(
        [
            "threads", "dtype", "problem", "method", "signals", "us/signal", "x smalto",
            "nonzeros", "objective", "rel. excess", "over bound",
        ],
        rows,
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison."""
    arguments_of = parser("Radius, error bound, nonzeros.", n=100_000, repeats=5)
    add = arguments_of.add_argument
    add("--signals", type=int, default=10_000, help="how many signals to code")
    add("--sklearn-signals", type=int, default=400, help="of these, how many with scikit-learn")
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
            base.train, len(base.D0), Lasso(base.lam), init=base.D0, random_state=0
        ).D  # fmt: skip
        entries: list[dict[str, Any]] = []
        for dtype in options.dtypes:
            problem = base.as_dtype(dtype)
            for threads in options.threads:
                entries += run(problem, learned.astype(dtype), threads, options)
        show(base, entries)
        everything += entries
    save(options.out, "coders", about, options, runs=everything)


if __name__ == "__main__":
    main()
