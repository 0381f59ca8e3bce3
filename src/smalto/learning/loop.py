"""The one training loop."""

from __future__ import annotations

import math
import numbers
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from smalto.checks import (
    Array,
    Rows,
    as_dictionary,
    as_floats,
    as_rows,
    check_finite,
    check_integer,
    check_number,
)
from smalto.coders.base import Coder
from smalto.coders.encoding import (
    ROWS_AT_ONCE,
    check_coder,
    code_rows,
    mean_cost,
    prepare,
    warn_if_all_zero,
)
from smalto.coders.lasso import Lasso
from smalto.constraints import Constraint, L2Ball, check_constraint
from smalto.learning.atoms import (
    RESERVOIR,
    Replacement,
    initial_dictionary,
    remember_worst,
    replace_atoms,
)
from smalto.learning.codes import CodeStore
from smalto.learning.continuation import Continuation
from smalto.learning.online import Online
from smalto.learning.state import Record, State, check_state
from smalto.learning.stats import Contribution, Stats
from smalto.sources import Order, Source, as_source
from smalto.threads import resolve_threads, single_threaded_blas

_SAMPLE_ROWS = 2048  # rows from which the first dictionary and lam are made
_SAMPLE_EPOCH = 1 << 40  # their order is that of an epoch that never comes

Callback: TypeAlias = Callable[[State, Record], "bool | None"]


@runtime_checkable
class Learner(Protocol):
    """How the past is kept and how the dictionary follows from it; all else is shared."""

    def rows_per_step(self, n_rows: int) -> int:
        """How many samples a step draws."""

    def begin(self, D: Array, n_rows: int | None) -> tuple[tuple[Stats, ...], CodeStore | None]:
        """The past before anything has been seen; n_rows is None for a stream."""

    def forget(self, state: State, n_new: int) -> None:
        """Scale the past before n_new samples join it."""

    def learn_from(
        self, state: State, new: Contribution, costs: Array, numbers: Array, n_threads: int
    ) -> None:
        """Add coded samples to the past."""

    def update(self, state: State, n_new: int, n_threads: int) -> None:
        """Move the dictionary."""

    def end_epoch(self, state: State) -> None:
        """Every sample has been seen once more."""


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
    validation: Any = None,
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
    is, the constraint which set, the learner how to get there.

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
    validation : array or CSR array, optional
        Held-out samples whose mean cost is recorded now and then, off the clock.
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
    data = as_source(source)
    n_atoms = check_integer("n_atoms", n_atoms)
    limits = _Limits.of(n_epochs, max_steps, max_seconds)
    held_out = None if validation is None else _check_validation(validation, data)
    is_due = _schedule(validate_every)
    replacement = Replacement() if replacement is None else replacement
    history: list[Record] = []
    with single_threaded_blas(), _deferred_interrupt() as interrupted:
        if state is None:
            state = begin(
                data, n_atoms, coder, constraint, learner, init, random_state, threads
            )
        else:
            state = _resume(state, n_atoms, data, coder, constraint, learner, init)
        order = Order(data.n_rows, state.seed)
        if held_out is not None and state.step == 0:
            cost = mean_cost(held_out, state.D, state.coder, threads)
            history.append(_first_record(state, cost))
        while (stopped := limits.reached(state)) is None:
            record = _step(state, data, order, replacement, continuation, threads, interrupted)
            if record is None:
                stopped = "interrupt"
                break
            if held_out is not None and is_due(state.step):
                record = replace(
                    record, test_cost=mean_cost(held_out, state.D, state.coder, threads)
                )
            history.append(record)
            # Every callback is called, also when an earlier one has asked to stop.
            if any([callback(state, record) for callback in callbacks]):
                stopped = "callback"
                break
            if interrupted():
                stopped = "interrupt"
                break
        if held_out is not None and history and history[-1].test_cost is None:
            cost = mean_cost(held_out, state.D, state.coder, threads)
            history[-1] = replace(history[-1], test_cost=cost)
    return Result(state.D.copy(), state.coder, state, history, stopped)


