"""Sparse coding other than the lasso: radius, error bound, nonzeros, ridge, missing entries.

smalto's ``encode`` with ``L1Ball``, ``ErrorBound``, ``OMP`` and ``Ridge`` against SPAMS's ``lasso``
(modes 0 and 1) and ``omp``, scikit-learn's ``orthogonal_mp_gram`` and ``Ridge``, and NumPy, on
held-out patches over dictionaries that smalto has learned from other patches; and with 30 % and
80 % of the entries missing against SPAMS's ``ompMask`` and ``lassoMask``. The radius and the error
bound are means over the lasso's codes at the paper's lam. Codes are compared in float64, on the
known entries, by the objective of their problem (``‖x − αD‖²``, ``‖α‖₁`` under ErrorBound, fit
plus penalty for the lasso and ridge) and by how far they violate its constraint.

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
from smalto.coders import OMP, Coder, ErrorBound, L1Ball, Lasso, Ridge

SMALTO = "smalto encode"
NONZEROS = {"A": 10, "B": 20, "C": 20}


MISSING = (0.3, 0.8)  # shares of the entries


class Task(NamedTuple):
    """A problem, smalto's coder for it, and the peers' calls, each with a number of signals."""

    name: str
    coder: Coder
    peers: list[tuple[str, int, Callable[[], Any]]]
    missing: Array | None = None


def tasks(problem: Problem, X: Array, D: Array, threads: int, few: int) -> list[Task]:
    """Return all problems, with the peers that are installed."""
    lam = problem.lam
    codes = encode(X, D, Lasso(lam), n_threads=threads)
    radius = float(abs(codes).sum(axis=1).mean())
    eps = float(np.sum((X - codes @ D) ** 2, axis=1).mean())
    nonzeros = min(NONZEROS[problem.name], *D.shape)
    found = [
        Task("radius", L1Ball(radius), []),
        Task("error, l1", ErrorBound(eps), []),
        Task("nonzeros", OMP(nonzeros), []),
        Task("error, OMP", OMP(eps=eps), []),
        Task("ridge", Ridge(lam), by_numpy(X, D, lam)),
    ]
    for share in MISSING:
        first = np.tile(np.arange(X.shape[1]) < round(share * X.shape[1]), (len(X), 1))
        missing = np.random.default_rng(0).permuted(first, axis=1)  # the same number in each signal
        found += [
            Task(f"nonzeros, {share:.0%} missing", OMP(nonzeros), [], missing),
            Task(f"lasso, {share:.0%} missing", Lasso(lam), [], missing),
        ]
    if importable("spams"):
        for task in found:
            task.peers.extend(by_spams(task, X, D, lam, threads))
    if importable("sklearn"):
        found[2].peers.append(by_sklearn(X[:few], D, nonzeros))
    return found


def by_numpy(X: Array, D: Array, lam: float) -> list[tuple[str, int, Callable[[], Any]]]:
    """Return ridge regression with NumPy, and with scikit-learn if it is installed."""

    def solve() -> Any:
        return np.linalg.solve(D @ D.T + lam * np.eye(len(D), dtype=D.dtype), D @ X.T).T

    found: list[tuple[str, int, Callable[[], Any]]] = [("NumPy solve", len(X), solve)]
    if importable("sklearn"):
        from sklearn.linear_model import ridge_regression

        def regression() -> Any:
            return ridge_regression(D.T, X.T, alpha=lam, solver="cholesky")

        found.append(("scikit-learn ridge_regression", len(X), regression))
    return found


def by_spams(
    task: Task, X: Array, D: Array, lam: float, threads: int
) -> list[tuple[str, int, Callable[[], Any]]]:
    """Return SPAMS's call for one of the problems, if it has one."""
    import spams

    columns, atoms = np.asfortranarray(X.T), np.asfortranarray(D.T)
    coder, most = task.coder, min(D.shape)
    if task.missing is not None:
        known = np.asfortranarray(~task.missing.T)  # True means known in SPAMS
        if isinstance(coder, OMP):
            return [
                (
                    "SPAMS ompMask",
                    len(X),
                    lambda: (
                        spams.ompMask(
                            columns, atoms, known, L=coder.max_nonzeros, eps=0.0, numThreads=threads
                        ).T
                    ),
                )
            ]
        larger = lam / float(known.mean())  # SPAMS multiplies lambda1 by the share of known entries
        return [
            (
                "SPAMS lassoMask",
                len(X),
                lambda: (
                    spams.lassoMask(
                        columns,
                        atoms,
                        known,
                        lambda1=larger,
                        lambda2=0.0,
                        mode=2,
                        numThreads=threads,
                    ).T
                ),
            )
        ]
    if isinstance(coder, OMP):
        limit, eps = coder.max_nonzeros or most, coder.eps or 0.0
        return [
            (
                "SPAMS omp",
                len(X),
                lambda: spams.omp(columns, D=atoms, L=limit, eps=eps, numThreads=threads).T,
            )
        ]
    if isinstance(coder, (L1Ball, ErrorBound)):
        mode, bound = (0, coder.radius) if isinstance(coder, L1Ball) else (1, coder.eps)
        return [
            (
                f"SPAMS lasso, mode {mode}",
                len(X),
                lambda: (
                    spams.lasso(
                        columns, D=atoms, lambda1=bound, lambda2=0.0, mode=mode, numThreads=threads
                    ).T
                ),
            )
        ]
    return []


