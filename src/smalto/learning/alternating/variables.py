"""The two blocks of variables of alternating descent: dense codes of all samples, and atoms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from smalto.checks import Array, Rows, as_floats
from smalto.coders.base import Coder
from smalto.coders.coding import ROWS_AT_ONCE, code_rows
from smalto.coders.lasso import Lasso
from smalto.coders.preparing import prepare
from smalto.coders.products import as_columns
from smalto.coders.scaling import squared_norms
from smalto.coders.signals import Signals, blocks
from smalto.constraints.base import Constraint, project_checked
from smalto.constraints.l2_ball import L2Ball
from smalto.kernels.coding.nonnegative import PANEL, descend, make_panel
from smalto.learning.alternating.sparse_data import SparseData
from smalto.learning.dictionary.sweep import sweep
from smalto.learning.dictionary.wanted_density import REACH, project_all
from smalto.learning.memory.statistics import Stats
from smalto.threads import run_tasks

CONSTRAINED_SWEEPS = 3  # at most, if atoms must be projected onto their set
_GROUPS = 8  # parts of the data with sums of their own, one task each
_CHUNK = 1024  # samples coded at a time
_COLUMNS = 1024  # features of the atoms that one task updates
_FAR = 20  # exponents of norms of atoms, at most, whose length is arbitrary


class DenseCodes:
    """Dense codes of all rows of X, one per column: accepted, new and extrapolated ones.

    X is the data divided by ``2^exponent``, the unit.
    """

    def __init__(self, X: Rows, n_atoms: int, dtype: np.dtype[Any], exponent: int = 0) -> None:
        self.X, self.n, self.unit = X, int(X.shape[0]), 2.0**exponent
        self.old, self.new, self.ahead = np.zeros((3, n_atoms, self.n), dtype)
        group = max(PANEL, -(-self.n // _GROUPS // PANEL) * PANEL)
        self.sparse = SparseData(X, n_atoms) if scipy.sparse.issparse(X) else None
        self.chunk = min(_CHUNK, group) if self.sparse is None else group
        self.groups = min(_GROUPS, -(-self.n // self.chunk))
        self.squares = _squares(X)

    def chunks(self, group: int) -> Iterator[slice]:
        """Yield the rows of a group in chunks; groups do not depend on the number of threads."""
        count = -(-self.n // self.chunk)
        for i in range(group * count // self.groups, (group + 1) * count // self.groups):
            yield slice(i * self.chunk, min((i + 1) * self.chunk, self.n))

    def begin(self, D: Array, coder: Lasso, n_threads: int) -> None:
        """Start from the exact codes over D, which are sparse and cheap to compute if λ > 0."""
        prepared = prepare(D, coder, n_threads)
        for rows in blocks(self.n, ROWS_AT_ONCE, None):
            x = as_floats(self.X[rows], self.new.dtype)
            coded = code_rows(Signals(x), prepared, None, n_threads, measured=False)
            self.old[:, rows] = coded.codes.as_csr(len(D)).toarray().T
        self.ahead[:] = self.old

    def step(
        self, D: Array, coder: Lasso, beta: float, sweeps: int, n_threads: int
    ) -> tuple[Array, Array, float]:
        """Improve the codes over D by coordinate descent from ``ahead``, then extrapolate them.

        Return A, B and the penalty of the extrapolated codes, in float64.
        """
        k, m = D.shape
        G = D @ D.T
        G[np.diag_indices(k)] += G.dtype.type(coder.ridge)
        lam = G.dtype.type(coder.lam)
        sparse = self.sparse
        A = np.zeros((self.groups, k, k), D.dtype)
        B = np.zeros((self.groups if sparse is None else 0, k, m), D.dtype)
        sums = np.zeros(self.groups)
        columns = D if sparse is None else as_columns(D)

        def task(group: int) -> None:
            panel = make_panel(k, D.dtype)
            for rows in self.chunks(group):
                if sparse is None:
                    x = as_floats(self.X[rows], D.dtype)
                    Q = D @ x.T
                else:
                    Q = sparse.by_samples(columns, rows)
                now = np.ascontiguousarray(self.ahead[:, rows])
                descend(G, Q, lam, sweeps, now, 0, now.shape[1], panel)
                self.new[:, rows] = now
                if beta > 0.0:
                    now += now.dtype.type(beta) * (now - self.old[:, rows])
                    np.maximum(now, 0.0, out=now)
                self.ahead[:, rows] = now
                A[group] += now @ now.T
                if sparse is None:
                    B[group] += now @ x
                sums[group] += float(now.sum(dtype=np.float64))

        run_tasks(task, self.groups, n_threads)
        A, B = A.sum(axis=0, dtype=np.float64), B.sum(axis=0, dtype=np.float64)
        if sparse is not None:
            sparse.by_features(self.ahead, B, n_threads)
        penalty = float(coder.lam or 0.0) * float(sums.sum())
        return A, B, penalty + 0.5 * float(coder.ridge) * float(np.trace(A))

    def squared_error(self, C: Array, D: Array, n_threads: int) -> float:
        """Return ``Σ ‖x − αD‖²`` over dense rows, for codes C, from the residuals."""
        parts = np.zeros(self.groups)

        def task(group: int) -> None:
            for rows in self.chunks(group):
                x = as_floats(self.X[rows], C.dtype)
                parts[group] += sum_of_squares(x - C[:, rows].T @ D)

        run_tasks(task, self.groups, n_threads)
        return float(parts.sum())

    def direction(self, row: int) -> Array | None:
        """Return a sample divided by its norm; None if that is zero."""
        x: Any = self.X[[row]]
        x = np.array(x.toarray() if scipy.sparse.issparse(x) else x, self.old.dtype).reshape(-1)
        norm = float(np.linalg.norm(x))
        return x / x.dtype.type(norm) if norm > 0 else None

    def cast(self, dtype: Any) -> None:
        """Go on in another dtype."""
        self.old, self.new, self.ahead = (
            codes.astype(dtype, copy=False) for codes in (self.old, self.new, self.ahead)
        )

    def accept(self) -> None:
        """Accept the new codes; the next step overwrites the old ones."""
        self.old, self.new = self.new, self.old

    def take_back(self) -> None:
        """Discard the step: the next one starts from the accepted codes, without extrapolation."""
        self.ahead[:] = self.old

    def rescale(self, lengths: Array) -> None:
        """Multiply the codes of each atom by its length, when atoms are divided by it."""
        for codes in (self.old, self.ahead):
            codes *= lengths.astype(codes.dtype)[:, None]


@dataclass
class Atoms:
    """The dictionary: accepted and extrapolated atoms."""

    old: Array
    ahead: Array
    constraint: Constraint
    free: bool  # see `is_free`: atoms may have any length during the descent

    def step(self, A: Array, B: Array, sweeps: int, n_threads: int) -> tuple[Array, Constraint]:
        """Return the atoms after coordinate descent on the surrogate, starting from ``ahead``.

        Also return their set, which changes if it aims at a density.
        """
        D = self.ahead.copy()
        if not self.free:
            part, before = (Stats(A, B),), self.constraint

            def update(tried: Constraint) -> Array:
                D[:] = self.ahead
                if tried is not before:
                    project_all(tried, D)
                for _ in range(min(sweeps, CONSTRAINED_SWEEPS)):
                    sweep(D, part, tried, n_threads)
                return D

            self.constraint = before.adapted(update, REACH)
            return D, self.constraint
        k, m = D.shape
        G, Q, none = A.astype(D.dtype), B.astype(D.dtype), D.dtype.type(0.0)

        def task(number: int) -> None:
            begin, end = number * _COLUMNS, min((number + 1) * _COLUMNS, m)
            part = np.ascontiguousarray(Q[:, begin:end])
            descend(G, part, none, sweeps, D, begin, end, make_panel(k, D.dtype))

        run_tasks(task, -(-m // _COLUMNS), n_threads)
        return D, self.constraint

    def accept(self, D: Array, beta: float) -> None:
        """Accept the new atoms D, and extrapolate from them."""
        self.ahead = D + D.dtype.type(beta) * (D - self.old) if beta > 0.0 else D.copy()
        if self.free:
            np.maximum(self.ahead, 0.0, out=self.ahead)
        elif beta > 0.0:
            for j, atom in enumerate(self.ahead):
                project_checked(self.constraint, atom, j)
        self.old = D

    def cast(self, dtype: Any) -> None:
        """Go on in another dtype."""
        self.old, self.ahead = self.old.astype(dtype), self.ahead.astype(dtype)

    def take_back(self) -> None:
        """Discard the step: the next one starts from the accepted atoms, without extrapolation."""
        self.ahead = self.old.copy()

    def lengths(self) -> Array:
        """Return the norms that `scaled` divides the atoms by: 1 where the length is not free."""
        norms = np.linalg.norm(self.old.astype(np.float64), axis=1)
        return np.where((norms > 0) & self.free, norms, 1.0)

    def far_from_one(self) -> Array | None:
        """Return the powers of two nearest to norms that extrapolation has carried far from 1.

        It moves atoms on in all directions, also in that of their length, which no cost stops. None
        if all norms are ordinary; 1 for those that are.
        """
        exponents = np.frexp(self.lengths())[1]
        far = np.abs(exponents) > _FAR
        return np.ldexp(1.0, np.where(far, exponents, 0)) if far.any() else None

    def divide(self, lengths: Array) -> None:
        """Divide atoms by the given lengths."""
        for D in (self.old, self.ahead):
            D /= lengths.astype(D.dtype)[:, None]

    def scaled(self) -> Array:
        """Return the dictionary, with atoms scaled to norm 1 if their length is free."""
        if not self.free:
            return self.old.copy()
        scaled = (self.old / self.lengths()[:, None]).astype(self.old.dtype)
        for atom in scaled:  # rounding may have left it just outside
            self.constraint.project(atom)
        return scaled


def is_free(coder: Coder, constraint: Constraint) -> bool:
    """Return whether the length of atoms is arbitrary, because their codes carry no penalty."""
    if not isinstance(coder, Lasso) or coder.mean_nonzeros is not None:
        return False
    return coder.lam == 0.0 and coder.ridge == 0.0 and constraint == L2Ball(positive=True)


def _squares(X: Rows) -> float:
    """Return ``Σ ‖x‖²`` without copying the data."""
    if scipy.sparse.issparse(X):
        return float(squared_norms(X).sum())
    return sum(sum_of_squares(X[i : i + _CHUNK]) for i in range(0, len(X), _CHUNK))


def sum_of_squares(rows: Array) -> float:
    """Return ``Σ ‖x‖²`` over dense rows."""
    return float(np.einsum("ij,ij->i", rows, rows).sum(dtype=np.float64))
