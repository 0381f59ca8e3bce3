"""``learn``: the one door to learning."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import sparse

from smalto.checks import Array, check_integer
from smalto.coders.base import Coder
from smalto.coders.lasso import Lasso
from smalto.coders.signals import Missing
from smalto.constraints import Constraint
from smalto.learning.batches.base import Batches
from smalto.learning.batches.convert import as_batches
from smalto.learning.callbacks.base import CallbackLike
from smalto.learning.initial import initial_state
from smalto.learning.learners.base import Learner
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State, as_state, check_state
from smalto.learning.options import Continuation, Replacement
from smalto.learning.run import Run
from smalto.learning.setup import Setup
from smalto.learning.stopping import Limits, Validation
from smalto.threads import resolve_threads


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
    stopped : str
        Why it ended: "epochs", "steps", "seconds", "callback", "interrupt", or "source" where
        a stream has ended that cannot begin again.
    """

    D: Array
    coder: Coder
    state: State
    stopped: str

    @property
    def history(self) -> list[Record]:
        """One line per step, from the first step of the run on, also after it was resumed."""
        return self.state.history

    @property
    def sparse_D(self) -> sparse.csr_array:
        """The dictionary as a csr_array, for sparse atoms."""
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
    callbacks: Iterable[CallbackLike] = (),
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
    setup = Setup.of(coder, constraint, learner, replacement, continuation)
    problem = setup.coder or (Lasso() if state is None else state.coder)
    n_atoms = check_integer("n_atoms", n_atoms)
    limits = Limits.of(max_epochs, max_steps, max_seconds)
    batches = as_batches(source, mask, missing, sample_weight, groups, problem)
    held_out = Validation.of(
        validation, validation_groups, validate_every, batches, missing, problem
    )
    with Run(threads, callbacks, held_out) as run:
        if state is None:
            state = initial_state(batches, n_atoms, setup, init, random_state, threads)
        else:
            state = _resumed(state, n_atoms, setup, init, batches)
        run.begin(state)
        stopped = run.learn_from(batches, state, limits)
        run.finish(state)
    if state.history:
        _warn_if_mostly_short(state.history)
    return Result(state.feasible_D(), state.coder.fixed(), state, stopped)


def _resumed(state: State, n_atoms: int, setup: Setup, init: Any, batches: Batches) -> State:
    """Return a copy of the state to go on from; raise if it belongs to another run."""
    check_state(state, n_atoms, batches.n_features, batches.dtype)
    if init is not None:
        message = "init and state exclude each other: a state has its dictionary"
        raise ValueError(message)
    setup.check_same(state)
    if state.n_rows is not None and state.n_rows != batches.n_rows:
        now = "is a stream" if batches.n_rows is None else f"has {batches.n_rows}"
        message = f"the state was created from {state.n_rows} samples, but this data {now}"
        raise ValueError(message)
    return state.copy()


def _warn_if_mostly_short(history: Sequence[Record]) -> None:
    """Warn if the bound on the error was out of reach for most samples of the last step."""
    last = history[-1]
    count = last.samples - (history[-2].samples if len(history) > 1 else 0)
    if 2 * last.short > count > 0:
        message = (
            f"eps is out of reach for {last.short} of the {count} samples of the last step: their "
            "codes are those of least squares (Record.short has the number for each step)"
        )
        warnings.warn(message, UserWarning, stacklevel=3)
