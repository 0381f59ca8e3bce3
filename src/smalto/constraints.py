"""Constraint sets of the dictionary: where each atom has to live (Section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from smalto.checks import Array
from smalto.kernels.sweep import L2_BALL, project_l2_ball


@runtime_checkable
class Constraint(Protocol):
    """A closed convex set of atoms that contains 0."""

    def project(self, atom: Array) -> None:
        """Replace ``atom`` (m,) by the nearest point of the set."""

    def gauge(self, atom: Array) -> float:
        """At most 1 just when the atom lies in the set."""


@runtime_checkable
class Compiled(Protocol):
    """A constraint that the compiled sweep knows by number."""

    def kernel(self) -> tuple[int, bool]:
        """Which set it is, and whether atoms must be non-negative."""


@dataclass(frozen=True)
class L2Ball:
    """``{d : ‖d‖₂ ≤ 1}``, and d ≥ 0 where ``positive``: the paper's set (Section 2)."""

    positive: bool = False

    def project(self, atom: Array) -> None:
        """``argmin_u ½‖u − atom‖²`` over the set, in place."""
        project_l2_ball(atom, bool(self.positive))

    def gauge(self, atom: Array) -> float:
        """``‖atom‖₂``, or infinity where an entry is negative and may not be."""
        if self.positive and np.any(atom < 0):
            return float("inf")
        return float(np.linalg.norm(np.asarray(atom, np.float64)))

    def kernel(self) -> tuple[int, bool]:
        """Which set the compiled sweep knows this as."""
        return L2_BALL, bool(self.positive)


def check_constraint(constraint: Any) -> Constraint:
    """Refuse what is not a constraint, with the likely slip."""
    if isinstance(constraint, type) or not isinstance(constraint, Constraint):
        is_type = isinstance(constraint, type)
        hint = f"; did you mean {constraint.__name__}()?" if is_type else ""
        message = f"constraint must be a constraint such as L2Ball(), got {constraint!r}{hint}"
        raise TypeError(message)
    return constraint
