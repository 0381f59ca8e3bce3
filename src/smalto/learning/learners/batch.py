"""Batch learning, a baseline of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from smalto.checks import Array, check_integer
from smalto.learning.dictionary.sweep import sweep
from smalto.learning.learners.base import Learner
from smalto.learning.memory.code_store import CodeStore
from smalto.learning.memory.contributions import Addition
from smalto.learning.memory.state import State
from smalto.learning.memory.statistics import Stats


@dataclass(frozen=True)
class Batch(Learner):
    """Batch learning: code all samples, update the dictionary, repeat (Sections 2 and 6.1).

    Parameters
    ----------
    sweeps : int, default 5
        Number of passes over the atoms in each dictionary update.

    See Also
    --------
    Online : Many small steps per epoch.
    """

    sweeps: int = 5

    def __post_init__(self) -> None:
        check_integer("sweeps", self.sweeps, high=10_000)

    whole_data: ClassVar[bool] = True

    def rows_per_step(self, n_rows: int) -> int:
        """Return the number of samples in the data set."""
        return n_rows

    def begin(self, D: Array, n_rows: int | None) -> tuple[tuple[Stats, ...], CodeStore | None]:
        """Return the statistics before the first step."""
        return (Stats.zeros(*D.shape, dtype=D.dtype),), None

    def forget(self, state: State, n_new: int) -> None:
        """Clear the statistics: each step keeps only the dictionary."""
        state.stats[0].clear()
        state.surrogate = 0.0

    def learn_from(self, state: State, new: Addition, numbers: Array, n_threads: int) -> None:
        """Add coded samples to the statistics."""
        new.add_to(state.stats[0], 1.0, n_threads)
        state.surrogate += float(new.weighted_costs().sum())

    def update(self, state: State, n_new: int, n_threads: int) -> None:
        """Lower the cost over the dictionary, with the codes fixed."""
        for _ in range(self.sweeps):
            state.surrogate += sweep(state.D, state.stats, state.constraint, n_threads)
