"""A lock that processes share: a file, locked by the operating system for as long as they live."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: nothing is locked there, and kernels may be compiled twice
    fcntl = None


@contextlib.contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Wait until nobody else holds the lock, then hold it; yield False where that cannot be done."""
    if fcntl is None:
        yield False
        return
    try:
        file = path.open("w")
    except OSError:
        yield False
        return
    with file:
        held = True
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:  # a file system without locks
            held = False
        try:
            yield held
        finally:
            if held:
                path.unlink(missing_ok=True)
