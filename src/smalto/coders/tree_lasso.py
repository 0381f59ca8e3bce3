"""Hierarchical sparse coding: an atom is used only if its parent is."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from smalto.cached import cached_property
from smalto.coders.grouped import (
    GroupedCoder,
    Groups,
    Nested,
    as_atom_lists,
    as_group_weights,
    check_penalty,
    nest,
)


@dataclass(frozen=True)
class TreeLasso(GroupedCoder):
    """Nested groups of atoms: ``min_α ½‖x − αD‖² + lam Σ_g w_g‖α_g‖₂ + l1‖α‖₁ + ridge/2 ‖α‖²``.

    With ``parents`` there is one group per atom: the atom and all its descendants. An atom is then
    used only if its parent is (hierarchical sparse coding: Jenatton, Mairal, Obozinski, Bach; JMLR
    2011). Each signal is solved until its duality gap is at most 1e-10 times the objective (1e-6 in
    float32); a warning says for how many signals rounding prevented this.

    Parameters
    ----------
    lam : float
        Weight of the group norms, never rescaled.
    parents : array (k,) of int, optional
        The parent of each atom, −1 for roots. There may be several roots.
    atom_groups : list of lists of int, optional
        Instead of ``parents``: the atoms of each group. Any two groups must be disjoint, or one
        must contain the other. Every atom belongs to at least one group. Stored as tuples.
    group_weights : array, optional
        Weights w_g > 0 of the groups in the penalty, all 1 by default. With ``parents``, one per
        atom, for the group of the atom and its descendants.
    l1 : float, default 0
        Weight of the ℓ1 norm of the code.
    ridge : float, default 0
        Weight of the squared norm of the code.
    positive : bool, default False
        Require α ≥ 0.

    See Also
    --------
    GroupLasso : Disjoint groups of atoms.

    Examples
    --------
    Atom 1 is a child of atom 0, atom 2 is a root by itself:

    >>> import numpy as np
    >>> from smalto import encode
    >>> from smalto.coders import TreeLasso
    >>> x = np.array([[3.0, 5.0, 1.5]])
    >>> encode(x, np.eye(3), TreeLasso(lam=1.0, parents=[-1, 0, -1])).toarray().round(6)
    array([[2.4, 3.2, 0.5]])
    """

    lam: float
    parents: npt.ArrayLike | None = None
    _: KW_ONLY
    atom_groups: npt.ArrayLike | None = None
    group_weights: npt.ArrayLike | None = None
    l1: float = 0.0
    ridge: float = 0.0
    positive: bool = False

    def __post_init__(self) -> None:
        check_penalty(self.lam, self.l1, self.ridge)
        if (self.parents is None) == (self.atom_groups is None):
            message = "give one of parents (of each atom) and atom_groups"
            raise ValueError(message)
        if self.parents is not None:
            parents = as_parents(self.parents)
            object.__setattr__(self, "parents", parents)
            count, of = len(parents), "atom"
        else:
            groups = as_nested(self.atom_groups)
            object.__setattr__(self, "atom_groups", groups)
            count, of = len(groups), "group"
        object.__setattr__(self, "group_weights", as_group_weights(self.group_weights, count, of))

    @cached_property
    def _nested(self) -> Nested:
        if self.parents is None:
            own, parent = nest(cast("Groups", self.atom_groups))
        else:
            parent = np.array(self.parents)
            own = np.arange(len(parent))
        return Nested(
            own=own,
            parent=parent,
            weights=self.group_weights,
            lam=float(self.lam),
            l1=float(self.l1),
            ridge=float(self.ridge),
            positive=bool(self.positive),
        )


def as_nested(groups: Any) -> Groups:
    """Return lists of atoms as tuples; raise unless any two are nested or disjoint."""
    lists = isinstance(groups, (list, tuple, np.ndarray)) and len(groups) > 0
    if not lists or any(np.isscalar(group) for group in groups):
        message = f"atom_groups must be a list of lists of atoms, got {groups!r}"
        raise TypeError(message)
    found = as_atom_lists(groups)
    nest(found)  # raises if groups overlap otherwise
    return found


def as_parents(parents: Any) -> tuple[int, ...]:
    """Return the parents as a tuple; raise unless they form trees."""
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
        message = (
            f"parents must be -1 or one of the {len(values)} atoms, "
            f"got {values[atom]} for atom {atom}"
        )
        raise ValueError(message)
    # Ancestors 1, 2, 4, 8, ... levels up; -1 is its own parent.
    above = np.append(values, -1).astype(np.int64)
    for _ in range(len(values).bit_length()):
        above = above[above]
    bad = np.flatnonzero(above >= 0)
    if bad.size:
        message = f"parents must lead to a root (-1), but those of atom {bad[0]} form a cycle"
        raise ValueError(message)
    return tuple(values.tolist())
