"""The base class of learners."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from smalto.checks import Array, check_integer, check_role, named
from smalto.learning.dictionary.feature_sweep import View
from smalto.learning.memory.code_store import CodeStore
from smalto.learning.memory.contributions import Addition
from smalto.learning.memory.state import State
from smalto.learning.memory.statistics import Stats


class Learner(ABC):
    """Abstract base class of learners: they keep statistics of the past and update the dictionary.

    A learner is a frozen dataclass of settings. Everything that changes is in the `State`.

    See Also
    --------
    smalto.learning.register : Let files contain a learner of your own.
    """

    whole_data: ClassVar[bool] = False
    """Whether each step draws the whole data set and forgets all but the dictionary."""

    @property
    def has_surrogate(self) -> bool:
        """Whether `update` leaves the surrogate of the past in ``state.surrogate`` (else NaN)."""
        return True

    def resolve(self, n_atoms: int, n_rows: int | None) -> Learner:
        """Return this learner with the settings that depend on the size of the problem decided."""
        return self

    def refusal(self, *, stream: bool, missing: bool) -> str | None:
        """Return why this learner cannot learn from such data, or None if it can."""
        return None

    @abstractmethod
    def rows_per_step(self, n_rows: int) -> int:
        """Return the number of samples that a step draws, in the long run."""

    def rows_after(self, samples: int, n_rows: int) -> int:
        """Return the number of samples that the step after so many samples draws."""
        return self.rows_per_step(n_rows)

    @abstractmethod
    def begin(self, D: Array, n_rows: int | None) -> tuple[tuple[Stats, ...], CodeStore | None]:
        """Return the statistics and code store of a new run; ``n_rows`` is None for a stream."""

    @abstractmethod
    def forget(self, state: State, n_new: int) -> None:
        """Scale the statistics of the past before ``n_new`` samples are added."""

    @abstractmethod
    def learn_from(self, state: State, new: Addition, numbers: Array, n_threads: int) -> None:
        """Add coded samples, with these numbers in the data set, to the statistics."""

    @abstractmethod
    def update(self, state: State, n_new: int, n_threads: int) -> None:
        """Update the dictionary, after ``n_new`` samples were added.

        It may be called again from the same dictionary with another ``state.constraint``, in
        search of a wanted density: it should change nothing else but the surrogate.
        """

    def end_epoch(self, state: State) -> None:
        """Update the statistics at the end of an epoch."""

    def slack_after(self, samples: int, n_atoms: int) -> float:
        """Return the share of λ by which codes may violate optimality after so many samples.

        By default it is 0: codes are exact.
        """
        return 0.0

    def view(self, state: State) -> View | None:
        """Return the features that the next step looks at, or None for all."""
        return None


def rows_drawn(learner: Learner, samples: int, n_rows: int) -> int:
    """Return the number of samples that the step after so many draws; raise if it is not positive."""
    with named(learner, "rows_after"):
        rows = learner.rows_after(samples, n_rows)
    return check_integer(f"the number of samples that {type(learner).__name__} draws", rows)


def check_suits(learner: Learner, *, stream: bool, missing: bool) -> None:
    """Raise ValueError if the learner cannot learn from such data."""
    refusal = learner.refusal(stream=stream, missing=missing)
    if refusal is not None:
        raise ValueError(refusal)


def check_learner(learner: Any) -> Learner:
    """Raise TypeError unless ``learner`` is a learner; hint at missing parentheses."""
    check_role("learner", learner, Learner, "Online()")
    return learner  # type: ignore[no-any-return]
