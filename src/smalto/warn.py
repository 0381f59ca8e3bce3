"""Warnings that point at the user's own line."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

# scikit-learn wraps the methods of estimators, Numba the compilation of kernels.
_OURS = ("smalto", "sklearn", "numba")
_thread = threading.local()


@contextmanager
def without_warnings() -> Iterator[None]:
    """Say nothing in this thread: a fit is only tried, and its user never sees it."""
    before = vars(_thread).get("silent", False)
    _thread.silent = True
    try:
        yield
    finally:
        _thread.silent = before


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of something; the warning names the line, outside this library, that led to it."""
    if vars(_thread).get("silent", False):
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _package(frame.f_globals) in _OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _package(module: dict[str, object]) -> str:
    return str(module.get("__name__", "")).partition(".")[0]
