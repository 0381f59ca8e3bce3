"""How long Numba compiles in this process, and one line that says so."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from numba.core import event

from smalto.kernels.compiled_files import cache_folder

PATIENCE = 1.0  # seconds of compilation before it is mentioned

_log = logging.getLogger("smalto.compiling")


class _Watch(event.Listener):  # type: ignore[misc]
    """Counts the seconds of compilation in all threads together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at_work = 0  # compilations under way: a kernel compiles those that it calls
        self._began = self._total = 0.0
        self._mentioned = False
        self._timer: threading.Timer | None = None

    def on_start(self, event: Any) -> None:
        with self._lock:
            if self._at_work == 0:
                self._began = time.perf_counter()
                if not self._mentioned:
                    self._timer = threading.Timer(max(PATIENCE - self._total, 0.0), self._mention)
                    self._timer.daemon = True
                    self._timer.start()
            self._at_work += 1

    def on_end(self, event: Any) -> None:
        with self._lock:
            self._at_work -= 1
            if self._at_work == 0:
                self._total += time.perf_counter() - self._began
                if self._timer is not None:
                    self._timer.cancel()
                    self._timer = None

    def _mention(self) -> None:
        with self._lock:
            if self._mentioned:
                return
            self._mentioned = True
        folder = cache_folder()
        kept = "in this process" if folder is None else f"once for this machine: kept in {folder}"
        _log.warning("smalto: compiling kernels, %s", kept)

    def add(self, seconds: float) -> None:
        with self._lock:
            self._total += seconds

    def seconds(self) -> float:
        with self._lock:
            running = time.perf_counter() - self._began if self._at_work else 0.0
            return self._total + running


_watch = _Watch()


def watch_the_compiler() -> None:
    """Begin to count, and to mention what takes long."""
    event.register("numba:compile", _watch)


def seconds_of_compiling() -> float:
    """Return how long Numba has compiled in this process so far."""
    return _watch.seconds()


def count_as_compiling(seconds: float) -> None:
    """Count time that was spent waiting for another process to compile."""
    _watch.add(seconds)
