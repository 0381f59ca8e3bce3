"""A callback that stops the run when the cost no longer falls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
        best, waited = float("inf"), 0
        for _, cost in evaluations:
            improves = cost < best * (1.0 - self.tol)
            best, waited = (cost, 0) if improves else (best, waited + 1)
        return waited >= self.patience


_FIRST = 8  # steps
_in_schedule = schedule(None)


def _is_due(step: int) -> bool:
    """Return whether the batches are judged after this step."""
    return step >= _FIRST and _in_schedule(step)


def _costs(state: State) -> Iterator[tuple[int, float]]:
    """Yield each step at which the cost was evaluated, and the cost."""
    if any(record.test_cost is not None for record in state.history):
        for record in state.history:
            if record.test_cost is not None:
                yield record.step, record.test_cost
        return
    is_whole = isinstance(state.learner, Batch)
    since: list[float] = []
    for record in state.history:
        if is_whole and record.surrogate is not None:  # not of a part of the data
            since = [record.surrogate]
        elif not is_whole:
            since.append(record.batch_cost)
        if since and _is_due(record.step):
            yield record.step, sum(since) / len(since)
            since = []
