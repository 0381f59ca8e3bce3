"""Setup of a run besides its problem and learner: replacement of atoms, continuation in λ."""

from __future__ import annotations

from dataclasses import dataclass

from smalto.checks import check_integer, check_number
from smalto.coders.base import Coder


@dataclass(frozen=True)
class Replacement:
    """When an atom is replaced by a badly coded recent sample (Section 3.4.5).

    Parameters
    ----------
    idle : float, default 10
        An atom is unused when none of the last ``idle * k`` samples has used it.
    correlation : float, default 0.999
        Two atoms are the same when the cosine of their angle exceeds this in magnitude; the
        second then gives its past to the first and is replaced.
    every : int, default 8
        Steps between two searches for such atoms.
    """

    idle: float = 10.0
    correlation: float = 0.999
    every: int = 8

    def __post_init__(self) -> None:
        check_number("idle", self.idle, low=0, strict=True)
        check_number("correlation", self.correlation, low=0, high=1, strict=True)
        check_integer("every", self.every)


@dataclass(frozen=True)
class Continuation:
    """Raise λ geometrically from ``start`` times its value to its value, in ``steps`` steps."""

    start: float = 0.1
    steps: int = 50

    def __post_init__(self) -> None:
        check_number("start", self.start, low=0, high=1, strict=True)
        check_integer("steps", self.steps)

    def at(self, coder: Coder, step: int) -> Coder:
        """Return the coder to use at this step."""
        return (
            coder if step >= self.steps else coder.relaxed(self.start ** (1.0 - step / self.steps))
        )
