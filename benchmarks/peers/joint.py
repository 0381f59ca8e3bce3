"""Coding groups of similar patches: signals that share their atoms.

smalto's ``encode`` with ``JointOMP`` and ``JointLasso`` against SPAMS's ``somp`` and ``l1L2BCD``,
as in denoising. The signals are centered patches of a photograph with noise of standard deviation
25/255; each group has the patches around some place that are most similar to the one there. The
dictionary is one that smalto has learned from the noisy photograph. The error bound is (1.1 σ)² m
per patch, and lam is 1.5 σ times the square root of a group's size. SPAMS's ``l1L2BCD`` solves
smalto's problem with twice its lam; its tolerance is its default, 1e-3, and 1e-6.

Codes are compared in float64 by the objective of their problem, group by group: ``‖X − AD‖²``,
the number of atoms under an error bound, ``½‖X − AD‖² + lam Σ_j ‖A_j‖₂``.

Run it with ``python -m benchmarks.peers.joint``.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import sparse

from benchmarks.peers.common import (
    DTYPES,
    Array,
    add_common,
    announce,
    blas_threads,
    importable,
    machine,
    save,
    table,
    timed,
)
from smalto import encode, learn
from smalto.coders import Coder, JointLasso, JointOMP, Lasso
from smalto.datasets import luminance, sample_photo

SMALTO = "smalto encode"
SIGMA = 25.0 / 255.0
NONZEROS = 8
REACH = 16  # distance in pixels within which patches are searched


class Task(NamedTuple):
    """A problem, signals in groups, and the peers' calls."""

    name: str
    coder: Coder
    X: Array
    peers: list[tuple[str, Callable[[], Any]]]


def patches_of(side: int, seed: int = 0) -> Array:
    """Return all patches of a noisy photograph (rows, columns, side²), centered, in float64."""
    photo = luminance(sample_photo("china"))
    noisy = photo + SIGMA * np.random.default_rng(seed).standard_normal(photo.shape)
    windows = sliding_window_view(noisy, (side, side)).reshape(
        *np.subtract(photo.shape, side - 1), -1
    )
    return windows - windows.mean(axis=-1, keepdims=True)


def groups_of(patches: Array, count: int, size: int, seed: int = 1) -> Array:
    """Return groups of similar patches, one after the other."""
    rows, columns, m = patches.shape
    rng = np.random.default_rng(seed)
    found = np.empty((count, size, m))
    for group in found:
        i, j = rng.integers(REACH, rows - REACH), rng.integers(REACH, columns - REACH)
        near = patches[i - REACH : i + REACH + 1, j - REACH : j + REACH + 1].reshape(-1, m)
        distance = np.sum((near - patches[i, j]) ** 2, axis=1)
        group[:] = near[np.argpartition(distance, size)[:size]]
    return found.reshape(-1, m)


