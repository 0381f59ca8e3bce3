"""The same call in forked and spawned processes, in loky's, and in many threads at once."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks.campaign.random_data import Array
from benchmarks.campaign.report import Report
from smalto import coders, encode, learn, projections
from smalto.learners import Online

SAME = "fork, spawn, loky and threads: the same bits"
CODERS: Any = [
    coders.Lasso(0.4), coders.OMP(3), coders.L0(0.2), coders.L1Ball(1.0), coders.Ridge(0.5),
    coders.ErrorBound(2.0), coders.GroupLasso(0.3, np.arange(20) // 2),
]  # fmt: skip


def work(seed: int) -> Array:
    """Code, learn and project something; the result depends on the seed only."""
    rng = np.random.default_rng(seed)
    X, D = rng.standard_normal((60, 12)), rng.standard_normal((20, 12))
    X = X.astype(np.float32) if seed % 2 else X
    parts = [
        encode(X, D, CODERS[seed % len(CODERS)], n_threads=1 + seed % 3).toarray(),
        learn(X, 20, coders.Lasso(0.4), learner=Online(16), random_state=0, n_threads=2).D,
        projections.project_elastic_net_ball(D, 0.3, n_threads=2),
    ]
    return np.concatenate([part.astype(np.float64).reshape(-1) for part in parts])


def everywhere(rng: np.random.Generator, report: Report) -> None:
    """Do the same work elsewhere, and compare."""
    seed = int(rng.integers(10**6))
    expected = work(seed)
    kind = str(rng.choice(["fork", "threads", "fork of threads", "spawn", "loky"],
                          p=[0.44, 0.4, 0.1, 0.03, 0.03]))  # fmt: skip
    found = {"fork": _fork, "threads": _threads, "fork of threads": _fork_of_threads}.get(kind)
    results = found(seed) if found else _elsewhere(kind, seed)
    report.cases += len(results)
    same = [result is not None and np.array_equal(result, expected) for result in results]
    report.check(SAME, same, f"{kind}, {seed=}")


def _fork(seed: int) -> list[Array | None]:
    """Do the work in a forked process, whose result comes through a pipe."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            with os.fdopen(writer, "wb") as file:
                file.write(work(seed).tobytes())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        content = file.read()
    os.waitpid(child, 0)
    return [np.frombuffer(content) if content else None]


def _threads(seed: int) -> list[Array | None]:
    """Do the work in eight threads at once."""
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(work, [seed] * 8))


def _fork_of_threads(seed: int) -> list[Array | None]:
    """Fork while another thread is at work."""
    other = threading.Thread(target=work, args=(seed + 1,))
    other.start()
    try:
        return _fork(seed)
    finally:
        other.join()


def _elsewhere(kind: str, seed: int) -> list[Array | None]:
    """Do the work in new processes."""
    if kind == "loky":
        from joblib.externals.loky import get_reusable_executor

        return list(get_reusable_executor(2, timeout=20).map(work, [seed] * 2))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return list(pool.map(work, [seed]))
