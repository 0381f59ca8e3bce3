"""Processes that compile or load all kernels, as many at a time as there are cores."""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smalto.checks import check_integer
from smalto.kernels.ahead import start_process
from smalto.kernels.compiled_files import cache_folder
from smalto.kernels.prebuilt_files import prebuilt
from smalto.threads import available_cores


@dataclass(frozen=True)
class Warmup:
    """What `warmup` has done.

    Attributes
    ----------
    seconds : float
        Seconds that it took.
    compiled, loaded : int
        Number of kernels that were compiled, and of those that had been compiled before.
    folder : Path or None
        Where compiled kernels are kept; None if nothing can be written.
    n_files, size : int
        Number of files in that folder, and their size in bytes.
    """

    seconds: float
    compiled: int
    loaded: int
    folder: Path | None
    n_files: int
    size: int


def warmup(n_processes: int | None = None, *, progress: bool | None = None) -> Warmup:
    """Compile or load all kernels for float32 and float64, so that no later call has to wait.

    Compiled kernels are kept in the user's folder for caches, or in ``NUMBA_CACHE_DIR`` if that is
    set. Where nothing can be written it warns, and compiles nothing.

    Parameters
    ----------
    n_processes : int, optional
        Number of processes that compile at the same time; all available cores by default.
    progress : bool, optional
        Show a progress bar; by default only in a terminal.

    Returns
    -------
    Warmup
        The time it took, and where the kernels are.

    See Also
    --------
    smalto.encode : Compiles what it needs at its first call.
    """
    from tqdm import tqdm

    from smalto.warming_up.tasks import names

    n_processes = available_cores() if n_processes is None else n_processes
    check_integer("n_processes", n_processes)
    began = time.perf_counter()
    compiled: set[str] = set()
    loaded: set[str] = set()
    ready = prebuilt().level is not None
    if ready or cache_folder() is not None:
        tasks = names()
        off = None if progress is None else not progress
        with tqdm(total=len(tasks), desc="kernels", unit="task", disable=off) as bar:

            def done(name: str, report: dict[str, Any]) -> None:
                compiled.update(report["made"])
                loaded.update(report["read"])
                bar.set_postfix_str(f"{len(compiled)} compiled", refresh=False)
                bar.update()

            run_all(tasks, n_processes, done)
    folder = None if ready and not compiled else cache_folder()
    sizes = [path.stat().st_size for path in folder.glob("*.nbc")] if folder else []
    seconds = time.perf_counter() - began
    before = len(loaded - compiled)
    return Warmup(seconds, len(compiled), before, folder, len(sizes), sum(sizes))


def run_all(
    tasks: list[str],
    n_processes: int,
    done: Callable[[str, dict[str, Any]], None],
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run tasks in other processes; call ``done(name, report)`` after each, one at a time.

    The first error ends all processes and is raised.
    """
    workers = [_Worker(environment) for _ in range(min(n_processes, len(tasks)))]
    idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def run(name: str) -> tuple[str, dict[str, Any]]:
        worker = idle.get()
        try:
            return name, worker.ask(name)
        finally:
            idle.put(worker)

    try:
        with ThreadPoolExecutor(max(len(workers), 1)) as pool:
            try:
                for future in as_completed([pool.submit(run, name) for name in tasks]):
                    done(*future.result())
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                for worker in workers:
                    worker.kill()
    finally:
        for worker in workers:
            worker.close()


class _Worker:
    """A process that runs the tasks it is asked for, with the modules of this one."""

    def __init__(self, environment: Mapping[str, str] | None) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed in `close`)
        self._process = start_process(environment, stdout=subprocess.PIPE, stderr=self._errors)

    def ask(self, name: str) -> dict[str, Any]:
        """Run a task and return its report."""
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        answer = ""
        with contextlib.suppress(BrokenPipeError):
            to.write(f"{name}\n")
            to.flush()
            answer = back.readline()
        if not answer:
            self._errors.seek(0)
            message = f"the kernels of {name} cannot be compiled:\n{self._errors.read()}"
            raise RuntimeError(message)
        report: dict[str, Any] = json.loads(answer)
        return report

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()

    def close(self) -> None:
        """Wait for the end of the process, and close its files."""
        self._process.communicate()
        self._errors.close()


def serve() -> None:
    """Run the tasks named on standard input, one per line; print a report of each."""
    from smalto.warming_up.tasks import run

    logging.getLogger("smalto").setLevel(logging.ERROR)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(line.strip())) + "\n")
        sys.stdout.flush()
