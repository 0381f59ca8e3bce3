"""Stopping when the cost of the validation set no longer falls."""

from __future__ import annotations

from dataclasses import dataclass, field

from smalto.checks import check_integer, check_number
from smalto.learning.callbacks.base import Callback
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State


@dataclass
class EarlyStopping(Callback):
    """Stop when the cost of the validation set has not fallen for some evaluations.

    Parameters
    ----------
    patience : int, default 3
        Evaluations without improvement before it stops.
    tol : float, default 1e-4
        The share by which the cost must fall to count as an improvement.
    """

    patience: int = 3
    tol: float = 1e-4
    _best: float = field(default=float("inf"), init=False, repr=False)
    _waited: int = field(default=0, init=False, repr=False)
    _step: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        check_integer("patience", self.patience)
        check_number("tol", self.tol, low=0)

    def __call__(self, state: State, record: Record) -> bool:
        """Whether to stop."""
        if record.step <= self._step:  # another run has begun
            self._best, self._waited = float("inf"), 0
        self._step = record.step
        if record.test_cost is None:
            return False
        if record.test_cost < self._best * (1.0 - self.tol):
            self._best, self._waited = record.test_cost, 0
            return False
        self._waited += 1
        return self._waited >= self.patience
