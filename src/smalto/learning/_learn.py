"""The function `learn`, the entry point to learning."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, check_integer
from smalto.coders._encode import encode
from smalto.coders.base import Coder
from smalto.coders.lasso import Lasso
from smalto.coders.signals import Missing
from smalto.coders.wanted_nonzeros import missed_nonzeros
from smalto.constraints import Constraint, L2Ball
from smalto.constraints.density import missed
from smalto.data_frames import check_columns, column_names
from smalto.kernels.ahead import expecting
from smalto.learning.batches.base import Batches
from smalto.learning.batches.convert import as_batches
from smalto.learning.batches.stream import StreamBatches
from smalto.learning.callbacks.base import CallbackLike
from smalto.learning.dictionary.wanted_density import feasible
from smalto.learning.initial_state import check_random_state, initial_state
from smalto.learning.learners.base import Learner, check_suits
from smalto.learning.learners.batch import Batch
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State, as_state, check_state
from smalto.learning.options import Continuation, Replacement
from smalto.learning.reported import Reported
from smalto.learning.run import Run
from smalto.learning.run_settings import RunSettings, check_seed
from smalto.learning.stopping import Limits
from smalto.learning.validation import Validation
from smalto.threads import resolve_threads, single_threaded_blas
from smalto.warn import warn

# Fewer samples in memory are learned from by `Batch`, if nothing else is asked for: an epoch of
# `Online` has too few steps then.
FEW_SAMPLES = 4096
BATCH_EPOCHS = 50
ONLINE_SAMPLES = 50_000  # drawn at least by `Online`, if nothing else is asked for


@dataclass(frozen=True, repr=False)
class Result(Reported):
    """The result of `learn`.

    Attributes
    ----------
    D : array (k, m)
        The dictionary, one atom per row.
    coder : coder
        The coder to encode with, all of its parameters decided (such as ``lam``).
    state : State
        Everything needed to resume the run.
    stopped : str
        Why the run ended: "epochs", "steps" or "seconds" for the limit that was reached,
        "callback", "interrupt" (Ctrl-C), or "source" for a stream that ended and cannot be read
        again.

    See Also
    --------
    smalto.learn : Where it comes from.
    """

    D: Array
    coder: Coder
    state: State
    stopped: str

    def __repr__(self) -> str:
        return f"Result(stopped={self.stopped!r}, coder={self.coder!r}, state={self.state!r})"

    @property
    def history(self) -> list[Record]:
        """The records of the run, ``state.history``: one per step, also after it was resumed."""
        return self.state.history

    @property
    def sparse_D(self) -> scipy.sparse.csr_array:
        """The dictionary as a SciPy csr_array."""
        return scipy.sparse.csr_array(self.D)


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

    This is Algorithm 1 of the paper with the refinements of its Section 3.4. The coder defines ψ,
    the constraint defines the set, and the learner is the method. If entries are missing, the norm
    is that of the known entries.

    Parameters
    ----------
    source : array, CSR array, memory map, path, zarr, HDF5, Dask or Arrow data, or iterable
        Training samples, one per row: anything that `smalto.sources.as_source` takes. Only the
        samples of a step are read and copied; files are read ahead in the background. An
        iterable of batches becomes a `smalto.sources.Stream`.
    n_atoms : int
        Number k of atoms.
    coder : coder, default ``Lasso()``
        The sparse coding problem.
    constraint : constraint, default ``L2Ball()``
        The set that atoms must lie in.
    learner : learner, optional
        The method: by default ``Online()``, or ``Batch()`` for at most 4096 samples in memory if
        no limit is given either.
    init : array (k, m), optional
        The first dictionary, which is projected onto the constraint set; by default distinct
        random samples, scaled to norm 1, and random directions if there are too few of them.
    max_epochs, max_steps, max_seconds : optional
        Limits on passes over the data, dictionary updates and seconds of learning; the run stops
        at the first that is reached. If none is given, it stops after one epoch; if no learner is
        given either, after as many as have 50 000 samples, or after 50 of ``Batch()``. They count
        from the beginning of the run, also if it is resumed. Seconds exclude compilation,
        evaluation and callbacks.
    sample_weight : array (n,), optional
        Weights of the samples in the sum, at least zero.
    mask : array of bool (n, m), dense or sparse, optional
        True where an entry is missing; the value there is ignored.
    missing : {None, "nan"}
        With "nan", NaN means a missing entry; by default NaN is an error.
    groups : array (n,), optional
        The group of each sample, for coders that code groups of samples jointly (`JointLasso`,
        `JointOMP`). A batch consists of whole groups. In ``sample_weight``, all samples of a group
        must have the same weight.
    validation : array or CSR array, optional
        Held-out samples whose mean cost is recorded at intervals. NaN means missing if it does in
        the source.
    validation_groups : array, optional
        The group of each held-out sample.
    validate_every : int or sequence of int, optional
        The number of steps between two evaluations of held-out samples, or the steps after which
        to evaluate them; by default 1, 2, 3, 4, 6, 8, 12, 16, ... They are also evaluated before
        the first step and after the last one, then over the dictionary ``D`` of the result.
    state : State, optional
        Resume the run that this state comes from (``result.state``, or ``State.load(path)`` for a
        `Checkpoint`), with the same bits as if it had not stopped. The settings of the run are in
        the state; those that are given again must be the same.
    replacement : Replacement, optional
        When to replace atoms that are unused or duplicates.
    continuation : Continuation, optional
        Start with a smaller λ and increase it step by step.
    callbacks : iterable of callables
        Called after every step as ``callback(state, record)``; a true result ends the run. Each is
        a plain function or a `smalto.learning.Callback`, such as `Progress`, `Log`, `EarlyStopping`
        and `Checkpoint`. Later steps change the state: copy what you keep.
    n_threads : int, optional
        Number of threads; by default every available core. The result does not depend on it.
    random_state : int, Generator or RandomState, optional
        Determines the first dictionary and the order of the samples.

    Returns
    -------
    Result
        The dictionary ``D``, the ``coder`` to encode with, the ``state``, its ``history``, and why
        the run ``stopped``. Ctrl-C ends the run with a result, after the current step at the
        latest; a second Ctrl-C raises KeyboardInterrupt. If the source raises an exception, its
        attribute ``state`` is the state after the last complete step.

    See Also
    --------
    smalto.encode : Codes over a dictionary.
    smalto.DictionaryLearning : The same as a scikit-learn estimator.
    smalto.distributed.learn : The same on a Dask cluster.
    smalto.learning.OneByOne : Samples that arrive one at a time.

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
    settings = RunSettings.of(coder, constraint, learner, replacement, continuation)
    problem = settings.coder
    if problem is None:
        problem = Lasso() if state is None else state.coder
    n_atoms = check_integer("n_atoms", n_atoms)
    limits = Limits.of(max_epochs, max_steps, max_seconds)
    data = source, mask, missing, sample_weight, groups
    with single_threaded_blas(), closing(as_batches(*data, problem)) as batches:
        check_columns("validation", validation, _names(source, batches), "the data")
        held_out = Validation.of(
            validation, validation_groups, validate_every, batches, missing, problem
        )
        atoms = (constraint or L2Ball()) if state is None else state.constraint
        ahead = expecting(type(atoms).__name__, dtype=batches.dtype)
        with ahead, Run(threads, callbacks, held_out) as run:
            if isinstance(problem, Lasso) and not batches.has_missing:
                _load_lasso(batches.dtype)
            batches.patience = limits.seconds / 2  # something is to be learned, too
            if state is None:
                if settings.learner is None and limits == Limits.of(None, None, None):
                    settings, limits = _default_method(batches, settings, limits, max_epochs)
                state = initial_state(batches, n_atoms, settings, init, random_state, threads)
            else:
                check_random_state(random_state)
                check_seed(random_state, state)
                state = _resumed(state, n_atoms, settings, init, batches)
                limits.warn_if_reached(state)
            run.begin(state, limits, batches.n_rows)
            stopped = run.loop(batches, state, limits)
            run.finish(state, stopped)
    if state.history:
        _warn_if_mostly_short(state.history)
    D, constraint = feasible(state, threads)
    last = [record for record in state.history[-8:] if record.step > 0]  # 0: nothing coded yet
    found = max(map(_most_nonzeros, last), default=math.inf)
    for shortfall in (missed(D, constraint.density), missed_nonzeros(state.coder, found)):
        if shortfall is not None:
            warn(shortfall)
    return Result(D, state.coder.fixed(), state, stopped)


def _names(source: Any, batches: Batches) -> list[str] | None:
    """Return the names of the columns of the data, if they are known."""
    return batches.stream.names if isinstance(batches, StreamBatches) else column_names(source)


def _most_nonzeros(record: Record) -> float:
    """Return how many nonzeros exact codes may have had: rough ones can do with some less."""
    return record.mean_nonzeros * (1.0 + 6.0 * record.slack)


@functools.cache
def _load_lasso(dtype: np.dtype[Any]) -> None:
    """Load the kernels of the lasso, before others are needed.

    They take longest to compile. Another process can then compile the others in the meantime.
    """
    encode(np.ones((1, 2), dtype), np.eye(2, dtype=dtype), Lasso(0.5), n_threads=1)


def _default_method(
    batches: Batches, settings: RunSettings, limits: Limits, max_epochs: int | None
) -> tuple[RunSettings, Limits]:
    """Return the settings and limits of a run for which neither a learner nor limits are given."""
    n = batches.n_rows
    if max_epochs is not None or not n:
        return settings, limits
    if batches.in_memory and n <= FEW_SAMPLES:
        return settings._replace(learner=Batch()), Limits(epochs=BATCH_EPOCHS)
    return settings, Limits(epochs=-(-ONLINE_SAMPLES // n))


def _resumed(
    state: State, n_atoms: int, settings: RunSettings, init: Any, batches: Batches
) -> State:
    """Return a copy of the state; raise ValueError if it belongs to another problem or data set."""
    check_state(state, n_atoms, batches.n_features, batches.dtype)
    if init is not None:
        message = "init and state exclude each other: a state has a dictionary already"
        raise ValueError(message)
    settings.check_same(state)
    check_suits(state.learner, stream=batches.n_rows is None, missing=batches.has_missing)
    if state.n_rows is not None and state.n_rows != batches.n_rows:
        now = "is a stream" if batches.n_rows is None else f"has {batches.n_rows}"
        message = (
            f"the state was created from {state.n_rows} samples, but this data {now}: to learn "
            "from other data, start from its dictionary with init=state.D, or use partial_fit"
        )
        raise ValueError(message)
    return state.copy()


def _warn_if_mostly_short(history: Sequence[Record]) -> None:
    """Warn if the error bound of the coder was out of reach for most samples of the last step."""
    last = history[-1]
    count = last.samples - (history[-2].samples if len(history) > 1 else 0)
    if 2 * last.short > count > 0:
        message = (
            f"eps is out of reach for {last.short} of the {count} samples of the last step: their "
            "codes are least-squares solutions. Raise eps or n_atoms (Record.short has the counts)"
        )
        warn(message)
