"""Learning from samples that arrive one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from smalto.checks import Array, check_integer, float_dtype
from smalto.coders._encode import encode
from smalto.coders.base import Coder
from smalto.constraints import Constraint
from smalto.learning.batches.dataset import DatasetBatches
from smalto.learning.batches.stream import check_takes_streams
from smalto.learning.initial_state import check_random_state, initial_state
from smalto.learning.learners.base import Learner, rows_drawn
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State, as_state
from smalto.learning.options import Continuation, Replacement
from smalto.learning.run import Run
from smalto.learning.run_settings import RunSettings, check_seed
from smalto.sources import ArraySource
from smalto.threads import resolve_threads


class OneByOne:
    """A dictionary that learns from samples that arrive one at a time.

    Samples are collected until there are enough for a step of the learner, which then updates the
    dictionary. Samples that wait for the next step are not part of the state: after
    ``OneByOne(..., state=State.load(path))``, continue with sample number ``state.samples``
    (counted from 0).

    Parameters
    ----------
    n_atoms : int
        Number k of atoms.
    coder, constraint, learner, init, replacement, continuation, n_threads, random_state
        As in `smalto.learn`. The samples of the first step decide what these leave open.
    state : State, optional
        Continue from this state.

    Attributes
    ----------
    state : State or None
        Everything learned so far; None before the first step. Its history has the last step only.

    See Also
    --------
    smalto.DictionaryLearning : Its ``partial_fit`` takes batches.
    smalto.sources.Stream : Batches from an iterable.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.coders import Lasso
    >>> from smalto.learners import Online
    >>> from smalto.learning import OneByOne
    >>> model = OneByOne(6, Lasso(0.1), learner=Online(batch_size=50), random_state=0)
    >>> for x in np.random.default_rng(0).standard_normal((120, 4)):
    ...     record = model.learn_one(x)
    >>> model.state.samples
    100
    >>> model.flush().samples
    120
    >>> sorted(model.encode_one({"a": 0.0, "b": 0.0, "c": 0.0, "d": 0.0}))
    []
    """

    def __init__(
        self,
        n_atoms: int,
        coder: Coder | None = None,
        constraint: Constraint | None = None,
        learner: Learner | None = None,
        *,
        init: Any = None,
        replacement: Replacement | None = None,
        continuation: Continuation | None = None,
        state: State | None = None,
        n_threads: int | None = None,
        random_state: Any = None,
    ) -> None:
        n_atoms = check_integer("n_atoms", n_atoms)
        self._settings = RunSettings.of(coder, constraint, learner, replacement, continuation)
        self.state = None if state is None else as_state(state).copy()
        if self.state is not None:
            if len(self.state.D) != n_atoms:
                message = f"state has {len(self.state.D)} atoms, expected {n_atoms}"
                raise ValueError(message)
            if init is not None:
                message = "init and state exclude each other: a state has its dictionary"
                raise ValueError(message)
            self._settings.check_same(self.state)
            check_random_state(random_state)
            check_seed(random_state, self.state)
        chosen = self._settings.complete()[2] if self.state is None else self.state.learner
        check_takes_streams(chosen)
        self._learner = chosen.resolve(n_atoms, None)
        self._start = (n_atoms, self._settings, init, random_state)
        self._threads = resolve_threads(n_threads)
        self._names: list[Any] | None = None  # of the features, if samples are mappings
        self._gathered: list[Array] = []

    def learn_one(self, x: Any) -> Record | None:
        """Add a sample, an array (m,) or a mapping; return the record if this completes a step."""
        self._gathered.append(self._vector(x))
        seen = 0 if self.state is None else self.state.samples
        return self.flush() if len(self._gathered) >= rows_drawn(self._learner, seen, 0) else None

    def flush(self) -> Record | None:
        """Learn from the waiting samples now; return the record, or None if there are none.

        If that fails, the samples are dropped, and what was learned before stays.
        """
        if not self._gathered:
            return None
        gathered, self._gathered = np.stack(self._gathered), []
        batches = DatasetBatches(ArraySource.of(gathered))
        with Run(self._threads) as run:
            if self.state is None:
                state = initial_state(batches, *self._start, self._threads, stream=True)
            else:
                state = self.state.copy()  # which stays as it is if the step fails
            state.history.clear()  # keep the last record only: the run may have no end
            run.single_step(state, batches.whole(state.place + len(gathered)))
        self.state = state
        if run.interrupted():
            raise KeyboardInterrupt
        return state.history[-1]

    def encode_one(self, x: Any) -> dict[int, float]:
        """Return the nonzero coefficients of a sample, as a dict from atom numbers to values."""
        if self.state is None:
            message = "nothing has been learned yet: flush() learns from the samples given so far"
            raise ValueError(message)
        x = self._vector(x)
        code = encode(x[None, :], self.state.D, self.state.coder.fixed(), n_threads=1)
        pairs = zip(code.indices.tolist(), code.data.tolist(), strict=True)
        return {atom: value for atom, value in pairs if value}

    def _vector(self, x: Any) -> Array:
        """Return a sample as an array of the same shape and dtype as the earlier ones."""
        if isinstance(x, Mapping):
            if self._names is None:
                self._names = sorted(x)
            if x.keys() != set(self._names):
                message = f"a sample has the features {sorted(x)}, expected {self._names}"
                raise ValueError(message)
            x = [x[name] for name in self._names]
        vector = np.array(x)
        if vector.ndim != 1 or vector.dtype.kind not in "fiub" or not np.isfinite(vector).all():
            message = f"a sample must be a vector of finite numbers, got {x!r:.80}"
            raise ValueError(message)
        like = self._gathered[0] if self._gathered else None
        if like is None and self.state is not None:
            like = self.state.D[0]
        if like is None:
            return vector.astype(float_dtype(vector.dtype))
        if vector.shape != like.shape:
            message = f"a sample has {len(vector)} features, expected {len(like)}"
            raise ValueError(message)
        return vector.astype(like.dtype)
