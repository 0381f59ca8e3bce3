"""The families of problems: what each tries, how often, and how long one may take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.campaign import coding
from benchmarks.campaign.report import Report


@dataclass(frozen=True)
class Family:
    """Problems of one kind.

    Parameters
    ----------
    run : function
        Makes a problem from random numbers, tries it, and reports.
    share : int
        How many of these are in each round.
    seconds : float
        How long one may take, compilation included.
    about : str
        What is tried, for the table.
    """

    run: Callable[[np.random.Generator, Report], None]
    share: int
    seconds: float
    about: str


def load() -> dict[str, Family]:
    """Return all families by name."""
    return {
        "coding": Family(coding.code, 40, 180, "codes of random problems"),
    }
