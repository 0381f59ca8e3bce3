"""The one clock of learning: seconds of work, compilation excluded."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from smalto.kernels.compiling import seconds_of_compiling
from smalto.learning.memory.state import State


@contextmanager
def on_the_clock(state: State) -> Iterator[None]:
    """Add the time that the body takes, except compilation, to ``state.seconds``."""
    began, compiled = time.perf_counter(), seconds_of_compiling()
    try:
        yield
    finally:
        spent = time.perf_counter() - began - (seconds_of_compiling() - compiled)
        state.seconds += max(spent, 0.0)
