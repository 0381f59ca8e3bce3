"""What a constraint is: a closed convex set in which each atom has to live."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from smalto.checks import Array, check_role
from smalto.constraints.density import DensitySearch

INSIDE = 1.0 + 1e-3  # the gauge up to which a projected atom counts as inside of its set


class Constraint(ABC):
    """A closed convex set of atoms: subclass it and say how to project onto it.

    Two methods are enough (`project` and `gauge`); plain Python will do. A constraint that is
    to be saved in files is a frozen dataclass, see `smalto.learning.register`.
    """

    positive: bool | None = None
    """Whether atoms are non-negative; None: not said."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Raise TypeError for a subclass of a constraint that is complete.

        Its compiled update would go on projecting onto the set of the parent.
        """
        super().__init_subclass__(**options)
        for parent in cls.__mro__[1:]:
            if (
                issubclass(parent, Constraint)
                and "project" in vars(parent)
                and parent is not Constraint
            ):
                message = (
                    f"{cls.__name__} subclasses the constraint {parent.__name__}: subclass Constraint, "
                    f"and call {parent.__name__}().project in its project where that helps"
                )
                raise TypeError(message)

    @abstractmethod
    def project(self, atom: Array) -> None:
        """Replace ``atom`` (m,) by the nearest point of the set, in place."""

    @abstractmethod
    def gauge(self, atom: Array) -> float:
        """Return a number that is at most 1 just when the atom lies in the set."""

    def sweep_block(self, D: Array, R: Array, A: Array, first: int, smallest: float) -> float:
        """Update the atoms of a block in turn, in place; return the change of the objective.

        The block has the atoms from ``first`` on; A (rows, k) are its rows of the statistics, and
        R (rows, m) its residuals ``B − A D``. Atoms with ``A_jj`` up to ``smallest`` are left as
        they are. Constraints with a kernel in `smalto.kernels.learning.block_sweep` override this.
        """
        change = 0.0
        for row in range(len(R)):
            j = first + row
            diagonal = A[row, j]
            if not diagonal > smallest:
                continue
            atom = R[row] / diagonal + D[j]
            project_checked(self, atom)
            difference = atom - D[j]
            D[j] = atom
            square = float(np.vdot(difference, difference))
            change += 0.5 * float(diagonal) * square - float(np.vdot(difference, R[row]))
            R[row + 1 :] -= A[row + 1 :, j, None] * difference
        return change

    def divided(self, rest: Array) -> tuple[float, Constraint]:
        """Return what the entries held in ``rest`` leave for the others, which are zero there.

        That is a number r and a constraint S: the others may lie in r times S.
        """
        name = type(self).__name__
        message = f"features= needs a set that can be divided (L2Ball, ElasticNetBall), not {name}"
        raise TypeError(message)

    @property
    def adapts(self) -> bool:
        """Whether the set changes while a dictionary is learned, to give a wanted density."""
        return False

    def begun(self, D: Array) -> Self:
        """Return this constraint with a first guess of what a wanted density takes."""
        return self

    def adapted(self, D: Array, search: DensitySearch) -> tuple[Self, DensitySearch]:
        """Return this constraint moved towards the wanted density of D, and the search after it."""
        return self, search

    def matching(self, other: Any) -> Self:
        """Return this constraint with what is undecided taken from ``other``, to compare the two."""
        return self


def check_constraint(constraint: Any) -> Constraint:
    """Raise TypeError unless ``constraint`` is a constraint; hint at missing parentheses."""
    check_role("constraint", constraint, Constraint, "L2Ball()")
    return constraint  # type: ignore[no-any-return]


def project_checked(constraint: Constraint, atom: Array) -> None:
    """Project in place, and raise unless the constraint (perhaps a user's) has really done so."""
    shape = atom.shape
    answer: Any = constraint.project(atom)
    name = type(constraint).__name__
    if atom.shape != shape:
        message = f"{name}.project must keep the atom's shape {shape}, it is {atom.shape} now"
        raise ValueError(message)
    if answer is not None:
        message = (
            f"{name}.project must change the atom in place and return None, "
            f"got a {type(answer).__name__} back"
        )
        raise TypeError(message)
    gauge = float(constraint.gauge(atom))
    if not gauge <= INSIDE:
        message = f"{name}.project left an atom outside of the set: its gauge is {gauge:.4g}, not 1"
        raise ValueError(message)
