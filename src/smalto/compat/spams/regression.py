"""SPAMS's `fistaFlat` and `fistaTree`: regression with penalties, solved exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.checks import Array, check_finite
from smalto.coders import Coder, JointLasso, Lasso, encode
from smalto.compat.spams.columns import (
    atoms,
    check_shape,
    columns,
    dense,
    n_threads,
    refuse,
    signals,
)
from smalto.compat.spams.penalties import penalty_coder, variable_groups


def fistaFlat(
    Y: Any,
    X: Any,
    W0: Any,
    return_optim_info: bool = False,
    numThreads: int = -1,
    max_it: int = 1000,
    L0: float = 1.0,
    fixed_step: bool = False,
    gamma: float = 1.5,
    lambda1: float = 1.0,
    delta: float = 1.0,
    lambda2: float = 0.0,
    lambda3: float = 0.0,
    a: float = 1.0,
    b: float = 0.0,
    c: float = 1.0,
    tol: float = 0.000001,
    it0: int = 100,
    max_iter_backtracking: int = 1000,
    compute_gram: bool = False,
    lin_admm: bool = False,
    admm: bool = False,
    intercept: bool = False,
    resetflow: bool = False,
    regul: str = "",
    loss: str = "",
    verbose: bool = False,
    pos: bool = False,
    clever: bool = False,
    log: bool = False,
    ista: bool = False,
    subgrad: bool = False,
    logName: str = "",
    is_inner_weights: bool = False,
    inner_weights: Any = None,
    size_group: int = 1,
    groups: Any = None,
    sqrt_step: bool = True,
    transpose: bool = False,
    linesearch_mode: int = 0,
) -> Any:
    """Solve ``min_w ½‖y − Xw‖² + lambda1 Ω(w)`` for each column y of Y, exactly.

    Parameters
    ----------
    Y : array (m, n)
        Targets, as columns.
    X : array or sparse matrix (m, p)
        Features, as columns.
    W0 : array (p, n)
        Only its shape matters: the solution does not depend on the start.
    return_optim_info : bool, default False
        Return also what is known of the solutions.
    numThreads : int, default -1
        Number of threads, -1 for every core.
    lambda1 : float, default 1
        Weight of the penalty; with "l1-constraint" the bound on the ℓ1 norm.
    lambda2 : float, default 0
        Second weight: of ``½‖w‖²`` in "elastic-net", of ``‖w‖₁`` in "sparse-group-lasso-l2".
    intercept : bool, default False
        Neither penalize nor constrain the last variable.
    regul : str
        "l0" (greedily), "l1", "l2" (``½‖w‖²``), "l2-not-squared", "l1-constraint",
        "elastic-net", "group-lasso-l2", "sparse-group-lasso-l2", "l1l2" (over the rows of all
        solutions together) or "none". Others are not available.
    loss : {"square", "square-missing"}
        With the latter, NaN in Y marks a missing entry. Other losses are not available.
    pos : bool, default False
        Require w ≥ 0; not with "l1l2".
    size_group : int, default 1
        Number of consecutive variables in a group; the rest, if there is any, is not penalized.
    groups : array of int (p,), optional
        Instead of ``size_group``: the group of each variable, from 1.
    log, is_inner_weights, transpose : bool, default False
        True is not available.
    lambda3, a, b, c, delta, inner_weights, logName
        No effect: they belong to penalties, losses and options that are not available.
    max_it, L0, fixed_step, gamma, tol, it0, max_iter_backtracking, compute_gram, lin_admm, admm, \
resetflow, verbose, clever, ista, subgrad, sqrt_step, linesearch_mode
        No effect: they control iterations, and the solution is exact.

    Returns
    -------
    W : array (p, n)
        The solutions, as columns, in Fortran order.
    optim_info : array (4, n), or (4, 1) for "l1l2"
        If asked for: the objective, a lower bound on its minimum, the relative duality gap, and
        the number of rounds. Bound and gap are NaN where nothing is known of the minimum: for
        "l0", for "none", and for "l2" with ``pos``.
    """
    _refuse_options(log=log, is_inner_weights=is_inner_weights, transpose=transpose)
    y, d, missing = _regression(Y, X, W0, loss)
    p = len(d)
    inner = p - bool(intercept)
    labels, grouped = variable_groups(p if groups is not None else inner, size_group, groups)
    labels = labels[:inner]
    penalized = np.arange(p) < inner
    if regul in ("group-lasso-l2", "sparse-group-lasso-l2"):
        penalized[:inner] = grouped[:inner]
        labels = labels[grouped[:inner]]
    coder = penalty_coder(regul, lambda1, lambda2, pos, labels, None)
    return _solve(y, d, missing, penalized, coder, return_optim_info, numThreads)


def fistaTree(
    Y: Any,
    X: Any,
    W0: Any,
    tree: Any,
    return_optim_info: bool = False,
    numThreads: int = -1,
    max_it: int = 1000,
    L0: float = 1.0,
    fixed_step: bool = False,
    gamma: float = 1.5,
    lambda1: float = 1.0,
    delta: float = 1.0,
    lambda2: float = 0.0,
    lambda3: float = 0.0,
    a: float = 1.0,
    b: float = 0.0,
    c: float = 1.0,
    tol: float = 0.000001,
    it0: int = 100,
    max_iter_backtracking: int = 1000,
    compute_gram: bool = False,
    lin_admm: bool = False,
    admm: bool = False,
    intercept: bool = False,
    resetflow: bool = False,
    regul: str = "",
    loss: str = "",
    verbose: bool = False,
    pos: bool = False,
    clever: bool = False,
    log: bool = False,
    ista: bool = False,
    subgrad: bool = False,
    logName: str = "",
    is_inner_weights: bool = False,
    inner_weights: Any = None,
    size_group: int = 1,
    sqrt_step: bool = True,
    transpose: bool = False,
    linesearch_mode: int = 0,
) -> Any:
    """Solve ``min_w ½‖y − Xw‖² + lambda1 Σ_g η_g‖w_g‖₂`` with nested groups, exactly.

    Parameters
    ----------
    Y, X, W0, return_optim_info, numThreads, lambda1, intercept, loss, pos
        As in `fistaFlat`.
    tree : dict
        The groups, as in SPAMS: "eta_g" has their weights, "own_variables" and
        "N_own_variables" the first variable and the number of those that belong to no smaller
        group, and "groups" is true at (h, g) if group h is a child of group g.
    regul : {"tree-l2"}
        Others are not available.
    log, is_inner_weights, transpose : bool, default False
        True is not available.
    lambda2, lambda3, a, b, c, delta, inner_weights, size_group, logName
        No effect: they belong to penalties, losses and options that are not available.
    max_it, L0, fixed_step, gamma, tol, it0, max_iter_backtracking, compute_gram, lin_admm, admm, \