def by_sklearn(X: Array, D: Array, nonzeros: int) -> tuple[str, int, Callable[[], Any]]:
    """Return orthogonal matching pursuit with scikit-learn."""
    from sklearn.linear_model import orthogonal_mp_gram

    def call() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return orthogonal_mp_gram(D @ D.T, D @ X.T, n_nonzero_coefs=nonzeros).T

    return ("scikit-learn orthogonal_mp_gram", len(X), call)


def judge(task: Task, X: Array, D: Array, codes: Any) -> tuple[Array, float]:
    """Return the objective of each signal, and the largest relative excess over the bound."""
    X, D, codes = X.astype(np.float64), D.astype(np.float64), codes.astype(np.float64)
    left = X - codes @ D
    if task.missing is not None:
        left[task.missing[: len(X)]] = 0.0
    error = np.sum(left**2, axis=1)
    size = np.asarray(abs(codes).sum(axis=1)).reshape(-1)
    match task.coder:
        case L1Ball(radius=bound):
            return error, float(np.max(size / bound - 1.0))
        case ErrorBound(eps=bound):
            return size, float(np.max(error / bound - 1.0))
        case OMP(max_nonzeros=None, eps=bound):  # fewer nonzeros are better
            return np.diff(codes.indptr).astype(float), float(np.max(error / bound - 1.0))
        case OMP(max_nonzeros=bound):
            return error, float(np.max(np.diff(codes.indptr) / bound - 1.0))
        case other:
            return 0.5 * error + other.penalty(codes), 0.0


def run(
    problem: Problem, D: Array, threads: int, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Run all methods with this many threads, alternating between their repeats."""
    X = problem.test
    entries = []
    for task in tasks(problem, X, D, threads, options.sklearn_signals):
        if options.problems and task.name not in options.problems:
            continue

        def ours(task: Task = task) -> Any:
            return encode(X, D, task.coder, mask=task.missing, n_threads=threads)

        few = None if task.missing is None else task.missing[:256]
        encode(X[:256], D, task.coder, mask=few, n_threads=threads)  # compile the kernels
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
            each, excess = judge(task, X[:count], D, sparse.csr_array(codes[name]))
            best = each if name == SMALTO else best
            entries.append(
                {
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
                    # relative to the objective of the same signals with smalto's codes
                    "excess": float((each - best[:count]).mean() / best[:count].mean()),
                    "broken": excess,
                }
            )
    return entries


def show(problem: Problem, entries: list[dict[str, Any]]) -> None:
    """Print the table of one setting."""
    print(problem.title())
    rows = [
        [
            str(e["threads"]),
            e["dtype"],
            e["problem"],
            e["method"],
            f"{e['signals']:,}",
            f"{e['microseconds']:.1f}",
            f"{e['ratio']:.2f}",
            f"{e['nonzeros']:.2f}",
            f"{e['objective']:.7f}",
            f"{e['excess']:.1e}",
            f"{e['broken']:.1e}",
        ]
        for e in entries
    ]
    table(
        [
            "threads",
            "dtype",
            "problem",
            "method",
            "signals",
            "us/signal",
            "x smalto",
            "nonzeros",
            "objective",
            "rel. excess",
            "over bound",
        ],
        rows,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison."""
    arguments_of = parser(
        "Radius, error bound, nonzeros, ridge, missing entries.", n=100_000, repeats=5
    )
    add = arguments_of.add_argument
    add("--signals", type=int, default=10_000, help="number of signals to code")
    add("--problems", nargs="+", help="which, by their names in the table; by default all")
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
        show(base, entries)
        everything += entries
    save(options.out, "coders", about, options, runs=everything)


if __name__ == "__main__":
    main()
