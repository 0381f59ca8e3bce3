"""``encode``: the one door to sparse coding."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from smalto.checks import (
    Array,
    Rows,
    as_dictionary,
    as_floats,
    check_finite,
    float_dtype,
)
from smalto.coders.base import (
    PADDING,
    Chunk,
    Coder,
    Codes,
    OwnGram,
    Reaching,
    Solver,
    check_coder,
    penalties,
    resolved,
    stack,
)
from smalto.coders.certificates import gaps
from smalto.coders.lasso import Lasso
from smalto.coders.masked_gram import one_by_one
from smalto.coders.signals import Missing, Signals, as_signals, blocks, in_groups, with_weights
from smalto.kernels import aligned
from smalto.kernels.coding.fit import fit_of_rows
from smalto.threads import resolve_threads, run_tasks, single_threaded_blas

CHUNK = 128  # rows coded as one task, at least; at most ...
LARGEST_CHUNK = 1024  # ... where there are many; never depends on the number of threads
ROWS_AT_ONCE = 8192  # rows whose codes are held at once where only their cost is wanted
BLOCK = 128  # rows of the Gram matrix computed as one task


class Info(NamedTuple):
    """How `encode` went, signal by signal."""

    gap: Array
    """Bound on how much the objective exceeds the least one, see `duality_gap`; infinite where a
    bound on the error is out of reach, NaN where none is known (coders that are not convex)."""
    iterations: Array
    """Rounds that the solver took."""
    nonzeros: Array
    """Nonzeros of the code."""
    coder: Coder
    """The coder with everything decided: its ``lam``."""


def encode(
    X: Any,
    D: Any,
    coder: Coder | None = None,
    *,
    mask: Any = None,
    missing: Missing = None,
    penalty_weights: Any = None,
    groups: Any = None,
    start: Any = None,
    n_threads: int | None = None,
    return_info: bool = False,
) -> Any:
    """Sparse codes of the rows of X over the atoms (rows) of D.

    Solves ``min_α ½‖x − αD‖² + ψ(α)`` for each row x of X, where the coder says what ψ is.
    Where entries are missing, the norm is that of the known entries.

    Parameters
    ----------
    X : array or CSR array (n, m)
        Signals. float32 is coded in float32, everything else in float64.
    D : array (k, m)
        Dictionary: one atom per row.
    coder : coder, default ``Lasso()``
        The problem to solve.
    mask : array of bool (n, m), optional
        True where an entry of X is missing, as in NumPy's masked arrays and in scikit-image;
        what stands there is ignored. The code of a signal without any known entry is zero.
    missing : {None, "nan"}
        With "nan", NaN in X means missing; by default it is an error.
    penalty_weights : array (k,) or (n, k), optional
        Shares above zero of the coefficients in the penalty ``Σ w_j|α_j|`` of `Lasso`,
        `ErrorBound`, `L1Ball`; infinity bars an atom.
    groups : array (n,), optional
        For coders of several signals at once (`JointLasso`, `JointOMP`): a label for each
        signal; those with the same label are coded together. By default all of them are.
    start : CSR array (n, k), optional
        Codes to start from, such as those over an earlier dictionary. They change the time
        that `Lasso`, `GroupLasso` and `TreeLasso` take, not the result (where it is unique);
        other coders need none.
    n_threads : int, optional
        Threads to use; every available core by default. The result does not depend on it.
    return_info : bool, default False
        Return (codes, info) with ``info.gap``, ``info.iterations``, ``info.nonzeros`` of each
        signal, and ``info.coder``, which has the ``lam`` that was decided.

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
    coder = Lasso() if coder is None else check_coder(coder)
    signals = as_signals("X", X, mask, missing)
    n, dtype = len(signals), float_dtype(signals.X.dtype)
    D = as_dictionary(D, signals.X.shape[1], dtype)
    signals = with_weights(signals, penalty_weights, len(D), coder)
    threads = resolve_threads(n_threads)
    first = None if start is None else _check_start(start, (n, len(D)), dtype)
    with single_threaded_blas():
        if signals.missing is not None or signals.weights is not None:
            refuse_calibration(coder)
        coder = resolved(coder, signals.X, D, threads)
        codes, rounds, gap = encode_signals(signals, D, coder, groups, first, threads, return_info)
    if codes.nnz == 0 and n:
        warn_if_all_zero(coder, signals.X, D)
    return codes if gap is None else (codes, Info(gap, rounds, np.diff(codes.indptr), coder))