resetflow, verbose, clever, ista, subgrad, sqrt_step, linesearch_mode
        No effect: they control iterations, and the solution is exact.

    Returns
    -------
    W : array (p, n)
        The solutions, as columns, in Fortran order.
    optim_info : array (4, n)
        If asked for: as in `fistaFlat`.
    """
    _refuse_options(log=log, is_inner_weights=is_inner_weights, transpose=transpose)
    y, d, missing = _regression(Y, X, W0, loss)
    penalized = np.arange(len(d)) < len(d) - bool(intercept)
    labels = np.zeros(np.count_nonzero(penalized), int)
    if not str(regul).startswith("tree-"):
        message = f"regul must be 'tree-l2' in fistaTree, got {regul!r}"
        raise ValueError(message)
    coder = penalty_coder(regul, lambda1, lambda2, pos, labels, tree)
    return _solve(y, d, missing, penalized, coder, return_optim_info, numThreads)


def _refuse_options(*, log: bool, is_inner_weights: bool, transpose: bool) -> None:
    if log:
        refuse("log=True", "time your calls")
    if is_inner_weights:
        refuse("is_inner_weights=True", "multiply the columns of X and divide W by the weights")
    if transpose:
        refuse("transpose=True", "penalties act on columns, and 'l1l2' on rows")


def _regression(Y: Any, X: Any, W0: Any, loss: str) -> tuple[Array, Array, Array | None]:
    """Return targets (n, m), features (p, m), and which entries of the targets are missing."""
    if loss not in ("square", "square-missing"):
        known = ("logistic", "weighted-logistic", "multi-logistic", "hinge", "poisson", "cur")
        if loss in known:
            refuse(f"loss={loss!r}", "scikit-learn has such models (sklearn.linear_model)")
        message = f"loss must be 'square' or 'square-missing', got {loss!r}"
        raise ValueError(message)
    y = dense(signals("Y", Y, finite=loss == "square"))
    d = dense(atoms("X", X, y.shape[1])).astype(y.dtype, copy=False)
    check_shape("W0", W0, (len(d), len(y)), "variables, targets")
    if loss == "square":
        return y, d, None
    missing = np.isnan(y)
    y = np.where(missing, y.dtype.type(0), y)
    check_finite("Y", y.T)
    return y, d, missing if missing.any() else None


def _solve(
    y: Array,
    d: Array,
    missing: Array | None,
    penalized: Array,
    coder: Coder,
    with_info: bool,
    numThreads: int,
) -> Any:
    """Return the solutions as columns; variables that are not penalized are eliminated."""
    if not penalized.all() and missing is not None:
        refuse("loss='square-missing' with variables that are not penalized", "penalize them all")
    free, rest = d[~penalized].astype(np.float64), d[penalized]
    target = y
    if len(free):
        U, sizes, _ = np.linalg.svd(free.T, full_matrices=False)
        U = U[:, sizes > 1e-12 * sizes.max(initial=0.0)]
        target, rest = y - (y @ U) @ U.T, rest - (rest @ U) @ U.T
    codes, info = encode(
        target, rest, coder, mask=missing, n_threads=n_threads(numThreads), return_info=True
    )
    W = np.zeros((len(y), len(d)))
    W[:, penalized] = codes.toarray()
    left = y.astype(np.float64) - W @ d
    if len(free):
        W[:, ~penalized] = np.linalg.lstsq(free.T, left.T, rcond=None)[0].T
        left = y.astype(np.float64) - W @ d
    result = columns(W, y.dtype)
    if not with_info:
        return result
    if missing is not None:
        left[missing] = 0.0
    costs = 0.5 * (left * left).sum(axis=1) + info.coder.penalty(codes)
    gap, rounds = info.gap, info.iterations
    if isinstance(coder, Lasso) and not coder.lam:  # there is no dual point to bound it with
        gap = np.full_like(gap, np.nan)
    if isinstance(coder, JointLasso):
        costs, gap, rounds = costs.sum(keepdims=True), gap.sum(keepdims=True), rounds[:1]
    share = np.divide(gap, costs, out=np.zeros_like(costs), where=costs > 0)
    return result, np.asfortranarray([costs, costs - gap, share, rounds], dtype=y.dtype)
