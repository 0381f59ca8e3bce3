"""SPAMS's functions that decompose signals over a dictionary."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, Rows, check_finite, check_integer
from smalto.coders import Coder, ErrorBound, JointLasso, JointOMP, Lasso, encode
from smalto.compat.spams.columns import (
    as_csc,
    atoms,
    check_shape,
    columns,
    dense,
    group_labels,
    masked,
    n_threads,
    refuse,
    required,
    signals,
)
from smalto.compat.spams.lasso_limits import at_most, factor, kinks, of_signal
from smalto.compat.spams.modes import L1COEFFS, L2ERROR, PENALTY, convex_coder


def lasso(
    X: Any,
    D: Any = None,
    Q: Any = None,
    q: Any = None,
    return_reg_path: bool = False,
    L: int = -1,
    lambda1: Any = None,
    lambda2: float = 0.0,
    mode: int = PENALTY,
    pos: bool = False,
    ols: bool = False,
    numThreads: int = -1,
    max_length_path: int = -1,
    verbose: bool = False,
    cholesky: bool = False,
) -> Any:
    """Code the columns of X by one of three forms of the lasso, exactly.

    mode 2: ``min_α ½‖x − Dα‖² + lambda1‖α‖₁ + lambda2/2 ‖α‖²``, mode 1: ``min_α ‖α‖₁`` with
    ``‖x − Dα‖² ≤ lambda1``, mode 0: ``min_α ½‖x − Dα‖²`` with ``‖α‖₁ ≤ lambda1``.

    Parameters
    ----------
    X : array (m, n)
        Signals, as columns. C order, integers and sparse matrices are taken too.
    D : array (m, k)
        Atoms, as columns, of any norm.
    Q, q : array (k, k) and (k, n), optional
        ``D.T @ D`` and ``D.T @ X``, instead of D. They have to fit each other.
    return_reg_path : bool, default False
        Return also the path of the first signal.
    L : int, default -1
        Largest number of nonzeros of a code; -1 means no limit. A code that would have more is the
        last point with at most L nonzeros on its path to the solution.
    lambda1 : float
        The parameter of the mode; it has no default.
    lambda2 : float, default 0
        Weight of the squared norm, for mode 2 only.
    mode : {0, 1, 2}, default 2
        L1COEFFS, L2ERROR or PENALTY.
    pos : bool, default False
        Require α ≥ 0.
    ols : bool, default False
        True is not available.
    numThreads : int, default -1
        Number of threads, -1 for every core; it does not change the result.
    max_length_path : int, default -1
        Number of columns of the path, at least its default 4·L. Fewer are not available.
    verbose, cholesky : bool
        No effect: nothing is printed, and there is one solver.

    Returns
    -------
    alpha : csc_matrix (k, n)
        The codes.
    path : array (k, 4·L)
        If asked for: the codes of the first signal at the kinks of its path, in Fortran order.
        The first column is zero, and so are those after the code itself.
    """
    if ols:
        refuse("ols=True", "refit the nonzeros of each code, with numpy.linalg.lstsq")
    if (Q is None) != (q is None):
        message = "lasso needs both Q and q, or D"
        raise ValueError(message)
    coder = convex_coder("lasso", mode, required("lambda1", lambda1), lambda2, pos)
    x = signals("X", X)
    if Q is not None:
        x, d, coder = _from_gram(x, Q, q, lambda2, coder)
    elif D is None:
        message = "lasso needs D, or both Q and q"
        raise ValueError(message)
    else:
        d = atoms("D", D, x.shape[1])
    L, length = _limits(L, max_length_path, d, np.shape(X)[0])
    codes = encode(x, d, coder, n_threads=n_threads(numThreads))
    codes = at_most(codes, L, x, dense(d), coder, None, None)
    if not return_reg_path:
        return as_csc(codes)
    return as_csc(codes), _path(x, d, coder, codes, L, length)


def _limits(L: int, max_length_path: int, d: Rows, n_features: int) -> tuple[int, int]:
    """Return the largest number of nonzeros, and the number of columns of the path."""
    k = d.shape[0]
    L = check_integer("L", L, low=-1)
    default = 4 * (k if L < 0 else L)
    length = default if max_length_path < 0 else check_integer("max_length_path", max_length_path)
    if length < min(default, 4 * min(n_features, k)):
        refuse(
            f"max_length_path={max_length_path}",
            "codes are exact, so paths have no limit; L limits the number of nonzeros",
        )
    return (k if L < 0 else L), length


def _path(x: Rows, d: Rows, coder: Coder, codes: Any, L: int, length: int) -> Array:
    """Return the path of the first signal, padded with zeros."""
    first = dense(x[[0]])[0]
    found = kinks(first, dense(d), of_signal(coder, 0))
    found = found[: 1 + int(np.flatnonzero(np.count_nonzero(found, axis=1) <= L).max(initial=0))]
    found = found.astype(codes.dtype)
    last = codes[[0]].toarray()
    if last.any() and not (len(found) and np.allclose(found[-1], last[0])):
        found = np.concatenate([found, last])
    path = np.zeros((d.shape[0], max(length, len(found))), codes.dtype, order="F")
    path[:, : len(found)] = found.T
    return path


def _from_gram(x: Rows, Q: Any, q: Any, lambda2: float, coder: Coder) -> tuple[Array, Array, Coder]:
    """Return signals, atoms and coder of a problem that is given by its Gram matrix."""
    n = x.shape[0]
    k = len(Q)
    check_shape("Q", Q, (k, k), "atoms, atoms")
    check_shape("q", q, (k, n), "atoms, signals")
    check_finite("Q", np.asarray(Q))
    check_finite("q", np.asarray(q))
    if lambda2:
        refuse(f"lambda2={lambda2:g} with Q", "add it to the diagonal of Q")
    y, d = factor(Q, q)
    if not isinstance(coder, ErrorBound):
        return y, d, coder
    # What the atoms cannot reach of a signal is part of its error.
    size = (
        np.asarray(x.power(2).sum(axis=1)).ravel() if scipy.sparse.issparse(x) else (x * x).sum(1)
    )
    left = np.maximum(size.astype(np.float64) - (y.astype(np.float64) ** 2).sum(axis=1), 0.0)
    bounds = np.maximum(float(np.max(coder.eps)) - left, 0.0)
    return y, d, ErrorBound(bounds, coder.positive)


def lassoMask(
    X: Any,
    D: Any,
    B: Any,
    L: int = -1,
    lambda1: Any = None,
    lambda2: float = 0.0,
    mode: int = PENALTY,
    pos: bool = False,
    numThreads: int = -1,
    verbose: bool = False,
) -> scipy.sparse.csc_matrix:
    """Code the columns of X from their known entries, by the lasso.

    As in SPAMS, ``lambda1`` of a signal is multiplied by its share of known entries in modes 1 and
    2 (smalto's own ``encode(..., mask=~B.T)`` does not do that).

    Parameters
    ----------
    X : array (m, n)
        Signals, as columns; unknown entries may be anything, also NaN.
    D : array (m, k)
        Atoms, as columns.
    B : array of bool (m, n)
        True where an entry is known. The code of a signal without any is zero.
    L, lambda1, lambda2, mode, pos, numThreads, verbose
        As in `lasso`.

    Returns
    -------
    csc_matrix (k, n)
        The codes.
    """
    x, d, known = masked(X, D, B)
    lambda1 = required("lambda1", lambda1)
    coder = convex_coder("lassoMask", mode, lambda1, lambda2, pos)
    share = known.mean(axis=1)
    size = np.where(share > 0, share, 1.0).astype(x.dtype)
    threads, limit = n_threads(numThreads), _limits(L, -1, d, x.shape[1])[0]
    if isinstance(coder, ErrorBound):
        coder = ErrorBound(lambda1 * share, pos)
    if mode == PENALTY:  # the code for share·lambda1 is share times that of x/share for lambda1
        x = x / size[:, None]
    codes = encode(x, d, coder, mask=~known, n_threads=threads)
    codes = at_most(codes, limit, x, dense(d), coder, known, None)
    if mode == PENALTY:
        codes.data *= np.repeat(size, np.diff(codes.indptr))
    return as_csc(codes)


def lassoWeighted(
    X: Any,
    D: Any,
    W: Any,
    L: int = -1,
    lambda1: Any = None,
    mode: int = PENALTY,
    pos: bool = False,
    numThreads: int = -1,
    verbose: bool = False,
) -> scipy.sparse.csc_matrix:
    """Code the columns of X by the lasso with the norm ``Σ_j W_ji |α_j|`` for signal i.

    Parameters
    ----------
    X : array (m, n)
        Signals, as columns.
    D : array (m, k)
        Atoms, as columns.
    W : array (k, n)
        Weights above zero, as columns.
    L, lambda1, mode, pos, numThreads, verbose
        As in `lasso`.

    Returns
    -------
    csc_matrix (k, n)
        The codes.
    """
    x = signals("X", X)
    d = atoms("D", D, x.shape[1])
    check_shape("W", W, (d.shape[0], x.shape[0]), "atoms, signals")
    weights = np.ascontiguousarray(np.asarray(W).T, np.float64)
    if not (weights > 0).all():
        message = f"W must be above 0, got {weights[~(weights > 0)][0]:g}"
        raise ValueError(message)
    coder = convex_coder("lassoWeighted", mode, required("lambda1", lambda1), 0.0, pos)
    limit = _limits(L, -1, d, x.shape[1])[0]
    codes = encode(x, d, coder, penalty_weights=weights, n_threads=n_threads(numThreads))
    return as_csc(at_most(codes, limit, x, dense(d), coder, None, weights))


def cd(
    X: Any,
    D: Any,
    A0: Any,
    lambda1: Any = None,
    mode: int = PENALTY,
    itermax: int = 100,
    tol: float = 0.001,
    numThreads: int = -1,
) -> scipy.sparse.csc_matrix:
    """Code the columns of X by the lasso, exactly, starting from given codes.

    Parameters
    ----------
    X : array (m, n)
        Signals, as columns.
    D : array (m, k)
        Atoms, as columns, of any norm.
    A0 : csc_matrix (k, n)
        Codes to start from; they change the time, not the result.
    lambda1 : float
        The parameter of the mode.
    mode : {1, 2}, default 2
        L2ERROR or PENALTY, as in `lasso`.
    itermax, tol
        No effect: the solution is exact.
    numThreads : int, default -1
        Number of threads, -1 for every core.

    Returns
    -------
    csc_matrix (k, n)
        The codes.
    """
    lambda1 = required("lambda1", lambda1)
    if mode == L1COEFFS:
        refuse("cd(mode=0)", f"use lasso(X, D, lambda1={lambda1:g}, mode=0); SPAMS has none either")
    x = signals("X", X)
    d = atoms("D", D, x.shape[1])
    check_shape("A0", A0, (d.shape[0], x.shape[0]), "atoms, signals")
    coder = convex_coder("cd", mode, lambda1, 0.0, False)
    start = scipy.sparse.csr_array(A0.T) if isinstance(coder, Lasso) else None
    return as_csc(encode(x, d, coder, start=start, n_threads=n_threads(numThreads)))


def somp(
    X: Any,
    D: Any,
    list_groups: Any,
    L: Any = None,
    eps: float = 0.0,
    numThreads: int = -1,
) -> scipy.sparse.csc_matrix:
    """Code groups of signals that share their atoms, greedily.

    Parameters
    ----------
    X : array (m, n)
        Signals, as columns, those of a group side by side.
    D : array (m, k)
        Atoms, as columns, of any norm.
    list_groups : array of int
        The first signal of each group, from 0, increasing.
    L : int
        Largest number of atoms of a group; it has no default.
    eps : float, default 0
        Stop at this mean squared norm of the residuals of a group.
    numThreads : int, default -1
        Number of threads, -1 for every core.

    Returns
    -------
    csc_matrix (k, n)
        The codes.
    """
    if L is None:
        message = "L must be given"
        raise ValueError(message)
    x = signals("X", X)
    d = atoms("D", D, x.shape[1])
    most = min(check_integer("L", L, low=0), *d.shape)
    labels = group_labels(list_groups, x.shape[0])
    coder = JointOMP(max_nonzeros=most, eps=required("eps", eps))
    return as_csc(encode(x, d, coder, groups=labels, n_threads=n_threads(numThreads)))


def l1L2BCD(
    X: Any,
    D: Any,
    alpha0: Any,
    list_groups: Any,
    lambda1: Any = None,
    mode: int = PENALTY,
    itermax: int = 100,
    tol: float = 1e-3,
    numThreads: int = -1,
) -> Array:
    """Code groups of signals that share their atoms, by the ℓ1/ℓ2 norm.

    A group X of n signals has the codes ``min_A ½‖X − DA‖² + √n lambda1/2 Σ_j ‖A_j‖₂`` with the
    rows A_j of A: the problem that SPAMS solves, exactly.

    Parameters
    ----------
    X : array (m, n)
        Signals, as columns, those of a group side by side.
    D : array (m, k)
        Atoms, as columns, of any norm.
    alpha0 : array (k, n)
        Only its shape matters: the solution does not depend on the start.
    list_groups : array of int
        The first signal of each group, from 0, increasing.
    lambda1 : float
        Weight of the norm.
    mode : {2}
        PENALTY; others are not available.
    itermax, tol
        No effect: the solution is exact.
    numThreads : int, default -1
        Number of threads, -1 for every core.

    Returns
    -------
    array (k, n)
        The codes, dense, in Fortran order.
    """
    if mode == L2ERROR:
        refuse("l1L2BCD(mode=1)", "use somp with eps, or vary lambda1 until the error is right")
    if mode != PENALTY:
        message = f"mode must be 2 (PENALTY), got {mode!r}"
        raise ValueError(message)
    x = signals("X", X)
    d = atoms("D", D, x.shape[1])
    check_shape("alpha0", alpha0, (d.shape[0], x.shape[0]), "atoms, signals")
    coder = JointLasso(required("lambda1", lambda1) / 2.0, by_size=True)
    labels = group_labels(list_groups, x.shape[0])
    return columns(encode(x, d, coder, groups=labels, n_threads=n_threads(numThreads)).toarray())
