"""The state of a run before its first step."""

from __future__ import annotations

import numbers
import time
from typing import Any

import numpy as np

from smalto.checks import Array, Rows, are_ordinary, as_dictionary, check_scale, is_built_in
from smalto.constraints.base import Constraint
from smalto.learning.batches.base import Batches
from smalto.learning.dictionary.new_atoms import RESERVOIR, as_atom, directions
from smalto.learning.dictionary.sweep import project_atoms
from smalto.learning.learners.base import check_suits
from smalto.learning.memory.state import State
from smalto.learning.run_settings import RunSettings

_SAMPLE_ROWS = 2048  # samples, at least, from which the first dictionary and λ are chosen
_MORE = 8  # times as many samples are looked at if all are zero
_GLANCE = 64  # samples that are looked at if nothing is to be chosen


def initial_state(
    batches: Batches,
    n_atoms: int,
    settings: RunSettings,
    init: Any,
    random_state: Any,
    n_threads: int,
    *,
    stream: bool = False,
) -> State:
    """Return the state before the first step; some samples decide what the settings leave open.

    With ``stream``, the batches are only the beginning of the data.
    """
    coder, constraint, learner, replacement, continuation = settings.complete()
    seed = as_seed(random_state)
    n_rows = None if stream else batches.n_rows
    check_suits(learner, stream=n_rows is None, missing=batches.has_missing)
    count = max(_SAMPLE_ROWS, 2 * n_atoms)
    decided = init is not None and is_built_in(coder) and not coder.undecided
    began = time.perf_counter()
    samples = batches.first_samples(_GLANCE if decided else count, seed)
    if decided and not are_ordinary(samples.signals.X, batches.dtype):
        samples = batches.first_samples(count, seed)
    while _is_zero(samples.signals.X) and batches.n_rows is not None and count < batches.n_rows:
        count *= _MORE
        samples = batches.first_samples(count, seed)
    waited = time.perf_counter() - began if batches.n_rows is None else 0.0
    sample = samples.signals.X
    check_scale("the samples", sample, batches.dtype)
    if _is_zero(sample) and (coder.undecided or not stream):
        message = (
            f"all of the {sample.shape[0]} samples looked at are zero or masked: "
            f"nothing to learn {'lam from: give one, as in Lasso(lam=0.1)' if stream else 'from'}"
        )
        raise ValueError(message)
    D, constraint = _first_dictionary(init, sample, n_atoms, batches, constraint, seed)
    learner = learner.resolve(n_atoms, n_rows)
    stats, store = learner.begin(D, n_rows)
    room = min(RESERVOIR, max(n_atoms, 8))
    return State(
        D=D,
        stats=stats,
        coder=coder.resolve_for(samples.by_weight(), D, n_threads),
        constraint=constraint,
        learner=learner,
        seed=seed,
        surrogate=0.0,
        last_used=np.zeros(n_atoms, np.int64),
        worst=np.zeros((room, batches.n_features), batches.dtype),
        worst_cost=np.zeros(room),
        store=store,
        n_rows=n_rows,
        seconds=waited,
        replacement=replacement,
        continuation=continuation,
    )


def _is_zero(X: Rows) -> bool:
    return not (X.max() > 0 or X.min() < 0)


def _first_dictionary(
    init: Any, sample: Rows, n_atoms: int, batches: Batches, constraint: Constraint, seed: int
) -> tuple[Array, Constraint]:
    """Return the first atoms, from ``init`` or from samples, and the set that they lie in."""
    if init is not None:
        D = as_dictionary(init, batches.n_features, batches.dtype, name="init").copy()
        if len(D) != n_atoms:
            message = f"init has {len(D)} atoms, expected {n_atoms}"
            raise ValueError(message)
        constraint = constraint.begun(D)
        project_atoms(D, constraint)
        return D, constraint
    rng = np.random.default_rng(seed)
    D = directions(sample, rng.permutation(sample.shape[0]), n_atoms, rng)
    constraint = constraint.begun(D)
    return np.stack([as_atom(row, constraint) for row in D]), constraint


def check_random_state(random_state: Any) -> None:
    """Raise unless it is something that seeds can be made from, or None."""
    if not isinstance(random_state, np.random.Generator | np.random.RandomState):
        as_seed(random_state)


def as_seed(random_state: Any) -> int:
    """Return an integer seed from a random_state as in scikit-learn or NumPy."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, numbers.Integral):
        if random_state < 0:
            message = f"random_state must be >= 0, got {random_state}"
            raise ValueError(message)
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 62))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(1 << 31))
    message = (
        f"random_state must be None, an integer, a Generator or a RandomState, got {random_state!r}"
    )
    raise TypeError(message)
