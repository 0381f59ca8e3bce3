"""Samples per second against the batch size, the number of atoms, threads and workers.

``python -m benchmarks.scaling.throughput --picture throughput.png`` learns from 8x8 patches
(setting A) over dictionaries of several sizes, with one and two threads and with one and two Dask
workers of one thread each. It prints the best rate of a few rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from benchmarks.peers.common import load
from smalto import distributed, learn
from smalto.coders import Lasso
from smalto.learners import Online

BATCHES = (256, 512, 1024, 2048, 4096, 8192, 16384)
ATOMS = (64, 128, 256, 512, 1024)
BATCH, N_ATOMS = 2048, 256  # fixed while the other one varies
WAYS = ("1 thread", "2 threads", "1 worker", "2 workers")


def points() -> list[tuple[int, int]]:
    """Return the points to measure: (batch size, number of atoms)."""
    return [(batch, N_ATOMS) for batch in BATCHES] + [(BATCH, k) for k in ATOMS if k != N_ATOMS]


def rates(way: str, X: Any, lam: float, rounds: int, samples: int) -> dict[tuple[int, int], float]:
    """Return the samples per second of one way to run, at all points."""
    count = int(way[0])
    with contextlib.ExitStack() as stack:
        data, run, where = X, learn, {"n_threads": count}
        if "worker" in way:
            cluster = LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0")
            client = stack.enter_context(Client(stack.enter_context(cluster)))
            data = da.from_array(X, chunks=(-(-len(X) // 8), -1))
            run, where = distributed.learn, {"client": client}
        found = {}
        for batch, k in points():
            steps = max(3, samples // batch)
            options: Any = {
                "coder": Lasso(lam),
                "learner": Online(batch),
                "init": X[:k],
                "random_state": 0,
            }
            state = run(data, k, max_steps=3, **options, **where).state
            best = 0.0
            for _ in range(rounds):
                clock = time.perf_counter()
                run(data, k, max_steps=3 + steps, state=state, **where)
                best = max(best, steps * batch / (time.perf_counter() - clock))
            found[batch, k] = best
    return found


def draw(found: dict[str, dict[tuple[int, int], float]], path: Path) -> None:
    """Draw both curves of every way to run."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    for way in found:
        style = "o-" if "thread" in way else "s--"
        color = "C0" if way[0] == "1" else "C1"
        axes[0].plot(
            BATCHES, [found[way][b, N_ATOMS] for b in BATCHES], style, color=color, label=way
        )
        axes[1].plot(ATOMS, [found[way][BATCH, k] for k in ATOMS], style, color=color)
    axes[0].set(xlabel=f"batch size ({N_ATOMS} atoms)", ylabel="samples a second")
    axes[1].set(xlabel=f"atoms (batches of {BATCH})")
    for ax in axes:
        ax.set(xscale="log", yscale="log")
        ax.grid(alpha=0.3, which="both")
    axes[0].legend()
    figure.savefig(path, dpi=130)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=60_000, help="minimum samples of a round")
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    problem = load("A", 100_000, 1000)
    X = np.ascontiguousarray(problem.train)
    found = {}
    for way in WAYS:
        found[way] = rates(way, X, problem.lam, arguments.rounds, arguments.samples)
        print(f"{way} done", flush=True)
    print("\n| batch | atoms |" + "".join(f" {way} |" for way in WAYS))
    print("|---|---|" + "---|" * len(WAYS))
    for batch, k in points():
        cells = "".join(f" {found[way][batch, k]:,.0f} |".replace(",", " ") for way in WAYS)
        print(f"| {batch} | {k} |{cells}")
    if arguments.picture:
        draw(found, arguments.picture)


if __name__ == "__main__":
    main()
