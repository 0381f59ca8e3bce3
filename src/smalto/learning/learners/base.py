"""What a learner is: how the past is kept, and how the dictionary follows from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from smalto.checks import Array, check_role
from smalto.learning.dictionary.feature_sweep import View
from smalto.learning.memory.code_store import CodeStore
from smalto.learning.memory.contributions import Contribution
from smalto.learning.memory.state import State
from smalto.learning.memory.statistics import Stats


class Learner(ABC):
    """How a dictionary is learned: subclass it as a frozen dataclass of settings.

    Everything that changes is in the `State`.
    """

    whole_data: ClassVar[bool] = False
    """Whether each step draws the whole data set and starts from nothing but the dictionary."""

    def resolve(self, n_atoms: int, n_rows: int | None) -> Learner:
        """Return this learner with what depends on the size of the problem decided."""
        return self

    def refusal(self, *, stream: bool, missing: bool) -> str | None:
        """Say why this learner cannot learn from such data; None if it can."""
        return None

    @abstractmethod
    def rows_per_step(self, n_rows: int) -> int:
        """Return how many samples a step draws."""

    @abstractmethod
    def begin(self, D: Array, n_rows: int | None) -> tuple[tuple[Stats, ...], CodeStore | None]:
        """Return the past before anything has been seen; n_rows is None for a stream."""

    @abstractmethod
    def forget(self, state: State, n_new: int) -> None:
        """Scale the past before n_new samples join it."""

    @abstractmethod
    def learn_from(self, state: State, new: Contribution, numbers: Array, n_threads: int) -> None:
        """Add coded samples to the past."""

    @abstractmethod
    def update(self, state: State, n_new: int, n_threads: int) -> None:
        """Move the dictionary."""

    def end_epoch(self, state: State) -> None:
        """Do what is to be done when every sample has been seen once more."""

    def view(self, state: State) -> View | None:
        """Return the features that the next step looks at; None is all of them."""
        return None


def check_learner(learner: Any) -> Learner:
    """Raise TypeError unless ``learner`` is a learner; hint at missing parentheses."""
    check_role("learner", learner, Learner, "Online()")
    return learner  # type: ignore[no-any-return]
