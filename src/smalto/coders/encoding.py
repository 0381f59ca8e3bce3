"""``encode``: the one door to sparse coding."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from smalto.checks import (
    Array,
    Rows,
    as_dictionary,
    as_floats,
    as_rows,
    check_finite,
    check_role,
    float_dtype,
)
from smalto.coders.base import PADDING, Coder, Codes, Solver, stack
from smalto.coders.constrained import ErrorBound
from smalto.coders.lasso import Lasso
from smalto.coders.omp import OMP
from smalto.kernels.statistics import fit_of_rows
from smalto.threads import resolve_threads, run_tasks, single_threaded_blas

CHUNK = 128  # rows coded as one task, at least; at most ...
LARGEST_CHUNK = 1024  # ... where there are many; never depends on the number of threads
ROWS_AT_ONCE = 8192  # rows whose codes are held at once where only their cost is wanted
BLOCK = 128  # rows of the Gram matrix computed as one task


def encode(
    X: Any,
    D: Any,
    coder: Coder | None = None,
    *,
    start: Any = None,
    n_threads: int | None = None,
) -> Any:
    """Sparse codes of the rows of X over the atoms (rows) of D.

    Solves ``min_α ½‖x − αD‖² + ψ(α)`` for each row x of X, where the coder says what ψ is.

    Parameters
    ----------
    X : array or CSR array (n, m)
        Signals. float32 is coded in float32, everything else in float64.
    D : array (k, m)
        Dictionary: one atom per row.
    coder : coder, default ``Lasso()``
        The problem to solve.
    start : CSR array (n, k), optional
        Codes to start from, such as those over an earlier dictionary. They change the time
        that a `Lasso` takes, not the result (where it is unique); other coders need none.
    n_threads : int, optional
        Threads to use; every available core by default. The result does not depend on it.

    Returns
    -------
    csr_array (n, k)
        One code per row, indices sorted.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import encode
    >>> from smalto.coders import Lasso
    >>> codes = encode(np.array([[3.0, 0.5]]), np.eye(2), Lasso(lam=1.0))
    >>> codes.toarray()
    array([[2., 0.]])
    """
    X = as_rows("X", X)
    dtype = float_dtype(X.dtype)
    D = as_dictionary(D, X.shape[1], dtype)
    check_finite("X", X)
    coder = Lasso() if coder is None else check_coder(coder)
    threads = resolve_threads(n_threads)
    first = None if start is None else _check_start(start, (X.shape[0], len(D)), dtype)
    with single_threaded_blas():
        coder = coder.resolve(X, D, threads)
        prepared = prepare(D, coder, threads)
        eps = _error_bound(coder)
        coded = code_rows(X, prepared, first, threads, numbered=True, measured=eps is not None)
    codes = coded.codes.as_csr(len(D))
    if codes.nnz == 0 and codes.shape[0]:
        warn_if_all_zero(coder, X, D)
    if eps is not None:
        warn_if_out_of_reach(eps, coded, dtype)
    return codes


def check_coder(coder: Any) -> Coder:
    """Refuse what is not a coder, with the likely slip."""
    check_role("coder", coder, Coder, "Lasso(lam=0.1)")
    return coder  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Prepared:
    """A dictionary made ready for coding: padded, with its Gram matrix and solver."""

    atoms: Array  # Dᵀ padded with zero atoms (m, width): C-contiguous for CSR rows
    G: Array  # (width, width)
    solve: Solver


def prepare(D: Array, coder: Coder, n_threads: int) -> Prepared:
    """Compute once per dictionary what all rows share."""
    k, m = D.shape
    width = -(-k // PADDING) * PADDING
    padded = D
    if width > k:
        padded = np.zeros((width, m), D.dtype)
        padded[:k] = D
    G = gram(padded, n_threads)
    return Prepared(padded.T, G, coder.solver(G))


def gram(D: Array, n_threads: int) -> Array:
    """``D Dᵀ``, its lower triangle by blocks of rows and the rest by symmetry."""
    k = len(D)
    G = np.empty((k, k), D.dtype)

    def task(number: int) -> None:
        a, b = number * BLOCK, min((number + 1) * BLOCK, k)
        np.matmul(D[a:b], D[:b].T, out=G[a:b, :b])
        G[:a, a:b] = G[a:b, :a].T

    run_tasks(task, -(-k // BLOCK), n_threads)
    return G


@dataclass(frozen=True)
class Coded:
    """Codes of a batch of rows and how well they fit."""

    codes: Codes
    fit: Array  # ½‖x − αD‖² of each row, float64
    norms: Array  # ‖x‖² of each row, float64


def code_rows(
    X: Rows,
    prepared: Prepared,
    start: Codes | None,
    n_threads: int,
    *,
    numbered: bool = False,
    measured: bool = True,
) -> Coded:
    """Code validated rows, chunk by chunk.

    ``numbered`` if they are the rows a user numbers; with ``measured`` also say how well the
    codes fit (else ``fit`` means nothing).
    """
    n = X.shape[0]
    chunk = min(max(CHUNK, n // 16), LARGEST_CHUNK)
    count = max(1, -(-n // chunk))
    parts: list[Any] = [None] * count
    fit, norms = np.empty((2, n))
    is_sparse = sparse.issparse(X)
    dtype = prepared.G.dtype

    def task(number: int) -> None:
        rows = slice(number * chunk, min((number + 1) * chunk, n))
        x = as_floats(X[rows], dtype)
        Q = np.ascontiguousarray(x @ prepared.atoms)
        if is_sparse:
            norms[rows] = np.asarray(x.multiply(x).sum(axis=1), np.float64).ravel()
        else:
            norms[rows] = np.einsum("ij,ij->i", x, x)
        first = None
        if start is not None:
            begin, end = start.indptr[rows.start], start.indptr[rows.stop]
            first = Codes(
                start.indptr[rows.start : rows.stop + 1] - begin,
                start.indices[begin:end],
                start.values[begin:end],
            )
        codes = prepared.solve(Q, norms[rows], first, rows if numbered else None)
        if measured:
            fit_of_rows(prepared.G, Q, norms[rows], *codes, fit[rows])
        parts[number] = codes

    run_tasks(task, count, n_threads)
    return Coded(stack(parts), fit, norms)


def mean_cost(X: Rows, D: Array, coder: Coder, n_threads: int) -> float:
    """The mean of ``½‖x − αD‖² + ψ(α)`` over validated rows, for a coder that is resolved."""
    prepared = prepare(D, coder, n_threads)
    total = 0.0
    for begin in range(0, X.shape[0], ROWS_AT_ONCE):
        coded = code_rows(X[begin : begin + ROWS_AT_ONCE], prepared, None, n_threads)
        total += float(coded.fit.sum())
        total += float(coder.penalty(coded.codes.as_csr(len(D))).sum())
    return total / int(X.shape[0])


def _check_start(start: Any, shape: tuple[int, int], dtype: np.dtype[Any]) -> Codes:
    start = sparse.csr_array(start, copy=True)
    if start.shape != shape:
        message = f"start must have shape {shape} (rows of X, atoms of D), got {start.shape}"
        raise ValueError(message)
    start.sum_duplicates()
    check_finite("start", start)
    return Codes(
        start.indptr.astype(np.int64), start.indices.astype(np.int32), start.data.astype(dtype)
    )


def warn_if_all_zero(coder: Coder, X: Rows, D: Array) -> None:
    """Say which λ would be of use when a lasso has returned nothing but zeros."""
    if not isinstance(coder, Lasso) or not coder.lam:
        return
    Q = X[: 16 * CHUNK] @ D.T
    largest = float(np.max(Q if coder.positive else np.abs(Q), initial=0.0))
    if 0.0 < largest <= coder.lam:
        message = (
            f"every code is zero: lam={coder.lam:.3g} is at least the largest correlation of a "
            f"signal with an atom, {largest:.3g}. Try lam={0.1 * largest:.2g}, or nonzeros={min(10, *D.shape)}"
        )
        warnings.warn(message, UserWarning, stacklevel=3)


def _error_bound(coder: Coder) -> Array | None:
    """The bound on ‖x − αD‖² that a coder promises to meet wherever it can be met."""
    if isinstance(coder, ErrorBound) or (isinstance(coder, OMP) and coder.nonzeros is None):
        return np.asarray(coder.eps, np.float64)
    return None


def warn_if_out_of_reach(eps: Array, coded: Coded, dtype: np.dtype[Any]) -> None:
    """Say for how many signals no code over the dictionary was found within the bound."""
    rounding = 1e-5 if dtype == np.float32 else 1e-10
    count = int(np.count_nonzero(2.0 * coded.fit > eps + rounding * coded.norms))
    if count:
        message = (
            f"eps is out of reach for {count} of {len(coded.fit)} signals: their codes are those "
            "of least squares"
        )
        warnings.warn(message, UserWarning, stacklevel=3)
