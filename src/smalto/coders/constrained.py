"""Sparse coding with a constraint in place of the penalty: an ℓ1 radius, or an error bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from smalto.checks import Array, Rows
from smalto.coders.base import Chunk, Coder, Codes, Residuals, Solver
from smalto.coders.growing import GrowingCodes
from smalto.coders.masked_gram import from_own_units, in_own_units, lazy_gram, whole_gram
from smalto.coders.per_signal import Setting, as_setting, check_length, of_rows
from smalto.kernels import aligned
from smalto.kernels.coding.active_set import ActiveSet
from smalto.kernels.coding.arguments import SparseRows
from smalto.kernels.coding.constrained import NO_ROOM, UNDECIDED, constrained_rows
from smalto.kernels.coding.fit import elastic_net_of_rows
from smalto.kernels.coding.lars import (
    AT_ERROR,
    AT_RADIUS,
    ROUNDING_32,
    ROUNDING_64,
    Bounds,
    lars_rows,
    make_path_scratch,
)
from smalto.kernels.coding.lasso import make_search


@dataclass(frozen=True)
class L1Ball(Coder):
    """``min_α ½‖x − αD‖²  s.t. ‖α‖₁ ≤ radius`` (ℓ′ of Section 5.5).

    Solved exactly, to rounding, by an active-set method on the Gram matrix. As a cost it
    counts the fit alone: the constraint holds.

    Parameters
    ----------
    radius : float or array (n,)
        Bound on the ℓ1 norm of a code; one for all signals, or (for ``encode``) one each.
    positive : bool, default False
        Demand α ≥ 0.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import encode
    >>> from smalto.coders import L1Ball
    >>> encode(np.array([[3.0, 1.0]]), np.eye(2), L1Ball(2.5)).toarray()
    array([[2.25, 0.25]])
    """

    radius: Any
    positive: bool = False

    takes: ClassVar[frozenset[str]] = frozenset({"mask", "penalty_weights"})
    own_gram: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", as_setting("radius", self.radius, low=0))

    def resolve(self, X: Rows, D: Array, n_threads: int = 1) -> L1Ball:
        """This problem, if it has one number for all signals or one for each."""
        check_length("radius", self.radius, X)
        return self

    def solver(self, G: Array) -> Solver:
        """How to code over a dictionary with Gram matrix G."""
        return _solver(AT_RADIUS, "radius", self.radius, G, self.positive)

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """Zero for each row of codes."""
        return np.zeros(codes.shape[0])

    def gap(self, left: Residuals) -> Array:
        """The duality gap of each row, at the dual point that is its residual."""
        radii = of_rows("radius", self.radius, left.numbers, len(left.norms))
        gap = np.maximum(radii * left.steepest(self.positive) - left.inner(), 0.0)
        return np.asarray(np.where(left.lengths() <= radii * (1.0 + 1e-5), gap, np.inf))


@dataclass(frozen=True)
class ErrorBound(Coder):
    """``min_α ‖α‖₁  s.t. ‖x − αD‖² ≤ eps`` (ℓ″ of Section 5.5).

    Solved exactly, to rounding, by an active-set method on the Gram matrix. A signal with
    ``‖x‖² ≤ eps`` has the zero code. Where no code has an error as small as ``eps`` the code
    is the one of least squares in which the path of the lasso ends, and ``encode`` says how
    many signals that befell. As a cost it counts fit plus ``‖α‖₁``.

    Parameters
    ----------
    eps : float or array (n,)
        Bound on the squared norm of a residual; one for all signals, or (for ``encode``)
        one each.
    positive : bool, default False
        Demand α ≥ 0.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import encode
    >>> from smalto.coders import ErrorBound
    >>> encode(np.array([[3.0, 1.0]]), np.eye(2), ErrorBound(2.0)).toarray()
    array([[2., 0.]])
    """

    eps: Any
    positive: bool = False

    takes: ClassVar[frozenset[str]] = frozenset({"mask", "penalty_weights"})
    own_gram: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", as_setting("eps", self.eps, low=0))

    def resolve(self, X: Rows, D: Array, n_threads: int = 1) -> ErrorBound:
        """This problem, if it has one number for all signals or one for each."""
        check_length("eps", self.eps, X)
        return self

    def solver(self, G: Array) -> Solver:
        """How to code over a dictionary with Gram matrix G."""
        return _solver(AT_ERROR, "eps", self.eps, G, self.positive)

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """``‖α‖₁`` of each row of codes."""
        codes = sparse.csr_array(codes)
        out = np.empty(codes.shape[0])
        elastic_net_of_rows(codes.indptr, codes.data, 1.0, 0.0, out)
        return out

    def error_bound(self) -> Any:
        """The bound on the error."""
        return self.eps

    def gap(self, left: Residuals) -> Array:
        """The duality gap of each row, at the dual point that is its residual, scaled.

        Where the bound is out of reach there is no optimum, and the gap is infinite.
        """
        eps = of_rows("eps", self.eps, left.numbers, len(left.norms))
        length = left.lengths()
        top = left.steepest(self.positive)
        value = left.squares + left.inner() - np.sqrt(eps * left.squares)  # ⟨x, r⟩ − √eps ‖r‖
        dual = np.divide(value, top, out=np.zeros_like(top), where=top > 0)
        gap = np.maximum(length - np.maximum(dual, 0.0), 0.0)
        reached = left.squares <= eps + 1e-5 * left.norms
        return np.asarray(np.where(reached, gap, np.inf))


def _solver(stop: int, name: str, setting: Setting, G: Array, positive: bool) -> Solver:
    exact = G.reshape(-1)
    # For float64 the search runs on a float32 copy, then the end is made exact.
    fast = exact if G.dtype == np.float32 else aligned.copy(exact, np.float32)

    @cache
    def double() -> Array:
        return exact.astype(np.float64, copy=False)

    def solve(chunk: Chunk) -> Codes:
        values = of_rows(name, setting, chunk.numbers, len(chunk.Q))
        bounds = Bounds(stop, values, chunk.norms, bool(positive))
        return _solve_rows(exact, fast, double, chunk, bounds)

    return solve


def _solve_rows(
    exact: Array, fast: Array, double: Callable[[], Array], chunk: Chunk, bounds: Bounds
) -> Codes:
    """Run the kernels over all rows; those that the first one leaves go to the homotopy."""
    own = chunk.own
    gram = lazy_gram(own, exact, fast)
    Q = _above_rounding(in_own_units(own, chunk.Q), exact, chunk)
    n, width = Q.shape
    out = GrowingCodes(n, Q.dtype, min(128, width), width, min(64, width))
    undecided = -1  # the row that is left to the homotopy

    def run(row: int, room: int) -> int:
        nonlocal undecided
        search = make_search(width, room, Q.dtype)
        while row < n:
            if row == undecided:
                G = double() if own is None else whole_gram(own, row).reshape(-1)
                end = follow_rows(G, Q, row, row + 1, bounds, search.active, out.rows)
                if end == row:
                    return row
                row = end
            else:
                why, row = constrained_rows(gram, Q, row, bounds, search, out.rows, chunk.rounds)
                if why == NO_ROOM:
                    return int(row)
                undecided = row if why == UNDECIDED else -1
        return row

    return from_own_units(own, out.fill(run))


def _above_rounding(Q: Array, G: Array, chunk: Chunk) -> Array:
    """Correlations, zero for a signal all of whose are rounding: there is nothing to explain it."""
    width = Q.shape[1]
    longest = float(np.sqrt(max(G[:: width + 1].max(initial=0.0), 0.0)))
    if chunk.own is not None and chunk.own.weights is not None:
        longest /= float(chunk.own.weights.min(initial=np.inf))
    floor = 16.0 * np.finfo(Q.dtype).eps * longest * np.sqrt(chunk.norms)
    lost = np.abs(Q).max(axis=1, initial=0.0) <= floor
    return np.where(lost[:, None], Q.dtype.type(0), Q) if lost.any() else Q


def follow_rows(
    G: Array, Q: Array, row: int, last: int, bounds: Bounds, active: ActiveSet, out: SparseRows
) -> int:
    """Code the rows from ``row`` to ``last`` by the homotopy; the first one not done."""
    rounding = ROUNDING_32 if Q.dtype == np.float32 else ROUNDING_64
    scratch = make_path_scratch(active, Q.shape[1])
    wide = Q.astype(np.float64, copy=False)
    return int(lars_rows(G, wide, row, last, bounds, rounding, scratch, out))
