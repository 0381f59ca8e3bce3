"""The one training loop."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

from scipy import sparse

from smalto.checks import (
    Array,
    as_floats,
    check_integer,
    check_kind,
    check_number,
)
from smalto.coders.base import Coder, Joint, check_coder
from smalto.coders.encoding import mean_cost
from smalto.coders.lasso import Lasso
from smalto.coders.signals import Missing, Signals, as_signals, in_groups
from smalto.constraints import Adaptive, Constraint, density
from smalto.learning.atoms import Replacement
from smalto.learning.batch import Batch
from smalto.learning.begin import begin
from smalto.learning.continuation import Continuation
from smalto.learning.interrupts import deferred_interrupt
from smalto.learning.learner import Learner, check_learner
from smalto.learning.samples import Samples, SampleSet, as_sample_set
from smalto.learning.state import Record, State, as_state, check_state
from smalto.learning.step import is_power_of_two, step
from smalto.sources import Order, Source
from smalto.threads import resolve_threads, single_threaded_blas

Callback: TypeAlias = Callable[[State, Record], "bool | None"]


@runtime_checkable
class Closing(Protocol):
    """A callback that has something to put away when the run ends."""

    def close(self) -> None:
        """Put it away."""


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
        Why it ended: "epochs", "steps", "seconds", "callback" or "interrupt".
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
    n_epochs: int | None = None,
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
    source : array, memory map or CSR array (n, m)
        Training samples, one per row. Only what a step draws is read and copied.
    n_atoms : int
        Number k of atoms.
    coder : coder, default ``Lasso()``
    constraint : constraint, default ``L2Ball()``
    learner : learner, default ``Online()``
    init : array (k, m), optional
        The first dictionary; by default distinct random samples, scaled to norm 1.
    n_epochs, max_steps, max_seconds : optional
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
        sample. Whole groups are drawn.
    validation : array or CSR array, optional
        Held-out samples whose mean cost is recorded now and then, off the clock. NaN means
        missing if it does in the source.
    validation_groups : array, optional
        The groups of held-out samples.
    validate_every : int or sequence of int, optional
        At every so many steps, or after these; by default at steps 1, 2, 3, 4, 6, 8, 12, 16,
        ... Always before the first step and after the last.
    state : State, optional
        Go on from here, bit for bit, with the problem and learner it was made with.
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
        the step at hand, with a result; a second one raises as usual.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import learn
    >>> from smalto.coders import Lasso
    >>> X = np.random.default_rng(0).standard_normal((1000, 16))
    >>> result = learn(X, 32, Lasso(lam=0.5), n_epochs=2, random_state=0)
    >>> result.D.shape
    (32, 16)
    """
    threads = resolve_threads(n_threads)
    state = None if state is None else as_state(state)
    problem = (Lasso() if state is None else state.coder) if coder is None else check_coder(coder)
    samples = as_sample_set(source, mask, missing, sample_weight, groups, problem)
    data = samples.source
    n_atoms = check_integer("n_atoms", n_atoms)
    limits = _Limits.of(n_epochs, max_steps, max_seconds)
    held_out = None
    if validation is not None:
        held_out = _check_validation(validation, data, missing, validation_groups, problem)
    is_due = _schedule(validate_every)
    replacement = Replacement() if replacement is None else replacement
    check_kind("replacement", replacement, Replacement, "Replacement(...)")
    check_kind("continuation", continuation, Continuation | None, "None or Continuation(...)")
    calls = check_callbacks(callbacks)
    history: list[Record] = []
    with single_threaded_blas(), deferred_interrupt() as interrupted:
        if state is None:
            state = begin(samples, n_atoms, coder, constraint, learner, init, random_state, threads)
        else:
            state = _resume(state, n_atoms, data, coder, constraint, learner, init)
        order = Order(samples.n_draws, state.seed)
        if held_out is not None and state.step == 0:
            cost = mean_cost(held_out, state.D, state.coder, threads)
            history.append(_first_record(state, cost))
        while (stopped := limits.reached(state)) is None:
            size = state.learner.rows_per_step(data.n_rows)
            end, n_new = samples.end_of_batch(order, state.epoch, state.place, size)
            blocks = _draw(state, samples, order, end, interrupted)
            try:
                record = step(state, blocks, n_new, replacement, continuation, threads)
            except _MidStep:
                stopped = "interrupt"
                break
            _go_on_to(state, end, samples.n_draws)
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
    close_all(calls)
    return Result(state.feasible_D(), state.coder.fixed(), state, history, stopped)


def _draw(
    state: State, samples: SampleSet, order: Order, end: int, interrupted: Callable[[], bool]
) -> Iterator[Samples]:
    """The samples of the epoch's order up to place ``end``, in blocks."""
    blocks = samples.drawn(order, state.epoch, state.place, end)
    for number, block in enumerate(blocks):
        # Only where a step begins from nothing can it be given up midway.
        if number and isinstance(state.learner, Batch) and interrupted():
            raise _MidStep
        yield block


class _MidStep(Exception):
    """An interrupt between the blocks of one step: the dictionary is as before it."""


def _go_on_to(state: State, place: int, last: int) -> None:
    """Note that the epoch has come to this place; at its end the next one begins."""
    state.place = place
    if place == last:
        state.learner.end_epoch(state)
        state.epoch += 1
        state.place = 0


@dataclass(frozen=True)
class _Limits:
    epochs: float
    steps: float
    seconds: float

    @classmethod
    def of(cls, epochs: int | None, steps: int | None, seconds: float | None) -> _Limits:
        if epochs is None and steps is None and seconds is None:
            epochs = 1
        return cls(
            math.inf if epochs is None else check_integer("n_epochs", epochs),
            math.inf if steps is None else check_integer("max_steps", steps, low=0),
            math.inf if seconds is None else check_number("max_seconds", seconds, low=0),
        )

    def reached(self, state: State) -> str | None:
        if state.epoch >= self.epochs:
            return "epochs"
        if state.step >= self.steps:
            return "steps"
        if state.seconds >= self.seconds:
            return "seconds"
        return None


def _schedule(every: int | Sequence[int] | None) -> Callable[[int], bool]:
    """Whether the validation set is due after a step."""
    if every is None:
        return lambda step: is_power_of_two(step) or (step % 3 == 0 and is_power_of_two(step // 3))
    if isinstance(every, numbers.Integral):
        period = check_integer("validate_every", every)
        return lambda step: step % period == 0
    steps = frozenset(int(number) for number in every)  # type: ignore[union-attr]
    return lambda step: step in steps


def _check_validation(
    validation: Any, data: Source, missing: Missing, groups: Any, coder: Coder
) -> Signals:
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
    data: Source,
    coder: Coder | None,
    constraint: Constraint | None,
    learner: Learner | None,
    init: Any,
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
        pairs.append(("coder", check_coder(coder).matching(state.coder), state.coder))
    for name, given, had in pairs:
        if given is not None and given != had:
            message = f"state was made with {name}={had}, asked for is {given}"
            raise ValueError(message)
    if state.n_rows is not None and state.n_rows != data.n_rows:
        message = f"state was made from {state.n_rows} samples, this data has {data.n_rows}"
        raise ValueError(message)
    return state.copy()


def _first_record(state: State, cost: float) -> Record:
    """The line of the history before anything has been learned."""
    return Record(
        step=0, epoch=0, samples=0, seconds=0.0, batch_cost=float("nan"), surrogate=None,
        test_cost=cost, mean_nonzeros=float("nan"), replaced=0,
        density=density(state.D), lam=getattr(state.coder, "lam", None),
    )  # fmt: skip
