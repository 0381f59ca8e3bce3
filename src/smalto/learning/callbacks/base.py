"""The base class of callbacks, and the list of callbacks of a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from smalto.checks import Array, check_kind, is_built_in
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State, check_atoms, check_inside, check_sums

# Called after every step; a true result ends the run. Plain functions qualify.
CallbackLike: TypeAlias = "Callable[[State, Record], bool | None]"
# How much of a run is done after a record, from 0 to 1; None if that is unknown.
Share: TypeAlias = Callable[[Record], float | None]


class Callback(ABC):
    """Abstract base class of callbacks that see the last state or release resources.

    A callback that needs neither can be a plain function ``callback(state, record)``.

    See Also
    --------
    Checkpoint : Saves the state.
    EarlyStopping : Ends a run.
    Log : Writes the records to a file.
    Progress : Shows how far a run is.
    smalto.reporting.Report : Writes a page about a run while it goes on.
    smalto.reporting.TensorBoard : Writes a run for TensorBoard.
    """

    def begin(self, state: State, share: Share) -> None:
        """Handle the beginning of a run, also of one that is resumed.

        ``share(record)`` will tell how much of the run is done, from 0 to 1, by the limit that is
        nearest; None if that is unknown. Runs of single batches (``partial_fit``) have no beginning.
        """

    def center(self, mean: Array) -> None:
        """Handle the mean that an estimator subtracts from samples before it learns from them."""

    @abstractmethod
    def __call__(self, state: State, record: Record) -> bool | None:
        """Handle a step, given the state after it and its record; return True to end the run."""

    def finish(self, state: State) -> None:
        """Handle the last state of a run, which has ended or whose source has failed."""

    def end(self, stopped: str, error: BaseException | None) -> None:
        """Handle the end of a run, given why it has ended, as in ``Result.stopped``.

        That is "error" if an exception has ended it, which is then the other argument.
        """

    def close(self) -> None:
        """Release resources; called when a run ends, also after an error."""


class Callbacks:
    """The callbacks of a run; each is called and closed, even if another one raises."""

    def __init__(self, callbacks: Any = ()) -> None:
        """Check that all callbacks are callable; raise TypeError if not."""
        if not isinstance(callbacks, Iterable):
            message = f"callbacks must be a sequence of callables, got {callbacks!r}: give a list"
            raise TypeError(message)
        self._callbacks: list[CallbackLike] = list(callbacks)
        for number, callback in enumerate(self._callbacks):
            if isinstance(callback, type) and issubclass(callback, Callback):
                name = callback.__name__
                message = f"callbacks[{number}] is the class {name}; did you mean {name}(...)?"
                raise TypeError(message)
            check_kind(f"callbacks[{number}]", callback, Callable, "callable")

    def begin(self, state: State, share: Share) -> None:
        """Tell each `Callback` that a run begins."""
        self._each(lambda callback: callback.begin(state, share), Callback)

    def call(self, state: State, record: Record) -> bool:
        """Call each callback after a step; return whether one of them asks to stop."""
        answers: list[bool] = []
        shape, dtype = state.D.shape, state.D.dtype

        def call(callback: CallbackLike) -> None:
            before = None if is_built_in(callback) else state.D.copy()
            answers.append(bool(callback(state, record)))
            culprit = f"the callback {_name(callback)}"
            check_atoms(culprit, state.D, shape, dtype)
            if before is not None:
                check_sums(culprit, state.stats)
                if not np.array_equal(state.D, before):
                    check_inside(culprit, state.D, state.constraint)

        self._each(call)
        return any(answers)

    def finish(self, state: State) -> None:
        """Pass the last state of a run to each `Callback`."""
        self._each(lambda callback: callback.finish(state), Callback)

    def end(self, stopped: str, error: BaseException | None = None) -> None:
        """Tell each `Callback` why the run has ended."""
        self._each(lambda callback: callback.end(stopped, error), Callback)

    def close(self) -> None:
        """Close each `Callback`."""
        self._each(lambda callback: callback.close(), Callback)

    def _each(self, action: Callable[[Any], object], kind: type = object) -> None:
        """Apply ``action`` to each callback of a kind; then raise the first exception, if any."""
        first: BaseException | None = None
        for callback in self._callbacks:
            if isinstance(callback, kind):
                try:
                    action(callback)
                except BaseException as error:  # noqa: BLE001 (raised after the loop)
                    error.add_note(f"It came from the callback {_name(callback)}.")
                    first = first or error
        if first is not None:
            raise first


def _name(callback: Any) -> str:
    return str(getattr(callback, "__qualname__", type(callback).__name__))
