"""Limits of a run, evaluation of held-out samples, and handling of Ctrl-C."""

from __future__ import annotations

import math
import numbers
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from smalto.checks import as_floats, check_integer, check_number
from smalto.coders.base import Coder, check_takes
from smalto.coders.coding import mean_cost
from smalto.coders.signals import Missing, Signals, as_signals, in_groups
from smalto.learning.batches.base import Batches, is_power_of_two
from smalto.learning.memory.state import State


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

    def warn_of_fewer_epochs(self, state: State) -> None:
        """Warn that a stream that can be read only once has ended before ``max_epochs``."""
        if self.epochs < math.inf:
            message = (
                f"max_epochs={self.epochs} was requested, but the source can be read only once: "
                f"the run ends after epoch {state.epoch}. Give a list of batches, or a function "
                f"that returns an iterator, to read it again"
            )
            warnings.warn(message, UserWarning, stacklevel=4)


@dataclass(frozen=True)
class Validation:
    """Held-out samples, and the steps after which to evaluate their cost."""

    signals: Signals
    is_due: Callable[[int], bool]

    @classmethod
    def of(
        cls,
        validation: Any,
        groups: Any,
        every: int | Sequence[int] | None,
        batches: Batches,
        missing: Missing,
        coder: Coder,
    ) -> Validation | None:
        """Check held-out samples against the data; return None if there are none."""
        is_due = schedule(every)
        if validation is None:
            return None
        signals = as_signals("validation", validation, None, missing)
        n, m = signals.X.shape
        if n == 0 or m != batches.n_features:
            message = (
                f"validation must have samples of {batches.n_features} features, got shape {(n, m)}"
            )
            raise ValueError(message)
        check_takes(coder, mask=signals.missing, groups=groups)
        if groups is None and "groups" in coder.takes:
            message = f"{type(coder).__name__} needs validation_groups: a label for each sample"
            raise ValueError(message)
        signals, _ = in_groups(signals, groups, coder)
        return cls(replace(signals, X=as_floats(signals.X, batches.dtype)), is_due)

    def cost(self, state: State, n_threads: int) -> float:
        """Return the mean cost of the held-out samples over the dictionary of the state."""
        return mean_cost(self.signals, state.D, state.coder, n_threads)


def schedule(every: int | Sequence[int] | None) -> Callable[[int], bool]:
    """Return a function that tells whether to evaluate held-out samples after a step."""
    if every is None:
        return lambda step: is_power_of_two(step) or (step % 3 == 0 and is_power_of_two(step // 3))
    if isinstance(every, numbers.Integral):
        period = check_integer("validate_every", every)
        return lambda step: step % period == 0
    steps = frozenset(int(number) for number in every)  # type: ignore[union-attr]
    return lambda step: step in steps


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
