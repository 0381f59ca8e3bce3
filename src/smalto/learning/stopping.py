"""When a run stops: limits, and Ctrl-C."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from smalto.checks import check_integer, check_number
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State
from smalto.warn import warn


@dataclass(frozen=True)
class Limits:
    """Numbers of epochs, steps and seconds after which to stop; infinite means no limit."""

    epochs: float = math.inf
    steps: float = math.inf
    seconds: float = math.inf

    @classmethod
    def of(cls, epochs: int | None, steps: int | None, seconds: float | None) -> Limits:
        """Validate the limits; default to one epoch."""
        if epochs is None and steps is None and seconds is None:
            epochs = 1
        return cls(
            math.inf if epochs is None else check_integer("max_epochs", epochs),
            math.inf if steps is None else check_integer("max_steps", steps, low=0),
            math.inf if seconds is None else check_number("max_seconds", seconds, low=0),
        )

    def reached(self, state: State) -> str | None:
        """Return the name of the limit that has been reached, or None."""
        if state.epoch >= self.epochs:
            return "epochs"
        if state.step >= self.steps:
            return "steps"
        if state.seconds >= self.seconds:
            return "seconds"
        return None

    def warn_if_reached(self, state: State) -> None:
        """Warn that a run that is resumed ends at once."""
        why = self.reached(state)
        if why is not None:
            done = {"epochs": state.epoch, "steps": state.step, "seconds": round(state.seconds, 1)}
            limit = {"epochs": self.epochs, "steps": self.steps, "seconds": self.seconds}[why]
            message = (
                f"nothing is learned: max_{why}={limit:g} counts from the beginning of the run, and "
                f"the state has {done[why]} {why} already"
            )
            warn(message)

    def share(self, record: Record, n_rows: int | None) -> float | None:
        """Return how much of a run is done, by the limit that is nearest; None if that is unknown."""
        done = [record.step / max(self.steps, 1), record.seconds / max(self.seconds, 1e-9)]
        if n_rows is not None:
            done.append(record.samples / (n_rows * self.epochs))
        return min(max(done), 1.0) if max(done) > 0 else None

    def warn_of_fewer_epochs(self, state: State) -> None:
        """Warn that a stream that can be read only once has ended before ``max_epochs``."""
        if self.epochs < math.inf:
            message = (
                f"max_epochs={self.epochs} was requested, but the source can be read only once: "
                f"the run ends after epoch {state.epoch}. Give a list of batches, or a function "
                f"that returns an iterator, to read it again"
            )
            warn(message)


@contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether Ctrl-C was pressed; only a second Ctrl-C raises.

    If another signal handler is installed, or outside the main thread, Ctrl-C works as before.
    """
    asked = threading.Event()
    handles = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not handles:
        yield asked.is_set
        return

    def ask(number: int, frame: Any) -> None:
        if asked.is_set():
            signal.default_int_handler(number, frame)
        asked.set()

    signal.signal(signal.SIGINT, ask)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
