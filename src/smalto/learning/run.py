"""The loop of a run: it draws batches, makes steps, keeps records and calls callbacks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any, Self

from smalto.coders.patience import slow_work_for
from smalto.learning.batches.base import Batches, MidStep, MiniBatch
from smalto.learning.callbacks.base import Callbacks
from smalto.learning.clock import on_the_clock
from smalto.learning.dictionary.wanted_density import wants_density
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State
from smalto.learning.step import step
from smalto.learning.stopping import Limits, deferred_interrupt
from smalto.learning.validation import Validation
from smalto.threads import single_threaded_blas


class Run:
    """A run of learning, as a context manager: steps, records, validation and callbacks.

    It is used for arrays, streams, clusters, single batches, NMF and video. Within the context,
    BLAS uses one thread, and a first Ctrl-C only makes ``interrupted()`` true. At its end callbacks
    are closed.

    Parameters
    ----------
    n_threads : int
        Number of threads.
    callbacks : iterable of callables
        Called after every step.
    validation : Validation, optional
        Held-out samples to evaluate, which takes no time on the clock.
    ends : bool, default True
        Whether the run ends with the context. If not, callbacks are closed only on an exception.
    """

    def __init__(
        self,
        n_threads: int,
        callbacks: Any = (),
        validation: Validation | None = None,
        *,
        ends: bool = True,
    ) -> None:
        self.n_threads, self.validation = n_threads, validation
        self._callbacks, self._ends = Callbacks(callbacks), ends
        self._stack = ExitStack()
        self.interrupted: Callable[[], bool] = lambda: False

    def __enter__(self) -> Self:
        self._stack.enter_context(single_threaded_blas())
        self.interrupted = self._stack.enter_context(deferred_interrupt())
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is not None:
                _also(error, lambda: self._callbacks.end("error", error))
                _also(error, self._callbacks.close)
            elif self._ends:
                self._callbacks.close()
        finally:
            self._stack.close()

    def begin(self, state: State, limits: Limits, n_rows: int | None) -> None:
        """Record the cost of held-out samples, if this is before the first step; call callbacks."""
        if self.validation is not None and state.step == 0 and not state.history:
            record = state.record(lam=state.coder.describe()["lam"])
            cost = self.validation.cost(state, self.n_threads)
            state.history.append(replace(record, test_cost=cost))
        elif self.validation is not None and state.history:
            self._go_on(state, self.validation)
        self._callbacks.begin(state, lambda record: limits.share(record, n_rows))

    def _go_on(self, state: State, validation: Validation) -> None:
        """Give the last record the cost that it would have if the run had not ended there."""
        last = state.history[-1]
        if last.step > 0 and not validation.is_due(last.step):
            state.history[-1] = replace(last, test_cost=None)
        elif last.test_cost is not None and wants_density(state.constraint):
            cost = validation.cost(state, self.n_threads)
            state.history[-1] = replace(last, test_cost=cost)

    def after_step(self, state: State, record: Record) -> str | None:
        """Record a step and call the callbacks; return why to stop, or None to continue."""
        cost = None
        if self.validation is not None and self.validation.is_due(state.step):
            cost = self.validation.cost(state, self.n_threads)
        record = replace(record, seconds=state.seconds, test_cost=cost)
        state.history.append(record)
        if self._callbacks.call(state, record):
            return "callback"
        return "interrupt" if self.interrupted() else None

    def finish(self, state: State, stopped: str) -> None:
        """Evaluate held-out samples after the last step, and tell callbacks that the run has ended.

        If a density is wanted, the dictionary of the result is not that of the state, and it is
        the one that counts here.
        """
        history = state.history
        if (self.validation is not None and history) and (
            history[-1].test_cost is None or wants_density(state.constraint)
        ):
            cost = self.validation.final_cost(state, self.n_threads)
            history[-1] = replace(history[-1], test_cost=cost)
        self._callbacks.finish(state)
        self._callbacks.end(stopped)

    def single_step(self, state: State, batch: MiniBatch) -> None:
        """Make one step with the given batch, record it, and call the callbacks.

        If it raises, the state is of no use: give it a copy.
        """
        with on_the_clock(state):
            record = step(state, batch, self.n_threads)
        self.after_step(state, record)

    def loop(self, batches: Batches, state: State, limits: Limits) -> str:
        """Draw batches and make steps until a limit is reached; return why the run ended."""
        batches.n_threads = self.n_threads
        batches.start(state)
        while (stopped := limits.reached(state)) is None:
            record = None
            try:
                with on_the_clock(state), slow_work_for(limits.seconds - state.seconds):
                    batches.patience = limits.seconds - state.seconds
                    with batches.reading():
                        batch = batches.draw(state, self.interrupted)
                    if batch is not None:
                        record = step(state, batch, self.n_threads)
            except MidStep:
                return "interrupt"
            except BaseException as error:
                if batches.is_reading:
                    self._save(error, state)
                raise
            if record is None:
                state.end_epoch()
                if limits.reached(state) is None and not batches.begin_epoch():
                    limits.warn_of_fewer_epochs(state)
                    return "source"
            elif (stopped := self.after_step(state, record)) is not None:
                break
        return stopped

    def _save(self, error: BaseException, state: State) -> None:
        """Attach the last whole state to the exception of a source, and show it to callbacks."""
        error.add_note(f"The run had reached step {state.step}; its state is error.state.")
        with suppress(AttributeError, TypeError):  # some exceptions accept no attributes
            error.state = state  # type: ignore[attr-defined]
        _also(error, lambda: self._callbacks.finish(state))


def _also(error: BaseException, action: Callable[[], None]) -> None:
    """Do something while an exception is under way; if that raises too, note it there."""
    try:
        action()
    except BaseException as second:  # noqa: BLE001 (the first one is raised)
        error.add_note(f"A callback then raised {second!r}.")
