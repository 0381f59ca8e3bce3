"""The one thread pool: independent tasks, numbered, run by as many threads as asked.

A task writes its own part of the result and nothing else, and how the work is cut into tasks
never depends on the number of threads. So the result does not either, to the last bit.
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

_pool: ThreadPoolExecutor | None = None
_blas: ThreadpoolController | None = None
_blas_lock = threading.Lock()
_limit: Any = None
_inside = 0  # how many hold BLAS to one thread now


def _forget_pool() -> None:
    """Threads do not survive a fork: the child makes its own pool."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def available_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def resolve_threads(n_threads: int | None) -> int:
    """The number of threads meant by ``n_threads``: None is every core this process may use."""
    if n_threads is None:
        return available_cores()
    return check_integer("n_threads", n_threads)


def run_tasks(task: Callable[[int], None], count: int, n_threads: int) -> None:
    """Call ``task(i)`` for every i below ``count``; the calling thread works too.

    The first exception of a task is raised here once all threads have stopped.
    """
    helpers = min(n_threads, count) - 1
    if helpers <= 0:
        for i in range(count):
            task(i)
        return
    numbers = itertools.count()  # its next() is atomic: each thread takes the next free task
    stopped = False  # after an error or Ctrl-C no new task begins

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
    """Hold BLAS to one thread: the parallelism is ours, and so is the order of summation.

    The setting is the whole process's, and calls from several threads may overlap: the first
    one in makes it, the last one out takes it back.
    """
    global _blas, _limit, _inside
    with _blas_lock:
        if _inside == 0:
            if _blas is None:
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
