"""SPAMS's greedy decompositions, `omp` and `ompMask`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, Rows
from smalto.coders import L0, OMP, encode
from smalto.coders.parameters import as_per_signal
from smalto.compat.spams.columns import as_csc, atoms, masked, n_threads, signals


def omp(
    X: Any,
    D: Any,
    L: Any = None,
    eps: Any = None,
    lambda1: Any = None,
    return_reg_path: bool = False,
    numThreads: int = -1,
) -> Any:
    """Code the columns of X greedily, atom by atom, until a limit is reached.

    All coefficients are refitted with each atom, and the atom is chosen that gives the smallest
    error then, as in SPAMS.

    Parameters
    ----------
    X : array (m, n)
        Signals, as columns.
    D : array (m, k)
        Atoms, as columns, of any norm.
    L : int or array (n,), optional
        Largest number of nonzeros.
    eps : float or array (n,), optional
        Stop at this squared norm of the residual.
    lambda1 : float or array (n,), optional
        Stop when no atom lowers ``½‖x − Dα‖² + lambda1‖α‖₀`` any more.
    return_reg_path : bool, default False
        Return also the path of the first signal.
    numThreads : int, default -1
        Number of threads, -1 for every core.

    Returns
    -------
    alpha : csc_matrix (k, n)
        The codes. Of several limits, the first one that is reached counts.
    path : array (k, min(m, k))
        If asked for: the code of the first signal after each atom, in Fortran order, then zeros.
    """
    x = signals("X", X)
    d = atoms("D", D, x.shape[1])
    return _pursue(x, d, None, (L, eps, lambda1), return_reg_path, n_threads(numThreads))


def ompMask(
    X: Any,
    D: Any,
    B: Any,
    L: Any = None,
    eps: Any = None,
    lambda1: Any = None,
    return_reg_path: bool = False,
    numThreads: int = -1,
) -> Any:
    """Code the columns of X greedily, from their known entries.

    As in SPAMS, ``eps`` of a signal is multiplied by its share of known entries.

    Parameters
    ----------
    X : array (m, n)
        Signals, as columns; unknown entries may be anything, also NaN.
    D : array (m, k)
        Atoms, as columns.
    B : array of bool (m, n)
        True where an entry is known. The code of a signal without any is zero.
    L, eps, lambda1, return_reg_path, numThreads
        As in `omp`.

    Returns
    -------
    alpha : csc_matrix (k, n)
        The codes.
    path : array (k, min(m, k))
        If asked for: as in `omp`.
    """
    x, d, known = masked(X, D, B)
    if eps is not None:
        eps = np.asarray(_limit("eps", eps)) * known.mean(axis=1)
    return _pursue(x, d, known, (L, eps, lambda1), return_reg_path, n_threads(numThreads))


def _pursue(
    x: Rows, d: Rows, known: Array | None, limits: tuple[Any, Any, Any], path: bool, threads: Any
) -> Any:
    """Return the codes within all limits (L, eps, lambda1), with the path if asked for."""
    L, eps, lambda1 = (
        None if limit is None else _limit(name, limit)
        for name, limit in zip(("L", "eps", "lambda1"), limits, strict=True)
    )
    most = min(d.shape)
    mask = None if known is None else ~known
    found = []
    if L is not None or eps is not None:
        L = most if L is None else np.minimum(L, most)
        found = [encode(x, d, OMP(L, eps), mask=mask, n_threads=threads)]
    if lambda1 is not None:
        found += [_penalized(x, d, mask, lambda1, threads)]
    if not found:
        message = "omp needs a limit: give L, eps or lambda1"
        raise ValueError(message)
    codes = found[0] if len(found) == 1 else _shorter(*found)
    if not path:
        return as_csc(codes)
    steps = np.arange(1, 1 + codes.indptr[1])
    out = np.zeros((d.shape[0], most), codes.dtype, order="F")
    if len(steps):
        repeated = np.zeros(len(steps), int)
        holes = None if mask is None else mask[repeated]
        parts = encode(x[repeated], d, OMP(steps), mask=holes, n_threads=threads)
        out[:, : len(steps)] = parts.toarray().T
    return as_csc(codes), out


def _limit(name: str, value: Any) -> Any:
    """Return one limit, or one for each signal, as smalto's coders take them."""
    numbers = np.asarray(value)
    if numbers.size == 1:
        numbers = numbers.reshape(())
    if name == "L" and numbers.dtype.kind == "f" and (numbers == np.floor(numbers)).all():
        numbers = numbers.astype(np.int64)
    return as_per_signal(name, numbers if numbers.ndim else numbers.item(), integer=name == "L")


def _penalized(x: Rows, d: Rows, mask: Any, lambda1: Any, threads: Any) -> Any:
    """Return the codes for a cost per nonzero, which may differ between signals."""
    if not isinstance(lambda1, tuple):
        return encode(x, d, L0(lambda1), mask=mask, n_threads=threads)
    if len(lambda1) != x.shape[0]:
        message = f"lambda1 has {len(lambda1)} numbers, one per signal, but there are {x.shape[0]}"
        raise ValueError(message)
    costs, which = np.unique(lambda1, return_inverse=True)
    parts = []
    for number, cost in enumerate(costs.tolist()):
        rows = np.flatnonzero(which == number)
        holes = None if mask is None else mask[rows]
        parts.append(encode(x[rows], d, L0(cost), mask=holes, n_threads=threads))
    order = np.argsort(which, kind="stable")
    return scipy.sparse.vstack(parts, format="csr")[np.argsort(order)]


def _shorter(a: Any, b: Any) -> Any:
    """Return of each pair of rows the one with fewer nonzeros: both add the same atoms in turn."""
    n = a.shape[0]
    rows = np.where(np.diff(a.indptr) <= np.diff(b.indptr), np.arange(n), n + np.arange(n))
    return scipy.sparse.vstack([a, b], format="csr")[rows]
