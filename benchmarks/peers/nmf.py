"""NMF and non-negative sparse coding against other programs, on pictures, texts and counts.

Cost ½‖X − CD‖²/n (+ lam ΣC/n for sparse coding) against seconds. The seconds include coding all
samples over the dictionary reached, with the coder of the same package: `encode`, `spams.lasso`,
`MiniBatchNMF.transform` (scikit-learn's `NMF` returns codes with its dictionary). "learning alone"
excludes coding. The cost of a dictionary is always that of exact codes; of more than 10 000 samples,
that many random ones are judged. The target is 1 % above
the lowest cost that any of the others reaches within the time limit; times between two
measurements are interpolated. All samples are float32; pictures and texts have norm 1.

Run it with ``python -m benchmarks.peers.nmf``. nmf-torch is compared with if it is installed (``pip
install nmf-torch``, with gigabytes of PyTorch). D and E are the faces of CBCL and of Yale B, in the
folder named by SMALTO_DATA, without which they are left out, and F are patches. "text", "texts" and
"cells" are sparse, with planted factors (`sparse_counts.py`). Each set, problem and number of threads
is a part of its own, which is kept in the JSON file: ``--fresh`` measures it again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from benchmarks.peers import sparse_counts
from benchmarks.peers.common import (
    Array,
    add_clock,
    add_common,
    announce,
    blas_threads,
    clock_of,
    importable,
    machine,
    parts_of,
    save,
    table,
    timed,
)
from benchmarks.peers.extrapolated_hals import extrapolated_hals
from benchmarks.peers.nmf_figure import plot
from smalto import NMF, encode
from smalto.coders import Lasso
from smalto.datasets import natural_images, random_patches

WITHIN = 1.01  # of the lowest cost of the others
SETS = [*"DEF", "text", "texts", "cells"]
SPACING = 1.2  # ratio of the times at which a run is measured
DENSE = 2**28  # entries, up to which sparse data is made dense for nmf-torch
JUDGED = 10_000  # samples, at most, on which costs are measured


@dataclass(frozen=True)
class Task:
    """The input of all methods."""

    X: Any  # dense or CSR
    k: int
    lam: float
    limit: float
    threads: int
    clock: Callable[[], float]

    def judged(self) -> Array:
        """Return the numbers of the samples on which costs are measured."""
        n = self.X.shape[0]
        return np.sort(np.random.default_rng(0).permutation(n)[:JUDGED])

    def cost(self, C: Any, D: Array) -> float:
        """Return the mean cost of codes (n, k) of all samples."""
        rows = self.judged()
        return cost_of(self.X[rows], C[rows], D, self.lam)


@dataclass
class Curve:
    """Cost of a method against seconds, and the seconds of coding at each point."""

    method: str
    seconds: list[float] = field(default_factory=list)
    coding: list[float] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)

    def add(self, seconds: float, coding: float, cost: float) -> None:
        """Add a point, unless the dictionary contains NaN."""
        if math.isfinite(cost):
            self.seconds.append(seconds)
            self.coding.append(coding)
            self.cost.append(cost)

    def to(self, target: float, *, coded: bool) -> float | None:
        """Return the seconds until the cost reached ``target``; None if it never did."""
        below = np.flatnonzero(np.asarray(self.cost) <= target)
        if not below.size:
            return None
        at = int(below[0])
        seconds, coding = self.seconds[at], self.coding[at] if coded else 0.0
        if at and self.cost[at - 1] > self.cost[at]:
            share = (self.cost[at - 1] - target) / (self.cost[at - 1] - self.cost[at])
            seconds = self.seconds[at - 1] * (seconds / self.seconds[at - 1]) ** share
        return seconds + coding

    def by(self, seconds: float) -> float:
        """Return the lowest cost within a time limit; the first cost if that took longer."""
        reached = [c for s, c in zip(self.seconds, self.cost, strict=True) if s <= seconds]
        return min(reached or self.cost[:1], default=math.inf)


def load(name: str, quick: bool) -> tuple[Any, int]:
    """Return samples, and the number of atoms to learn from them: the paper's for D, E and F."""
    if name == "cells":
        return sparse_counts.cells(*((300, 400) if quick else (2_000, 7_750))), 10
    if name in ("text", "texts"):
        shape = (2_735, 4_785) if name == "text" else (100_000, 10_000)
        return sparse_counts.texts(*((400, 500) if quick else shape)), 20
    if name == "F":
        n, size = (2000, 8) if quick else (100_000, 16)
        X = random_patches(
            list(natural_images().images), size, n, random_state=0, as_gray=True, center=False
        )
        return X, 16 if quick else 64
    folder = Path(os.environ["SMALTO_DATA"])
    if name == "D":
        images = np.load(folder / "cbcl_faces" / "cbcl_faces.npz")["train"]
    else:
        images = np.load(folder / "yale_b" / "yaleb_cropped_192x168.npz")["images"]
    X = images.reshape(len(images), -1).astype(np.float32)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return np.ascontiguousarray((X / np.maximum(norms, 1e-12))[norms[:, 0] > 0]), 49


