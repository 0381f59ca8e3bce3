"""NMF and non-negative sparse coding against scikit-learn and SPAMS, on the paper's sets D, E and F.

Cost ½‖X − CD‖²/n (+ lam ΣC/n for sparse coding) against seconds. smalto's seconds include the
exact coding of all samples over the dictionary it has come to; the others get theirs for free:
scikit-learn's codes are those it holds, and dictionaries of `MiniBatchNMF` and SPAMS are measured
with exact codes. The target is 1 % above the lowest cost that any of the others reaches in the time
allowed. All samples have norm 1 and are float32.

Run it with ``python -m benchmarks.peers.nmf``. D and E are the faces of CBCL and of Yale B, read
from the folder named by SMALTO_DATA; without it only F is run.
"""

from __future__ import annotations

import argparse
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.common import (
    Array,
    add_common,
    announce,
    blas_threads,
    importable,
    machine,
    save,
    table,
)
from smalto import NMF, encode
from smalto.coders import Lasso
from smalto.datasets import natural_images, random_patches

WITHIN = 1.01  # of the lowest cost of the others
SPACING = 1.2  # between the moments at which a run is measured


@dataclass
class Curve:
    """The cost that a method has reached after so many seconds."""

    method: str
    seconds: list[float] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)

    def add(self, seconds: float, cost: float) -> None:
        """One more point; a dictionary that is not one, with NaN in it, makes none."""
        if not math.isfinite(cost):
            return
        self.seconds.append(seconds)
        self.cost.append(cost)

    def to(self, target: float) -> float | None:
        """Seconds until the cost was as low as ``target``; None if it never was."""
        below = np.flatnonzero(np.asarray(self.cost) <= target)
        return self.seconds[int(below[0])] if below.size else None

    def by(self, seconds: float) -> float:
        """The lowest cost within so many seconds; the first one where that took longer."""
        reached = [c for s, c in zip(self.seconds, self.cost, strict=True) if s <= seconds]
        return min(reached or self.cost[:1], default=math.inf)