def begin(
    data: Source,
    n_atoms: int,
    coder: Coder | None,
    constraint: Constraint | None,
    learner: Learner | None,
    init: Any,
    random_state: Any,
    n_threads: int,
    *,
    stream: bool = False,
) -> State:
    """The state of a run before its first step, decided from a sample of the data.

    With ``stream`` the data is only its beginning: fewer samples than atoms are no error, and
    learners that need a fixed data set refuse.
    """
    coder = Lasso() if coder is None else check_coder(coder)
    constraint = L2Ball() if constraint is None else check_constraint(constraint)
    learner = Online() if learner is None else _check_learner(learner)
    seed = _seed(random_state)
    if init is None and data.n_rows < n_atoms and not stream:
        message = (
            f"n_samples={data.n_rows} is fewer than the {n_atoms} atoms asked for: "
            f"ask for fewer atoms or give a first dictionary as init"
        )
        raise ValueError(message)
    order = Order(data.n_rows, seed)
    sample = data.rows(np.sort(order.take(_SAMPLE_EPOCH, 0, max(_SAMPLE_ROWS, 2 * n_atoms))))
    if not (abs(sample).max() > 0):
        message = f"all of the {sample.shape[0]} samples looked at are zero: nothing to learn from"
        raise ValueError(message)
    if init is None:
        rng = np.random.default_rng(seed)
        D = initial_dictionary(sample[rng.permutation(sample.shape[0])], n_atoms, constraint, rng)
    else:
        D = as_dictionary(init, data.n_features, data.dtype).copy()
        if len(D) != n_atoms:
            message = f"init has {len(D)} atoms, asked for are {n_atoms}"
            raise ValueError(message)
        for atom in D:
            constraint.project(atom)
    stats, store = learner.begin(D, None if stream else data.n_rows)
    room = min(RESERVOIR, max(n_atoms, 8))
    return State(
        D=D,
        stats=stats,
        coder=coder.resolve(sample, D, n_threads),
        constraint=constraint,
        learner=learner,
        seed=seed,
        surrogate=0.0,
        last_used=np.zeros(n_atoms, np.int64),
        worst=np.zeros((room, data.n_features), data.dtype),
        worst_cost=np.zeros(room),
        store=store,
    )


def advance(
    state: State,
    blocks: Iterable[tuple[Array, Rows]],
    n_new: int,
    replacement: Replacement,
    continuation: Continuation | None,
    n_threads: int,
) -> Record:
    """One step: code n_new samples (in blocks), add them to the past, update the dictionary."""
    k = len(state.D)
    coder = state.coder if continuation is None else continuation.at(state.coder, state.step)
    prepared = prepare(state.D, coder, n_threads)
    total_cost, nonzeros = 0.0, 0
    state.learner.forget(state, n_new)
    for numbers_, X in blocks:
        first = None if state.store is None else state.store.fetch(numbers_)
        coded = code_rows(X, prepared, first, n_threads)
        penalties = coder.penalty(coded.codes.as_csr(k))
        costs = coded.fit + penalties
        constant = 0.5 * float(coded.norms.sum()) + float(penalties.sum())
        new = Contribution.of(coded.codes, X, k, constant)
        state.learner.learn_from(state, new, costs, numbers_, n_threads)
        state.last_used[new.uses > 0] = state.samples + n_new
        remember_worst(state, X, costs)
        total_cost += float(costs.sum())
        nonzeros += len(coded.codes.indices)
        if nonzeros == 0 and state.step == 0:
            warn_if_all_zero(coder, X, state.D)
    state.learner.update(state, n_new, n_threads)
    state.samples += n_new
    state.step += 1
    replaced = replace_atoms(state, replacement, prepared.G)
    surrogate = state.mean_surrogate()
    lam = getattr(coder, "lam", None)
    return Record(
        step=state.step,
        epoch=state.epoch,
        samples=state.samples,
        seconds=state.seconds,
        batch_cost=total_cost / n_new,
        surrogate=None if math.isnan(surrogate) else surrogate,
        test_cost=None,
        mean_nonzeros=nonzeros / n_new,
        replaced=replaced,
        lam=lam,
    )


