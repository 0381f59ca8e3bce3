"""The families of problems: what each tries, how often, and how long one may take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.campaign import (
    coding,
    estimating,
    files,
    interrupts,
    kills,
    learning,
    least_squares,
    own_parts,
    processes,
    projecting,
    refusing,
)
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
    """

    run: Callable[[np.random.Generator, Report], None]
    share: int
    seconds: float = 300.0


def load() -> dict[str, Family]:
    """Return all families by name."""
    return {
        "coding": Family(coding.code, 240),
        "least-squares": Family(least_squares.compare, 20),
        "projecting": Family(projecting.project, 120),
        "learning": Family(learning.train, 60),
        "density": Family(learning.density, 6),
        "estimating": Family(estimating.fit, 20),
        "refusing": Family(refusing.refuse, 60),
        "damaged-files": Family(files.damage, 20),
        "forged-files": Family(files.forge, 60),
        "own-parts": Family(own_parts.misbehave, 10),
        "kills": Family(kills.kill, 3),
        "full-disk": Family(kills.fill, 3),
        "two-writers": Family(kills.write_together, 2),
        "processes": Family(processes.everywhere, 6),
        "interrupts": Family(interrupts.interrupt, 2),
    }
