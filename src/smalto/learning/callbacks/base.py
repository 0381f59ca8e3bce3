"""What a callback is, and the one caller of callbacks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from smalto.checks import check_kind
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State

# Called after every step; a true result ends the run. A plain function will do.
CallbackLike: TypeAlias = "Callable[[State, Record], bool | None]"


class Callback(ABC):
    """A callback that also wants to see the last state, or has resources to release."""

    @abstractmethod
    def __call__(self, state: State, record: Record) -> bool | None:
        """Look at the state after a step and at its record; a true result ends the run."""

    def finish(self, state: State) -> None:
        """Look at the last whole state of a run: it has ended, or its source has failed."""

    def close(self) -> None:
        """Release what the callback holds; called when a run ends, whatever has happened."""


class Callbacks:
    """The callbacks of a run: all of them are called and closed, whatever raises."""

    def __init__(self, callbacks: Any = ()) -> None:
        """Raise TypeError for what cannot be called, before anything is learned."""
        if not isinstance(callbacks, Iterable):
            message = f"callbacks must be a sequence of callables, got {callbacks!r}"
            raise TypeError(message)
        self._callbacks: list[CallbackLike] = list(callbacks)
        for number, callback in enumerate(self._callbacks):
            check_kind(f"callbacks[{number}]", callback, Callable, "callable")

    def call(self, state: State, record: Record) -> bool:
        """Call all of them after a step; return whether one of them asks to stop."""
        answers: list[bool] = []
        self._each(lambda callback: answers.append(bool(callback(state, record))))
        return any(answers)

    def finish(self, state: State) -> None:
        """Show the last state of a run to those that want to see it."""
        self._each(lambda callback: callback.finish(state), Callback)

    def close(self) -> None:
        """Let all of them release what they hold."""
        self._each(lambda callback: callback.close(), Callback)

    def _each(self, action: Callable[[Any], object], kind: type = object) -> None:
        """Do it with each callback of a kind; raise the first exception when all have had a turn."""
        first: BaseException | None = None
        for callback in self._callbacks:
            if isinstance(callback, kind):
                try:
                    action(callback)
                except BaseException as error:  # noqa: BLE001 (raised below, the others come first)
                    first = first or error
        if first is not None:
            raise first
