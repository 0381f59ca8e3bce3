"""A callback that stops the run when the cost no longer falls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from smalto.checks import check_integer, check_number
from smalto.learning.callbacks.base import Callback
from smalto.learning.learners.batch import Batch
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State
from smalto.learning.validation import schedule


@dataclass(frozen=True)
class EarlyStopping(Callback):
    """A callback that stops the run when several evaluations of the cost bring no improvement.

    The cost is that of the validation set, each time `learn` evaluates it. Without a validation
    set it is the mean cost of the batches up to step 8, from there to step 12, and so on to steps
    16, 24, 32, 48, ...: more and more batches, since single ones vary. With `Batch`, whose batches
    are all samples, it is that of each of these steps. The whole ``state.history`` counts, also
    after resuming.

    Costs with different λ cannot be compared: where λ has changed, as ``Lasso(mean_nonzeros=10)``
    lets it, the next cost is what later ones are compared with. So it is where NMF goes on to all
    of the data.

    Parameters
    ----------
    patience : int, default 3
        Number of successive evaluations without improvement after which the run stops.
    tol : float, default 1e-4
        Relative decrease from the lowest cost so far that counts as an improvement.

    See Also
    --------
    smalto.learn : Its ``validation`` gives held-out samples.
    """

    patience: int = 3
    tol: float = 1e-4

    def __post_init__(self) -> None:
        check_integer("patience", self.patience)
        check_number("tol", self.tol, low=0)

    def __call__(self, state: State, record: Record) -> bool:
        """Return whether to stop after this step."""
        if record.test_cost is None and not _is_due(record.step):
            return False
        evaluations = list(_costs(state))
        if not evaluations or evaluations[-1][0] != record.step:
            return False
        best, waited, problem = float("inf"), 0, evaluations[0][2]
        for _, cost, now in evaluations:
            if now != problem:
                best, problem = cost, now
            elif cost < best * (1.0 - self.tol):
                best, waited = cost, 0
            else:
                waited += 1
        return waited >= self.patience


_FIRST = 8  # steps
_in_schedule = schedule(None)


def _is_due(step: int) -> bool:
    """Return whether the batches are judged after this step."""
    return step >= _FIRST and _in_schedule(step)


def _costs(state: State) -> Iterator[tuple[int, float, Any]]:
    """Yield each step at which the cost was evaluated, the cost, and what of: equal if comparable."""
    if any(record.test_cost is not None for record in state.history):
        for record in state.history:
            if record.test_cost is not None:
                yield record.step, record.test_cost, record.lam
        return
    is_whole = isinstance(state.learner, Batch)
    since: list[float] = []
    problem: Any = None
    for record in state.history:
        now = (
            record.lam,
            record.surrogate is None,
        )  # the first steps of NMF have a part of the data
        if now != problem:
            since, problem = [], now
        if is_whole and record.surrogate is not None:  # not of a part of the data
            since = [record.surrogate]
        elif not is_whole:
            since.append(record.batch_cost)
        if since and _is_due(record.step):
            yield record.step, sum(since) / len(since), problem
            since = []
