"""Dask with one and two workers against threads, on settings B and C.

``python -m benchmarks.scaling.cluster`` learns from the same batches with one thread, two
threads, one worker and two workers, several times, and prints the time per step.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from benchmarks.peers.common import load
from smalto import distributed, learn
from smalto.coders import Lasso
from smalto.learners import Online


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setting", default="C", choices=["A", "B", "C"])
    parser.add_argument("--batch", type=int, default=8192)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--staleness", type=int, default=2)
    arguments = parser.parse_args()
    problem = load(arguments.setting, 5 * arguments.batch, 1000)
    k = len(problem.D0)
    options: Any = {
        "coder": Lasso(problem.lam),
        "learner": Online(arguments.batch),
        "init": problem.D0,
        "random_state": 0,
        "max_steps": arguments.steps,
    }
    print(f"{problem.title()}, batches of {arguments.batch}")
    X = da.from_array(problem.train, chunks=(-(-len(problem.train) // 8), -1))
    times: dict[str, list[float]] = {}
    dictionaries: dict[str, Any] = {}

    def measure(name: str, run: Any) -> None:
        run(max_steps=2)
        clock = time.perf_counter()
        result = run(max_steps=arguments.steps)
        times.setdefault(name, []).append((time.perf_counter() - clock) / arguments.steps)
        dictionaries[name] = result.D

    def here(threads: int) -> Any:
        return lambda **more: learn(problem.train, k, n_threads=threads, **{**options, **more})

    def there(client: Client, staleness: int = 0) -> Any:
        return lambda **more: distributed.learn(
            X, k, client=client, staleness=staleness, **{**options, **more}
        )

    for _ in range(arguments.rounds):
        for threads in (1, 2):
            measure(f"{threads} threads", here(threads))
        for workers in (1, 2):
            with (
                LocalCluster(
                    n_workers=workers, threads_per_worker=1, dashboard_address=":0"
                ) as local,
                Client(local) as client,
            ):
                measure(f"{workers} workers", there(client))
                if arguments.staleness:
                    stale = there(client, arguments.staleness)
                    measure(f"{workers} workers, staleness {arguments.staleness}", stale)
    best = {name: min(measured) for name, measured in times.items()}
    for name, seconds in best.items():
        print(f"{name:>24}: {1000 * seconds:7.0f} ms a step, best of {arguments.rounds}")
    print(f"two workers / one worker: {best['1 workers'] / best['2 workers']:.2f} x as fast")
    print(f"two threads / two workers: {best['2 workers'] / best['2 threads']:.2f} x as fast")
    same = np.array_equal(dictionaries["1 workers"], dictionaries["2 workers"])
    apart = float(np.abs(dictionaries["1 workers"] - dictionaries["1 threads"]).max())
    print(f"same bits with one and two workers: {same}; apart from one machine: {apart:.1e}")


if __name__ == "__main__":
    main()
