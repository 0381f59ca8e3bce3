"""Ctrl-C while LLVM is at work."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def interrupts_wait() -> Iterator[None]:
    """Let Ctrl-C wait until the end of a block that calls LLVM, for a moment.

    LLVM calls Python back. An exception that is raised there is printed and lost.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    arrived: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda *call: arrived.append(call))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if arrived:
            handler(*arrived[-1])