def _step(
    state: State,
    data: Source,
    order: Order,
    replacement: Replacement,
    continuation: Continuation | None,
    n_threads: int,
    interrupted: Callable[[], bool],
) -> Record | None:
    """Draw the next samples of the epoch and learn from them; None if interrupted midway."""
    clock = time.perf_counter()
    end = min(state.place + state.learner.rows_per_step(data.n_rows), data.n_rows)

    def blocks() -> Iterator[tuple[Array, Rows]]:
        for begin_ in range(state.place, end, ROWS_AT_ONCE):
            if begin_ > state.place and interrupted():
                raise _MidStep
            drawn = order.take(state.epoch, begin_, min(begin_ + ROWS_AT_ONCE, end))
            X = data.rows(drawn)
            if begin_ == state.place and state.step & (state.step - 1) == 0:
                # At steps 0, 1, 2, 4, 8, ...: what depends on the dictionary is decided anew.
                state.coder = state.coder.resolve(X, state.D, n_threads)
            yield drawn, X

    try:
        record = advance(
            state, blocks(), end - state.place, replacement, continuation, n_threads
        )
    except _MidStep:
        return None
    state.place = end
    if end == data.n_rows:
        state.learner.end_epoch(state)
        state.epoch += 1
        state.place = 0
    state.seconds += time.perf_counter() - clock
    return replace(record, seconds=state.seconds)


class _MidStep(Exception):
    """An interrupt between the blocks of one step."""


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


@contextmanager
def _deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C ask for an end between two steps; the second one raises."""
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


def _schedule(every: int | Sequence[int] | None) -> Callable[[int], bool]:
    """Whether the validation set is due after a step."""
    if every is None:
        # 1, 2, 3, 4, 6, 8, 12, ...: a step with at most two bits set, and those the highest.
        return lambda step: step & (step - 1) == 0 or step % 3 == 0 and not (step // 3) & (step // 3 - 1)
    if isinstance(every, numbers.Integral):
        period = check_integer("validate_every", every)
        return lambda step: step % period == 0
    steps = frozenset(int(step) for step in every)
    return lambda step: step in steps


def _check_validation(validation: Any, data: Source) -> Rows:
    X = as_rows("validation", validation)
    check_finite("validation", X)
    if X.shape[0] == 0 or X.shape[1] != data.n_features:
        message = (
            f"validation must have samples of {data.n_features} features, got shape {X.shape}"
        )
        raise ValueError(message)
    return as_floats(X, data.dtype)


def _check_learner(learner: Any) -> Learner:
    if isinstance(learner, type) or not isinstance(learner, Learner):
        hint = f"; did you mean {learner.__name__}()?" if isinstance(learner, type) else ""
        message = f"learner must be a learner such as Online(), got {learner!r}{hint}"
        raise TypeError(message)
    return learner


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
    state = check_state(state, n_atoms, data.n_features, data.dtype)
    if init is not None:
        message = "init and state exclude each other: a state has its dictionary"
        raise ValueError(message)
    asked: list[tuple[str, Any, Any]] = [
        ("constraint", constraint, state.constraint),
        ("learner", learner, state.learner),
    ]
    if coder is not None:
        # What the state's coder has decided by itself counts as asked for.
        undecided = getattr(coder, "lam", 0.0) is None or getattr(coder, "nonzeros", None)
        decided = replace(coder, lam=state.coder.lam) if undecided else coder  # type: ignore
        asked.append(("coder", decided, state.coder))
    for name, given, had in asked:
        if given is not None and given != had:
            message = f"state was made with {name}={had}, asked for is {given}"
            raise ValueError(message)
    if state.store is not None and len(state.store.counts) != data.n_rows:
        message = (
            f"state stores the codes of {len(state.store.counts)} samples, the data has "
            f"{data.n_rows}"
        )
        raise ValueError(message)
    return state.copy()


def _seed(random_state: Any) -> int:
    """An integer from what scikit-learn and NumPy users pass as random_state."""
    if random_state is None:
        return int(np.random.SeedSequence().entropy) % (1 << 63)  # type: ignore[arg-type]
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        if random_state < 0:
            message = f"random_state must be >= 0, got {random_state}"
            raise ValueError(message)
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 62))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(1 << 31))
    message = f"random_state must be None, an integer, a Generator or a RandomState, got {random_state!r}"
    raise TypeError(message)


def _first_record(state: State, cost: float) -> Record:
    """The line of the history before anything has been learned."""
    return Record(
        step=0, epoch=0, samples=0, seconds=0.0, batch_cost=float("nan"), surrogate=None,
        test_cost=cost, mean_nonzeros=float("nan"), replaced=0, lam=getattr(state.coder, "lam", None),
    )  # fmt: skip
