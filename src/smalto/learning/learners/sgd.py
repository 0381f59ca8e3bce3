"""Projected stochastic gradient descent, a baseline of the paper."""

from __future__ import annotations

from dataclasses import dataclass

from smalto.checks import Array, check_finite_number, check_integer
from smalto.learning.dictionary.sweep import gradient_step
from smalto.learning.learners.base import Learner
from smalto.learning.memory.code_store import CodeStore
from smalto.learning.memory.contributions import Addition
from smalto.learning.memory.state import State
from smalto.learning.memory.statistics import Stats


@dataclass(frozen=True)
class SGD(Learner):
    """Stochastic gradient descent: ``D ← Π(D − δ_t Σ ∇)`` with the rate ``δ_t = a/(ηt + b)``.

    See Sections 2 and 6.1 of the paper; the defaults are its best settings. The gradients of a
    mini-batch are summed, not averaged: the paper's a and b are meant for the sum. Only the update
    of the dictionary differs from `Online`.

    Parameters
    ----------
    a, b : float
        Parameters of the learning rate, which is a/(batch_size·t + b) at step t.
    batch_size : int, default 512
        Number of samples drawn at each step (the paper's η).

    See Also
    --------
    Online : The method of the paper, which needs no rate.
    """

    a: float = 200_000.0
    b: float = 400_000.0
    batch_size: int = 512

    def __post_init__(self) -> None:
        check_finite_number("a", self.a, low=0, strict=True)
        check_finite_number("b", self.b, low=0)
        check_integer("batch_size", self.batch_size, high=2**53)

    @property
    def has_surrogate(self) -> bool:
        """Whether there is a surrogate: no, nothing is kept of the past."""
        return False

    def rows_per_step(self, n_rows: int) -> int:
        """Return the batch size."""
        return self.batch_size

    def begin(self, D: Array, n_rows: int | None) -> tuple[tuple[Stats, ...], CodeStore | None]:
        """Return the statistics before the first step."""
        return (Stats.zeros(*D.shape, dtype=D.dtype),), None

    def forget(self, state: State, n_new: int) -> None:
        """Clear the statistics: each step uses only its own samples."""
        state.stats[0].clear()
        state.surrogate = float("nan")

    def learn_from(self, state: State, new: Addition, numbers: Array, n_threads: int) -> None:
        """Add coded samples to the statistics."""
        new.add_to(state.stats[0], 1.0, n_threads)

    def update(self, state: State, n_new: int, n_threads: int) -> None:
        """Make one projected gradient step."""
        rate = self.a / (state.samples + n_new + self.b)
        gradient_step(state.D, state.stats[0], rate, state.constraint, n_threads)
