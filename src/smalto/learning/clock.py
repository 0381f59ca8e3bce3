"""The clock of learning: it measures time spent working, excluding compilation."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

from smalto.learning.memory.state import State


class _CompileTime(event.Listener):  # type: ignore[misc]
    """The total time that Numba has spent compiling in this process, on any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at_work = 0  # nested compilations: compiling a kernel compiles those it calls
        self._began = self._total = 0.0

    def on_start(self, event: Any) -> None:
        with self._lock:
            if self._at_work == 0:
                self._began = time.perf_counter()
            self._at_work += 1

    def on_end(self, event: Any) -> None:
        with self._lock:
            self._at_work -= 1
            if self._at_work == 0:
                self._total += time.perf_counter() - self._began

    def add(self, seconds: float) -> None:
        with self._lock:
            self._total += seconds

    def seconds(self) -> float:
        with self._lock:
            running = time.perf_counter() - self._began if self._at_work else 0.0
            return self._total + running


_compile_time = _CompileTime()
event.register("numba:compile", _compile_time)


def seconds_of_compiling() -> float:
    """Return the seconds that Numba has spent compiling in this process so far."""
    return _compile_time.seconds()


def count_as_compiling(seconds: float) -> None:
    """Count time spent waiting for another process to compile as compilation."""
    _compile_time.add(seconds)


@contextmanager
def on_the_clock(state: State) -> Iterator[None]:
    """Add the time that the body takes, excluding compilation, to ``state.seconds``."""
    began, compiled = time.perf_counter(), seconds_of_compiling()
    try:
        yield
    finally:
        spent = time.perf_counter() - began - (seconds_of_compiling() - compiled)
        state.seconds += max(spent, 0.0)