def tasks(X: Array, D: Array, size: int, threads: int, few: int) -> list[Task]:
    """Return the problems, with SPAMS if it is installed; the last one with fewer signals."""
    some = X[: few // size * size]
    eps, lam = (1.1 * SIGMA) ** 2 * X.shape[1], 1.5 * SIGMA
    found = [
        Task("atoms", JointOMP(NONZEROS), X, []),
        Task("error", JointOMP(eps=eps), X, []),
        Task("l1/l2", JointLasso(lam, by_size=True), some, []),
    ]
    if not importable("spams"):
        return found
    import spams

    columns, atoms = np.asfortranarray(X.T), np.asfortranarray(D.T)
    starts = np.arange(0, len(X), size, dtype=np.int32)

    def somp(limit: int, bound: float) -> Callable[[], Any]:
        return lambda: spams.somp(columns, atoms, starts, L=limit, eps=bound, numThreads=threads).T

    def descent(tol: float) -> Callable[[], Any]:
        zeros = np.zeros((len(D), len(some)), X.dtype, order="F")
        signals = np.asfortranarray(some.T)
        return lambda: (
            spams.l1L2BCD(
                signals,
                atoms,
                zeros,
                starts[: len(some) // size],
                lambda1=2.0 * lam,
                mode=2,
                itermax=10_000,
                tol=tol,
                numThreads=threads,
            ).T
        )

    found[0].peers.append(("SPAMS somp", somp(NONZEROS, 0.0)))
    found[1].peers.append(("SPAMS somp", somp(min(D.shape), eps)))
    found[2].peers.extend(
        [
            ("SPAMS l1L2BCD", descent(1e-3)),
            ("SPAMS l1L2BCD, tol 1e-6", descent(1e-6)),
        ]
    )
    return found


def judge(task: Task, D: Array, codes: Any, size: int) -> tuple[Array, float]:
    """Return the objective of each group, and the mean number of atoms in use."""
    X, D = task.X.astype(np.float64), D.astype(np.float64)
    codes = codes.astype(np.float64)
    errors = np.sum((X - codes @ D) ** 2, axis=1).reshape(-1, size).sum(axis=1)
    starts = np.arange(0, len(X) + 1, size)
    used = np.array(
        [
            len(np.unique(codes.indices[codes.indptr[a] : codes.indptr[b]]))
            for a, b in itertools.pairwise(starts)
        ]
    )
    if isinstance(task.coder, JointLasso):
        shares = task.coder.penalty(codes, starts)
        return 0.5 * errors + shares.reshape(-1, size).sum(axis=1), float(used.mean())
    return used if task.name == "error" else errors, float(used.mean())


def run(
    X: Array, D: Array, size: int, threads: int, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Run all methods with this many threads, alternating between their repeats."""
    entries = []
    for task in tasks(X, D, size, threads, options.few):
        if options.problems and task.name not in options.problems:
            continue
        groups = np.repeat(np.arange(len(task.X) // size), size)

        def ours(task: Task = task, groups: Array = groups) -> Any:
            return encode(task.X, D, task.coder, groups=groups, n_threads=threads)

        ours()  # compile the kernels
        calls = [(SMALTO, ours), *task.peers]
        seconds: dict[str, list[float]] = {name: [] for name, _ in calls}
        codes: dict[str, Any] = {}
        with blas_threads(threads):
            for _ in range(options.repeats):
                for name, call in calls:
                    time, codes[name] = timed(call)
                    seconds[name].append(time)
        best: Array = np.zeros(0)
        for name, _ in calls:
            answer = sparse.csr_array(codes[name])
            answer.eliminate_zeros()
            each, used = judge(task, D, answer, size)
            best = each if name == SMALTO else best
            entries.append(
                {
                    "m": X.shape[1],
                    "atoms": len(D),
                    "group": size,
                    "signals": len(task.X),
                    "dtype": str(X.dtype),
                    "threads": threads,
                    "problem": task.name,
                    "method": name,
                    "microseconds": 1e6 * min(seconds[name]) / len(task.X),
                    "ratio": min(seconds[name]) / min(seconds[SMALTO]),
                    "used": used,
                    "objective": float(each.mean()),
                    # of the means, relative to smalto's
                    "excess": float(each.mean() / best.mean() - 1.0),
                }
            )
    return entries


def show(entries: list[dict[str, Any]]) -> None:
    """Print the table of one size."""
    one = entries[0]
    print(f"patches of {one['m']} pixels, k = {one['atoms']}")
    header = [
        "signals",
        "group",
        "threads",
        "dtype",
        "problem",
        "method",
        "us/signal",
        "x smalto",
        "atoms",
        "objective",
        "rel. excess",
    ]
    rows = [
        [
            f"{e['signals']:,}",
            str(e["group"]),
            str(e["threads"]),
            e["dtype"],
            e["problem"],
            e["method"],
            f"{e['microseconds']:.2f}",
            f"{e['ratio']:.2f}",
            f"{e['used']:.2f}",
            f"{e['objective']:.6f}",
            f"{e['excess']:.1e}",
        ]
        for e in entries
    ]
    table(header, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison."""
    arguments_of = argparse.ArgumentParser(
        description="Groups of similar patches.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = arguments_of.add_argument
    add("--sides", nargs="+", type=int, default=[8, 9], help="of the patches")
    add("--sizes", nargs="+", type=int, default=[8, 32, 64], help="of the groups")
    add("--atoms", type=int, default=256)
    add("--signals", type=int, default=32_768, help="approximate number of signals to code")
    add("--problems", nargs="+", help="which, by their names in the table; by default all")
    add("--few", type=int, default=1_024, help="approximate number of these for the joint lasso")
    add("--threads", nargs="+", type=int, default=[1, 2])
    add("--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES))
    add("--repeats", type=int, default=3, help="number of repeats, of which the best counts")
    add_common(arguments_of)
    options = arguments_of.parse_args(arguments)
    if options.quick:
        options.sides, options.sizes, options.atoms = [8], [8], 64
        options.signals, options.few, options.repeats = 320, 64, 1
    about = machine()
    announce(about)
    everything: list[dict[str, Any]] = []
    for side in options.sides:
        patches = patches_of(side)
        flat = patches.reshape(-1, side * side)
        chosen = flat[np.random.default_rng(2).permutation(len(flat))[: 64 * options.atoms]]
        D = learn(
            chosen.astype(np.float32),
            options.atoms,
            Lasso(1.2 * SIGMA),
            max_epochs=1,
            random_state=0,
        ).D
        entries: list[dict[str, Any]] = []
        for size in options.sizes:
            X = groups_of(patches, options.signals // size, size)
            for dtype in options.dtypes:
                for threads in options.threads:
                    entries += run(X.astype(dtype), D.astype(dtype), size, threads, options)
        show(entries)
        everything += entries
    save(options.out, "joint", about, options, runs=everything)


if __name__ == "__main__":
    main()