def load(name: str, quick: bool) -> tuple[Array, int]:
    """Rows of unit norm, and how many atoms the paper learns from them."""
    if name == "F":
        n, size = (2000, 8) if quick else (100_000, 16)
        X = random_patches(
            list(natural_images().images), size, n, random_state=0, colour=False, center=False
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
    """Mean cost of given codes, summed in float64."""
    total = 0.0
    for begin in range(0, len(X), 4096):
        rows = slice(begin, begin + 4096)
        residual = X[rows] - C[rows] @ D
        total += 0.5 * float(np.sum(residual * residual, dtype=np.float64))
    return (total + lam * float(C.sum(dtype=np.float64))) / len(X)


def measured(X: Array, D: Array, lam: float, threads: int) -> tuple[float, float]:
    """The cost over a dictionary with exact codes, and the seconds that coding took."""
    D = np.ascontiguousarray(D, X.dtype)
    if not np.isfinite(D).all():
        return math.inf, 0.0
    begin = time.perf_counter()
    C = encode(X, D, Lasso(lam, positive=True), n_threads=threads)
    seconds = time.perf_counter() - begin
    return cost_of(X, C, D, lam), seconds


def smalto(X: Array, k: int, lam: float, seed: int, limit: float, threads: int) -> Curve:
    """Our `NMF`; dictionaries are kept as it runs and measured afterwards."""
    kept: list[tuple[float, Array]] = []
    clock, off = time.perf_counter(), 0.0

    def watch(state: Any, record: Any) -> bool:
        nonlocal off
        now = time.perf_counter()
        seconds = now - clock - off
        if not kept or seconds >= SPACING * kept[-1][0]:
            kept.append((seconds, state.D.copy()))
        off += time.perf_counter() - now
        return seconds >= limit

    model = NMF(
        k, lam=lam, tol=0.0, max_seconds=limit, callbacks=[watch], n_threads=threads,
        random_state=seed,
    )  # fmt: skip
    model.fit(X)
    kept.append((time.perf_counter() - clock - off, model.components_))
    curve = Curve("smalto NMF")
    for seconds, D in kept:
        cost, coding = measured(X, D, lam, threads)
        curve.add(seconds + coding, cost)
    return curve


def sklearn_batch(solver: str, init: str) -> Callable[..., Curve]:
    """scikit-learn's `NMF`, a few iterations at a time, each going on from the last."""

    def run(X: Array, k: int, lam: float, seed: int, limit: float, threads: int) -> Curve:
        from sklearn.decomposition import NMF as Peer
        from sklearn.decomposition import non_negative_factorization

        curve, iterations, step = Curve(f"scikit-learn {solver} {init}"), 0, 1
        begin = time.perf_counter()
        model = Peer(k, init=init, solver=solver, max_iter=1, tol=0.0, random_state=seed)
        W = model.fit_transform(X)
        H = model.components_
        seconds = time.perf_counter() - begin
        while True:
            curve.add(seconds, cost_of(X, W, H, 0.0))
            if seconds >= limit:
                return curve
            begin = time.perf_counter()
            W, H, _ = non_negative_factorization(
                X, W=W, H=H, n_components=k, init="custom", solver=solver, max_iter=step, tol=0.0
            )
            took = time.perf_counter() - begin
            seconds += took
            iterations += step
            pace = took / step
            step = max(1, round(min((SPACING - 1) * iterations, (limit - seconds) / pace)))

    return run


def sklearn_online(X: Array, k: int, lam: float, seed: int, limit: float, threads: int) -> Curve:
    """scikit-learn's `MiniBatchNMF`, batch after batch."""
    from sklearn.decomposition import MiniBatchNMF

    curve, seconds, due = Curve("scikit-learn MiniBatchNMF"), 0.0, 0.0
    model = MiniBatchNMF(k, random_state=seed)
    rng = np.random.default_rng(seed)
    while seconds < limit:
        order = rng.permutation(len(X))
        for first in range(0, len(X), 1024):
            batch = X[order[first : first + 1024]]
            if seconds == 0.0 and len(batch) < k:
                continue
            begin = time.perf_counter()
            model.partial_fit(batch)
            seconds += time.perf_counter() - begin
            if seconds >= due:
                D = model.components_
                norms = np.linalg.norm(D, axis=1, keepdims=True)
                curve.add(seconds, measured(X, D / np.maximum(norms, 1e-12), 0.0, threads)[0])
                due = 1.5 * seconds
            if seconds >= limit:
                break
    return curve


def spams_runs(kind: str) -> Callable[..., Curve]:
    """`spams.nmf` or `spams.nnsc`, afresh for ever more iterations: it cannot be watched."""

    def run(X: Array, k: int, lam: float, seed: int, limit: float, threads: int) -> Curve:
        import spams

        data = np.asfortranarray(X.T)
        curve, iterations, seconds = Curve(f"SPAMS {kind}"), 8, 0.0
        settings = {"K": k, "batchsize": 512, "numThreads": threads, "return_lasso": False}
        if kind == "nnsc":
            settings["lambda1"] = lam
        while seconds < limit:
            begin = time.perf_counter()
            D = getattr(spams, kind)(data, iter=iterations, **settings)
            seconds = time.perf_counter() - begin
            curve.add(seconds, measured(X, np.asarray(D).T, lam, threads)[0])
            iterations = 2 * iterations if seconds < 0.5 * limit else math.ceil(
                iterations * max(limit / seconds, 1.05)
            )  # fmt: skip
        return curve

    return run


def rivals(lam: float) -> Iterator[Callable[..., Curve]]:
    """Those that solve the same problem."""
    if lam == 0.0:
        yield sklearn_batch("cd", "nndsvda")
        yield sklearn_batch("cd", "random")
        yield sklearn_batch("mu", "nndsvda")
        yield sklearn_online
    if importable("spams"):
        yield spams_runs("nmf" if lam == 0.0 else "nnsc")


def compare(
    name: str, X: Array, k: int, lam: float, threads: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Run all methods from several starts; print and return what came out."""
    n, m = X.shape
    kind = "NMF" if lam == 0.0 else f"NNSC, lam = {lam:.4f}"
    print(f"{kind} of {name}: {n} x {m}, k = {k}, {threads} thread(s), {options.limit:g} s each")
    with blas_threads(threads):
        smalto(X[: 20 * k], k, lam, 0, 0.5, threads)  # kernels are compiled
        curves: list[list[Curve]] = [
            [method(X, k, lam, seed, options.limit, threads) for seed in range(options.starts)]
            for method in [smalto, *rivals(lam)]
        ]
    lasts = [float(np.mean([c.by(1.02 * options.limit + 1.0) for c in runs])) for runs in curves]
    best = float(min(lasts[1:], default=lasts[0]))
    target = WITHIN * best
    rows, entries = [], []
    first: float | None = None
    for runs, last in zip(curves, lasts, strict=True):
        times = [c.to(target) for c in runs]
        mean = None if None in times else float(np.mean([t for t in times if t is not None]))
        first = mean if first is None else first
        ratio = mean / first if mean is not None and first else None
        rows.append([runs[0].method, f"{last:.6f}", mean, ratio])
        entries.append({
            "method": runs[0].method, "last": last if math.isfinite(last) else None, "seconds_to_target": mean,
            "ratio": ratio, "curves": [{"seconds": c.seconds, "cost": c.cost} for c in runs],
        })  # fmt: skip
    print(f"target {target:.6f}: 1 % above the lowest of the others")
    table(["method", "last cost", "seconds to target", "x smalto"], rows)
    return {
        "set": name, "lam": lam, "threads": threads, "shape": [n, m], "atoms": k,
        "target": target if math.isfinite(target) else None, "methods": entries,
    }  # fmt: skip


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(
        description="NMF and NNSC against other packages.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--sets", nargs="+", choices="DEF", default=list("DEF"))
    parser.add_argument("--problems", nargs="+", choices=["nmf", "nnsc"], default=["nmf", "nnsc"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each run")
    add_common(parser)
    options = parser.parse_args()
    if options.quick:
        options.sets, options.threads, options.starts, options.limit = ["F"], [1], 1, 0.5
    if not os.environ.get("SMALTO_DATA"):
        options.sets = [name for name in options.sets if name == "F"]
    about = machine()
    announce(about)
    warnings.filterwarnings("ignore", module="sklearn")  # that so few iterations do not converge
    runs = []
    for name in options.sets:
        X, k = load(name, options.quick)
        for problem in options.problems:
            lam = 0.0 if problem == "nmf" else 1.0 / math.sqrt(X.shape[1])
            runs += [compare(name, X, k, lam, threads, options) for threads in options.threads]
    save(options.out, "nmf", about, options, runs=runs)


if __name__ == "__main__":
    main()
