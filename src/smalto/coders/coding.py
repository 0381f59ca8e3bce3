"""Coding of validated rows in chunks on several threads, and their mean cost."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from smalto.checks import Array, Rows, as_floats
from smalto.coders.base import Coder, Solver
from smalto.coders.checked_coder import penalty_of, solver_of
from smalto.coders.chunks import Chunk, OwnGram, padded_width
from smalto.coders.codes import Codes, stack
from smalto.coders.masked_gram import one_by_one
from smalto.coders.signals import Signals, blocks
from smalto.kernels import aligned
from smalto.kernels.coding.fit import fit_of_rows
from smalto.threads import run_tasks

# Rows coded as one task. Depends on the number of rows, never on the number of threads.
CHUNK = 128
LARGEST_CHUNK = 1024
ROWS_AT_ONCE = 8192  # rows whose codes are in memory at a time if only their cost is needed
BLOCK = 128  # rows of the Gram matrix computed as one task


@dataclass(frozen=True)
class Prepared:
    """A dictionary prepared for coding: padded, with its Gram matrix and solver."""

    coder: Coder
    padded: Array  # D with zero atoms added (width, m)
    G: Array  # (width, width)
    solve: Solver
    n_atoms: int

    @cached_property
    def features(self) -> Array:
        """Dᵀ (m, width), C-contiguous."""
        return np.ascontiguousarray(self.padded.T)

    @cached_property
    def solve_own(self) -> Solver:
        """The solver for signals that have a Gram matrix each."""
        if self.coder.own_gram:
            return self.solve
        return one_by_one(self.coder, self.G.dtype, self.n_atoms)


def prepare(D: Array, coder: Coder, n_threads: int) -> Prepared:
    """Pad the dictionary and compute its Gram matrix and solver, which all rows share."""
    k, m = D.shape
    width = padded_width(k)
    padded = D
    if width > k:
        padded = np.zeros((width, m), D.dtype)
        padded[:k] = D
    G = gram(padded, n_threads)
    return Prepared(coder, padded, G, solver_of(coder, G, k), k)


def gram(D: Array, n_threads: int) -> Array:
    """Return ``D Dᵀ``: the lower triangle by blocks of rows, the rest by symmetry."""
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
    """Codes of a batch of rows and their errors."""

    codes: Codes
    fit: Array  # ½‖x − αD‖² of each row, float64
    norms: Array  # ‖x‖² of each row, float64
    rounds: Array  # rounds of the solver for each row


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

    Parameters
    ----------
    signals : Signals
        The rows.
    prepared : Prepared
        The dictionary and the solver.
    start : Codes or None
        Codes to start from; ignored if the coder takes none.
    n_threads : int
        Number of threads.
    numbered : bool, default False
        Whether the rows are all rows of the user's X, so that parameters with one number per
        signal apply.
    measured : bool, default True
        Compute ``fit``, which is otherwise undefined.
    """
    n = len(signals)
    start = start if "start" in prepared.coder.takes else None
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
            Q,
            norms[rows],
            rounds[rows],
            numbers=np.arange(rows.start, rows.stop) if numbered else None,
            start=None if start is None else start.part(rows),
            groups=part.groups,
        )
        codes = _solve(chunk, part, prepared)
        if measured:
            fit_of_rows(prepared.G, Q, norms[rows], *codes, fit[rows])
            if part.missing is not None:
                _fit_known(x, part.missing, codes, prepared.padded, fit[rows])
        parts[number] = codes

    run_tasks(task, len(parts), n_threads)
    return Coded(stack(parts), fit, norms, rounds)


def _cuts(n: int, groups: Array | None) -> list[int]:
    """Return the boundaries between the rows of successive tasks; groups are not split."""
    chunk = min(max(CHUNK, n // 16), LARGEST_CHUNK)
    if groups is None:
        return [*range(0, n, chunk), n] if n else [0, 0]
    ends = groups[np.searchsorted(groups, np.arange(chunk, n + chunk, chunk))[:-1]]
    return [0, *sorted({int(end) for end in ends if 0 < end < n}), n]


def squared_norms(x: Rows) -> Array:
    """Return ``‖x‖²`` of each row."""
    if sparse.issparse(x):
        return np.asarray(x.multiply(x).sum(axis=1), np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", x, x))


def _products(x: Rows, atoms: Array) -> Array:
    """Return ``x Dᵀ``, C-contiguous."""
    if sparse.issparse(x):
        return np.ascontiguousarray(x @ atoms.T)
    return np.matmul(x, atoms.T, out=aligned.empty((len(x), len(atoms)), atoms.dtype))


def _solve(chunk: Chunk, part: Signals, prepared: Prepared) -> Codes:
    """Code a chunk; signals with missing entries separately, since the others are cheaper."""
    weights = None
    if part.penalty_weights is not None:
        weights = np.ones(chunk.Q.shape)
        weights[:, : part.penalty_weights.shape[1]] = part.penalty_weights
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
    """Set ``fit`` to ``½‖x − αD‖²`` over the known entries, for rows with missing entries."""
    rows = np.flatnonzero(missing.any(axis=1))
    left = x[rows] - codes.take(rows).as_csr(len(padded)) @ padded
    left[missing[rows]] = 0.0
    fit[rows] = 0.5 * np.einsum("ij,ij->i", left, left)


def mean_cost(signals: Signals, D: Array, coder: Coder, n_threads: int) -> float:
    """Return the mean of ``½‖x − αD‖² + ψ(α)`` over validated rows, for a resolved coder."""
    prepared = prepare(D, coder, n_threads)
    total, n = 0.0, len(signals)
    for rows in blocks(n, ROWS_AT_ONCE, signals.groups):
        part = signals.part(rows)
        coded = code_rows(part, prepared, None, n_threads)
        total += float(coded.fit.sum())
        total += float(penalty_of(coder, coded.codes.as_csr(len(D)), part.groups).sum())
    return total / n


def count_out_of_reach(
    coder: Coder, coded: Coded, dtype: np.dtype[Any], groups: Array | None
) -> int:
    """Return the number of signals (or groups) whose error exceeds the coder's bound."""
    eps = coder.error_bound()
    if eps is None:
        return 0
    rounding = 1e-5 if dtype == np.float32 else 1e-10
    errors = 2.0 * coded.fit - rounding * coded.norms
    if groups is not None:
        errors = np.add.reduceat(errors, groups[:-1]) / np.diff(groups) if len(errors) else errors
    return int(np.count_nonzero(errors > np.asarray(eps, np.float64)))


def warn_if_out_of_reach(
    coder: Coder, coded: Coded, dtype: np.dtype[Any], groups: Array | None
) -> None:
    """Warn if the error of signals (or groups) exceeds the coder's bound."""
    count = count_out_of_reach(coder, coded, dtype, groups)
    if count:
        total = f"{len(coded.fit)} signals" if groups is None else f"{len(groups) - 1} groups"
        message = (
            f"eps is out of reach for {count} of {total}: their codes are least-squares solutions"
        )
        warnings.warn(message, UserWarning, stacklevel=4)


def warn_of_zeros(coder: Coder, X: Rows, D: Array) -> None:
    """Warn that all codes of the rows X are zero, if the coder can say what to change."""
    advice = coder.advice_on_zeros(X[: 16 * CHUNK], D)
    if advice is not None:
        warnings.warn(f"every code is zero: {advice}", UserWarning, stacklevel=3)