def cost_of(X: Array, C: Any, D: Array, lam: float) -> float:
    """Return the mean cost of given codes, summed in float64."""
    total, n = 0.0, X.shape[0]
    if scipy.sparse.issparse(X):
        dense = C.toarray() if scipy.sparse.issparse(C) else C
        inner = np.vdot(dense.T @ dense, (D @ D.T).astype(np.float64))
        squares = float(np.sum(np.square(X.data, dtype=np.float64)))
        total = 0.5 * squares - np.sum(dense * (X @ D.T), dtype=np.float64) + 0.5 * inner
    for begin in range(0, 0 if scipy.sparse.issparse(X) else n, 4096):
        rows = slice(begin, begin + 4096)
        residual = X[rows] - C[rows] @ D
        total += 0.5 * float(np.sum(residual * residual, dtype=np.float64))
    return (total + lam * float(C.sum(dtype=np.float64))) / n


def measured(task: Task, D: Array) -> tuple[float, float]:
    """Return the seconds that coding takes, and the cost of the exact codes."""
    D = np.ascontiguousarray(D, task.X.dtype)
    if not np.isfinite(D).all():
        return 0.0, math.inf
    coder, rows = Lasso(task.lam, positive=True), task.judged()
    seconds, C = timed(encode, task.X, D, coder, n_threads=task.threads, clock=task.clock)
    return seconds, cost_of(task.X[rows], C[rows], D, task.lam)


def smalto(task: Task, seed: int) -> Curve:
    """Run smalto's `NMF`; its dictionaries are kept, and evaluated afterwards."""
    kept: list[tuple[float, Array]] = []
    begin, off = task.clock(), 0.0

    def watch(state: Any, record: Any) -> bool:
        nonlocal off
        now = task.clock()
        seconds = now - begin - off
        if not kept or seconds >= SPACING * kept[-1][0]:
            kept.append((seconds, state.D.copy()))
        off += task.clock() - now
        return seconds >= task.limit

    model = NMF(
        task.k,
        lam=task.lam,
        tol=0.0,
        max_epochs=1_000_000,
        callbacks=[watch],
        n_threads=task.threads,
        random_state=seed,
    )
    model.fit(task.X)
    kept.append((task.clock() - begin - off, model.components_))
    curve = Curve("smalto NMF")
    for seconds, D in kept:
        curve.add(seconds, *measured(task, D))
    return curve


def sklearn_batch(solver: str, init: str) -> Callable[[Task, int], Curve]:
    """Run scikit-learn's `NMF`, a few iterations at a time."""

    def run(task: Task, seed: int) -> Curve:
        from sklearn.decomposition import NMF as Peer
        from sklearn.decomposition import non_negative_factorization

        X, curve, iterations, step = task.X, Curve(f"scikit-learn {solver} {init}"), 0, 1
        model = Peer(task.k, init=init, solver=solver, max_iter=1, tol=0.0, random_state=seed)
        seconds, W = timed(model.fit_transform, X, clock=task.clock)
        H = model.components_
        while True:
            curve.add(seconds, 0.0, task.cost(W, H))
            if seconds >= task.limit:
                return curve
            begin = task.clock()
            W, H, _ = non_negative_factorization(
                X,
                W=W,
                H=H,
                n_components=task.k,
                init="custom",
                solver=solver,
                max_iter=step,
                tol=0.0,
            )
            took = task.clock() - begin
            seconds += took
            iterations += step
            pace = took / step
            step = max(1, round(min((SPACING - 1) * iterations, (task.limit - seconds) / pace)))

    return run


