"""λ-continuation: begin with an easier, less regularised problem (Section 3.4.5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from smalto.checks import check_integer, check_number
from smalto.coders.base import Coder
from smalto.coders.joint_lasso import JointLasso
from smalto.coders.lasso import Lasso


@dataclass(frozen=True)
class Continuation:
    """Raise λ geometrically from ``start`` times its value to its value, in ``steps`` steps."""

    start: float = 0.1
    steps: int = 50

    def __post_init__(self) -> None:
        check_number("start", self.start, low=0, high=1, strict=True)
        check_integer("steps", self.steps)

    def at(self, coder: Coder, step: int) -> Coder:
        """The coder to use at this step."""
        if step >= self.steps:
            return coder
        if not isinstance(coder, Lasso | JointLasso) or coder.lam is None:
            name = type(coder).__name__
            message = f"continuation needs a coder with a lam to raise, got {name}"
            raise TypeError(message)
        changed: Any = replace(coder, lam=coder.lam * self.start ** (1.0 - step / self.steps))
        return changed  # type: ignore[no-any-return]
