"""Online learning: Algorithm 1 of the paper with the refinements of its Section 3.4."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from smalto.checks import Array, check_finite_number, check_integer, check_number
from smalto.coders.scaling import number_exponent
from smalto.learning.dictionary.feature_sweep import View, sweep_view, view_at
from smalto.learning.dictionary.sweep import sweep
from smalto.learning.learners.base import Learner
from smalto.learning.memory.code_store import CodeStore
from smalto.learning.memory.contributions import Addition, Contribution
from smalto.learning.memory.state import State
from smalto.learning.memory.statistics import MANY_ATOMS, Stats

_LARGEST = 4096  # samples of a batch, by default, for dictionaries that are not large
_FIRST = 768  # samples of the first batch, at least, by default
_MANY_SAMPLES = 256  # per atom, from which on the past is forgotten faster
_ROUGH_SAMPLES = 10  # samples per atom after which codes become more and more exact


@dataclass(frozen=True)
class Online(Learner):
    """Online learning (Algorithm 1 of the paper), with the refinements of its Section 3.4.

    Each step draws a mini-batch, codes it, adds it to the statistics of the past, and updates the
    dictionary.

    Parameters
    ----------
    batch_size : int, optional
        Number of samples drawn at each step (the paper's η), once batches have grown to it. The
        default for k atoms and n samples is 2k, but at least 4096; for small data, at most n/10
        (or 64, if that is more).
    rho : float, optional
        How fast the past is forgotten: a sample seen at step i has the weight (i/t)^rho at step t
        (Section 3.4.2). By default it grows: after n samples it is log₂(n/k) for k atoms, and
        √(n/k)/2 from n = 256 k on, so that the last 2√(n k) samples or so count. With
        ``memory="replace"``, which forgets nothing, it is 0.
    t0 : float, default 0
        Weight of the initial dictionary D₀, in batches of ``batch_size``: the statistics start as
        A = t0 I and B = t0 D₀, which slows the first steps down (Section 3.4.4). It is forgotten
        like a batch seen at the first step, and dropped with the first epoch if
        ``memory="two-epochs"``.
    memory : {"two-epochs", "replace", "all"}, optional
        What to keep of earlier visits to the same samples (Section 3.4.1). "two-epochs" keeps
        this epoch and the previous one, "all" keeps everything. "replace" stores the last code
        of every sample, and replaces its contribution exactly when the sample is seen again: this
        is block coordinate descent on the joint cost, for data whose codes fit into memory. The
        default is "two-epochs", and "all" from 8192 atoms on if ``rho`` grows: it needs half the
        space, and what is older is nearly forgotten.
    sweeps : int, default 1
        Number of passes over the atoms in each dictionary update.
    features : float, optional
        Share of the features that a step looks at, for data with very many features. Each step
        chooses others. Coding and the dictionary update are faster in proportion; codes are
        computed from the chosen features only, and the surrogate is not recorded.
    first_batch_size : int, optional
        Number b of samples drawn at the first step. Batches then grow with the number n of samples
        seen, to √(b n)/2, up to ``batch_size``. Early in a run, many small steps learn faster. The
        default is k, but at least 768, or ``batch_size`` if that is given.
    slack : float, default 0.1
        How exact the codes of a step are: coding stops when no atom violates optimality by more than
        this share of λ. After n samples, with k atoms, the share is ``slack √(10 k/n)`` if that is
        less, so that codes become exact as the dictionary does. It saves time with `Lasso`; other
        coders are exact, as are `encode` and the evaluation of held-out samples. 0 makes every code
        exact, as in the paper, and so does ``memory="replace"``.
    keep : float, default 0
        The least share of the past that a step keeps, whatever ``rho`` is. With a large ``rho``
        the first steps would otherwise remember little but their own batch: the paper starts to
        forget "after a few iterations", and the authors' program keeps at least 0.95. With 1
        nothing is forgotten, as with ``memory="replace"``, which needs the default.
    kappa1 : float, default 0
        Weight of a penalty ``kappa1/2 ‖D‖²`` in the dictionary update, which makes the surrogate
        strictly convex (Assumption B of the paper). The recorded surrogate is without it.

    See Also
    --------
    Batch : All samples in every step, for small data.
    SGD : Stochastic gradient descent.
    Replacement : When atoms are replaced.
    Continuation : A penalty that rises in the first steps.
    """

    batch_size: int | None = None
    rho: float | None = None
    t0: float = 0.0
    memory: Literal["two-epochs", "replace", "all"] | None = None
    sweeps: int = 1
    features: float | None = None
    first_batch_size: int | None = None
    slack: float = 0.1
    keep: float = 0.0
    kappa1: float = 0.0

    def __post_init__(self) -> None:
        if self.batch_size is not None:
            check_integer("batch_size", self.batch_size, high=2**53)
        if self.first_batch_size is not None:
            high = 2**53 if self.batch_size is None else self.batch_size
            check_integer("first_batch_size", self.first_batch_size, high=high)
        check_integer("sweeps", self.sweeps, high=10_000)
        check_finite_number("t0", self.t0, low=0)
        check_number("slack", self.slack, low=0, high=1)
        check_number("keep", self.keep, low=0, high=1)
        check_finite_number("kappa1", self.kappa1, low=0)
        if self.rho is not None:
            check_finite_number("rho", self.rho, low=0)
        if self.features is not None:
            check_number("features", self.features, low=0, high=1, strict=True)
            if self.kappa1:
                message = f"kappa1 needs all features of a step, got features={self.features}"
                raise ValueError(message)
        if self.memory not in (None, "two-epochs", "replace", "all"):
            message = f"memory must be 'two-epochs', 'replace' or 'all', got {self.memory!r}"
            raise ValueError(message)
        if self.memory == "replace" and self.rho:
            message = f"memory='replace' forgets nothing, so rho must be 0 or None, got {self.rho}"
            raise ValueError(message)
        if self.memory == "replace" and self.keep:
            message = f"memory='replace' forgets nothing, so keep must be 0, got {self.keep}"
            raise ValueError(message)

    @property
    def has_surrogate(self) -> bool:
        """Whether the surrogate is known: not for steps that look at some features only."""
        return self.features is None

    def resolve(self, n_atoms: int, n_rows: int | None) -> Online:
        """Return this learner with all decided that was left open, but a ``rho`` that grows."""
        size, first = self.batch_size, self.first_batch_size
        if size is None:
            size = max(_LARGEST, 2 * n_atoms)
            if n_rows is not None:
                size = min(size, max(64, n_rows // 10))
            if first is None:
                first = max(_FIRST, n_atoms)
        first = size if first is None else min(first, size)
        rho, memory = self.rho, self.memory
        if memory is None:
            memory = "all" if rho is None and n_atoms >= MANY_ATOMS else "two-epochs"
        elif memory == "replace":
            rho = 0.0
        return replace(self, batch_size=size, first_batch_size=first, rho=rho, memory=memory)

    def refusal(self, *, stream: bool, missing: bool) -> str | None:
        """Return why ``memory="replace"`` cannot learn from such data, or None if it can."""
        if self.memory != "replace":
            return None
        if stream:
            return "memory='replace' needs a fixed data set, not a stream: use memory='two-epochs'"
        if missing:
            return (
                "memory='replace' cannot take back what missing entries were filled with: use "
                "memory='two-epochs' or Batch()"
            )
        return None

    def rows_per_step(self, n_rows: int) -> int:
        """Return the batch size."""
        return self._size

    def rows_after(self, samples: int, n_rows: int) -> int:
        """Return the number of samples that the step after so many samples draws."""
        first = self.first_batch_size
        assert first is not None, "call resolve() first"
        return min(self._size, max(first, math.isqrt(first * samples) // 2))

    @property
    def _size(self) -> int:
        assert self.batch_size is not None, "call resolve() first"
        return self.batch_size

    def begin(self, D: Array, n_rows: int | None) -> tuple[tuple[Stats, ...], CodeStore | None]:
        """Return the statistics, and the code store if there is one, before the first step."""
        first = Stats.zeros(*D.shape, dtype=D.dtype)
        if self.t0:  # what is never written to takes no memory
            first.A[np.diag_indices(len(D))] = self.t0
            unit = 2.0 ** number_exponent(self.t0)
            first.B[:] = self.t0 / unit * D  # in the dtype of D
            first.B *= unit
            first.constant = 0.5 * self.t0 * float(np.vdot(D, D))
        assert self.memory is not None, "call resolve() first"
        parts: tuple[Stats, ...] = (first,)
        if self.memory == "two-epochs":
            parts = (first, Stats.zeros(*D.shape, dtype=D.dtype))
        if self.memory != "replace":
            return parts, None
        assert n_rows is not None, "call refusal() first"
        return parts, CodeStore.empty(n_rows, D.dtype)

    def forget(self, state: State, n_new: int) -> None:
        """Scale the statistics of the past before ``n_new`` samples are added."""
        if self.rho == 0.0 or state.samples < self.rows_after(0, 0):
            return
        rho = self.rho
        if rho is None:
            rho = _growing(state.samples / len(state.D))
        beta = max(self.keep, (state.samples / (state.samples + n_new)) ** rho)
        for part in state.stats:
            part.decay(beta)
        state.surrogate *= beta

    def learn_from(self, state: State, new: Addition, numbers: Array, n_threads: int) -> None:
        """Add coded samples to the statistics; remove their old codes if these are stored."""
        weight = 1.0 / self._size
        if state.store is not None:
            assert isinstance(new, Contribution), "codes are stored, not sums of them"
            seen = state.store.counts[numbers] >= 0
            if seen.any():
                old, penalties = state.store.fetch(numbers[seen]), state.store.penalties
                Contribution.listed(
                    old, new.X[seen], len(state.D), new.norms[seen], new.costs[seen],
                    penalties[numbers[seen]], None if new.weights is None else new.weights[seen],
                ).add_to(state.stats[-1], -weight, n_threads)  # fmt: skip
            state.store.put(numbers, new.codes, new.penalties)
        new.add_to(state.stats[-1], weight, n_threads)
        state.surrogate += weight * float(new.weighted_costs().sum())

    def update(self, state: State, n_new: int, n_threads: int) -> None:
        """Lower the surrogate over the dictionary."""
        seen = self.view(state)
        if seen is not None:
            for _ in range(self.sweeps):
                sweep_view(state.D, state.stats, state.constraint, seen, n_threads)
            state.surrogate = float("nan")
            return
        ridge = self.kappa1 * sum(part.total_weight() for part in state.stats)
        for _ in range(self.sweeps):
            state.surrogate += sweep(state.D, state.stats, state.constraint, n_threads, ridge)
        if state.store is not None:
            state.measure_surrogate()

    def slack_after(self, samples: int, n_atoms: int) -> float:
        """Return the share of λ by which codes may violate optimality after so many samples."""
        if self.memory == "replace":
            return 0.0
        return self.slack * min(1.0, math.sqrt(_ROUGH_SAMPLES * n_atoms / max(samples, 1)))

    def view(self, state: State) -> View | None:
        """Return the features that the next step looks at, or None for all."""
        if self.features is None:
            return None
        return view_at(state.step, self.features, state.D.shape[1], state.seed)

    def end_epoch(self, state: State) -> None:
        """Drop the statistics of the previous epoch (memory="two-epochs")."""
        if self.memory == "two-epochs":
            old, new = state.stats
            was_used = old.A.diagonal().any()
            old.clear()
            state.stats = (new, old)
            if was_used:
                state.measure_surrogate()


def _growing(share: float) -> float:
    """Return the default ``rho`` after so many samples per atom.

    At first all samples are needed; later on, many were coded over worse dictionaries.
    """
    return max(0.0, math.log2(share)) if share < _MANY_SAMPLES else 0.5 * math.sqrt(share)


def go_online(state: State) -> None:
    """Turn the state after batch learning, in place, into that of `Online` after one epoch."""
    learner, D = Online().resolve(len(state.D), None), state.D
    past = Stats.zeros(*D.shape, dtype=D.dtype)
    for part in state.stats:
        past.add(part, 1.0 / learner.rows_per_step(0))
    n = state.n_rows or 0
    state.learner, state.stats = learner, (Stats.zeros(*D.shape, dtype=D.dtype), past)
    state.store = None
    state.n_rows, state.samples = None, n
    state.last_used = np.where(past.A.diagonal() > 0.0, n, 0)
    state.measure_surrogate()
