"""The whole state of a run: with it and the data, learning goes on as if never stopped."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.coders.base import Coder
from smalto.constraints import Constraint
from smalto.constraints.density import DensitySearch, density
from smalto.learning.memory.code_store import CodeStore
from smalto.learning.memory.record import Record
from smalto.learning.memory.statistics import Stats
from smalto.learning.options import Continuation, Replacement


@dataclass
class State:
    """Everything a run needs to go on, bit for bit.

    Attributes
    ----------
    D : array (k, m)
        The dictionary now.
    stats : tuple of Stats
        The past. Their sum is what the update uses; `Online(memory="two-epochs")` keeps two,
        the last epoch and this one.
    coder, constraint, learner
        The problem and how it is solved; the coder with everything decided (its ``lam``).
    step, epoch, place, samples : int
        Steps done; which epoch this is; how many of its samples are done; samples seen.
    seconds : float
        Time spent learning, without evaluation and callbacks.
    seed : int
        What the order of the samples is derived from.
    surrogate : float
        ``Σ w (½‖x − αD‖² + ψ(α))`` over the past, with codes as they were.
    last_used : array (k,)
        How many samples had been seen when each atom was last used.
    worst, worst_cost : arrays (r, m) and (r,)
        Recent samples that were coded worst, from which atoms are replaced.
    n_rows : int, optional
        Samples of the data set; None for a stream.
    store : CodeStore, optional
        Every sample's last code (`Online(memory="replace")`).
    replacement, continuation
        The other settings of the run.
    search : DensitySearch
        Where the search for a wanted density of the atoms stands.
    history : list of Record
        One line per step, from the first on.
    """

    D: Array
    stats: tuple[Stats, ...]
    coder: Coder
    constraint: Constraint
    learner: Any
    seed: int
    surrogate: float
    last_used: Array
    worst: Array
    worst_cost: Array
    store: CodeStore | None = None
    n_rows: int | None = None
    step: int = 0
    epoch: int = 0
    place: int = 0
    samples: int = 0
    seconds: float = 0.0
    replacement: Replacement = field(default_factory=Replacement)
    continuation: Continuation | None = None
    search: DensitySearch = field(default_factory=DensitySearch)
    history: list[Record] = field(default_factory=list)

    def copy(self) -> State:
        """An independent copy."""
        return replace(
            self,
            D=self.D.copy(),
            stats=tuple(part.copy() for part in self.stats),
            last_used=self.last_used.copy(),
            worst=self.worst.copy(),
            worst_cost=self.worst_cost.copy(),
            store=None if self.store is None else self.store.copy(),
            history=list(self.history),
        )

    def save(self, path: str | Path) -> None:
        """Write the state to a file, in place of what is there, in one go.

        The file is a safetensors file, by custom with that ending. It holds no code.
        """
        from smalto.learning.files.state_file import save_state

        save_state(self, path)

    @classmethod
    def load(cls, path: str | Path) -> State:
        """The state in a file that `save` or `Checkpoint` has written.

        Nothing in the file is run. One that is truncated, altered, of another version or
        foreign is refused with the reason.
        """
        from smalto.learning.files.state_file import load_state

        return load_state(path)

    def feasible_D(self) -> Array:
        """A copy of the dictionary with every atom in its set.

        It is there already, unless the set has changed since an atom was last updated.
        """
        D = self.D.copy()
        if self.constraint.adapts:
            for atom in D:
                self.constraint.project(atom)
        return D

    def coder_now(self) -> Coder:
        """The coder of the next step: the problem, eased where continuation says so."""
        return (
            self.coder if self.continuation is None else self.continuation.at(self.coder, self.step)
        )

    def adapt_constraint(self, D: Array) -> None:
        """Move a set that aims at a density of its atoms, as D has it now."""
        self.constraint, self.search = self.constraint.adapted(D, self.search)

    def end_epoch(self) -> None:
        """Note that every sample has been seen once more."""
        self.learner.end_epoch(self)
        self.epoch += 1
        self.place = 0

    def record(
        self,
        batch_cost: float = math.nan,
        mean_nonzeros: float = math.nan,
        *,
        lam: float | None,
        replaced: int = 0,
        short: int = 0,
    ) -> Record:
        """Describe the last step, or the state before the first one, as a line of the history."""
        surrogate = self.mean_surrogate()
        return Record(
            step=self.step,
            epoch=self.epoch,
            samples=self.samples,
            seconds=self.seconds,
            batch_cost=batch_cost,
            surrogate=None if math.isnan(surrogate) else surrogate,
            test_cost=None,
            mean_nonzeros=mean_nonzeros,
            replaced=replaced,
            density=density(self.D),
            lam=lam,
            short=short,
        )

    def move_origin(self, by: Array) -> None:
        """Go on as if ``by`` had been taken off every sample seen so far, codes as they were."""
        for part in self.stats:
            part.move_origin(by)
        self.worst[self.worst_cost > 0] -= by.astype(self.worst.dtype)
        self.measure_surrogate()

    def mean_surrogate(self) -> float:
        """The surrogate f̂ of the paper: the mean cost of the past with codes as they were."""
        weight = sum(part.total_weight() for part in self.stats)
        return self.surrogate / weight if weight > 0 else float("nan")

    def measure_surrogate(self) -> None:
        """Compute the surrogate afresh, after the past or the atoms have been edited."""
        self.surrogate = sum(part.surrogate_sum(self.D) for part in self.stats)


def as_state(state: Any) -> State:
    """Raise TypeError unless ``state`` is a `State`."""
    if not isinstance(state, State):
        message = f"state must be a State, such as Result.state, got {type(state).__name__}"
        raise TypeError(message)
    return state


def check_state(state: State, n_atoms: int, n_features: int, dtype: np.dtype[Any]) -> None:
    """Raise ValueError unless the state fits this data and number of atoms."""
    if state.D.shape != (n_atoms, n_features):
        message = (
            f"state has {state.D.shape[0]} atoms of {state.D.shape[1]} features, "
            f"expected {n_atoms} atoms of {n_features} features"
        )
        raise ValueError(message)
    if state.D.dtype != dtype:
        message = f"the state was created from {state.D.dtype} data, but this data is {dtype}"
        raise ValueError(message)
