"""The cost of sparse atoms: learning with the elastic-net ball, the ℓ2 ball, and SPAMS.

SPAMS's ``trainDL(modeD=1)`` constrains its atoms to the same set, ``‖d‖² + gamma ‖d‖₁ ≤ 1``.
All methods get the same patches, first dictionary, penalty, dtype and number of threads, and
are evaluated on held-out patches with their clocks stopped.

Run it with ``python -m benchmarks.peers.constraints``.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.common import (
    Array,
    Problem,
    Yardstick,
    announce,
    blas_threads,
    importable,
    load,
    machine,
    parser,
    save,
    table,
)
from smalto import learn
from smalto.coders import Lasso
from smalto.constraints import Constraint, ElasticNetBall, L2Ball
from smalto.constraints.density import density

GAMMA = 0.1
BATCH = 512  # of SPAMS: the paper's


def run(problem: Problem, constraint: Constraint, threads: int) -> tuple[float, list[Any]]:
    """Return the seconds of one pass, and (seconds, dictionary) at every eighth step."""
    seen: list[Any] = []
    stopped = 0.0
    begin = time.perf_counter()

    def watch(state: Any, record: Any) -> None:
        nonlocal stopped
        now = time.perf_counter()
        if record.step % 8 == 0:
            seen.append((now - begin - stopped, state.D.copy()))
        stopped += time.perf_counter() - now

    learn(
        problem.train,
        len(problem.D0),
        Lasso(problem.lam),
        constraint,
        init=problem.D0,
        max_epochs=1,
        callbacks=[watch],
        n_threads=threads,
        random_state=0,
    )
    return time.perf_counter() - begin - stopped, seen


def spams_run(problem: Problem, D0: Array, threads: int) -> tuple[float, Array]:
    """Return the seconds of one pass of SPAMS with the same set, and its dictionary."""
    import spams

    X, first = np.asfortranarray(problem.train.T), np.asfortranarray(D0.T)
    steps = max(1, len(problem.train) // BATCH)
    with blas_threads(threads):
        begin = time.perf_counter()
        D = spams.trainDL(
            X,
            D=first,
            lambda1=problem.lam,
            iter=steps,
            batchsize=BATCH,
            modeD=1,
            gamma1=GAMMA,
            numThreads=threads,
            verbose=False,
        )
        seconds = time.perf_counter() - begin
    return seconds, np.ascontiguousarray(D.T)


def main(arguments: list[str] | None = None) -> None:
    """Run the comparison and print it."""
    options = parser(__doc__.splitlines()[0], n=100_000).parse_args(arguments)
    about = machine()
    announce(about)
    n, tests, repeats = (4_000, 500, 1) if options.quick else (options.n, 5_000, options.repeats)
    rows, data = [], []
    for name in options.settings:
        base = load(name, n, tests, quick=options.quick)
        measure = Yardstick(base)
        sparse_D0 = base.D0.copy()
        for atom in sparse_D0:
            ElasticNetBall(GAMMA).project(atom)
        for dtype in options.dtypes:
            problem = replace(
                base,
                train=base.train.astype(dtype),
                test=base.test.astype(dtype),
                D0=base.D0.astype(dtype),
            )
            for constraint in (L2Ball(), ElasticNetBall(GAMMA)):  # compile
                run(replace(problem, train=problem.train[:2048]), constraint, 1)
            for threads in options.threads:
                balls, nets, peers = [], [], []
                for _ in range(repeats):
                    balls.append(run(problem, L2Ball(), threads))
                    nets.append(run(problem, ElasticNetBall(GAMMA), threads))
                    if importable("spams"):
                        peers.append(spams_run(problem, sparse_D0.astype(dtype), threads))
                ball, net = min(run[0] for run in balls), min(run[0] for run in nets)
                D = nets[0][1][-1][1]
                entry: dict[str, Any] = {
                    "setting": name,
                    "dtype": dtype,
                    "threads": threads,
                    "l2_seconds": ball,
                    "elastic_net_seconds": net,
                    "cost": measure(D),
                    "density": density(D),
                }
                if peers:
                    theirs, target = min(run[0] for run in peers), measure(peers[0][1])
                    ours = np.min([[at for at, _ in run[1]] for run in nets], axis=0)
                    costs = [measure(D) for _, D in nets[0][1]]
                    reached = [s for s, c in zip(ours, costs, strict=True) if c <= target]
                    entry |= {
                        "spams_seconds": theirs,
                        "spams_cost": target,
                        "spams_density": density(peers[0][1]),
                        "seconds_to_spams_cost": float(reached[0]) if reached else None,
                    }
                data.append(entry)
                soon = entry.get("seconds_to_spams_cost")
                rows.append(
                    [
                        name,
                        dtype,
                        threads,
                        ball,
                        net,
                        net / ball,
                        entry["density"],
                        entry["cost"],
                        entry.get("spams_seconds"),
                        entry.get("spams_cost"),
                        soon,
                        entry["spams_seconds"] / soon if soon else None,
                    ]
                )
    header = [
        "setting",
        "dtype",
        "threads",
        "l2 s",
        "elastic s",
        "ratio",
        "density",
        "cost",
        "SPAMS s",
        "SPAMS cost",
        "s to it",
        "sooner",
    ]
    table(header, rows)
    save(Path(options.out), "constraints", about, options, runs=data)


if __name__ == "__main__":
    main()
