"""Limits of scaling on a cluster: a simulation from measured costs and assumed links.

``python -m benchmarks.scaling.simulate`` measures the time of coding a sample, of the dictionary
update and of the Gram matrix on settings A, B and C, on one thread of this machine (or reads it
from ``--costs``). It then simulates a synchronous and a pipelined run of W workers and one client,
message by message. It prints the throughput relative to one worker, and the batch size from which
the W workers are busy 80 % of the time.
"""

from __future__ import annotations

import argparse
import heapq
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

SIZES = {"A": (64, 256), "B": (432, 512), "C": (256, 1024)}  # m, k
TASKS_PER_WORKER = 1  # of a batch: the fewest messages


@dataclass(frozen=True)
class Costs:
    """Seconds on one thread, and the size of a coded sample in bytes."""

    code: float  # a sample
    prepare: float  # the Gram matrix, by every worker at every step
    add: float  # a sample's codes to the statistics
    sweep: float  # the dictionary update
    sample_bytes: float
    statistics_bytes: float
    dictionary_bytes: float


@dataclass(frozen=True)
class Links:
    """The network: the latency of a message, and the bandwidth of the client."""

    latency: float = 0.5e-3
    bandwidth: float = 1.25e9  # bytes a second: 10 Gbit/s
    per_task: float = 0.3e-3  # of the scheduler, for each task


def measure(name: str) -> Costs:
    """Return the processor seconds of the parts of a step on a setting, best of three."""
    from benchmarks.peers.common import load
    from smalto import learn
    from smalto.coders import Lasso
    from smalto.coders.preparing import prepare
    from smalto.coders.signals import Signals
    from smalto.learners import Online
    from smalto.learning.batches.code_samples import code_samples
    from smalto.learning.batches.samples import Samples
    from smalto.learning.dictionary.sweep import sweep
    from smalto.threads import single_threaded_blas

    problem = load(name, 20_000, 1000)
    coder = Lasso(problem.lam)
    state = learn(
        problem.train,
        len(problem.D0),
        coder,
        learner=Online(2048),
        init=problem.D0,
        random_state=0,
        max_epochs=2,
        n_threads=1,
    ).state
    X = problem.train[:1024]
    samples = Samples(np.arange(len(X)), Signals(X))

    def best(run: Any) -> float:
        times = []
        for _ in range(3):
            clock = time.thread_time()  # processor time, since other programs may be running
            run()
            times.append(time.thread_time() - clock)
        return min(times)

    with single_threaded_blas():
        prepared = prepare(state.D, coder, 1)
        part = code_samples(samples, state.D, prepared, None, 1)
        code = best(lambda: code_samples(samples, state.D, prepared, None, 1)) / len(X)
        add = best(lambda: part.new.add_to(state.stats[0], 1e-9, 1)) / len(X)
        gram = best(lambda: prepare(state.D, coder, 1))
        update = best(lambda: sweep(state.D, state.stats, state.constraint, 1))
    m, k = SIZES[name]
    nonzeros = part.nonzeros / len(X)
    return Costs(
        code, gram, add, update, 4.0 * m + 8 * nonzeros + 32, 8.0 * (k * k + k * m), 4.0 * k * m
    )


def throughput(
    costs: Costs, links: Links, workers: int, batch: int, *, staleness: int = 0, steps: int = 30
) -> float:
    """Return the samples per second of a run, simulated event by event.

    The client, its link and each worker handle one thing at a time, in order of arrival. The
    dictionary reaches the workers along a tree. A worker sends codes and samples, or their
    statistics, whichever is less work for the client.
    """
    share = batch / workers
    coding = costs.prepare + share * costs.code
    as_codes = share * (costs.sample_bytes / links.bandwidth + costs.add)
    a_pass = costs.statistics_bytes / 8 * 1e-9  # over A and B
    as_statistics = costs.statistics_bytes / links.bandwidth + a_pass
    summed = as_statistics < as_codes  # by the worker
    summing = share * costs.add if summed else 0.0
    merging = a_pass if summed else share * costs.add
    sent_at = (costs.statistics_bytes if summed else share * costs.sample_bytes) / links.bandwidth
    hops = max(1.0, np.ceil(np.log2(workers + 1)))
    spread = hops * (links.latency + costs.dictionary_bytes / links.bandwidth)
    free = np.zeros(workers)  # when each worker becomes idle
    link = client = 0.0
    dictionary = [0.0] * (staleness + 1)  # when the dictionary of each step in progress is ready
    for step in range(steps):
        begin = dictionary[step] + spread + workers * TASKS_PER_WORKER * links.per_task
        free = np.maximum(free, begin) + coding + summing
        arrivals = [time + links.latency for time in free]
        heapq.heapify(arrivals)
        while arrivals:
            link = max(link, heapq.heappop(arrivals)) + sent_at
            client = max(client, link) + merging
        client += costs.sweep
        dictionary.append(client)
    return steps * batch / client


def efficient_batch(costs: Costs, links: Links, workers: int, staleness: int) -> int | None:
    """Return the smallest batch (a power of two) at which workers are busy 80 % of the time."""
    alone = 1.0 / costs.code
    for power in range(9, 27):
        rate = throughput(costs, links, workers, 1 << power, staleness=staleness)
        if rate >= 0.8 * workers * alone:
            return 1 << power
    return None


def main() -> None:
    """Measure or read the costs, simulate, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--costs", type=Path, help="costs from an earlier run, as JSON")
    parser.add_argument("--save", type=Path, help="write the measured costs to this file, as JSON")
    arguments = parser.parse_args()
    if arguments.costs:
        read = json.loads(arguments.costs.read_text())
        costs = {name: Costs(**values) for name, values in read.items()}
    else:
        costs = {name: measure(name) for name in SIZES}
    if arguments.save:
        arguments.save.write_text(json.dumps({n: asdict(c) for n, c in costs.items()}, indent=1))
    links = Links()
    for name, cost in costs.items():
        print(
            f"{name}: coding {1e6 * cost.code:.1f} us and adding {1e6 * cost.add:.1f} us a sample, "
            f"Gram {1e3 * cost.prepare:.1f} ms, update {1e3 * cost.sweep:.1f} ms; "
            f"{cost.sample_bytes:.0f} bytes a coded sample, {cost.statistics_bytes / 1e6:.1f} MB "
            f"of statistics, {cost.dictionary_bytes / 1e6:.2f} MB of dictionary"
        )
    print("speed against one thread that only codes; batch: synchronous, staleness 4")
    for name, cost in costs.items():
        for workers in (2, 10, 100, 1000):
            cells = []
            for batch in (4096, 65536, 1 << 20):
                pair = [
                    throughput(cost, links, workers, batch, staleness=s) * cost.code for s in (0, 4)
                ]
                cells.append(f"{batch}: {pair[0]:6.1f} {pair[1]:6.1f}")
            wanted = [efficient_batch(cost, links, workers, s) for s in (0, 4)]
            print(f"{name} {workers:5d} workers  {'   '.join(cells)}   80 % from {wanted}")


if __name__ == "__main__":
    main()
