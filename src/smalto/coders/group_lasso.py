"""The group lasso, and its sparse variant: atoms that are used together or not at all."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from smalto.checks import Array, Rows
from smalto.coders.base import Coder, Solver
from smalto.coders.chunks import Residuals
from smalto.coders.grouped import Nested, as_atom_lists, as_group_weights, check_settings


@dataclass(frozen=True)
class GroupLasso(Coder):
    """``min_α ½‖x − αD‖² + lam Σ_g w_g‖α_g‖₂ + l1‖α‖₁ + ridge/2 ‖α‖²`` for disjoint groups g.

    The atoms of a group are used together or not at all; with ``l1`` above zero only some of the
    atoms of the groups in use are (the sparse group lasso). Solved to a duality gap of 1e-10 of
    the objective (1e-6 in float32), which is proven for each signal; a warning counts those where
    rounding did not allow for it.

    Parameters
    ----------
    lam : float
        Weight of the norms of the groups, never rescaled.
    atom_groups : array (k,) or list of lists of int
        A label for each atom (groups are then numbered by increasing label), or the atoms of
        each group. Every atom is in just one group. Kept as one number per atom.
    group_weights : array, optional
        The share w_g > 0 of each group in the penalty; all 1 by default, as in the paper. Where
        groups of different sizes should be treated alike, the roots of their sizes are common.
    l1 : float, default 0
        Weight of the ℓ1 norm of the code.
    ridge : float, default 0
        Weight of the squared norm of the code.
    positive : bool, default False
        Demand α ≥ 0.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import encode
    >>> from smalto.coders import GroupLasso
    >>> x = np.array([[3.0, 4.0, 0.5, 0.5]])
    >>> encode(x, np.eye(4), GroupLasso(lam=1.0, atom_groups=[0, 0, 1, 1])).toarray().round(6)
    array([[2.4, 3.2, 0. , 0. ]])
    """

    lam: float
    atom_groups: Any
    _: KW_ONLY
    group_weights: Any = None
    l1: float = 0.0
    ridge: float = 0.0
    positive: bool = False

    takes: ClassVar[frozenset[str]] = frozenset({"mask", "start"})

    def __post_init__(self) -> None:
        check_settings(self.lam, self.l1, self.ridge)
        groups = as_labels(self.atom_groups)
        object.__setattr__(self, "atom_groups", groups)
        weights = as_group_weights(self.group_weights, 1 + max(groups), "group")
        object.__setattr__(self, "group_weights", weights)

    @cached_property
    def _nested(self) -> Nested:
        return Nested(
            np.array(self.atom_groups), np.full(1 + max(self.atom_groups), -1), self.group_weights,
            float(self.lam), float(self.l1), float(self.ridge), bool(self.positive),
        )  # fmt: skip

    def resolve(self, X: Rows, D: Array, n_threads: int = 1) -> GroupLasso:
        """This problem, if its groups are of as many atoms as D has."""
        self._nested.check(len(D))
        return self

    def describe(self) -> dict[str, float | None]:
        """Return ``lam``."""
        return {"lam": self.lam}

    def solver(self, G: Array) -> Solver:
        """How to code over a dictionary with Gram matrix G."""
        return self._nested.solver(G)

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """``lam Σ_g w_g‖α_g‖₂ + l1‖α‖₁ + ridge/2 ‖α‖²`` of each row of codes."""
        return self._nested.penalty(codes)

    def gap(self, left: Residuals) -> Array:
        """The duality gap of each row."""
        return self._nested.gap(left)


def as_labels(groups: Any) -> tuple[int, ...]:
    """The number of each atom's group, from labels or from lists of atoms."""
    in_order = np.iterable(groups) and not isinstance(groups, (str, bytes, set, dict))
    parts = list(groups) if in_order else []
    if not parts:
        message = f"atom_groups must be a label for each atom, or a list of lists of atoms, got {groups!r}"
        raise TypeError(message)
    if all(np.isscalar(part) for part in parts):
        labels = np.asarray(parts)
        if labels.dtype.kind not in "iubU":
            message = f"labels of groups must be integers or strings, got {labels.dtype}"
            raise TypeError(message)
        return tuple(np.unique(labels, return_inverse=True)[1].reshape(-1).tolist())
    lists = as_atom_lists(parts)
    numbers: dict[int, int] = {}
    for number, group in enumerate(lists):
        for atom in group:
            if numbers.setdefault(atom, number) != number:
                message = (
                    f"atom {atom} is in groups {numbers[atom]} and {number}: groups of a GroupLasso "
                    "must not overlap (those of a TreeLasso may be nested)"
                )
                raise ValueError(message)
    return tuple(numbers[atom] for atom in range(len(numbers)))
