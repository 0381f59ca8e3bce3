"""The whole state of a run: with it and the data, learning goes on as if never stopped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.coders.base import Coder
from smalto.constraints import Adaptive
from smalto.learning.memory.code_store import CodeStore
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
    replacement, continuation : optional
        The other settings of the run.
    """

    D: Array
    stats: tuple[Stats, ...]
    coder: Coder
    constraint: Any
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
    replacement: Replacement | None = None
    continuation: Continuation | None = None

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
        if isinstance(self.constraint, Adaptive):
            for atom in D:
                self.constraint.project(atom)
        return D

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


@dataclass(frozen=True)
class Record:
    """What one step did: a line of the history, and what callbacks are given.

    Costs are means per sample. ``batch_cost`` is that of the step's samples over the
    dictionary before the update, ``surrogate`` that of the past after it (None for SGD, which
    has no past), ``test_cost`` that of the validation set where it was evaluated; ``density``
    is the share of nonzero entries of the dictionary, ``short`` the number of samples for which
    a coder's bound on the error was out of reach.
    """

    step: int
    epoch: int
    samples: int
    seconds: float
    batch_cost: float
    surrogate: float | None
    test_cost: float | None
    mean_nonzeros: float
    replaced: int
    density: float
    lam: float | None
    short: int = 0


def as_state(state: Any) -> State:
    """Refuse what is not a state."""
    if not isinstance(state, State):
        message = f"state must be a State, such as Result.state, got {type(state).__name__}"
        raise TypeError(message)
    return state


def check_state(state: State, n_atoms: int, n_features: int, dtype: np.dtype[Any]) -> None:
    """Refuse a state that does not belong to this data and dictionary size."""
    if state.D.shape != (n_atoms, n_features):
        message = (
            f"state holds {state.D.shape[0]} atoms of {state.D.shape[1]} features, "
            f"asked for are {n_atoms} atoms of {n_features} features"
        )
        raise ValueError(message)
    if state.D.dtype != dtype:
        message = f"state was made from {state.D.dtype} data, this data is {dtype}"
        raise ValueError(message)
