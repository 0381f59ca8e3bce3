"""When a run stops, and when it is evaluated."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smalto.checks import check_integer, check_number
from smalto.learning.memory.state import State
from smalto.learning.step import is_power_of_two


@dataclass(frozen=True)
class Limits:
    """Epochs, steps and seconds after which to stop, each perhaps infinite."""

    epochs: float
    steps: float
    seconds: float

    @classmethod
    def of(cls, epochs: int | None, steps: int | None, seconds: float | None) -> Limits:
        """Check what a user says; one epoch if that is nothing."""
        if epochs is None and steps is None and seconds is None:
            epochs = 1
        return cls(
            math.inf if epochs is None else check_integer("max_epochs", epochs),
            math.inf if steps is None else check_integer("max_steps", steps, low=0),
            math.inf if seconds is None else check_number("max_seconds", seconds, low=0),
        )

    def reached(self, state: State) -> str | None:
        """Which of them has been reached."""
        if state.epoch >= self.epochs:
            return "epochs"
        if state.step >= self.steps:
            return "steps"
        if state.seconds >= self.seconds:
            return "seconds"
        return None

    def warn_of_fewer_epochs(self, state: State) -> None:
        """Say that a stream that cannot begin again has kept a run from its epochs."""
        if self.epochs < math.inf:
            message = (
                f"max_epochs={self.epochs} was asked for, but the source can be read only once: the "
                f"run ends after epoch {state.epoch}. A function that returns an iterator, "
                f"or a list, can be read again"
            )
            warnings.warn(message, UserWarning, stacklevel=3)


def schedule(every: int | Sequence[int] | None) -> Callable[[int], bool]:
    """Whether the validation set is due after a step."""
    if every is None:
        return lambda step: is_power_of_two(step) or (step % 3 == 0 and is_power_of_two(step // 3))
    if isinstance(every, numbers.Integral):
        period = check_integer("validate_every", every)
        return lambda step: step % period == 0
    steps = frozenset(int(number) for number in every)  # type: ignore[union-attr]
    return lambda step: step in steps