def encode_signals(
    signals: Signals,
    D: Array,
    coder: Coder,
    groups: Any = None,
    start: Codes | None = None,
    n_threads: int = 1,
    certified: bool = False,
) -> tuple[Any, Array, Array | None]:
    """Codes of checked signals as a csr_array, rounds taken, and gaps if they are wanted.

    For a coder that is resolved. Rows stay in their order, whatever the groups.
    """
    signals, order = in_groups(signals, groups, coder)
    if order is not None and start is not None:
        start = start.take(order)
    prepared = prepare(D, coder, n_threads)
    eps = coder.promised() if isinstance(coder, Reaching) else None
    coded = code_rows(signals, prepared, start, n_threads, numbered=True, measured=eps is not None)
    if eps is not None:
        warn_if_out_of_reach(eps, coded, D.dtype, signals.groups)
    codes, rounds, gap = coded.codes, coded.rounds, None
    if certified:
        gap = gaps(signals, D, codes.as_csr(len(D)), coder)
    if order is not None:
        back = np.argsort(order)
        codes, rounds = codes.take(back), rounds[back]
        gap = None if gap is None else gap[back]
    return codes.as_csr(len(D)), rounds, gap


def refuse_calibration(coder: Coder) -> None:
    """Refuse to look for a λ by paths that know of neither missing entries nor weights."""
    if getattr(coder, "mean_nonzeros", None) is not None and isinstance(coder, Lasso):
        message = "Lasso(mean_nonzeros=) cannot be calibrated where entries are missing: give lam"
        raise ValueError(message)


@dataclass(frozen=True)
class Prepared:
    """A dictionary made ready for coding: padded, with its Gram matrix and solver."""

    coder: Coder
    padded: Array  # D with zero atoms added (width, m)
    G: Array  # (width, width)
    solve: Solver

    @cached_property
    def features(self) -> Array:
        """Dᵀ (m, width), C-contiguous."""
        return np.ascontiguousarray(self.padded.T)

    @cached_property
    def solve_own(self) -> Solver:
        """How to code signals that have a Gram matrix each."""
        if getattr(self.coder, "own_gram", False):
            return self.solve
        return one_by_one(self.coder, self.G.dtype)


