"""Groups of atoms: the group lasso, its sparse variant, and trees of atoms.

smalto's ``encode`` with ``GroupLasso`` and ``TreeLasso`` against skglm's ``GroupBCD`` (one signal
per call, float64 only) and SPAMS's ``fistaFlat`` and ``fistaTree``, on held-out patches over
dictionaries that smalto has learned with the same penalty from other patches. Groups have four
atoms; in the tree each atom has three children. Peers stop at ``--tol``. Codes are compared in
float64 by the objective ``½‖x − αD‖² + ψ(α)``, smalto's also by their duality gap.

Run it with ``python -m benchmarks.peers.groups``.
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
from smalto.coders import GroupLasso, TreeLasso, duality_gap

SMALTO = "smalto encode"
GROUP = 4  # atoms in a group
CHILDREN = 3  # children of an atom


class Task(NamedTuple):
    """A problem, a dictionary for it, and the peers' calls, each with a number of signals."""

    name: str
    coder: GroupLasso | TreeLasso
    D: Array
    peers: list[tuple[str, int, Callable[[], Any]]]


def coders(lam: float, k: int) -> dict[str, GroupLasso | TreeLasso]:
    """Return the three problems over k atoms, with penalties that give about ten nonzeros."""
    groups = np.arange(k) // GROUP
    return {
        "groups": GroupLasso(lam, groups),
        "sparse groups": GroupLasso(0.5 * lam, groups, l1=0.5 * lam),
        "tree": TreeLasso(0.5 * lam, (np.arange(k) - 1) // CHILDREN),
    }


def by_skglm(X: Array, D: Array, coder: GroupLasso, tol: float) -> Callable[[], Any]:
    """Code signal by signal with skglm, compiled in advance."""
    from skglm.datafits import QuadraticGroup
    from skglm.penalties import WeightedGroupL2
    from skglm.solvers import GroupBCD
    from skglm.utils.data import grp_converter
    from skglm.utils.jit_compilation import compiled_clone

    design = np.asfortranarray(D.T)
    m, k = design.shape
    indices, pointers = grp_converter(GROUP, k)
    # skglm divides the squared error by the number of rows of its design, our features.
    penalty = compiled_clone(WeightedGroupL2(coder.lam / m, np.ones(k // GROUP), pointers, indices))
    datafit = compiled_clone(QuadraticGroup(pointers, indices))
    solver = GroupBCD(tol=tol / m, fit_intercept=False, max_iter=200)

    def call() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.array([solver.solve(design, x, datafit, penalty)[0] for x in X])

    return call


def by_spams(X: Array, D: Array, coder: Any, tol: float, threads: int) -> Callable[[], Any]:
    """Code all signals at once with SPAMS."""
    import spams

    (n, _), k = X.shape, len(D)
    signals, design = np.asfortranarray(X.T), np.asfortranarray(D.T)
    shared = {
        "loss": "square",
        "lambda1": coder.lam,
        "numThreads": threads,
        "tol": tol,
        "it0": 10,
        "max_it": 2000,
        "L0": 0.1,
        "compute_gram": True,
    }
    if isinstance(coder, GroupLasso):
        regul = "sparse-group-lasso-l2" if coder.l1 else "group-lasso-l2"
        groups = np.array(coder.atom_groups, np.int32) + 1

        def flat() -> Any:
            first = np.zeros((k, n), D.dtype, order="F")
            return spams.fistaFlat(
                signals, design, first, regul=regul, groups=groups, lambda2=coder.l1, **shared
            ).T

        return flat
    parents = np.array(coder.parents)
    below = np.flatnonzero(parents >= 0)
    matrix = sparse.csc_matrix((np.ones(len(below), bool), (below, parents[below])), shape=(k, k))
    tree = {
        "eta_g": np.ones(k, D.dtype),
        "groups": matrix,
        "own_variables": np.arange(k, dtype=np.int32),
        "N_own_variables": np.ones(k, np.int32),
    }

    def walk() -> Any:
        first = np.zeros((k, n), D.dtype, order="F")
        return spams.fistaTree(signals, design, first, tree, regul="tree-l2", **shared).T

    return walk


def tasks(
    problem: Problem, learned: dict[str, Array], threads: int, options: argparse.Namespace
) -> list[Task]:
    """Return the three problems, with the peers that are installed."""
    X, found = problem.test, []
    for name, coder in coders(problem.lam, len(problem.D0)).items():
        D = learned[name].astype(problem.dtype)
        task = Task(name, coder, D, [])
        if importable("skglm") and name == "groups" and problem.dtype == "float64":
            few = X[: options.skglm_signals]
            assert isinstance(coder, GroupLasso)
            task.peers.append(("skglm GroupBCD", len(few), by_skglm(few, D, coder, options.tol)))
        if importable("spams"):
            method = "fistaTree" if name == "tree" else "fistaFlat"
            call = by_spams(X, D, coder, options.tol, threads)
            task.peers.append((f"SPAMS {method}", len(X), call))
        found.append(task)
    return found


def run(
    problem: Problem, learned: dict[str, Array], threads: int, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Run all methods with this many threads, alternating between their repeats."""
    X, entries = problem.test, []
    for task in tasks(problem, learned, threads, options):

        def ours(task: Task = task) -> Any:
            return encode(X, task.D, task.coder, n_threads=threads)

        calls = [(SMALTO, len(X), ours), *task.peers]
        seconds: dict[str, list[float]] = {name: [] for name, *_ in calls}
        codes: dict[str, Any] = {}
        encode(X[:16], task.D, task.coder, n_threads=threads)  # compile the kernels
        with blas_threads(threads):
            for turn in range(options.repeats + 1):
                for name, _, call in calls:
                    if turn or name == "skglm GroupBCD":  # skglm compiles in its first call
                        time, codes[name] = timed(call)
                        if turn:
                            seconds[name].append(time)
        fastest, best = min(seconds[SMALTO]) / len(X), np.zeros(0)
        for name, count, _ in calls:
            found = sparse.csr_array(codes[name], dtype=np.float64)
            each, gap = judge(X[:count], task, found)
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
                    "nonzeros": np.count_nonzero(found.data) / count,
                    "objective": float(each.mean()),
                    # relative to the objective of the same signals with smalto's codes
                    "excess": float((each - best[:count]).mean() / best[:count].mean()),
                    "gap": gap,
                }
            )
    return entries


def judge(X: Array, task: Task, codes: Any) -> tuple[Array, float]:
    """Return the objective of each signal, and the largest relative duality gap."""
    X, D = X.astype(np.float64), task.D.astype(np.float64)
    each = 0.5 * np.sum((X - codes @ D) ** 2, axis=1) + task.coder.penalty(codes)
    return each, float(np.max(duality_gap(X, D, codes, task.coder) / each))


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
            f"{e['objective']:.9f}",
            f"{e['excess']:.1e}",
            f"{e['gap']:.1e}",
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
            "worst gap",
        ],
        rows,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison."""
    arguments_of = parser("Group lasso, sparse group lasso, tree lasso.", n=20_000, repeats=3)
    add = arguments_of.add_argument
    add("--signals", type=int, default=1_000, help="number of signals to code")
    add("--skglm-signals", type=int, default=100, help="number of these to code with skglm")
    add("--tol", type=float, default=1e-6, help="tolerance of the peers")
    options = arguments_of.parse_args(arguments)
    if options.quick:
        options.settings, options.threads = ["A"], [1]
        options.n, options.signals, options.repeats, options.skglm_signals = 1_024, 60, 1, 4
    about = machine()
    announce(about)
    everything: list[dict[str, Any]] = []
    for name in options.settings:
        base = load(name, options.n, options.signals, quick=options.quick)
        learned = {
            task: learn(
                base.train, len(base.D0), coder, init=base.D0, max_epochs=1, random_state=0
            ).D
            for task, coder in coders(base.lam, len(base.D0)).items()
        }
        entries: list[dict[str, Any]] = []
        for dtype in options.dtypes:
            for threads in options.threads:
                entries += run(base.as_dtype(dtype), learned, threads, options)
        show(base, entries)
        everything += entries
    save(options.out, "groups", about, options, runs=everything)


if __name__ == "__main__":
    main()
