"""What a coder is: a sparse coding problem, and a way to solve it for rows of signals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from smalto.checks import Array, Rows, check_role
from smalto.coders.chunks import Chunk, Residuals
from smalto.coders.codes import Codes

# Codes of a chunk of signals. Called from several threads at once.
Solver: TypeAlias = Callable[[Chunk], Codes]


class Coder(ABC):
    """A sparse coding problem ``min_α ½‖x − αD‖² + ψ(α)``: subclass it as a frozen dataclass.

    A coder must say how it is solved (`solver`) and what ψ is (`penalty`). Everything else has a
    default that suits a convex or greedy problem without free parameters.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"mask"})
    """What ``encode`` and ``learn`` may give beside the signals: any of "mask" (missing entries),
    "penalty_weights", "groups" (of signals to be coded together) and "start" (first codes)."""

    own_gram: ClassVar[bool] = False
    """Whether solvers handle a `Chunk` whose signals have Gram matrices of their own (`Chunk.own`).
    If not, signals with missing entries are coded one at a time, each with its whole matrix."""

    positive: bool = False
    """Whether codes must not be negative."""

    @abstractmethod
    def solver(self, G: Array) -> Solver:
        """Return a function that codes chunks of signals over a dictionary with Gram matrix G.

        G is (width, width), C-contiguous, and must not be written to. The dictionary is padded
        with zero atoms to a width that is a multiple of `PADDING`.
        """

    @abstractmethod
    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """Return ψ of each row of a CSR array of codes.

        For a coder that takes groups, rows groups[g] to groups[g + 1] are a group (by default all
        rows are one), and a row has an equal share of its group's ψ. Others ignore ``groups``.
        """

    def resolve(self, X: Rows, D: Array, n_threads: int = 1) -> Coder:
        """Return this problem with everything that depends on data decided, from sample rows X."""
        return self

    @property
    def undecided(self) -> bool:
        """Whether something is left that `resolve` would decide, or decide again."""
        return False

    def fixed(self) -> Coder:
        """Return this problem, once resolved, with nothing left to decide again."""
        return self

    def matching(self, other: Coder) -> Coder:
        """Return this problem with what is undecided taken from ``other``, to compare the two."""
        return self

    def relaxed(self, factor: float) -> Coder:
        """Return this problem with its λ multiplied by ``factor`` (for `Continuation`)."""
        message = f"continuation needs a coder with a lam to raise, got {type(self).__name__}"
        raise TypeError(message)

    def error_bound(self) -> Any:
        """Return the promised bound on ``‖x − αD‖²``, one or one per signal; None if there is none."""
        return None

    def describe(self) -> dict[str, float | None]:
        """Return what a `Record` notes about this problem: its λ, or None where it has none."""
        return {"lam": None}

    def refusal(self, name: str) -> str:
        """Say why ``name``, which is not in `takes`, cannot be given."""
        return _REFUSALS[name].format(type(self).__name__)

    def advice_on_zeros(self, X: Rows, D: Array) -> str | None:
        """Explain why all codes of the rows X are zero, and what to change; None if unknown."""
        return None


_REFUSALS = {
    "mask": "{} cannot code signals with missing entries",
    "penalty_weights": (
        "penalty_weights are for Lasso, L1Ball and ErrorBound: {} takes no penalty_weights"
    ),
    "groups": (
        "groups say which signals are coded together, for JointLasso and JointOMP: "
        "{} codes each signal by itself"
    ),
    "start": "start is for Lasso, GroupLasso and TreeLasso: {} takes no start",
}


@runtime_checkable
class Certified(Protocol):
    """A coder of a convex problem, which can bound how far codes are from its optimum."""

    def gap(self, left: Residuals) -> Array:
        """Bound how much each row's objective exceeds the least one (the duality gap)."""


def check_coder(coder: Any) -> Coder:
    """Raise TypeError unless ``coder`` is a coder; hint at missing parentheses."""
    check_role("coder", coder, Coder, "Lasso(lam=0.1)")
    return coder  # type: ignore[no-any-return]


def check_takes(coder: Coder, **given: Any) -> None:
    """Raise ValueError if one of the things given (not None) is not taken by the coder."""
    for name, value in given.items():
        if value is not None and name not in coder.takes:
            raise ValueError(coder.refusal(name))
