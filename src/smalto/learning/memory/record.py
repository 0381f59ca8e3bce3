"""The record of a step, and conversion of the history to an array and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from smalto.checks import Array


@dataclass(frozen=True)
class Record:
    """The record of one step: an entry of ``state.history``, and an argument of callbacks.

    Costs are means per sample.

    Attributes
    ----------
    step, epoch, samples : int
        Number of steps so far; epoch of this step, from 0; number of samples seen so far.
    seconds : float
        Time spent learning so far, excluding compilation, evaluation and callbacks.
    batch_cost : float
        Cost of the samples of the step, over the dictionary before the update.
    surrogate : float or None
        Cost of the past with its old codes, after the update; None if unknown.
    test_cost : float or None
        Cost of the validation set, if it was evaluated after this step.
    mean_nonzeros : float
        Mean number of nonzeros per code.
    replaced : int
        Number of atoms that were replaced.
    density : float
        Share of nonzero entries of the dictionary.
    lam : float or None
        The λ of the coder; None if it has none.
    short : int
        Number of samples whose error exceeds the bound of the coder.
    slack : float
        Share of λ by which the codes of the step may violate optimality, so that ``batch_cost`` and
        ``surrogate`` are above those of exact codes; 0 if codes are exact. ``test_cost`` always is.
    used : int or None
        Number of atoms that the samples of the step use; None if unknown.

    See Also
    --------
    smalto.plot.cost_curve : Plots the costs of a history of records.
    smalto.plot.use_curve : Plots how many atoms were used.
    """

    step: int
    epoch: int
    samples: int
    seconds: float
    batch_cost: float
    surrogate: float | None
    test_cost: float | None
    mean_nonzeros: float
    replaced: int
    density: float
    lam: float | None
    short: int = 0
    slack: float = 0.0
    used: int | None = None


_FIELDS = [field.name for field in fields(Record)]
_INTEGERS = {"step", "epoch", "samples", "replaced", "short"}
_OPTIONAL = {"surrogate", "test_cost", "lam"}
_COUNTS_OR_NONE = {"used"}


def thinned(history: Sequence[Record], count: int) -> list[Record]:
    """Return about ``count`` of the records: those of held-out costs, the first, and others evenly.

    Atoms that were replaced in the steps between two of them are counted in the later one.
    """
    if len(history) <= count:
        return list(history)
    kept = set(np.linspace(0, len(history) - 1, count).astype(int).tolist())
    kept.update(i for i, record in enumerate(history) if record.test_cost is not None)
    thin, replaced = [], 0
    for number, record in enumerate(history):
        replaced += record.replaced
        if number in kept:
            thin.append(replace(record, replaced=replaced))
            replaced = 0
    return thin


def history_to_array(history: Sequence[Record]) -> Array:
    """Return the records as rows of a float64 array; NaN stands for None."""
    rows = [[getattr(record, name) for name in _FIELDS] for record in history]
    table: Array = np.array(rows, np.float64).reshape(len(rows), len(_FIELDS))
    return table


def history_from_array(table: Array) -> list[Record]:
    """Return the records from an array that `history_to_array` has made."""
    if table.ndim != 2 or table.shape[1] != len(_FIELDS) or table.dtype != np.float64:
        message = f"history is {table.dtype} of shape {table.shape}, expected (n, {len(_FIELDS)})"
        raise ValueError(message)
    integers = table[:, [name in _INTEGERS for name in _FIELDS]]
    if not np.isfinite(integers).all() or (integers < 0).any() or (integers > 2**53).any():
        message = "history has counts that are not integers of at least 0"
        raise ValueError(message)
    return [Record(**dict(map(_value, _FIELDS, row))) for row in table.tolist()]


def _value(name: str, number: float) -> tuple[str, Any]:
    if name in _INTEGERS:
        return name, int(number)
    if name in _COUNTS_OR_NONE:
        return name, int(number) if 0 <= number < 2**53 else None
    return name, None if name in _OPTIONAL and math.isnan(number) else number
