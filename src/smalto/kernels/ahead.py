"""Another process that compiles what a call needs later, while this one compiles what it needs now.

Numba compiles one kernel at a time in a process. A call that needs several says so with
`expecting`; if one of them has to be compiled, a second process begins with the others. Each process
takes from the folder of compiled kernels what the other has put there, and waits for a kernel that
the other is compiling (`Kernel.compile`).

There is none if kernels are not kept on disk, on a machine with one core, or with the environment
variable ``SMALTO_COMPILE_AHEAD=0``.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from smalto.kernels.compiled_files import cache_folder
from smalto.kernels.file_lock import fcntl

PROGRAM = "from smalto.warming_up.workers import serve; serve()"
_VARIABLE = "SMALTO_COMPILE_AHEAD"


def start_process(environment: Mapping[str, str] | None = None, **pipes: Any) -> Any:
    """Start a process with the modules of this one, which runs tasks named on its standard input."""
    path = os.pathsep.join(folder or str(Path.cwd()) for folder in sys.path)
    return subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM],
        stdin=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, _VARIABLE: "0", **(environment or {})},
        **pipes,
    )


EXPECTED_LOCK = threading.Lock()  # of the tasks that are expected


class _Expected:
    """The tasks of `smalto.warming_up` whose kernels the calls under way need."""

    def __init__(self) -> None:
        self._calls = 0
        self._tasks: list[str] = []
        self._process: Any = None

    def open(self, tasks: list[str]) -> None:
        with EXPECTED_LOCK:
            self._calls += 1
            self._tasks += [task for task in tasks if task not in self._tasks]

    def close(self) -> None:
        with EXPECTED_LOCK:
            self._calls -= 1
            if self._calls:
                return
            self._tasks.clear()
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def start(self) -> None:
        """Begin with them, unless that was done."""
        with EXPECTED_LOCK:
            if self._process is not None or not self._tasks or not _possible():
                return
            with contextlib.suppress(OSError):
                self._process = start_process(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                self._process.stdin.write("\n".join(self._tasks))
                self._process.stdin.close()


_expected = _Expected()


def _possible() -> bool:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    wanted = os.environ.get(_VARIABLE) != "0" and bool(sys.executable) and fcntl is not None
    return wanted and (cores or 1) > 1 and cache_folder() is not None


@contextlib.contextmanager
def expecting(*families: str, dtype: Any) -> Iterator[None]:
    """Have another process compile kernels of these families, if anything is compiled inside."""
    _expected.open([f"{family}:{dtype}" for family in families])
    try:
        yield
    finally:
        _expected.close()


def compile_ahead() -> None:
    """Begin to compile what the calls under way expect to need."""
    _expected.start()
