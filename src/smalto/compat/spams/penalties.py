"""SPAMS's names of penalties (``regul``) as smalto's coders, and the groups that go with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, check_integer
from smalto.coders import L0, Coder, GroupLasso, JointLasso, L1Ball, Lasso, Ridge, TreeLasso
from smalto.compat.spams.columns import refuse, required

_ELSEWHERE = {
    "linf": "proximalFlat has it",
    "fused-lasso": "proximalFlat has it; trainDL(modeD=2) has it for atoms",
    "group-lasso-linf": "use 'group-lasso-l2' (proximalFlat has this one)",
    "sparse-group-lasso-linf": "use 'sparse-group-lasso-l2'",
    "l1linf": "use 'l1l2'",
    "l1l2+l1": "use 'l1l2'",
    "l1linf+l1": "use 'l1l2'",
    "l1linf-row-column": "use 'l1l2'",
    "tree-l0": "use 'tree-l2'",
    "tree-linf": "use 'tree-l2'",
    "multi-task-tree": "use 'tree-l2' or 'l1l2'",
    "graph": "use 'group-lasso-l2' or 'tree-l2' for groups that are disjoint or nested",
    "graph-ridge": "use 'group-lasso-l2' or 'tree-l2' for groups that are disjoint or nested",
    "graph-l2": "use 'group-lasso-l2' or 'tree-l2' for groups that are disjoint or nested",
    "multi-task-graph": "use 'group-lasso-l2' or 'tree-l2'",
    "log-dc": "smalto.coders.Bridge has another penalty of this kind",
    "trace-norm": "use a library of convex optimization such as CVXPY",
    "trace-norm-vec": "use a library of convex optimization such as CVXPY",
    "rank": "truncate a singular value decomposition, with scipy.linalg.svd",
    "rank-vec": "truncate a singular value decomposition, with scipy.linalg.svd",
    "graph-path-l0": "smalto has no penalties on paths",
    "graph-path-conv": "smalto has no penalties on paths",
}


def refuse_regul(regul: Any) -> None:
    """Raise NotImplementedError for a penalty that SPAMS has, ValueError for an unknown name."""
    if regul in _ELSEWHERE:
        refuse(f"regul={regul!r} here", _ELSEWHERE[regul])
    message = f"regul must be the name of a penalty such as 'l1', got {regul!r}"
    raise ValueError(message)


def penalty_coder(
    regul: Any, lambda1: float, lambda2: float, pos: bool, groups: Any, tree: Any
) -> Coder:
    """Return the coder of a penalty; ``groups`` has a label for each variable."""
    lambda1, lambda2 = required("lambda1", lambda1), required("lambda2", lambda2)
    makers: dict[str, Callable[[], Coder]] = {
        "l0": lambda: L0(lambda1, positive=pos),
        "l1": lambda: Lasso(lambda1, positive=pos),
        "l2": lambda: _ridge(lambda1, pos),
        "l2-not-squared": lambda: GroupLasso(lambda1, np.zeros_like(groups), positive=pos),
        "l1-constraint": lambda: L1Ball(lambda1, positive=pos),
        "elastic-net": lambda: Lasso(lambda1, ridge=lambda2, positive=pos),
        "group-lasso-l2": lambda: GroupLasso(lambda1, groups, positive=pos),
        "sparse-group-lasso-l2": lambda: GroupLasso(lambda1, groups, l1=lambda2, positive=pos),
        "l1l2": lambda: _joint(lambda1, pos),
        "tree-l2": lambda: _tree(lambda1, tree, len(groups), pos),
        "none": lambda: Lasso(0.0, positive=pos),
    }
    if regul not in makers:
        refuse_regul(regul)
    return makers[regul]()


def _ridge(lambda1: float, pos: bool) -> Coder:
    return Ridge(lambda1) if lambda1 and not pos else Lasso(0.0, ridge=lambda1, positive=pos)


def _joint(lambda1: float, pos: bool) -> Coder:
    if pos:
        refuse("regul='l1l2' with pos=True", "leave out pos, or use 'l1'")
    return JointLasso(lambda1)


def _tree(lambda1: float, tree: Any, n: int, pos: bool) -> Coder:
    groups, weights = tree_groups(tree, n)
    alone = sorted(set(range(n)).difference(*groups))
    if alone:
        refuse(
            f"a tree in which variable {alone[0]} is in no group of positive weight",
            "put it into a group",
        )
    return TreeLasso(lambda1, atom_groups=groups, group_weights=weights, positive=pos)


def variable_groups(n: int, size_group: int, groups: Any) -> tuple[Array, Array]:
    """Return the group of each of n variables, and which variables are in a group at all.

    As in SPAMS, consecutive variables make groups of ``size_group``, and the rest, if there is
    any, is not penalized; or ``groups`` has a number from 1 for each variable.
    """
    if groups is None or not np.size(groups):
        size = check_integer("size_group", size_group)
        return np.arange(n) // size, np.arange(n) < n // size * size
    labels = np.asarray(groups)
    if labels.shape != (n,) or labels.dtype.kind not in "iu" or labels.min() < 1:
        message = (
            f"groups must have an integer from 1 for each of the {n} variables, "
            f"got shape {labels.shape} of {labels.dtype}"
        )
        raise ValueError(message)
    return labels, np.ones(n, bool)


_KEYS = ("eta_g", "groups", "own_variables", "N_own_variables")


def tree_groups(tree: Any, n: int) -> tuple[list[list[int]], list[float]]:
    """Return the variables and the weight of each group of SPAMS's description of a tree.

    Group g has ``N_own_variables[g]`` variables of its own from ``own_variables[g]`` on, and those
    of the groups h below it, for which ``groups[h, g]`` is true. Groups of weight 0 are left out.
    """
    if not isinstance(tree, dict) or any(key not in tree for key in _KEYS):
        message = f"tree must be a dictionary with {', '.join(_KEYS)}"
        raise ValueError(message)
    weights, first, count = (
        np.asarray(tree[key]).ravel() for key in ("eta_g", "own_variables", "N_own_variables")
    )
    size = len(weights)
    below = scipy.sparse.csc_array(tree["groups"]).toarray().astype(bool)
    if below.shape != (size, size) or len(first) != size or len(count) != size:
        message = (
            f"the parts of tree must have the same number of groups, got {size} in eta_g, "
            f"{below.shape} in groups, {len(first)} in own_variables and {len(count)} in "
            "N_own_variables"
        )
        raise ValueError(message)
    own = [set(range(int(a), int(a + b))) for a, b in zip(first, count, strict=True)]
    if set().union(*own) != set(range(n)) or int(count.sum()) != n:
        message = f"the own variables of the groups of tree must be 0 to {n - 1}, each once"
        raise ValueError(message)
    inside = below.copy()
    for _ in range(size.bit_length()):  # groups below those below, and so on
        inside |= (inside.astype(int) @ inside.astype(int)) > 0
    if inside.diagonal().any():
        message = "the groups of tree form a cycle"
        raise ValueError(message)
    members = [
        sorted(own[g].union(*(own[h] for h in np.flatnonzero(inside[:, g])))) for g in range(size)
    ]
    used = [g for g in range(size) if weights[g] > 0 and members[g]]
    return [members[g] for g in used], [float(weights[g]) for g in used]
