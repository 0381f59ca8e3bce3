"""SPAMS's proximal operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from smalto.checks import Array
from smalto.compat.spams.columns import columns, dense, n_threads, refuse, required, signals
from smalto.compat.spams.penalties import refuse_regul, tree_groups, variable_groups
from smalto.compat.spams.projecting import soft
from smalto.projections import fused_lasso_signal, project_l1_ball

# The proximal operator and the value of a penalty, for vectors that are rows.
Operator: TypeAlias = "tuple[Callable[[Array], Array], Callable[[Array], Array]]"


def proximalFlat(
    U: Any,
    return_val_loss: bool = False,
    numThreads: int = -1,
    lambda1: float = 1.0,
    lambda2: float = 0.0,
    lambda3: float = 0.0,
    intercept: bool = False,
    resetflow: bool = False,
    regul: str = "",
    verbose: bool = False,
    pos: bool = False,
    clever: bool = True,
    size_group: int = 1,
    groups: Any = None,
    transpose: bool = False,
) -> Any:
    """Solve ``min_v ½‖u − v‖² + lambda1 Ω(v)`` for each column u of U.

    Parameters
    ----------
    U : array (p, n)
        Vectors, as columns.
    return_val_loss : bool, default False
        Return also the values of Ω.
    numThreads : int, default -1
        Number of threads, -1 for every core.
    lambda1 : float, default 1
        Weight of the penalty; with "l1-constraint" the bound on the ℓ1 norm.
    lambda2, lambda3 : float, default 0
        More weights: of ``½‖v‖²`` in "elastic-net"; of ``‖v‖₁`` in "sparse-group-lasso-l2";
        of ``‖v‖₁`` and ``½‖v‖²`` in "fused-lasso".
    intercept : bool, default False
        Leave the last entry as it is.
    regul : str
        "l0", "l1", "l2" (``½‖v‖²``), "l2-not-squared", "linf", "l1-constraint", "elastic-net",
        "fused-lasso", "group-lasso-l2", "group-lasso-linf", "sparse-group-lasso-l2", "l1l2"
        (over the rows of U) or "none". Others are not available.
    pos : bool, default False
        Require v ≥ 0.
    size_group, groups
        As in `fistaFlat`.
    transpose : bool, default False
        True is not available.
    resetflow, verbose, clever
        No effect: they belong to penalties on graphs, and nothing is printed.

    Returns
    -------
    alpha : array (p, n)
        The solutions, in Fortran order.
    val_loss : array (n,), or (1,) for "l1l2"
        If asked for: Ω of each column, with ``lambda2/lambda1`` and ``lambda3/lambda1`` as weights
        of its further terms.
    """
    if transpose:
        refuse("transpose=True", "give U.T")
    rows = dense(signals("U", U))
    weights = tuple(
        required(name, value)
        for name, value in (("lambda1", lambda1), ("lambda2", lambda2), ("lambda3", lambda3))
    )
    inner = rows.shape[1] - bool(intercept)
    labels, grouped = variable_groups(
        rows.shape[1] if groups is not None else inner, size_group, groups
    )
    options = bool(pos), n_threads(numThreads)
    prox, value = _operator(regul, weights, (labels[:inner], grouped[:inner]), options)
    found = rows.copy()
    found[:, :inner] = prox(rows[:, :inner])
    if not return_val_loss:
        return columns(found)
    return columns(found), np.asarray(value(found[:, :inner]), rows.dtype)


def proximalTree(
    U: Any,
    tree: Any,
    return_val_loss: bool = False,
    numThreads: int = -1,
    lambda1: float = 1.0,
    lambda2: float = 0.0,
    lambda3: float = 0.0,
    intercept: bool = False,
    resetflow: bool = False,
    regul: str = "",
    verbose: bool = False,
    pos: bool = False,
    clever: bool = True,
    size_group: int = 1,
    transpose: bool = False,
) -> Any:
    """Solve ``min_v ½‖u − v‖² + lambda1 Σ_g η_g‖v_g‖`` with nested groups, for each column u of U.

    Parameters
    ----------
    U, return_val_loss, numThreads, lambda1, intercept, pos
        As in `proximalFlat`.
    tree : dict
        The groups, as in `fistaTree`.
    regul : {"tree-l2", "tree-linf"}
        The norm of groups. Others are not available.
    transpose : bool, default False
        True is not available.
    lambda2, lambda3, resetflow, verbose, clever, size_group
        No effect: they belong to penalties that are not available, and nothing is printed.

    Returns
    -------
    alpha : array (p, n)
        The solutions, in Fortran order.
    val_loss : array (n,)
        If asked for: ``Σ_g η_g‖v_g‖`` of each column.
    """
    if transpose:
        refuse("transpose=True", "give U.T")
    if regul not in ("tree-l2", "tree-linf"):
        refuse_regul(regul)
    rows, lambda1 = dense(signals("U", U)), required("lambda1", lambda1)
    members, weights = tree_groups(tree, rows.shape[1] - bool(intercept))
    n_threads(numThreads)
    inner_first = sorted(range(len(members)), key=lambda g: len(members[g]))
    norm = _norm_l2 if regul == "tree-l2" else _norm_linf
    found = rows.astype(np.float64)
    if pos:
        inner = found.shape[1] - bool(intercept)
        found[:, :inner] = np.maximum(found[:, :inner], 0.0)
    for g in inner_first:
        part = found[:, members[g]]
        shrink = _shrink_l2 if regul == "tree-l2" else _shrink_linf
        found[:, members[g]] = shrink(part, lambda1 * weights[g])
    found = found.astype(rows.dtype)
    if not return_val_loss:
        return columns(found)
    values = sum(
        w * norm(found[:, group].astype(np.float64))
        for w, group in zip(weights, members, strict=True)
    )
    return columns(found), np.asarray(values, rows.dtype)


def _norm_l2(rows: Array) -> Array:
    return np.asarray(np.sqrt((rows * rows).sum(axis=1)))


def _norm_linf(rows: Array) -> Array:
    return np.asarray(np.abs(rows).max(axis=1, initial=0.0))


def _shrink_l2(rows: Array, by: float) -> Array:
    """Shorten each row; the proximal operator of the ℓ2 norm."""
    size = _norm_l2(rows.astype(np.float64))
    left = np.maximum(size - by, 0.0)
    share = np.divide(left, size, out=np.zeros_like(left), where=size > 0)
    return (rows * share[:, None]).astype(rows.dtype)


def _shrink_linf(rows: Array, by: float) -> Array:
    """Clip each row; the proximal operator of the ℓ∞ norm."""
    return rows - project_l1_ball(rows, by)


def _operator(regul: Any, weights: Any, groups: tuple[Array, Array], options: Any) -> Operator:
    """Return the proximal operator and the value of a penalty."""
    lambda1, lambda2, lambda3 = weights
    pos, threads = options
    second = lambda2 / lambda1 if lambda1 else 0.0
    third = lambda3 / lambda1 if lambda1 else 0.0

    def part(rows: Array) -> Array:
        return np.maximum(rows, 0.0).astype(rows.dtype) if pos else rows

    def l1(rows: Array) -> Array:
        return np.asarray(np.abs(rows).sum(axis=1))

    def squares(rows: Array) -> Array:
        return np.asarray(0.5 * (rows * rows).sum(axis=1))

    def hard(rows: Array) -> Array:
        return np.where(np.abs(part(rows)) > np.sqrt(2.0 * lambda1), rows, rows.dtype.type(0))

    def jumps(rows: Array) -> Array:
        return np.asarray(np.abs(np.diff(rows, axis=1)).sum(axis=1))

    def fused(rows: Array) -> Array:
        return fused_lasso_signal(rows, lambda2, lambda1, lambda3, positive=pos, n_threads=threads)

    def by_group(one: Callable[[Array], Array], norm: Callable[[Array], Array]) -> Operator:
        labels, grouped = groups
        numbers = np.unique(labels[grouped])

        def prox(rows: Array) -> Array:
            found = rows.copy()
            for number in numbers:
                places = np.flatnonzero(grouped & (labels == number))
                found[:, places] = one(part(rows[:, places]))
            return found

        def value(rows: Array) -> Array:
            return np.asarray(
                sum(norm(rows[:, grouped & (labels == number)]) for number in numbers)
            )

        return prox, value

    def mixed(rows: Array) -> Array:
        return np.ascontiguousarray(_shrink_l2(np.ascontiguousarray(part(rows).T), lambda1).T)

    makers: dict[str, Callable[[], Operator]] = {
        "l0": lambda: (hard, lambda rows: np.count_nonzero(rows, axis=1)),
        "l1": lambda: (lambda rows: soft(rows, lambda1, pos), l1),
        "l2": lambda: (lambda rows: (part(rows) / (1.0 + lambda1)).astype(rows.dtype), squares),
        "l2-not-squared": lambda: (lambda rows: _shrink_l2(part(rows), lambda1), _norm_l2),
        "linf": lambda: (lambda rows: _shrink_linf(part(rows), lambda1), _norm_linf),
        "l1-constraint": lambda: (
            lambda rows: project_l1_ball(rows, lambda1, positive=pos, n_threads=threads),
            lambda rows: np.zeros(len(rows)),
        ),
        "elastic-net": lambda: (
            lambda rows: (soft(rows, lambda1, pos) / (1.0 + lambda2)).astype(rows.dtype),
            lambda rows: l1(rows) + second * squares(rows),
        ),
        "fused-lasso": lambda: (
            fused,
            lambda rows: jumps(rows) + second * l1(rows) + third * squares(rows),
        ),
        "group-lasso-l2": lambda: by_group(lambda rows: _shrink_l2(rows, lambda1), _norm_l2),
        "group-lasso-linf": lambda: by_group(lambda rows: _shrink_linf(rows, lambda1), _norm_linf),
        "sparse-group-lasso-l2": lambda: by_group(
            lambda rows: _shrink_l2(soft(rows, lambda2, pos), lambda1),
            lambda rows: _norm_l2(rows) + second * l1(rows),
        ),
        "l1l2": lambda: (mixed, lambda rows: _norm_l2(rows.T).sum(keepdims=True)),
        "none": lambda: (part, lambda rows: np.zeros(len(rows))),
    }
    if regul not in makers:
        refuse_regul(regul)
    return makers[regul]()
