"""How far the restoration of a picture is, and what it finds, told to whoever watches it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

Tell = Callable[[str, float], None]  # what is being done, and which share of it
T = TypeVar("T")
_thread = threading.local()


@contextmanager
def noise_told(tell: Callable[[float], None]) -> Iterator[None]:
    """Call ``tell`` with σ of the noise that `denoise`, in this thread, has estimated and removes."""
    before = vars(_thread).get("tell_noise")
    _thread.tell_noise = tell
    try:
        yield
    finally:
        _thread.tell_noise = before


def tell_noise(sigma: float) -> None:
    """Tell σ of the noise of a picture, the root mean square over its channels."""
    tell: Callable[[float], None] | None = vars(_thread).get("tell_noise")
    if tell is not None:
        tell(sigma)


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
