"""The base class of constraints: closed convex sets that atoms must lie in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from smalto.checks import SCALES, Array, check_role

INSIDE = 1.0 + 1e-3  # the largest gauge at which a projected atom counts as inside its set


class Constraint(ABC):
    """Abstract base class of constraints: closed convex sets that atoms must lie in.

    A subclass must implement `project` and `gauge`; plain Python will do. To be saved in files
    it must be a frozen dataclass, see `smalto.learning.register`.

    See Also
    --------
    smalto.learning.register : Let files contain a constraint of your own.
    """

    positive: bool | None = None
    """Whether atoms are non-negative; None if unknown."""

    density: float | None = None
    """The share of nonzero entries wanted in the dictionary; None if none is wanted."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Raise TypeError if the class inherits from a concrete constraint.

        The compiled update of the parent would still project onto the parent's set.
        """
        super().__init_subclass__(**options)
        for parent in cls.__mro__[1:]:
            if (
                issubclass(parent, Constraint)
                and "project" in vars(parent)
                and parent is not Constraint
            ):
                message = (
                    f"{cls.__name__} subclasses the constraint {parent.__name__}: subclass "
                    f"Constraint instead; its project may call {parent.__name__}().project"
                )
                raise TypeError(message)

    @abstractmethod
    def project(self, atom: Array) -> None:
        """Replace ``atom`` (m,) by the nearest point of the set, in place."""

    @abstractmethod
    def gauge(self, atom: Array) -> float:
        """Return a number that is at most 1 if and only if the atom lies in the set."""

    def sweep_block(self, D: Array, R: Array, A: Array, first: int, smallest: float) -> float:
        """Update a block of atoms one by one, in place; return the change of the objective.

        The block starts at atom ``first``. A (rows, k) holds its rows of the statistics, R
        (rows, m) its residuals ``B − A D``. Atoms with ``A_jj <= smallest`` are not changed.
        Constraints with a kernel in `smalto.kernels.learning.block_sweep` override this method.
        """
        change = 0.0
        for row in range(len(R)):
            j = first + row
            diagonal = A[row, j]
            if not diagonal > smallest:
                continue
            atom = R[row] / diagonal + D[j]
            project_checked(self, atom, j)
            difference = atom - D[j]
            D[j] = atom
            square = float(np.vdot(difference, difference))
            change += 0.5 * float(diagonal) * square - float(np.vdot(difference, R[row]))
            R[row + 1 :] -= A[row + 1 :, j, None] * difference
        return change

    def divided(self, rest: Array) -> tuple[float, Constraint]:
        """Return the set that is left for some entries of an atom when the others are fixed.

        ``rest`` is the atom with its free entries set to zero. The set is returned as a number r
        and a constraint S: the free entries must lie in r times S.
        """
        name = type(self).__name__
        message = (
            f"Online(features=...) needs a constraint that can be divided between features "
            f"(L2Ball, ElasticNetBall, Simplex), got {name}"
        )
        raise TypeError(message)

    @property
    def adapts(self) -> bool:
        """Whether the set changes during learning, to reach a wanted density."""
        return False

    def begun(self, D: Array) -> Self:
        """Return this constraint for the first step, with a first gamma if a density is wanted."""
        return self

    def adapted(self, update: Callable[[Self], Array], reach: float = math.inf) -> Self:
        """Return this constraint, adjusted such that ``update(constraint)`` has a wanted density.

        ``update`` returns the dictionary that a constraint leads to. It is called with one
        constraint after another, and last with the one that is returned. ``reach`` limits the
        change of the logarithm of gamma.
        """
        update(self)
        return self

    def loosened(self, factor: float) -> Self:
        """Return a larger set, if this one adapts: with its gamma divided by ``factor``."""
        return self

    def matching(self, other: Any) -> Self:
        """Return this constraint with undecided parameters taken from ``other``, for comparison."""
        return self


def check_constraint(constraint: Any) -> Constraint:
    """Raise TypeError unless ``constraint`` is a constraint; hint at missing parentheses."""
    check_role("constraint", constraint, Constraint, "L2Ball()")
    return constraint  # type: ignore[no-any-return]


def projected(D: Array, constraint: Constraint) -> Array:
    """Return the projections of the rows of D; of a part of them if they are many."""
    some = D[:: max(1, len(D) // 64)].copy()
    for atom in some:
        project_checked(constraint, atom)
    return some


def project_checked(constraint: Constraint, atom: Array, number: int | None = None) -> None:
    """Project in place; raise if the constraint, perhaps a user's own, did not do so correctly."""
    shape, name = atom.shape, type(constraint).__name__
    which = "an atom" if number is None else f"atom {number}"
    try:
        answer: Any = constraint.project(atom)
        gauge = float(constraint.gauge(atom))
    except Exception as error:
        error.add_note(f"It came from the constraint {name}, for {which}.")
        raise
    if atom.shape != shape:
        message = f"{name}.project must keep the shape {shape}, but changed it to {atom.shape}"
        raise ValueError(message)
    if answer is not None:
        message = (
            f"{name}.project must change the atom in place and return None, "
            f"but returned a {type(answer).__name__}"
        )
        raise TypeError(message)
    if not np.isfinite(atom).all():
        message = f"{name}.project wrote NaN or infinity into {which}"
        raise ValueError(message)
    largest, limit = float(np.abs(atom).max(initial=0.0)), SCALES[atom.dtype.itemsize]
    if largest > limit:
        message = (
            f"{name}.project left {which} with values of {largest:.3g}, more than the {limit:.0e} that "
            f"{atom.dtype} can work with"
        )
        raise ValueError(message)
    if not gauge <= INSIDE:
        message = (
            f"{name}.project left {which} outside the set: its gauge is {gauge:.4g}, "
            f"expected at most 1"
        )
        raise ValueError(message)
