"""The rule of one standard error: the simplest setting that is about as good as the best one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from smalto.checks import Array


class Choice(NamedTuple):
    """Numbers of the setting with the lowest error, and of the simplest one near it."""

    lowest: int
    chosen: int


def standard_errors(errors: Array) -> Array:
    """Return the standard error of the mean of each row."""
    rounds = errors.shape[1]
    if rounds < 2:
        return np.full(len(errors), np.nan)
    unit = float(np.abs(errors).max()) or 1.0  # squares of squared errors may overflow, or vanish
    return np.asarray(unit * (errors / unit).std(axis=1, ddof=1) / np.sqrt(rounds))


def choose(errors: Array, simplicity: Sequence[Any], n_standard_errors: float) -> Choice:
    """Choose among settings whose errors in each round are the rows of a table.

    A setting is near the lowest one if the mean of its excess over it is at most so many standard
    errors of that mean. Excesses are compared round by round: some rounds are harder than others,
    for all settings alike. The one with the smallest ``simplicity`` among these is chosen.
    """
    means = errors.mean(axis=1)
    lowest = int(np.argmin(means))
    excess = errors - errors[lowest]
    slack = n_standard_errors * np.nan_to_num(standard_errors(excess))
    near = np.flatnonzero(excess.mean(axis=1) <= slack)
    return Choice(lowest, min((int(i) for i in near), key=lambda i: (simplicity[i], means[i])))
