"""The one training loop."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

from scipy import sparse

from smalto.checks import (
    Array,
    as_floats,
    check_integer,
    check_kind,
)
from smalto.coders.base import Coder, Joint, Matching, check_coder, fixed
from smalto.coders.coding import mean_cost
from smalto.coders.lasso import Lasso
from smalto.coders.signals import Missing, Signals, as_signals, in_groups
from smalto.constraints import Adaptive, Constraint, density
from smalto.learning.batches.feeds import Data, Drawn, Feed, MidStep, as_data
from smalto.learning.initial import begin, sample_size
from smalto.learning.interrupts import deferred_interrupt
from smalto.learning.learners.base import Learner, check_learner
from smalto.learning.memory.state import Record, State, as_state, check_state
from smalto.learning.options import Continuation, Replacement
from smalto.learning.stopping import Limits, schedule
from smalto.threads import resolve_threads, single_threaded_blas

Callback: TypeAlias = Callable[[State, Record], "bool | None"]


@runtime_checkable
class Closing(Protocol):
    """A callback that has something to put away when the run ends."""

    def close(self) -> None:
        """Put it away."""


@runtime_checkable
class Finishing(Protocol):
    """A callback that is to see the last state of a run that leaves a whole one."""

    def finish(self, state: State) -> None:
        """Look at it; the run has ended, or its source has failed."""


@dataclass(frozen=True)
class Result:
    """What `learn` returns.

    Attributes
    ----------
    D : array (k, m)
        The dictionary, one atom per row.
    coder : coder
        The coder with everything decided (its ``lam``), to encode with.
    state : State
        Everything needed to go on.
    history : list of Record
        One line per step.
    stopped : str
        Why it ended: "epochs", "steps", "seconds", "callback", "interrupt", or "source" where
        a stream has ended that cannot begin again.
    """

    D: Array
    coder: Coder
    state: State
    history: list[Record]
    stopped: str

    @property
    def sparse_D(self) -> Any:
        """The dictionary as a csr_array: what counts where atoms are sparse."""
        return sparse.csr_array(self.D)


def learn(
    source: Any,
    n_atoms: int,
    coder: Coder | None = None,
    constraint: Constraint | None = None,
    learner: Learner | None = None,
    *,
    init: Any = None,
    max_epochs: int | None = None,
    max_steps: int | None = None,
    max_seconds: float | None = None,
    sample_weight: Any = None,
    mask: Any = None,
    missing: Missing = None,
    groups: Any = None,
    validation: Any = None,
    validation_groups: Any = None,
    validate_every: int | Sequence[int] | None = None,
    state: State | None = None,
    replacement: Replacement | None = None,
    continuation: Continuation | None = None,
    callbacks: Iterable[Callback] = (),
    n_threads: int | None = None,
    random_state: Any = None,
) -> Result:
    """Learn a dictionary: ``min_D Σ_x min_α ½‖x − αD‖² + ψ(α)``, every atom in a convex set.

    Algorithm 1 of the paper with the refinements of its Section 3.4. The coder says what ψ
    is, the constraint which set, the learner how to get there. Where entries are missing, the
    norm is that of the known entries: that is what is minimised, by surrogates in which missing
    entries are filled from the codes.

    Parameters
    ----------
    source : array, CSR array, memory map, path, zarr, HDF5, Dask or Arrow data, or iterable
        Training samples, one per row: whatever `smalto.sources.as_source` takes. Only what a
        step draws is read and copied; from files it is read ahead in the background. An
        iterable of batches is a `smalto.sources.Stream`.
    n_atoms : int
        Number k of atoms.
    coder : coder, default ``Lasso()``
    constraint : constraint, default ``L2Ball()``
    learner : learner, default ``Online()``
    init : array (k, m), optional
        The first dictionary; by default distinct random samples, scaled to norm 1.
    max_epochs, max_steps, max_seconds : optional
        When to stop: passes over the data, updates, seconds of learning, whichever comes
        first; one epoch by default. They count from the beginning of the run, also when it
        is resumed.
    sample_weight : array (n,), optional
        Weights of the samples in the sum, at least zero.
    mask : array of bool (n, m), optional
        True where an entry is missing; what stands there is ignored.
    missing : {None, "nan"}
        With "nan", NaN means missing; by default it is an error.
    groups : array (n,), optional
        For coders of several samples at once (`JointLasso`, `JointOMP`): a label for each
        sample. Whole groups are drawn, as many as it takes for a batch. The samples of a
        group then have one weight in ``sample_weight``, that of the group's cost in the sum.
    validation : array or CSR array, optional
        Held-out samples whose mean cost is recorded now and then, off the clock. NaN means
        missing if it does in the source.
    validation_groups : array, optional
        The groups of held-out samples.
    validate_every : int or sequence of int, optional
        At every so many steps, or after these; by default at steps 1, 2, 3, 4, 6, 8, 12, 16,
        ... Always before the first step and after the last.
    state : State, optional
        Go on from here, bit for bit, with the problem, the learner and the other settings it
        was made with. ``State.load(path)`` has one from a file; see `Checkpoint`.
    replacement : Replacement, optional
        When atoms that are unused or duplicates are replaced.
    continuation : Continuation, optional
        Begin with a smaller λ.
    callbacks : iterable of callables
        Each is called after every step as ``callback(state, record)``; a true result ends
        the run. The state is the live one: copy what you keep.
    n_threads : int, optional
        Threads to use; every available core by default. The result does not depend on it.
    random_state : int, Generator or RandomState, optional
        Decides the first dictionary and the order of the samples.

    Returns
    -------
    Result
        With the dictionary ``D``, the ``state``, the ``history``. Ctrl-C ends the run after
        the step at hand, with a result; a second one raises as usual. What the source raises
        is raised here, with the state so far as its attribute ``state``.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import learn
    >>> from smalto.coders import Lasso
    >>> X = np.random.default_rng(0).standard_normal((1000, 16))
    >>> result = learn(X, 32, Lasso(lam=0.5), max_epochs=2, random_state=0)
    >>> result.D.shape
    (32, 16)
    """
    threads = resolve_threads(n_threads)
    state = None if state is None else as_state(state)
    problem = (Lasso() if state is None else state.coder) if coder is None else check_coder(coder)
    n_atoms = check_integer("n_atoms", n_atoms)
    limits = Limits.of(max_epochs, max_steps, max_seconds)
    is_due = schedule(validate_every)
    check_kind("replacement", replacement, Replacement | None, "Replacement(...)")
    check_kind("continuation", continuation, Continuation | None, "None or Continuation(...)")
    calls = check_callbacks(callbacks)
    data: Data = as_data(source, mask, missing, sample_weight, groups, problem)
    held_out = None
    if validation is not None:
        held_out = check_validation(validation, data, missing, validation_groups, problem)
    history: list[Record] = []
    with ExitStack() as stack:
        stack.callback(close_all, calls)
        stack.enter_context(single_threaded_blas())
        interrupted = stack.enter_context(deferred_interrupt())
        if state is None:
            state = begin(
                data.beginning(sample_size(n_atoms)), n_atoms, coder, constraint, learner, init,
                random_state, threads, stream=data.n_rows is None,
            )  # fmt: skip
            state.replacement = replacement or Replacement()
            state.continuation = continuation
        else:
            given = {"replacement": replacement, "continuation": continuation}
            state = _resume(state, n_atoms, data, coder, constraint, learner, init, given)
        feed = data.feed(state)
        stack.callback(feed.close)
        if held_out is not None and state.step == 0:
            cost = mean_cost(held_out, state.D, state.coder, threads)
            history.append(_first_record(state, cost))
        while (stopped := limits.reached(state)) is None:
            drawn = _draw(feed, state, interrupted, calls)
            if drawn is None:
                _end_epoch(state)
                if limits.reached(state) is None and not feed.begin_epoch():
                    limits.warn_of_fewer_epochs(state)
                    stopped = "source"
                    break
                continue
            try:
                record = feed.learn(state, drawn, threads)
            except MidStep:
                stopped = "interrupt"
                break
            state.place = drawn.place
            if drawn.ends_epoch:
                _end_epoch(state)
            if held_out is not None and is_due(state.step):
                cost = mean_cost(held_out, state.D, state.coder, threads)
                record = replace(record, test_cost=cost)
            history.append(record)
            # Every callback is called, also when an earlier one has asked to stop.
            answers = [callback(state, record) for callback in calls]
            if any(answers):
                stopped = "callback"
                break
            if interrupted():
                stopped = "interrupt"
                break
        if held_out is not None and history and history[-1].test_cost is None:
            cost = mean_cost(held_out, state.D, state.coder, threads)
            history[-1] = replace(history[-1], test_cost=cost)
        finish_all(calls, state)
    if history:
        _warn_if_mostly_short(history)
    return Result(state.feasible_D(), fixed(state.coder), state, history, stopped)


def _warn_if_mostly_short(history: Sequence[Record]) -> None:
    """Say that a bound on the error asks too much of the dictionary as it has become."""
    last = history[-1]
    count = last.samples - (history[-2].samples if len(history) > 1 else 0)
    if 2 * last.short > count > 0:
        message = (
            f"eps is out of reach for {last.short} of the {count} samples of the last step: their "
            "codes are those of least squares (Record.short has the number for each step)"
        )
        warnings.warn(message, UserWarning, stacklevel=3)


def _draw(
    feed: Feed, state: State, interrupted: Callable[[], bool], calls: Sequence[Callback]
) -> Drawn | None:
    """The samples of the next step; where they cannot be had, the state is put in safety."""
    clock = time.perf_counter()
    try:
        drawn = feed.draw(state, interrupted)
    except BaseException as error:
        error.add_note(f"The run has come to step {state.step}: its state is with this exception.")
        with suppress(AttributeError, TypeError):  # not every exception takes attributes
            error.state = state  # type: ignore[attr-defined]
        finish_all(calls, state)
        raise
    state.seconds += time.perf_counter() - clock
    return drawn


def _end_epoch(state: State) -> None:
    """Every sample has been seen once more."""
    state.learner.end_epoch(state)
    state.epoch += 1
    state.place = 0


def check_validation(
    validation: Any, data: Data, missing: Missing, groups: Any, coder: Coder
) -> Signals:
    """Refuse held-out samples that are not like those of the data."""
    signals = as_signals("validation", validation, None, missing)
    n, m = signals.X.shape
    if n == 0 or m != data.n_features:
        message = f"validation must have samples of {data.n_features} features, got shape {(n, m)}"
        raise ValueError(message)
    if groups is None and isinstance(coder, Joint):
        message = f"{type(coder).__name__} needs validation_groups: a label for each sample"
        raise ValueError(message)
    signals, _ = in_groups(signals, groups, coder)
    return replace(signals, X=as_floats(signals.X, data.dtype))


def finish_all(callbacks: Iterable[Any], state: State) -> None:
    """Show those callbacks that want to see it the state that the run has come to."""
    for callback in callbacks:
        if isinstance(callback, Finishing):
            callback.finish(state)


def close_all(callbacks: Iterable[Any]) -> None:
    """Let those callbacks that have something to put away do so."""
    for callback in callbacks:
        if isinstance(callback, Closing):
            callback.close()


def check_callbacks(callbacks: Any) -> list[Callback]:
    """Refuse what cannot be called, before anything is learned."""
    if not isinstance(callbacks, Iterable):
        message = f"callbacks must be a sequence of callables, got {callbacks!r}"
        raise TypeError(message)
    calls = list(callbacks)
    for number, callback in enumerate(calls):
        check_kind(f"callbacks[{number}]", callback, Callable, "callable")
    return calls


def _resume(
    state: State,
    n_atoms: int,
    data: Data,
    coder: Coder | None,
    constraint: Constraint | None,
    learner: Learner | None,
    init: Any,
    others: dict[str, Any],
) -> State:
    """A copy of the state to go on from, if it belongs to what is asked for."""
    check_state(state, n_atoms, data.n_features, data.dtype)
    if init is not None:
        message = "init and state exclude each other: a state has its dictionary"
        raise ValueError(message)
    if isinstance(constraint, Adaptive):
        constraint = constraint.matching(state.constraint)
    pairs: list[tuple[str, Any, Any]] = [("constraint", constraint, state.constraint)]
    if learner is not None:
        learner = check_learner(learner).resolve(n_atoms, data.n_rows)
        pairs.append(("learner", learner, state.learner))
    if coder is not None:
        asked = check_coder(coder)
        if isinstance(asked, Matching):
            asked = asked.matching(state.coder)
        pairs.append(("coder", asked, state.coder))
    pairs += [(name, value, getattr(state, name)) for name, value in others.items()]
    for name, given, had in pairs:
        if given is not None and given != had:
            message = f"state was made with {name}={had}, asked for is {given}"
            raise ValueError(message)
    if state.n_rows is not None and state.n_rows != data.n_rows:
        now = "is a stream" if data.n_rows is None else f"has {data.n_rows}"
        message = f"state was made from {state.n_rows} samples, this data {now}"
        raise ValueError(message)
    return state.copy()


def _first_record(state: State, cost: float) -> Record:
    """The line of the history before anything has been learned."""
    return Record(
        step=0, epoch=0, samples=0, seconds=0.0, batch_cost=float("nan"), surrogate=None,
        test_cost=cost, mean_nonzeros=float("nan"), replaced=0,
        density=density(state.D), lam=getattr(state.coder, "lam", None),
    )  # fmt: skip