def sklearn_online(task: Task, seed: int) -> Curve:
    """Run scikit-learn's `MiniBatchNMF`, batch by batch."""
    from sklearn.decomposition import MiniBatchNMF

    X, curve, seconds, due = task.X, Curve("scikit-learn MiniBatchNMF"), 0.0, 0.0
    model = MiniBatchNMF(task.k, random_state=seed)
    rng = np.random.default_rng(seed)
    while seconds < task.limit:
        order = rng.permutation(X.shape[0])
        for first in range(0, X.shape[0], 1024):
            batch = X[order[first : first + 1024]]
            if seconds == 0.0 and batch.shape[0] < task.k:
                continue
            seconds += timed(model.partial_fit, batch, clock=task.clock)[0]
            if seconds >= due:
                D = model.components_
                norms = np.linalg.norm(D, axis=1, keepdims=True)
                curve.add(seconds, 0.0, measured(task, D / np.maximum(norms, 1e-12))[1])
                due = 1.5 * seconds
            if seconds >= task.limit:
                break
    coding = timed(model.transform, X, clock=task.clock)[0]  # long runs need no repeats
    curve.coding = [coding] * len(curve.cost)
    return curve


def spams_runs(kind: str) -> Callable[[Task, int], Curve]:
    """Run `spams.nmf` or `spams.nnsc`, which have no callback, for more and more iterations."""

    def run(task: Task, seed: int) -> Curve:
        import spams

        data = np.asfortranarray(task.X.T)
        curve, iterations, seconds = Curve(f"SPAMS {kind}"), 8, 0.0
        learn, settings = getattr(spams, kind), {"K": task.k, "batchsize": 512}
        settings |= {"numThreads": task.threads, "return_lasso": False}
        if kind == "nnsc":
            settings["lambda1"] = task.lam
        while seconds < task.limit:
            seconds, D = timed(learn, data, iter=iterations, **settings, clock=task.clock)
            D = np.asfortranarray(D)
            coding, _ = timed(
                spams.lasso,
                data,
                D,
                lambda1=task.lam,
                mode=2,
                pos=True,
                numThreads=task.threads,
                clock=task.clock,
            )
            curve.add(seconds, coding, measured(task, D.T)[1])
            iterations = math.ceil(iterations * min(1.5, max(task.limit / seconds, 1.05)))
        return curve

    return run


def nmf_torch(algorithm: str) -> Callable[[Task, int], Curve]:
    """Run nmf-torch, which has no callback and takes dense arrays only, for more and more iterations."""

    def run(task: Task, seed: int) -> Curve:
        from nmf import run_nmf

        X = task.X.toarray() if scipy.sparse.issparse(task.X) else task.X
        settings = {"algo": algorithm, "tol": 0.0, "n_jobs": task.threads, "random_state": seed}
        curve, tens, seconds = Curve(f"nmf-torch {algorithm}"), 1, 0.0
        while seconds < task.limit:
            with contextlib.redirect_stdout(io.StringIO()):  # it prints the cost of each tenth
                seconds, (C, D, _) = timed(
                    run_nmf, X, task.k, batch_max_iter=10 * tens, **settings, clock=task.clock
                )
            curve.add(seconds, 0.0, task.cost(C, D))
            if curve.cost[-1:] == curve.cost[-2:-1]:  # it has converged
                break
            tens = math.ceil(tens * min(1.5, max(task.limit / seconds, 1.05)))
        return curve

    return run


def hals(task: Task, seed: int) -> Curve:
    """Run extrapolated HALS in NumPy."""
    curve, off, begin = Curve("extrapolated HALS"), 0.0, task.clock()
    for C, D in extrapolated_hals(task.X, task.k, seed):
        now = task.clock()
        seconds = now - begin - off
        if not curve.seconds or seconds >= SPACING * curve.seconds[-1] or seconds >= task.limit:
            curve.add(seconds, 0.0, task.cost(C, D))
        off += task.clock() - now
        if seconds >= task.limit:
            break
    return curve


