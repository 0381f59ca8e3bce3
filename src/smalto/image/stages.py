"""How far the restoration of a picture is, told to whoever watches it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

Tell = Callable[[str, float], None]  # what is being done, and which share of it
T = TypeVar("T")
_thread = threading.local()


@contextmanager
def watched(tell: Tell) -> Iterator[None]:
    """Call ``tell`` with the progress of everything in this thread that is followed."""
    before = vars(_thread).get("tell")
    _thread.tell = tell
    try:
        yield
    finally:
        _thread.tell = before


def follow(parts: Sequence[T], what: str) -> Iterator[T]:
    """Yield parts of some work, and tell how many of them are done."""
    tell: Tell | None = vars(_thread).get("tell")
    for number, part in enumerate(parts):
        yield part
        if tell is not None:
            tell(what, (number + 1) / len(parts))
