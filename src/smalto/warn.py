"""Warnings that point at the user's own line."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# scikit-learn wraps the methods of estimators, Numba the compilation of kernels.
_OURS = ("smalto", "sklearn", "numba")
_thread = threading.local()


@contextmanager
def without_warnings(beginning: str = "") -> Iterator[None]:
    """Leave out warnings of this thread that begin so; all of them by default."""
    before = vars(_thread).get("silent", ())
    _thread.silent = (*before, beginning)
    try:
        yield
    finally:
        _thread.silent = before


@contextmanager
def warnings_to(say: Callable[[str], None]) -> Iterator[None]:
    """Give warnings of this thread to a function, each time: not only the first of several equal ones."""
    before = vars(_thread).get("say")
    _thread.say = say
    try:
        yield
    finally:
        _thread.say = before


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of something; the warning names the line, outside this library, that led to it."""
    if message.startswith(vars(_thread).get("silent", ())):
        return
    say = vars(_thread).get("say")
    if say is not None:
        say(message)
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _package(frame.f_globals) in _OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _package(module: dict[str, object]) -> str:
    return str(module.get("__name__", "")).partition(".")[0]
