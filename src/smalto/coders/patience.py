"""Until when codes may be solved again slowly: a run of learning has a limit on its time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_deadline = ContextVar("deadline", default=math.inf)


@contextmanager
def slow_work_for(seconds: float) -> Iterator[None]:
    """Let dictionaries that are prepared in the body have slow work for so many seconds only."""
    token = _deadline.set(time.perf_counter() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def deadline() -> float:
    """Return when slow work has to end, as `time.perf_counter` tells the time."""
    return _deadline.get()


def is_over(when: float) -> bool:
    """Return whether this time is past."""
    return when < math.inf and time.perf_counter() >= when
