"""When learning ends before ``max_iter``: scikit-learn's tests, as callbacks of smalto's runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from smalto.checks import Array, check_integer, check_number
from smalto.learning import Record, State

MOST_PATIENCE = 100  # steps
TENTHS = 10  # of a pass: what ``max_no_improvement`` counts, at its default a whole pass
LEAST_GAIN = 1e-3  # share by which a smoothed cost must be lower to be a new minimum


@dataclass
class SmallGain:
    """Stop a run over all samples when a step lowers the cost by less than a share of it."""

    tol: float
    costs: list[float] = field(default_factory=list)  # of all samples, after each step

    def __call__(self, state: State, record: Record) -> bool:
        """Return whether to stop after this step; new atoms must be given another one."""
        before = self.costs[-1] if self.costs else math.inf
        assert record.surrogate is not None
        self.costs.append(record.surrogate * (state.n_rows or 0))
        return record.replaced == 0 and before - self.costs[-1] < self.tol * self.costs[-1]


@dataclass
class Plateau:
    """Stop a run over mini-batches when atoms hardly move, or the smoothed cost does not fall.

    Parameters
    ----------
    tol : float
        Stop when atoms have moved by at most this.
    max_no_improvement : int, optional
        Stop when the smoothed cost has reached no new minimum in this number of steps, and in this
        number of tenths of a pass (of a hundred steps if a pass has more): batches differ.
    n_samples : int
        Size of the data: each sample counts ``1/n_samples`` in the smoothed cost.
    batch_size : int
        Number of samples in each step. In the first pass, or its first hundred steps, nothing is
        tested.
    """

    tol: float
    max_no_improvement: int | None
    n_samples: int
    batch_size: int
    _steps: int = 0
    _smooth: float = 0.0
    _least: float = math.inf
    _waited: int = 0

    @classmethod
    def of(cls, model: Any, n_samples: int, batch_size: int) -> Self:
        """Return the tests that the parameters of an estimator ask for."""
        waits = model.max_no_improvement
        if waits is not None:
            waits = check_integer("max_no_improvement", waits, low=0)
        return cls(check_number("tol", model.tol, low=0), waits, n_samples, batch_size)

    def ends(self, rows: int, cost: float, moved: float) -> bool:
        """Return whether to stop after a step with so many rows, their mean cost, and a move."""
        self._steps += 1
        # A mean at first, so that a single batch of low cost is not taken for a minimum.
        share = max(1 / self._steps, min(1.0, rows / (self.n_samples + 1)))
        self._smooth += share * (cost - self._smooth)
        patience = min(MOST_PATIENCE, self.n_samples / self.batch_size)
        if self._steps <= patience:
            return False
        if self.tol > 0 and moved <= self.tol:
            return True
        improves = self._smooth < (1 - LEAST_GAIN) * self._least
        self._waited = 0 if improves else self._waited + 1
        self._least = self._smooth if improves else self._least
        waits = self.max_no_improvement
        return waits is not None and self._waited >= waits * max(1.0, patience / TENTHS)


@dataclass
class AtomsAtRest:
    """The callback around a `Plateau`; atoms move by ``‖D − D_before‖ / k``."""

    plateau: Plateau
    _before: Array | None = None
    _seen: int = 0

    def __call__(self, state: State, record: Record) -> bool:
        """Return whether to stop after this step."""
        moved = math.inf
        if self._before is not None:
            moved = float(np.linalg.norm(state.D - self._before)) / len(state.D)
        self._before = state.D.copy()
        rows, self._seen = record.samples - self._seen, record.samples
        return self.plateau.ends(rows, record.batch_cost, moved)
