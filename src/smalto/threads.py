"""The thread pool that all of smalto shares.

Work is cut into numbered, independent tasks. Each task writes only its own part of the result,
and the cut never depends on the number of threads. Hence results are the same, bit for bit, for
any number of threads.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

from smalto.checks import check_integer
from smalto.kernels.forks import hold_during_forks

_pool: ThreadPoolExecutor | None = None
_blas: ThreadpoolController | None = None
_blas_lock = threading.Lock()
_limit: Any = None
_inside = 0  # number of open single_threaded_blas contexts


def _forget_pool() -> None:
    """Drop the pool in a forked child: threads do not survive a fork."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
hold_during_forks(_blas_lock)


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def resolve_threads(n_threads: int | None) -> int:
    """Return ``n_threads``, checked; None means every core that this process may use."""
    if n_threads is None:
        return available_cores()
    return check_integer("n_threads", n_threads)


def run_tasks(task: Callable[[int], None], count: int, n_threads: int) -> None:
    """Call ``task(i)`` for every i below ``count``, in up to ``n_threads`` threads.

    The calling thread is one of them. If a task raises, no further task begins, and the exception
    is raised again once all threads have stopped.
    """
    helpers = min(n_threads, count) - 1
    if helpers <= 0:
        for i in range(count):
            task(i)
        return
    numbers = itertools.count()  # next() is atomic: each thread takes the next free task
    stopped = False  # set by an error or Ctrl-C: no further task begins

    def work() -> None:
        nonlocal stopped
        try:
            for i in numbers:
                if stopped or i >= count:
                    return
                task(i)
        except BaseException:
            stopped = True
            raise

    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max_workers=256, thread_name_prefix="smalto")
    futures = [_pool.submit(work) for _ in range(helpers)]
    try:
        work()
    finally:
        errors = [future.exception() for future in futures]
    for error in errors:
        if error is not None:
            raise error


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread, so that the order of summation does not depend on its threads.

    The limit applies to the whole process, and contexts in several threads may overlap: the
    first to enter sets it, the last to leave lifts it.
    """
    global _blas, _limit, _inside
    with _blas_lock:
        if _inside == 0:
            if _blas is None:
                import scipy.linalg  # noqa: F401  it has a BLAS of its own, loaded when it is first used

                _blas = ThreadpoolController()
            _limit = _blas.limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _blas_lock:
            _inside -= 1
            if _inside == 0:
                _limit.restore_original_limits()