def prepare(D: Array, coder: Coder, n_threads: int) -> Prepared:
    """Compute once per dictionary what all rows share."""
    k, m = D.shape
    width = -(-k // PADDING) * PADDING
    padded = D
    if width > k:
        padded = np.zeros((width, m), D.dtype)
        padded[:k] = D
    G = gram(padded, n_threads)
    return Prepared(coder, padded, G, coder.solver(G))


def gram(D: Array, n_threads: int) -> Array:
    """``D Dᵀ``, its lower triangle by blocks of rows and the rest by symmetry."""
    k = len(D)
    G = aligned.empty((k, k), D.dtype)

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
    rounds: Array  # that the solver took for each row


def code_rows(
    signals: Signals,
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
    n = len(signals)
    cuts = _cuts(n, signals.groups)
    parts: list[Any] = [None] * (len(cuts) - 1)
    fit, norms = np.empty((2, n))
    rounds = np.zeros(n, np.int32)
    dtype = prepared.G.dtype

    def task(number: int) -> None:
        rows = slice(cuts[number], cuts[number + 1])
        part = signals.part(rows)
        x = as_floats(part.X, dtype)
        Q = _products(x, prepared.padded)
        norms[rows] = squared_norms(x)
        chunk = Chunk(
            Q, norms[rows], rounds[rows], np.arange(rows.start, rows.stop) if numbered else None,
            None if start is None else start.part(rows), part.groups,
        )  # fmt: skip
        codes = _solve(chunk, part, prepared)
        if measured:
            fit_of_rows(prepared.G, Q, norms[rows], *codes, fit[rows])
            if part.missing is not None:
                _fit_known(x, part.missing, codes, prepared.padded, fit[rows])
        parts[number] = codes

    run_tasks(task, len(parts), n_threads)
    return Coded(stack(parts), fit, norms, rounds)


def _cuts(n: int, groups: Array | None) -> list[int]:
    """Where one task's rows end and the next one's begin; groups are not cut."""
    chunk = min(max(CHUNK, n // 16), LARGEST_CHUNK)
    if groups is None:
        return [*range(0, n, chunk), n] if n else [0, 0]
    ends = groups[np.searchsorted(groups, np.arange(chunk, n + chunk, chunk))[:-1]]
    return [0, *sorted({int(end) for end in ends if 0 < end < n}), n]


def squared_norms(x: Rows) -> Array:
    """``‖x‖²`` of each row."""
    if sparse.issparse(x):
        return np.asarray(x.multiply(x).sum(axis=1), np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", x, x))


def _products(x: Rows, atoms: Array) -> Array:
    """``x Dᵀ``, C-contiguous."""
    if sparse.issparse(x):
        return np.ascontiguousarray(x @ atoms.T)
    return np.matmul(x, atoms.T, out=aligned.empty((len(x), len(atoms)), atoms.dtype))


def _solve(chunk: Chunk, part: Signals, prepared: Prepared) -> Codes:
    """Code a chunk; signals with holes apart from those without, which need less."""
    weights = None
    if part.weights is not None:
        weights = np.ones(chunk.Q.shape)
        weights[:, : part.weights.shape[1]] = part.weights
        chunk = chunk._replace(own=OwnGram(prepared.features, None, weights))
    solve = prepared.solve if chunk.own is None else prepared.solve_own
    if part.missing is None:
        return solve(chunk)
    holes = part.missing.any(axis=1)
    parts, order = [], []
    for has_holes in (False, True):
        rows = np.flatnonzero(holes == has_holes)
        if not rows.size:
            continue
        some = chunk.take(rows)
        if has_holes:
            own = OwnGram(
                prepared.features, part.missing[rows], None if weights is None else weights[rows]
            )
            parts.append(prepared.solve_own(some._replace(own=own)))
        else:
            parts.append(solve(some))
        chunk.rounds[rows] = some.rounds
        order.append(rows)
    return stack(parts).take(np.argsort(np.concatenate(order)))


def _fit_known(x: Array, missing: Array, codes: Codes, padded: Array, fit: Array) -> None:
    """Write ``½‖x − αD‖²`` over the known entries of rows that lack some."""
    rows = np.flatnonzero(missing.any(axis=1))
    left = x[rows] - codes.take(rows).as_csr(len(padded)) @ padded
    left[missing[rows]] = 0.0
    fit[rows] = 0.5 * np.einsum("ij,ij->i", left, left)


def mean_cost(signals: Signals, D: Array, coder: Coder, n_threads: int) -> float:
    """The mean of ``½‖x − αD‖² + ψ(α)`` over validated rows, for a coder that is resolved."""
    prepared = prepare(D, coder, n_threads)
    total, n = 0.0, len(signals)
    for rows in blocks(n, ROWS_AT_ONCE, signals.groups):
        part = signals.part(rows)
        coded = code_rows(part, prepared, None, n_threads)
        total += float(coded.fit.sum())
        total += float(penalties(coder, coded.codes.as_csr(len(D)), part.groups).sum())
    return total / n


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
            f"signal with an atom, {largest:.3g}. Try lam={0.1 * largest:.2g}, or mean_nonzeros={min(10, *D.shape)}"
        )
        warnings.warn(message, UserWarning, stacklevel=3)


def count_out_of_reach(
    eps: Any, coded: Coded, dtype: np.dtype[Any], groups: Array | None = None
) -> int:
    """For how many signals, or groups, no code over the dictionary was found within the bound."""
    rounding = 1e-5 if dtype == np.float32 else 1e-10
    errors = 2.0 * coded.fit - rounding * coded.norms
    if groups is not None:
        errors = np.add.reduceat(errors, groups[:-1]) / np.diff(groups) if len(errors) else errors
    return int(np.count_nonzero(errors > np.asarray(eps, np.float64)))


def warn_if_out_of_reach(
    eps: Any, coded: Coded, dtype: np.dtype[Any], groups: Array | None = None
) -> None:
    """Say how many signals, or groups, have codes whose error is not within the bound."""
    count = count_out_of_reach(eps, coded, dtype, groups)
    if count:
        total = f"{len(coded.fit)} signals" if groups is None else f"{len(groups) - 1} groups"
        message = (
            f"eps is out of reach for {count} of {total}: their codes are those of least squares"
        )
        warnings.warn(message, UserWarning, stacklevel=4)
