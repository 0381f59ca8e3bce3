"""What a learner is: how the past is kept, and how the dictionary follows from it."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from smalto.checks import Array, check_role
from smalto.learning.memory.code_store import CodeStore
from smalto.learning.memory.state import State
from smalto.learning.memory.statistics import Contribution, Stats


@runtime_checkable
class Learner(Protocol):
    """A frozen dataclass of settings; everything that changes is in the `State`."""

    def resolve(self, n_atoms: int, n_rows: int | None) -> Learner:
        """This learner with what depends on the size of the problem decided."""

    def rows_per_step(self, n_rows: int) -> int:
        """How many samples a step draws."""

    def begin(self, D: Array, n_rows: int | None) -> tuple[tuple[Stats, ...], CodeStore | None]:
        """The past before anything has been seen; n_rows is None for a stream."""

    def forget(self, state: State, n_new: int) -> None:
        """Scale the past before n_new samples join it."""

    def learn_from(self, state: State, new: Contribution, numbers: Array, n_threads: int) -> None:
        """Add coded samples to the past."""

    def update(self, state: State, n_new: int, n_threads: int) -> None:
        """Move the dictionary."""

    def end_epoch(self, state: State) -> None:
        """Every sample has been seen once more."""


def check_learner(learner: Any) -> Learner:
    """Refuse what is not a learner, with the likely slip."""
    check_role("learner", learner, Learner, "Online()")
    return learner  # type: ignore[no-any-return]
