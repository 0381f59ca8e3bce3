"""Online learning: Algorithm 1 with the refinements of Section 3.4."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from smalto.checks import Array, check_integer, check_number
from smalto.learning.dictionary.feature_sweep import View, sweep_view, view_at
from smalto.learning.dictionary.sweep import sweep
from smalto.learning.learners.base import Learner
from smalto.learning.memory.code_store import CodeStore
from smalto.learning.memory.contributions import Contribution
from smalto.learning.memory.state import State
from smalto.learning.memory.statistics import Stats

# Chosen by measurement: see benchmarks/peers/defaults.py.
DEFAULT_RHO = 5.0


@dataclass(frozen=True)
class Online(Learner):
    """Draw a mini-batch, code it, add it to the statistics of the past, update the dictionary.

    Parameters
    ----------
    batch_size : int, optional
        Samples drawn at each step (the paper's η). By default two per atom, but at least 512,
        at most 4 096 and at most a tenth of the data (while that is at least 64); and more, up
        to 4 096, where an epoch has more than 2 048 steps.
    rho : float, optional
        How fast the past is forgotten: a sample seen at step i has weight (i/t)^rho at step t
        (Section 3.4.2). The first batch is never decayed, so that ``t0`` keeps its meaning.
        The default is 5, and 0 with ``memory="replace"``, which forgets nothing.
    t0 : float, default 0
        Weight of the initial dictionary: the past starts as A = t0 I, B = t0 D₀, which slows
        the first steps down (Section 3.4.4). In units of one batch.
    memory : {"two-epochs", "replace", "all"}
        What is kept of earlier visits of the same samples (Section 3.4.1). "two-epochs" drops
        what is older than the last epoch and this one; "replace" keeps every sample's last
        code and replaces its contribution exactly when it is seen again, which is block
        coordinate descent on the joint cost (for data of moderate size: it stores all codes);
        "all" keeps everything.
    sweeps : int, default 1
        Passes over the atoms in each dictionary update.
    features : float, optional
        For very many features: the share of them that a step looks at, another one at each
        step. Coding and the dictionary update cost so much less; codes are those of what is
        seen, and the surrogate is not recorded.
    """

    batch_size: int | None = None
    rho: float | None = None
    t0: float = 0.0
    memory: Literal["two-epochs", "replace", "all"] = "two-epochs"
    sweeps: int = 1
    features: float | None = None

    def __post_init__(self) -> None:
        if self.batch_size is not None:
            check_integer("batch_size", self.batch_size)
        check_integer("sweeps", self.sweeps)
        check_number("t0", self.t0, low=0)
        if self.rho is not None:
            check_number("rho", self.rho, low=0)
        if self.features is not None:
            check_number("features", self.features, low=0, high=1, strict=True)
        if self.memory not in ("two-epochs", "replace", "all"):
            message = f"memory must be 'two-epochs', 'replace' or 'all', got {self.memory!r}"
            raise ValueError(message)
        if self.memory == "replace" and self.rho:
            message = f"memory='replace' forgets nothing, so rho must be 0 or None, got {self.rho}"
            raise ValueError(message)

    def resolve(self, n_atoms: int, n_rows: int | None) -> Online:
        """Return this learner with the batch size and rho decided."""
        size = self.batch_size
        if size is None:
            known = 0 if n_rows is None else n_rows
            size = min(max(512, 2 * n_atoms, known // 2048), 4096)
            if n_rows is not None:
                size = min(size, max(64, n_rows // 10))
        rho = self.rho
        if rho is None:
            rho = 0.0 if self.memory == "replace" else DEFAULT_RHO
        return replace(self, batch_size=size, rho=rho)

    def refusal(self, *, stream: bool, missing: bool) -> str | None:
        """Refuse what ``memory="replace"`` cannot do."""
        if self.memory != "replace":
            return None
        if stream:
            return "memory='replace' needs a fixed data set: it has no meaning for a stream"
        if missing:
            return (
                "memory='replace' cannot take back what missing entries were filled with: learn "
                "with memory='two-epochs' or with Batch()"
            )
        return None

    def rows_per_step(self, n_rows: int) -> int:
        """Return the batch size."""
        return self._size

    @property
    def _size(self) -> int:
        assert self.batch_size is not None, "resolve() comes first"
        return self.batch_size

    def begin(self, D: Array, n_rows: int | None) -> tuple[tuple[Stats, ...], CodeStore | None]:
        """Return the past before anything has been seen."""
        first = Stats.zeros(*D.shape)
        first.A[np.diag_indices(len(D))] = self.t0
        first.B[:] = self.t0 * D
        first.constant = 0.5 * self.t0 * float(np.vdot(D, D))
        parts = (first, Stats.zeros(*D.shape)) if self.memory == "two-epochs" else (first,)
        if self.memory != "replace":
            return parts, None
        assert n_rows is not None, "refusal() comes first"
        return parts, CodeStore.empty(n_rows, D.dtype)

    def forget(self, state: State, n_new: int) -> None:
        """Scale the past before ``n_new`` samples join it."""
        if not self.rho or state.samples < self._size:
            return
        beta = (state.samples / (state.samples + n_new)) ** self.rho
        for part in state.stats:
            part.decay(beta)
        state.surrogate *= beta

    def learn_from(self, state: State, new: Contribution, numbers: Array, n_threads: int) -> None:
        """Add coded samples to the past; where codes are stored, take the old ones out."""
        weight = 1.0 / self._size
        if state.store is not None:
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
        """Move the dictionary towards the minimum of the surrogate."""
        seen = self.view(state)
        if seen is not None:
            for _ in range(self.sweeps):
                sweep_view(state.D, state.stats, state.constraint, seen, n_threads)
            state.surrogate = float("nan")
            return
        for _ in range(self.sweeps):
            state.surrogate += sweep(state.D, state.stats, state.constraint, n_threads)
        if state.store is not None:
            state.measure_surrogate()

    def view(self, state: State) -> View | None:
        """Return the features that the next step looks at; None is all of them."""
        if self.features is None:
            return None
        return view_at(state.step, self.features, state.D.shape[1], state.seed)

    def end_epoch(self, state: State) -> None:
        """Drop the epoch before this one (memory="two-epochs")."""
        if self.memory == "two-epochs":
            old, new = state.stats
            old.clear()
            state.stats = (new, old)
            state.measure_surrogate()
