"""Hierarchical sparse coding: an atom is used only where those above it are."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from smalto.checks import Array, Rows
from smalto.coders.base import Coder, Solver
from smalto.coders.chunks import Residuals
from smalto.coders.grouped import (
    Groups,
    Nested,
    as_atom_lists,
    as_group_weights,
    check_settings,
    nest,
)


@dataclass(frozen=True)
class TreeLasso(Coder):
    """``min_α ½‖x − αD‖² + lam Σ_g w_g‖α_g‖₂ + l1‖α‖₁ + ridge/2 ‖α‖²`` for nested groups g.

    Given the parent of each atom there is a group for each atom: itself and all below it. An atom
    is then used only where its parent is (hierarchical sparse coding: Jenatton, Mairal, Obozinski,
    Bach; JMLR 2011). Solved to a duality gap of 1e-10 of the objective (1e-6 in float32), which is
    proven for each signal; a warning counts those where rounding did not allow for it.

    Parameters
    ----------
    lam : float
        Weight of the norms of the groups, never rescaled.
    parents : array (k,) of int, optional
        The parent of each atom, −1 for roots; there may be several.
    atom_groups : list of lists of int, optional
        Instead of ``parents``: the atoms of each group. Any two groups are disjoint or one is
        within the other, and every atom is in one at least. Kept as tuples of atoms.
    group_weights : array, optional
        The share w_g > 0 of each group in the penalty (with ``parents``: one per atom, of the
        group of which it is the top); all 1 by default.
    l1 : float, default 0
        Weight of the ℓ1 norm of the code.
    ridge : float, default 0
        Weight of the squared norm of the code.
    positive : bool, default False
        Demand α ≥ 0.

    Examples
    --------
    Atom 1 is below atom 0, atom 2 by itself:

    >>> import numpy as np
    >>> from smalto import encode
    >>> from smalto.coders import TreeLasso
    >>> x = np.array([[3.0, 5.0, 1.5]])
    >>> encode(x, np.eye(3), TreeLasso(lam=1.0, parents=[-1, 0, -1])).toarray().round(6)
    array([[2.4, 3.2, 0.5]])
    """

    lam: float
    parents: Any = None
    _: KW_ONLY
    atom_groups: Any = None
    group_weights: Any = None
    l1: float = 0.0
    ridge: float = 0.0
    positive: bool = False

    takes: ClassVar[frozenset[str]] = frozenset({"mask", "start"})

    def __post_init__(self) -> None:
        check_settings(self.lam, self.l1, self.ridge)
        if (self.parents is None) == (self.atom_groups is None):
            message = "give either the parents of the atoms or atom_groups, and not both"
            raise ValueError(message)
        if self.parents is not None:
            object.__setattr__(self, "parents", as_parents(self.parents))
            count, of = len(self.parents), "atom"
        else:
            object.__setattr__(self, "atom_groups", as_nested(self.atom_groups))
            count, of = len(self.atom_groups), "group"
        object.__setattr__(self, "group_weights", as_group_weights(self.group_weights, count, of))

    @cached_property
    def _nested(self) -> Nested:
        if self.parents is None:
            own, parent = nest(self.atom_groups)
        else:
            own, parent = np.arange(len(self.parents)), np.array(self.parents)
        return Nested(
            own, parent, self.group_weights, float(self.lam), float(self.l1), float(self.ridge),
            bool(self.positive),
        )  # fmt: skip

    def resolve(self, X: Rows, D: Array, n_threads: int = 1) -> TreeLasso:
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


def as_nested(groups: Any) -> Groups:
    """Lists of atoms as tuples, if any two of them are nested or disjoint."""
    lists = isinstance(groups, (list, tuple, np.ndarray)) and len(groups) > 0
    if not lists or any(np.isscalar(group) for group in groups):
        message = f"atom_groups must be a list of lists of atoms, got {groups!r}"
        raise TypeError(message)
    found = as_atom_lists(groups)
    nest(found)  # refuses others
    return found


def as_parents(parents: Any) -> tuple[int, ...]:
    """The parent of each atom, if they form trees."""
    if np.iterable(parents) and any(np.iterable(each) for each in parents):
        message = f"parents must be one integer per atom; lists of atoms are atom_groups=, got {parents!r}"
        raise TypeError(message)
    values = np.asarray(parents)
    if values.ndim != 1 or not values.size or values.dtype.kind not in "iu":
        message = f"parents must be integers, one per atom (-1 for roots), got {parents!r}"
        raise TypeError(message)
    bad = np.flatnonzero((values < -1) | (values >= len(values)))
    if bad.size:
        atom = int(bad[0])
        message = f"parents must be -1 or one of the {len(values)} atoms, got {values[atom]} for atom {atom}"
        raise ValueError(message)
    # Ancestors 1, 2, 4, 8, ... steps above; -1 is its own parent.
    above = np.append(values, -1).astype(np.int64)
    for _ in range(len(values).bit_length()):
        above = above[above]
    bad = np.flatnonzero(above >= 0)
    if bad.size:
        message = f"parents must lead to a root (-1), those of atom {bad[0]} go in a circle"
        raise ValueError(message)
    return tuple(values.tolist())
