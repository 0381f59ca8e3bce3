"""The state of a run before its first step."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from smalto.checks import as_dictionary
from smalto.coders.base import Coder, check_coder, resolved
from smalto.coders.coding import refuse_calibration
from smalto.coders.lasso import Lasso
from smalto.constraints import (
    Adaptive,
    Constraint,
    L2Ball,
    check_constraint,
    project_checked,
)
from smalto.learning.batches.samples import SampleSet
from smalto.learning.dictionary.replacement import RESERVOIR, as_atom, directions
from smalto.learning.learners.base import Learner, check_learner
from smalto.learning.learners.online import Online
from smalto.learning.memory.state import State
from smalto.sources import Order, Ordered

_SAMPLE_ROWS = 2048  # rows from which the first dictionary and lam are made
_SAMPLE_EPOCH = 1 << 40  # their order is that of an epoch that never comes


def begin(
    samples: SampleSet,
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
    """Decide from a sample of the data what a run starts with.

    With ``stream`` the data is only its beginning: fewer samples than atoms are no error, and
    learners that need a fixed data set refuse.
    """
    coder = Lasso() if coder is None else check_coder(coder)
    constraint = L2Ball() if constraint is None else check_constraint(constraint)
    learner = Online() if learner is None else check_learner(learner)
    data = samples.source
    seed = as_seed(random_state)
    if init is None and data.n_rows < n_atoms and not stream:
        message = (
            f"n_samples={data.n_rows} is fewer than the {n_atoms} atoms asked for: "
            f"ask for fewer atoms or give a first dictionary as init"
        )
        raise ValueError(message)
    order = data.order(seed) if isinstance(data, Ordered) else Order(data.n_rows, seed)
    drawn = samples.take(np.sort(order.take(_SAMPLE_EPOCH, 0, sample_size(n_atoms))))
    sample = drawn.signals.X
    if not (sample.max() > 0 or sample.min() < 0):
        message = f"all of the {sample.shape[0]} samples looked at are zero or masked: nothing to learn from"
        raise ValueError(message)
    if init is not None:
        D = as_dictionary(init, data.n_features, data.dtype, name="init").copy()
        if len(D) != n_atoms:
            message = f"init has {len(D)} atoms, asked for are {n_atoms}"
            raise ValueError(message)
    else:
        rng = np.random.default_rng(seed)
        D = directions(sample, rng.permutation(sample.shape[0]), n_atoms, rng)
    if isinstance(constraint, Adaptive):
        constraint = constraint.begun(D)
    if init is None:
        D = np.stack([as_atom(row, constraint) for row in D])
    else:
        for atom in D:
            project_checked(constraint, atom)
    n_rows = None if stream else data.n_rows
    learner = learner.resolve(n_atoms, n_rows)
    if samples.mask is not None or samples.missing is not None:
        refuse_calibration(coder)
        if isinstance(learner, Online) and learner.memory == "replace":
            message = (
                "memory='replace' cannot take back what missing entries were filled with: learn "
                "with memory='two-epochs' or with Batch()"
            )
            raise ValueError(message)
    stats, store = learner.begin(D, n_rows)
    room = min(RESERVOIR, max(n_atoms, 8))
    return State(
        D=D,
        stats=stats,
        coder=resolved(coder, sample, D, n_threads),
        constraint=constraint,
        learner=learner,
        seed=seed,
        surrogate=0.0,
        last_used=np.zeros(n_atoms, np.int64),
        worst=np.zeros((room, data.n_features), data.dtype),
        worst_cost=np.zeros(room),
        store=store,
        n_rows=n_rows,
    )


def sample_size(n_atoms: int) -> int:
    """How many samples decide what a run starts with."""
    return max(_SAMPLE_ROWS, 2 * n_atoms)


def as_seed(random_state: Any) -> int:
    """An integer from what scikit-learn and NumPy users pass as random_state."""
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