def rivals(task: Task) -> Iterator[Callable[[Task, int], Curve]]:
    """Return the methods that solve this problem."""
    if task.lam == 0.0:
        yield sklearn_batch("cd", "nndsvda")
        yield sklearn_batch("cd", "random")
        yield sklearn_batch("mu", "nndsvda")
        yield sklearn_online
        yield hals
        if importable("nmf") and math.prod(task.X.shape) <= DENSE:
            yield nmf_torch("halsvar")
            yield nmf_torch("bpp")
    if importable("spams") and not scipy.sparse.issparse(task.X):
        yield spams_runs("nmf" if task.lam == 0.0 else "nnsc")


def compare(name: str, task: Task, starts: int) -> dict[str, Any]:
    """Run all methods from several starts; print and return the results."""
    n, m = task.X.shape
    kind = "NMF" if task.lam == 0.0 else f"NNSC, lam = {task.lam:.4f}"
    print(f"{kind} of {name}: {n} x {m}, k = {task.k}, {task.threads} thread(s), {task.limit:g} s")
    with blas_threads(task.threads):
        smalto(replace(task, X=task.X[: 20 * task.k], limit=0.5), 0)  # compile the kernels
        curves: list[list[Curve]] = [
            [method(task, seed) for seed in range(starts)] for method in [smalto, *rivals(task)]
        ]
    lasts = [float(np.mean([c.by(1.02 * task.limit + 1.0) for c in runs])) for runs in curves]
    target = WITHIN * float(min(lasts[1:], default=lasts[0]))
    rows, entries = [], []
    firsts: list[float | None] = []
    for runs, last in zip(curves, lasts, strict=True):
        means = [_mean([c.to(target, coded=coded) for c in runs]) for coded in (True, False)]
        firsts = firsts or means
        ratios = [
            mean / first if mean is not None and first else None
            for mean, first in zip(means, firsts, strict=True)
        ]
        rows.append([runs[0].method, f"{last:.6f}", means[0], ratios[0], means[1], ratios[1]])
        entries.append(
            {
                "method": runs[0].method,
                "last": last if math.isfinite(last) else None,
                "seconds_to_target": means[0],
                "ratio": ratios[0],
                "learning_alone": means[1],
                "ratio_learning": ratios[1],
                "curves": [
                    {"seconds": c.seconds, "coding": c.coding, "cost": c.cost} for c in runs
                ],
            }
        )
    print(f"target {target:.6f}: 1 % above the lowest of the others")
    heads = ["method", "last cost", "seconds to target", "x smalto", "learning alone", "x smalto"]
    table(heads, rows)
    return {
        "set": name,
        "lam": task.lam,
        "threads": task.threads,
        "limit": task.limit,
        "shape": [n, m],
        "atoms": task.k,
        "target": target if math.isfinite(target) else None,
        "methods": entries,
    }


def _mean(times: list[float | None]) -> float | None:
    return None if None in times else float(np.mean([t for t in times if t is not None]))


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(
        description="NMF and NNSC against other packages.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--problems", nargs="+", choices=["nmf", "nnsc"], default=["nmf", "nnsc"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each run")
    parser.add_argument("--fresh", action="store_true", help="measure parts again that are kept")
    add_clock(parser)
    add_common(parser)
    options = parser.parse_args()
    if options.quick:
        options.sets, options.threads, options.starts, options.limit = ["F"], [1], 1, 0.5
    if not os.environ.get("SMALTO_DATA"):
        options.sets = [name for name in options.sets if name not in "DE"]
    about = machine()
    announce(about)
    warnings.filterwarnings("ignore", module="sklearn|nmf")  # of convergence, and old names
    kept = parts_of(options.out / "nmf_peers.json", "set", "lam", "threads")
    for name in options.sets:
        X, k = load(name, options.quick)
        for problem in options.problems:
            lam = 0.0 if problem == "nmf" else 1.0 / math.sqrt(X.shape[1])
            for threads in options.threads:
                if (name, lam, threads) in kept and not options.fresh:
                    continue
                task = Task(X, k, lam, options.limit, threads, clock_of(options))
                kept[name, lam, threads] = compare(name, task, options.starts)
                runs = [kept[key] for key in sorted(kept)]
                save(options.out, "nmf_peers", about, options, runs=runs)
    runs = [kept[key] for key in sorted(kept)]
    if importable("matplotlib"):
        plot(runs, options.out / "nmf_peers.png")


if __name__ == "__main__":
    main()
