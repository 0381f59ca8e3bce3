"""How far the restoration of a picture is, and what it finds, told to whoever watches it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

Tell = Callable[[str, float], None]  # what is being done, and which share of it
T = TypeVar("T")
_thread = threading.local()


@contextmanager
def _listening(to: str, tell: Callable[..., None]) -> Iterator[None]:
    before = vars(_thread).get(to)
    setattr(_thread, to, tell)
    try:
        yield
    finally:
        setattr(_thread, to, before)


def watched(tell: Tell) -> AbstractContextManager[None]:
    """Call ``tell`` with the progress of everything in this thread that is followed."""
    return _listening("progress", tell)


def noise_told(tell: Callable[[float], None]) -> AbstractContextManager[None]:
    """Call ``tell`` with σ of the noise that `denoise`, in this thread, has estimated and removes."""
    return _listening("noise", tell)


def tell_noise(sigma: float) -> None:
    """Tell σ of the noise of a picture, the root mean square over its channels."""
    tell: Callable[[float], None] | None = vars(_thread).get("noise")
    if tell is not None:
        tell(sigma)


def follow(parts: Sequence[T], what: str) -> Iterator[T]:
    """Yield parts of some work, and tell how many of them are done."""
    tell: Tell | None = vars(_thread).get("progress")
    for number, part in enumerate(parts):
        yield part
        if tell is not None:
            tell(what, (number + 1) / len(parts))
