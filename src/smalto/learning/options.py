"""Options of a run: replacement of atoms, and continuation in λ."""

from __future__ import annotations

from dataclasses import dataclass

from smalto.checks import check_integer, check_kind, check_number
from smalto.coders.base import Coder


@dataclass(frozen=True)
class Replacement:
    """When to replace an atom by a recent sample (Section 3.4.5), and by which.

    Parameters
    ----------
    idle : float, default 10
        An atom is unused if none of the last ``idle * k`` samples has used it, or none of the
        first fifth as many.
    correlation : float, default 0.999
        Two atoms are duplicates if the absolute cosine of their angle exceeds this. The
        statistics of the second are then added to those of the first, and the second is replaced.
    every : int, default 8
        Number of steps between two searches for such atoms.
    random : bool, default False
        Whether the new atom is a random sample of a recent batch, as in the paper, instead of one
        that was coded badly.

    See Also
    --------
    smalto.plot.atom_use : How often each atom is used.
    """

    idle: float = 10.0
    correlation: float = 0.999
    every: int = 8
    random: bool = False

    def __post_init__(self) -> None:
        check_number("idle", self.idle, low=0, strict=True)
        check_number("correlation", self.correlation, low=0, high=1, strict=True)
        check_integer("every", self.every)
        check_kind("random", self.random, bool, "True or False")


@dataclass(frozen=True)
class Continuation:
    """Continuation in λ, which rises geometrically from a share of its value to its value.

    Parameters
    ----------
    start : float, default 0.1
        Share of λ to begin with.
    steps : int, default 50
        Number of steps after which λ has its full value.

    See Also
    --------
    Online : The method that it is used with.
    """

    start: float = 0.1
    steps: int = 50

    def __post_init__(self) -> None:
        check_number("start", self.start, low=0, high=1, strict=True)
        check_integer("steps", self.steps)

    def at(self, coder: Coder, step: int) -> Coder:
        """Return the coder to use at a step, counted from 0."""
        return (
            coder if step >= self.steps else coder.relaxed(self.start ** (1.0 - step / self.steps))
        )
