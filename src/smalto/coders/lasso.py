"""The lasso: the paper's sparse coding problem."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from smalto.checks import Array, Rows, check_number
from smalto.coders.base import Coder, Codes, Solver
from smalto.coders.nonnegative import inverse, solve_dense
from smalto.coders.path import lam_for_nonzeros
from smalto.kernels.active import make_active_set
from smalto.kernels.lasso import elastic_net_of_rows, lasso_rows

_NO_START = Codes(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0))


@dataclass(frozen=True)
class Lasso:
    """``min_α ½‖x − αD‖² + lam ‖α‖₁ + ridge/2 ‖α‖²`` (Eq. 2; ridge > 0 is the elastic net).

    Solved exactly, to rounding, by an active-set method on the Gram matrix. Where atoms are so
    alike that rounding makes this matrix singular (overlapping bumps, say) and lam is small, it
    ends near the optimum and warns; a small ``ridge`` helps, and so does float64.

    Parameters
    ----------
    lam : float, optional
        The paper's λ, never rescaled. By default 1.2/√m times the root mean square norm of
        the signals, which is the paper's choice for signals of norm 1.
    ridge : float, default 0
        Weight of the squared norm of the code.
    positive : bool, default False
        Demand α ≥ 0.
    nonzeros : float, optional
        Instead of ``lam``: choose it so that codes have about this many nonzeros on average.
        It is found exactly on a sample, from the whole regularisation path of each signal;
        while a dictionary is being learned it is found again at steps 1, 2, 4, 8, ...
    """

    lam: float | None = None
    ridge: float = 0.0
    positive: bool = False
    nonzeros: float | None = None

    def __post_init__(self) -> None:
        if self.lam is not None:
            check_number("lam", self.lam, low=0)
            if not np.isfinite(self.lam):
                message = f"lam must be finite, got {self.lam}"
                raise ValueError(message)
        check_number("ridge", self.ridge, low=0)
        if self.nonzeros is not None:
            check_number("nonzeros", self.nonzeros, low=0, strict=True)

    def resolve(self, X: Rows, D: Array, n_threads: int = 1) -> Lasso:
        """This problem with ``lam`` decided from sample rows X (and D, where it matters)."""
        lam: float | None
        if self.nonzeros is not None:
            lam = lam_for_nonzeros(X, D, self.nonzeros, self.ridge, self.positive, n_threads)
            if lam is None:
                if self.lam is not None:  # nothing to be learned from these rows
                    return self
                message = "nonzeros cannot be calibrated: no signal is correlated with any atom"
                raise ValueError(message)
        elif self.lam is None:
            lam = default_lam(X)
        else:
            return self
        return replace(self, lam=lam)

    def fixed(self) -> Lasso:
        """This problem with its ``lam`` for good: ``nonzeros`` is not aimed at again."""
        return replace(self, nonzeros=None)

    def matching(self, other: Coder) -> Coder:
        """This problem with an undecided ``lam`` taken from the other one."""
        if isinstance(other, Lasso) and (self.lam is None or self.nonzeros is not None):
            return replace(self, lam=other.lam)
        return self

    def solver(self, G: Array) -> Solver:
        """How to code over a dictionary with Gram matrix G ."""
        if self.lam is None:
            message = "lam is not decided yet: call resolve(X, D) first"
            raise ValueError(message)
        width = len(G)
        if self.ridge:
            G = G.copy()
            G[np.diag_indices(width)] += G.dtype.type(self.ridge)
        exact = G.reshape(-1)
        # For float64 the search runs on a float32 copy, then the end is made exact.
        fast = exact if G.dtype == np.float32 else exact.astype(np.float32)
        lam, positive = float(self.lam), bool(self.positive)

        H = inverse(G) if lam == 0.0 and positive else None

        def solve(Q: Array, norms: Array, start: Codes | None, rows: slice | None) -> Codes:
            if H is not None:
                return solve_dense(G, H, Q, lam, start, _active_set)
            return _solve_rows(exact, fast, Q, lam, positive, start or _NO_START)

        return solve

    def penalty(self, codes: Any) -> Array:
        """``lam ‖α‖₁ + ridge/2 ‖α‖²`` of each row of codes."""
        codes = sparse.csr_array(codes)
        out = np.empty(codes.shape[0])
        elastic_net_of_rows(codes.indptr, codes.data, self.lam or 0.0, float(self.ridge), out)
        return out


def _active_set(G: Array, Q: Array, lam: float, start: Codes) -> Codes:
    """Non-negative codes over a dictionary with Gram matrix G, near to the start."""
    flat = G.reshape(-1)
    return _solve_rows(flat, flat.astype(np.float32, copy=False), Q, lam, True, start)


def default_lam(X: Rows) -> float:
    """1.2/√m times the root mean square norm of the rows: the paper's choice, with units."""
    data = np.asarray(X.data if sparse.issparse(X) else X)
    mean_square = float(np.mean(np.square(data, dtype=np.float64))) if data.size else 0.0
    if sparse.issparse(X):
        mean_square *= data.size / (X.shape[0] * X.shape[1])
    # mean_square is per entry: 1.2/√m · √(m · mean_square)
    return 1.2 * float(np.sqrt(mean_square))


def warn_short(count: int, rows: int) -> None:
    """Say that rounding has kept some signals from their optimum."""
    message = (
        f"{count} of {rows} signals end near, not at, the optimum of the lasso: some atoms are too "
        f"alike for its Gram matrix. A small ridge helps, or float64, or a larger lam"
    )
    warnings.warn(message, RuntimeWarning, stacklevel=2)


def _solve_rows(G: Array, fast: Array, Q: Array, lam: float, positive: bool, start: Codes) -> Codes:
    """Run the kernel over all rows, with more room whenever it asks for it."""
    n, width = Q.shape
    dtype = Q.dtype
    room = min(128, width)
    indptr = np.zeros(n + 1, np.int64)
    indices = np.empty(n * min(64, width) + room, np.int32)
    values = np.empty(indices.size, dtype)
    used, fast_q = np.zeros(width, np.bool_), np.empty(width, np.float32)
    first = (start.indptr, start.indices, start.values.astype(dtype, copy=False))
    warm = len(start.indptr) > 1
    stuck = np.zeros(1, np.int64)
    row = 0
    while True:
        work, atoms = make_active_set(room)
        c, fast_c = np.empty(width + room, dtype), np.empty(width + room, np.float32)
        row = lasso_rows(
            G, fast, Q, row, lam, positive, warm, first, work, atoms, used, c, fast_c, fast_q,
            indptr, indices, values, stuck,
        )  # fmt: skip
        if row == n:
            if stuck[0]:
                warn_short(int(stuck[0]), n)
            return Codes(indptr, indices[: indptr[n]], values[: indptr[n]])
        if indptr[row] + room > indices.size:
            more = indices.size + room
            indices = np.concatenate([indices, np.empty(more, np.int32)])
            values = np.concatenate([values, np.empty(more, dtype)])
        else:
            room = min(2 * room, width)
