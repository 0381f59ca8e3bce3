"""Sparse coding with a constraint in place of the penalty: an ℓ1 radius, or an error bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from smalto.checks import Array, Rows
from smalto.coders.base import Chunk, Coder, Codes, Residuals, Solver, with_room
from smalto.coders.masked_gram import from_own_units, in_own_units, lazy_gram, whole_gram
from smalto.coders.per_signal import Setting, as_setting, check_length, of_rows
from smalto.kernels import aligned
from smalto.kernels.coding.active_set import make_active_set
from smalto.kernels.coding.constrained import LEFT, NO_ROOM, constrained_rows
from smalto.kernels.coding.lars import AT_ERROR, AT_RADIUS, DEPENDENT, lars_rows
from smalto.kernels.coding.lasso import DEPENDENT_32, elastic_net_of_rows


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
        bounds = of_rows(name, setting, chunk.numbers, len(chunk.Q))
        return _solve_rows(stop, exact, fast, double, chunk, bounds, bool(positive))

    return solve


def _solve_rows(
    stop: int, exact: Array, fast: Array, double: Callable[[], Array], chunk: Chunk,
    bounds: Array, positive: bool,
) -> Codes:  # fmt: skip
    """Run the kernels over all rows, with more room whenever they ask for it."""
    lazy, G, fast_G = lazy_gram(chunk.own, exact, fast)
    Q, norms = _above_rounding(in_own_units(chunk.own, chunk.Q), exact, chunk), chunk.norms
    n, width = Q.shape
    dtype = Q.dtype
    room = min(128, width)
    indptr = np.zeros(n + 1, np.int64)
    indices = np.empty(n * min(64, width) + room, np.int32)
    values = np.empty(indices.size, dtype)
    used, fast_q = np.zeros(width, np.bool_), np.empty(width, np.float32)
    work, atoms = make_active_set(room)
    row, left = 0, False  # whether this row is left to the homotopy
    while row < n:
        if left:
            whole = double() if chunk.own is None else whole_gram(chunk.own, row).reshape(-1)
            end = follow_rows(
                stop, whole, Q, row, row + 1, bounds, norms, positive, work, atoms, indptr,
                indices, values,
            )  # fmt: skip
            left = full = end == row
            row = end
        else:
            c, fast_c = (aligned.empty(width + room, kind) for kind in (dtype, np.float32))
            why, row = constrained_rows(
                lazy, G, fast_G, Q, row, stop, bounds, norms, positive, work, atoms, used, c,
                fast_c, fast_q, indptr, indices, values, chunk.rounds,
            )  # fmt: skip
            left, full = why == LEFT, why == NO_ROOM
        if full and indptr[row] + room > indices.size:
            indices, values = with_room((indices, values), int(indptr[row]) + room)
        elif full:
            room = min(2 * room, width)
            work, atoms = make_active_set(room)
    codes = Codes(indptr, indices[: indptr[n]], values[: indptr[n]])
    return from_own_units(chunk.own, codes)


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
    stop: int, G: Array, Q: Array, row: int, last: int, bounds: Array, norms: Array,
    positive: bool, work: Array, atoms: Array, indptr: Array, indices: Array, values: Array,
) -> int:  # fmt: skip
    """Code the rows from ``row`` to ``last`` by the homotopy; the first one not done."""
    width = Q.shape[1]
    tolerance, tiny = (DEPENDENT_32, 1e-6) if Q.dtype == np.float32 else (DEPENDENT, 1e-13)
    end: int = lars_rows(
        G, Q.astype(np.float64, copy=False), row, last, width, stop, bounds, norms, positive,
        tolerance, tiny, work, atoms, np.zeros(width, np.int8), np.empty(width + atoms.size),
        np.empty(width + atoms.size), np.zeros(width), indptr, indices, values,
    )  # fmt: skip
    return end
