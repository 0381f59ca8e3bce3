"""The state of a run: everything but the data that is needed to resume it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from smalto.checks import Array, named, sum_is_finite
from smalto.coders.base import Coder
from smalto.constraints import Constraint
from smalto.constraints.base import INSIDE
from smalto.constraints.density import density
from smalto.learning.memory.code_store import CodeStore
from smalto.learning.memory.record import Record
from smalto.learning.memory.statistics import Stats
from smalto.learning.options import Continuation, Replacement


@dataclass(eq=False, repr=False)
class State:
    """The state of a run, from which `learn` resumes it bit for bit, given the same data.

    Attributes
    ----------
    D : array (k, m)
        The current dictionary.
    stats : tuple of Stats
        Statistics of the past, whose sum the update uses. `Online(memory="two-epochs")` has two,
        of the previous epoch and of this one.
    coder, constraint, learner
        The problem and the method. The coder has all of its parameters decided (such as ``lam``).
    step, epoch, place, samples : int
        Number of steps so far; current epoch, from 0; number of samples (or groups) drawn in this
        epoch; number of samples seen so far.
    seconds : float
        Time spent learning so far, excluding compilation, evaluation and callbacks.
    seed : int
        Determines the order of the samples.
    surrogate : float
        ``Σ w (½‖x − αD‖² + ψ(α))`` over the past, with its old codes.
    last_used : array (k,)
        Number of samples seen when each atom was last used.
    worst, worst_cost : arrays (r, m) and (r,)
        Recent samples that were coded badly, and their costs. They replace unused atoms.
    n_rows : int, optional
        Number of samples in the data set; None for a stream.
    store : CodeStore, optional
        The last code of every sample (`Online(memory="replace")`).
    replacement, continuation
        The other settings of the run.
    history : list of Record
        One record per step since the beginning of the run, also after it was resumed. With a
        validation set, a record of the state before the first step comes first.

    See Also
    --------
    smalto.learning.Checkpoint : Saves the state during a run.
    smalto.Model : The dictionary and its problem, without the state.
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
    history: list[Record] = field(default_factory=list)

    def __repr__(self) -> str:
        k, m = self.D.shape
        return f"<State: {k} atoms of {m} features after step {self.step}, {self.samples} samples>"

    def copy(self) -> State:
        """Return an independent copy."""
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
        """Save the state to a file; an existing one is replaced once the new one is complete.

        The format is safetensors, which contains no code; .safetensors is the usual extension.
        """
        from smalto.learning.files.state_file import save_state

        save_state(self, path)

    @classmethod
    def load(cls, path: str | Path) -> State:
        """Load a state from a file that `save` or `Checkpoint` has written.

        No code in the file is executed. Raise ValueError, with the reason, if the file is
        truncated, altered, of another version or of another kind.
        """
        from smalto.learning.files.state_file import load_state

        return load_state(path)

    def coder_now(self) -> Coder:
        """Return the coder of the next step, with a smaller λ during continuation."""
        return (
            self.coder if self.continuation is None else self.continuation.at(self.coder, self.step)
        )

    def slack_after(self, samples: int) -> float:
        """Return the share of λ by which codes may violate optimality after so many samples."""
        if not self.coder.can_be_rough:
            return 0.0
        return float(self.learner.slack_after(samples, len(self.D)))

    def end_epoch(self) -> None:
        """End the epoch: update the statistics, and count it."""
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
        slack: float = 0.0,
        used: int | None = None,
    ) -> Record:
        """Return the record of the last step, or of the state before the first step."""
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
            slack=slack,
            used=used,
        )

    def move_origin(self, by: Array) -> None:
        """Subtract ``by`` from every sample seen so far, without changing the codes."""
        for part in self.stats:
            part.move_origin(by)
        self.worst[self.worst_cost > 0] -= by.astype(self.worst.dtype)
        self.measure_surrogate()

    def energy(self) -> Array:
        """Return the sum of the squared coefficients of each atom in the codes so far."""
        energy = np.zeros(len(self.D))
        for part in self.stats:
            energy += part.scale * part.A.diagonal()
        return np.maximum(energy, 0.0)

    def mean_surrogate(self) -> float:
        """Return the paper's surrogate f̂: the mean cost of the past, with its old codes."""
        weight = sum(part.total_weight() for part in self.stats)
        return self.surrogate / weight if weight > 0 else float("nan")

    def measure_surrogate(self, n_threads: int = 1) -> None:
        """Recompute the surrogate from the statistics and the dictionary."""
        self.surrogate = sum(part.surrogate_sum(self.D, n_threads) for part in self.stats)


def as_state(state: Any) -> State:
    """Return ``state``; raise TypeError unless it is a `State`."""
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


def check_atoms(culprit: str, D: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise ValueError, with the name of the culprit, unless D is still a finite dictionary."""
    if not isinstance(D, np.ndarray) or D.shape != shape or D.dtype != dtype:
        seen = f"{D.dtype} {D.shape}" if isinstance(D, np.ndarray) else type(D).__name__
        message = f"{culprit} must leave the dictionary {dtype} of shape {shape}, got {seen}"
        raise ValueError(message)
    if sum_is_finite(D):
        return
    bad = np.flatnonzero(~np.isfinite(D).all(axis=1))
    if len(bad):
        message = f"{culprit} wrote NaN or infinity into atom {bad[0]}"
        raise ValueError(message)


def check_inside(culprit: str, D: Array, constraint: Constraint) -> None:
    """Raise ValueError, with the name of the culprit, if an atom is outside of its set."""
    for number, atom in enumerate(D):
        with named(constraint, "gauge"):
            gauge = float(constraint.gauge(atom))
        if not gauge <= INSIDE:
            message = (
                f"{culprit} left atom {number} outside the set {constraint}: its gauge is "
                f"{gauge:.4g}, expected at most 1"
            )
            raise ValueError(message)


def check_sums(culprit: str, stats: tuple[Stats, ...]) -> None:
    """Raise ValueError, with the name of the culprit, unless the statistics are finite."""
    for part in stats:
        sums = (part.A, part.B, part.code_sum, part.sample_sum)
        numbers = np.array([part.constant, part.weight, part.scale])
        if not all(sum_is_finite(each) or np.isfinite(each).all() for each in (*sums, numbers)):
            message = f"{culprit} wrote NaN or infinity into the statistics of the past"
            raise ValueError(message)
