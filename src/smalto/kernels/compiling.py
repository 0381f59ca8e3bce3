"""How long Numba compiles in this process, and one line for each family of kernels that says so.

The line is a warning of the logger ``smalto.compiling``. Without a handler, Python prints it on the
standard error; ``logging.getLogger("smalto").setLevel(logging.ERROR)`` turns it off.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from typing import Any

from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

from smalto.kernels.ahead import EXPECTED_LOCK, compile_ahead
from smalto.kernels.compiled_files import cache_folder
from smalto.kernels.forks import hold_during_forks
from smalto.kernels.prebuilt_files import prebuilt

PATIENCE = 1.0  # seconds of compiling a family before it is mentioned
_REFRESH = 0.5  # seconds between two updates of the line in a terminal

# The name of the kernels in a module, and how many seconds they compile on a usual machine. The
# first module whose name a kernel's begins with counts.
_FAMILIES = {
    "coding.lars": ("regularization path", 3),
    "coding.lasso": ("lasso", 5),
    "coding.constrained": ("constrained lasso", 5),
    "coding.omp": ("matching pursuit", 5),
    "coding.joint_omp": ("joint matching pursuit", 4),
    "coding.joint": ("joint lasso", 7),
    "coding.grouped": ("group lasso", 8),
    "coding.nonnegative": ("NMF", 1),
    "coding": ("coding", None),
    "dense_products": ("product", 1),
    "learning": ("learning", 2),
    "projecting.fused": ("fused lasso", 4),
    "projecting": ("projection", 2),
    "image": ("image", 3),
}

_log = logging.getLogger("smalto.compiling")


class _Watch(event.Listener):  # type: ignore[misc]
    """Counts the seconds of compilation in all threads together, and says what takes long."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._at_work = 0  # compilations under way: a kernel compiles those that it calls
        self._began = self._total = 0.0
        self._family: tuple[str, int | None] = ("", None)
        self._spent: dict[str, float] = {}  # seconds by family
        self._mentioned: set[str] = set()
        self._done = threading.Event()
        self._speaker: threading.Thread | None = None

    def on_start(self, event: Any) -> None:
        family = family_of(str(event.data["dispatcher"].py_func.__module__))
        with self.lock:
            self._at_work += 1
            if self._at_work == 1:
                self._began, self._family = time.perf_counter(), family
                self._done = threading.Event()
                if family[0]:
                    self._speaker = threading.Thread(target=self._speak, daemon=True)
                    self._speaker.start()
                    compile_ahead()

    def on_end(self, event: Any) -> None:
        with self.lock:
            self._at_work -= 1
            if self._at_work:
                return
            seconds = time.perf_counter() - self._began
            self._total += seconds
            self._spent[self._family[0]] = self._spent.get(self._family[0], 0.0) + seconds
            if _failed(event):  # by Ctrl-C, say: it will be compiled, and mentioned, again
                self._mentioned.discard(self._family[0])
            self._done.set()
            speaker, self._speaker = self._speaker, None
        if speaker is not None:
            speaker.join()

    def _speak(self) -> None:
        """Mention the family that is being compiled if it takes long, and count the seconds."""
        done, (name, seconds) = self._done, self._family
        before = self._spent.get(name, 0.0)
        if done.wait(max(PATIENCE - before, 0.0)):
            return
        about = "" if seconds is None else f": about {seconds} s"
        if name not in self._mentioned:
            if not self._mentioned and prebuilt().why_not:
                _log.warning("smalto: %s", prebuilt().why_not)
            self._mentioned.add(name)
            kept = "for this process only" if cache_folder() is None else "once for this machine"
            _log.warning("smalto: compiling the %s kernels, %s%s", name, kept, about)
        if not (_log.isEnabledFor(logging.WARNING) and _in_terminal()):
            return
        line = ""
        while not done.wait(_REFRESH):
            spent = before + time.perf_counter() - self._began
            line = f"smalto: compiling the {name} kernels, {spent:.0f} s"
            _rewrite(line)
        _rewrite(" " * len(line))
        _rewrite("")

    def add(self, seconds: float) -> None:
        with self.lock:
            self._total += seconds

    def seconds(self) -> float:
        with self.lock:
            running = time.perf_counter() - self._began if self._at_work else 0.0
            return self._total + running


def _failed(event: Any) -> bool:
    """Tell whether an exception has ended a compilation; Numba's own `is_failed` does not."""
    return any(part is not None for part in getattr(event, "_exc_details", None) or ())


def family_of(module: str) -> tuple[str, int | None]:
    """Return the name of the kernels in a module, and about how many seconds they compile.

    Functions that are not smalto's have no name, and nothing is said of them.
    """
    if not module.startswith("smalto."):
        return ("", None)
    name = module.removeprefix("smalto.kernels.")
    for beginning, family in _FAMILIES.items():
        if name.startswith(beginning):
            return family
    return ("numerical", None)


def _in_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _rewrite(line: str) -> None:
    sys.stderr.write(f"\r{line}")
    sys.stderr.flush()


_watch = _Watch()
# In the order in which a thread that compiles takes them: a fork waits for it, and so finds Numba and
# LLVM, too, between two kernels.
hold_during_forks(global_compiler_lock, _watch.lock, EXPECTED_LOCK)


def watch_the_compiler() -> None:
    """Begin to count, and to mention what takes long."""
    event.register("numba:compile", _watch)


def seconds_of_compiling() -> float:
    """Return how long Numba has compiled in this process so far."""
    return _watch.seconds()


def count_as_compiling(seconds: float) -> None:
    """Count time that was spent waiting for another process to compile."""
    _watch.add(seconds)
