"""The group lasso and the sparse group lasso."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from smalto.cached import cached_property
from smalto.coders.grouped import (
    GroupedCoder,
    Nested,
    as_atom_lists,
    as_group_weights,
    check_penalty,
)


@dataclass(frozen=True)
class GroupLasso(GroupedCoder):
    """Disjoint groups of atoms: ``min_α ½‖x − αD‖² + lam Σ_g w_g‖α_g‖₂ + l1‖α‖₁ + ridge/2 ‖α‖²``.

    The atoms of a group are used together or not at all; with ``l1`` above zero, some atoms of an
    active group may be unused (the sparse group lasso). Each signal is solved until its duality
    gap is at most 1e-10 times the objective (1e-6 in float32); a warning says for how many signals
    rounding prevented this.

    Parameters
    ----------
    lam : float
        Weight of the group norms, never rescaled.
    atom_groups : array (k,) or list of lists of int
        A label for each atom (groups are then numbered by increasing label), or the atoms of
        each group. Every atom belongs to exactly one group. Stored as one group number per atom.
    group_weights : array, optional
        Weights w_g > 0 of the groups in the penalty; all 1 by default, as in the paper. The
        square roots of the group sizes are a common choice for groups of different sizes.
    l1 : float, default 0
        Weight of the ℓ1 norm of the code.
    ridge : float, default 0
        Weight of the squared norm of the code.
    positive : bool, default False
        Require α ≥ 0.

    See Also
    --------
    TreeLasso : Nested groups of atoms.
    JointLasso : Groups of signals instead of atoms.

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
    atom_groups: npt.ArrayLike
    _: KW_ONLY
    group_weights: npt.ArrayLike | None = None
    l1: float = 0.0
    ridge: float = 0.0
    positive: bool = False

    def __post_init__(self) -> None:
        check_penalty(self.lam, self.l1, self.ridge)
        groups = as_labels(self.atom_groups)
        object.__setattr__(self, "atom_groups", groups)
        weights = as_group_weights(self.group_weights, 1 + max(groups), "group")
        object.__setattr__(self, "group_weights", weights)

    @cached_property
    def _nested(self) -> Nested:
        groups = np.asarray(self.atom_groups)
        return Nested(
            own=groups,
            parent=np.full(1 + groups.max(), -1),
            weights=self.group_weights,
            lam=float(self.lam),
            l1=float(self.l1),
            ridge=float(self.ridge),
            positive=bool(self.positive),
        )


def as_labels(groups: Any) -> tuple[int, ...]:
    """Return the group number of each atom, from labels or from lists of atoms."""
    in_order = np.iterable(groups) and not isinstance(groups, (str, bytes, set, dict))
    parts = list(groups) if in_order else []
    if not parts:
        message = (
            "atom_groups must be a label for each atom, or a list of lists of atoms, "
            f"got {groups!r}"
        )
        raise TypeError(message)
    if all(np.isscalar(part) for part in parts):
        labels = np.asarray(parts)
        if labels.dtype.kind not in "iubU":
            message = f"labels in atom_groups must be integers or strings, got {labels.dtype}"
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
