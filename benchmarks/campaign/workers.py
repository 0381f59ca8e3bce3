"""Long-lived worker processes that run problems; crashes and hangs of one are noticed."""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, Self

import numpy as np

from benchmarks.campaign.report import Report, describe, say

CRASH, HANG, ERROR = "no crash", "no hang", "no unexpected exception"
Ticket = tuple[str, int]  # the family and the seed of a problem


def run_problem(families: dict[str, Any], ticket: Ticket) -> Report:
    """Run one problem, here; its exceptions are failures."""
    family, seed = ticket
    report = Report()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            families[family].run(np.random.default_rng(seed), report)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is a failure)
        report.check(ERROR, False, describe(error))
    else:
        report.check(ERROR, True)
    return report


def _work(connection: Connection, load: Any) -> None:
    """Run the problems that arrive, in the worker; say which one begins."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setsid"):
        os.setsid()  # with what it starts, it is a group that can be killed
    faulthandler.enable()
    families = load()
    with contextlib.suppress(EOFError, BrokenPipeError, OSError):
        while True:
            for ticket in connection.recv():
                connection.send(("begins", ticket))
                connection.send(("done", ticket, run_problem(families, ticket)))


class Worker:
    """One worker process, and the problem it is at."""

    def __init__(self, load: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, load))
        self.process.start()
        other.close()
        self.left: list[Ticket] = []
        self.since = time.monotonic()

    def give(self, tickets: list[Ticket]) -> None:
        """Hand out a batch of problems."""
        self.left = list(tickets)
        self.since = time.monotonic()
        self.connection.send(tickets)

    def end(self) -> None:
        """Kill the process and what it started."""
        with contextlib.suppress(OSError, AttributeError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.connection.close()


class Pool:
    """Workers that are replaced when they crash or hang.

    Parameters
    ----------
    load : function
        Returns the families, in the worker.
    limits : dict
        Seconds that a problem of each family may take.
    count : int
        Number of workers.
    """

    def __init__(self, load: Any, limits: dict[str, float], count: int) -> None:
        self.load, self.limits, self.count = load, limits, count
        self.workers: list[Worker] = []

    def __enter__(self) -> Self:
        self.workers = [Worker(self.load) for _ in range(self.count)]
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.end()

    def run(self, batches: Iterator[list[Ticket]]) -> Iterator[tuple[Ticket, Report]]:
        """Yield the report of each problem, as they come in."""
        for worker in self.workers:
            self._next(worker, batches)
        while any(worker.left for worker in self.workers):
            wait([worker.connection for worker in self.workers if worker.left], timeout=0.5)
            for worker in list(self.workers):
                if worker.left:
                    yield from self._collect(worker, batches)

    def _next(self, worker: Worker, batches: Iterator[list[Ticket]]) -> None:
        tickets = next(batches, [])
        if tickets:
            worker.give(tickets)

    def _collect(
        self, worker: Worker, batches: Iterator[list[Ticket]]
    ) -> Iterator[tuple[Ticket, Report]]:
        """Yield what a worker has finished; replace it if it has died or takes too long."""
        try:
            while worker.left and worker.connection.poll():
                message = worker.connection.recv()
                worker.since = time.monotonic()
                if message[0] == "done":
                    worker.left.remove(message[1])
                    report = message[2]
                    for promise in (CRASH, HANG):
                        report.check(promise, True)
                    yield message[1], report
        except (EOFError, OSError):
            worker.process.join(10)
            code = worker.process.exitcode
            yield self._replace(worker, CRASH, f"the worker ended with exit code {code}")
            return
        if not worker.left:
            self._next(worker, batches)
        elif time.monotonic() - worker.since > self.limits[worker.left[0][0]]:
            seconds = self.limits[worker.left[0][0]]
            yield self._replace(worker, HANG, f"not done after {seconds:.0f} seconds")

    def _replace(self, worker: Worker, promise: str, what: str) -> tuple[Ticket, Report]:
        """Start another worker for the rest of the batch; report the problem that ended this one."""
        culprit, *rest = worker.left
        report = Report()
        report.check(promise, False, what)
        worker.end()
        new = Worker(self.load)
        self.workers[self.workers.index(worker)] = new
        if rest:
            new.give(rest)
        return culprit, report


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def shout(ticket: Ticket, report: Report) -> None:
    """Print the failures of a problem, with the command that reproduces it."""
    for failure in report.failures:
        say(
            f"FAILED {failure}\n  python -m benchmarks.campaign --reproduce {ticket[0]}:{ticket[1]}"
        )
