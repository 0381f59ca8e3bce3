"""The lasso: the paper's sparse coding problem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy

from smalto.checks import Array, Rows, check_finite_number, check_number
from smalto.coders.base import Coder, Sizes, Solver, large_enough, too_small
from smalto.coders.certain_lasso import (
    dual_value,
    improved_lasso,
    least_error,
    strongly_convex_bound,
)
from smalto.coders.chunks import Chunk, Problem, Residuals
from smalto.coders.codes import Codes
from smalto.coders.dense_nonnegative import inverse, solve_dense, suit_float32
from smalto.coders.kernel_output import GrowingCodes, search_of_thread
from smalto.coders.masked_gram import (
    float32_copy,
    from_own_units,
    in_own_units,
    lazy_gram,
    start_in_own_units,
    with_fast_rows,
    with_ridge,
    with_weights,
)
from smalto.coders.parameters import as_weights, check_count, scaled_number
from smalto.coders.signals import Signals
from smalto.coders.unpenalized import NOT_POSITIVE, free_atoms
from smalto.coders.wanted_nonzeros import Count, lam_for_nonzeros
from smalto.kernels.coding.arguments import SparseRows
from smalto.kernels.coding.fit import elastic_net_of_rows, fit_at_optimum
from smalto.kernels.coding.lasso import Penalty, lasso_rows

_NO_START = Codes(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0))


@dataclass(frozen=True)
class Lasso(Coder):
    """The lasso: ``min_α ½‖x − αD‖² + lam Σ w_j|α_j| + ridge/2 ‖α‖²`` (Equation 2).

    All weights w are 1 by default. Solved exactly, up to rounding, by an active-set method on the
    Gram matrix. If lam is small and atoms are so similar that rounding spoils this, the code is
    computed again by a slow method that does not depend on it; a warning counts the codes that are
    still not proven optimal.

    Parameters
    ----------
    lam : float, optional
        The paper's λ, never rescaled. By default 1.2/√m times the root mean square norm of
        the signals: the paper's choice for signals of norm 1.
    ridge : float, default 0
        Weight of the squared norm of the code; the elastic net if above zero.
    positive : bool, default False
        Require α ≥ 0.
    mean_nonzeros : float, optional
        Instead of ``lam``: choose it such that codes have about this many nonzeros on average.
        It is found by coding a sample of up to 512 signals with several values of it (128 if they
        have missing entries or weights of their own). While a dictionary is being learned, it is
        updated at steps 1, 2, 4, 8, ...
    penalty_weights : array (k,), optional
        Weights w_j of the coefficients in the penalty; infinity excludes an atom, and zero leaves it
        unpenalized (not with ``positive=True`` or ``mean_nonzeros``). (``encode`` also takes weights
        for each signal.)

    See Also
    --------
    ErrorBound : A bound on the error instead of a penalty.
    L1Ball : A bound on the norm of the code.
    GroupLasso : Groups of atoms.
    smalto.lasso_path : The codes for every value of λ.
    """

    lam: float | None = None
    ridge: float = 0.0
    positive: bool = False
    mean_nonzeros: float | None = None
    penalty_weights: npt.ArrayLike | None = None

    takes: ClassVar[frozenset[str]] = frozenset({"mask", "penalty_weights", "start"})
    own_gram: ClassVar[bool] = True
    remedy: ClassVar[str] = "a larger lam or a ridge"
    can_be_rough: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.lam is not None:
            check_finite_number("lam", self.lam)
        check_finite_number("ridge", self.ridge)
        if self.mean_nonzeros is not None:
            check_number("mean_nonzeros", self.mean_nonzeros, low=0, strict=True)
        if self.penalty_weights is not None:
            weights = as_weights("penalty_weights", self.penalty_weights, zero=True)
            object.__setattr__(self, "penalty_weights", weights)
            if self.positive and 0.0 in weights:
                raise ValueError(NOT_POSITIVE)

    def resolve(self, X: Rows, D: Array, n_threads: int = 1) -> Lasso:
        """Return this problem with ``lam`` chosen from sample rows X (and D for mean_nonzeros)."""
        return self.resolve_for(Signals(X), D, n_threads)

    def resolve_for(
        self, signals: Signals, D: Array, n_threads: int = 1, G: Array | None = None
    ) -> Lasso:
        """Return this problem with ``lam`` chosen from sample rows that may have missing entries."""
        lam: float | None
        free = free_atoms(signals, self)
        if isinstance(self.penalty_weights, tuple):
            check_count("penalty_weights", self.penalty_weights, len(D))
            if self.mean_nonzeros is not None and free is None:
                D, G = D / np.asarray(self.penalty_weights, D.dtype)[:, None], None
        if self.mean_nonzeros is not None and free is not None:
            message = (
                "mean_nonzeros cannot choose lam for atoms without a penalty (penalty_weights of "
                "0): give lam, or a weight of 1e-6"
            )
            raise ValueError(message)
        if self.mean_nonzeros is not None:
            ridge, positive = float(self.ridge), bool(self.positive)

            def count_over(G: Array) -> Count:
                return _nonzeros_over(G, positive)

            lam = lam_for_nonzeros(
                signals, D, self.mean_nonzeros, ridge, positive, n_threads, count_over, G
            )
            if lam is None:
                if self.lam is not None:  # these rows say nothing: keep the earlier lam
                    return self
                message = (
                    "mean_nonzeros cannot determine lam: no signal is correlated with any atom"
                )
                raise ValueError(message)
        elif self.lam is None:
            lam = default_lam(signals.X)
        else:
            return self
        return replace(self, lam=lam)

    def own_weights(self) -> Array | None:
        """Return the penalty weights (1, k) of this problem; None if it has none."""
        weights = self.penalty_weights
        return None if weights is None else np.asarray(weights, np.float64)[None, :]

    def unweighted(self) -> Lasso:
        """Return this problem without its own penalty weights."""
        return replace(self, penalty_weights=None)

    def eliminated(self) -> tuple[Lasso, float]:
        """Return the problem of the other atoms, without its ridge, and the ridge."""
        weights = self.penalty_weights
        if isinstance(weights, tuple):
            weights = tuple(weight or 1.0 for weight in weights)
        return replace(self, ridge=0.0, penalty_weights=weights), float(self.ridge)

    @property
    def undecided(self) -> bool:
        """Whether ``lam`` is to be chosen, or updated."""
        return self.lam is None or self.mean_nonzeros is not None

    def conflict(self) -> str | None:
        """Return that ``lam`` and ``mean_nonzeros`` exclude each other, if both are given."""
        if self.lam is None or self.mean_nonzeros is None:
            return None
        return f"give one of lam and mean_nonzeros, got lam={self.lam:g} and mean_nonzeros={self.mean_nonzeros:g}"

    def describe(self) -> dict[str, float | None]:
        """Return ``lam``."""
        return {"lam": self.lam}

    def relaxed(self, factor: float) -> Lasso:
        """Return this problem with ``lam`` multiplied by ``factor``."""
        return replace(self, lam=self._known_lam * factor)

    def advice_on_zeros(self, X: Rows, D: Array) -> str | None:
        """Suggest a smaller ``lam`` if this one is too large; None otherwise."""
        if not self.lam:
            return None
        Q = X @ D.T
        largest = float(np.max(Q if self.positive else np.abs(Q), initial=0.0))
        if not 0.0 < largest <= self.lam:
            return None
        return (
            f"lam={self.lam:.3g} is at least the largest correlation of a signal with an atom, "
            f"{largest:.3g}. Try lam={0.1 * largest:.2g}, or mean_nonzeros={min(10, *D.shape)}"
        )

    @property
    def _known_lam(self) -> float:
        if self.lam is None:
            message = "lam is not decided yet: call resolve(X, D) first"
            raise ValueError(message)
        return float(self.lam)

    def fixed(self) -> Lasso:
        """Return this problem with a fixed ``lam``, without ``mean_nonzeros``."""
        return replace(self, mean_nonzeros=None)

    def matching(self, other: Coder) -> Coder:
        """Return this problem with an undecided ``lam`` taken from ``other``."""
        if isinstance(other, Lasso) and (self.lam is None or self.mean_nonzeros is not None):
            return replace(self, lam=other.lam)
        return self

    def rescaled(self, signals: float, atoms: float, weights: float = 1.0) -> Lasso:
        """Return the problem with the same codes, times ``signals/atoms``, at another scale."""
        lam = scaled_number(self._known_lam, signals, atoms, 1.0 / weights)
        return replace(self, lam=lam, ridge=scaled_number(self.ridge, atoms, atoms))

    @property
    def any_atom_scale(self) -> bool:
        """Whether each atom can be scaled by itself."""
        return self.lam == 0 and self.ridge == 0

    def suits_float32(self, G: Array) -> bool:
        """Return whether codes without a penalty are exact enough in float32, for whole signals."""
        return self.positive and self.any_atom_scale and suit_float32(G)

    def solver(self, G: Array) -> Solver:
        """Return a function that codes chunks of signals over a dictionary with Gram matrix G."""
        return self.rough_solver(G, 0.0)

    def rough_solver(self, G: Array, slack: float) -> Solver:
        """Return a solver whose codes may violate optimality by ``slack`` times lam.

        They are optimal for the atoms that they use. Their duality gap is at most
        ``(1 − t) lam ‖α‖₁ + ½ (1 − t)² (‖x − αD‖² + ridge ‖α‖²)`` with t = 1/(1 + slack). Where
        rounding may matter, codes are exact all the same.
        """
        lam = self._known_lam
        width = len(G)
        G = with_ridge(G, self.ridge)
        weights = self.all_weights(None)
        if weights is not None:
            weights = np.pad(weights, ((0, 0), (0, width - weights.shape[1])), constant_values=1.0)
        exact = G.reshape(-1)
        fast = float32_copy(exact)
        ridge, positive = float(self.ridge), bool(self.positive)

        dense = lam == 0.0 and positive
        inverted = cache(lambda: inverse(G)) if dense else None  # only if it is needed
        safe = self.safe_norm(Sizes.of(G), G.dtype) if slack else 0.0

        def solve(chunk: Chunk) -> Codes:
            H = inverted() if inverted is not None and chunk.own is None else None
            if H is not None:  # with lam = 0 weights do not matter
                return solve_dense(G, H, chunk, active_set)
            if weights is not None:
                chunk = with_weights(chunk, weights)
            share = slack if chunk.norms.max(initial=0.0) <= safe else 0.0
            return _solve_rows(exact, fast, chunk, lam, ridge, positive, share)

        def active_set(G: Array, chunk: Chunk) -> Codes:
            flat = G.reshape(-1)
            return _solve_rows(flat, float32_copy(flat), chunk, 0.0, 0.0, True)

        return solve

    def rough_fit(self, codes: Codes, chunk: Chunk, out: Array) -> bool:
        """Write ``½‖x − αD‖²``, which is known where codes are optimal on their atoms."""
        if chunk.own is not None or self.penalty_weights is not None:
            return False
        fit_at_optimum(chunk.Q, chunk.norms, *codes, self._known_lam, float(self.ridge), out)
        return True

    def certain(self, problem: Problem) -> Array:
        """Return float64 codes, found slowly however similar the atoms are."""
        lams, ridge, positive = self._lams(problem), float(self.ridge), bool(self.positive)
        near = np.zeros(len(lams)) if problem.near is None else problem.near[0]
        return improved_lasso(problem.X[0], problem.D, lams, ridge, positive, near)[None]

    def lower_bound(self, problem: Problem, codes: Array) -> float:
        """Return the value of a dual point that is corrected for the rounding of the code.

        With lam = 0 it is the error of least squares; with a ridge, strong convexity bounds it.
        """
        x, D, positive, lams = problem.X[0], problem.D, bool(self.positive), self._lams(problem)
        if self.ridge:
            return strongly_convex_bound(x, D, lams, float(self.ridge), positive, codes[0])
        if self.lam == 0:
            return 0.5 * least_error(x, D, positive, problem.dtype)
        return dual_value(x, D, lams, positive, codes[0])

    def _lams(self, problem: Problem) -> Array:
        own = 1.0 if self.penalty_weights is None else np.asarray(self.penalty_weights, np.float64)
        return np.asarray(self._known_lam * problem.weights * own)

    def delicate(self, chunk: Chunk, atoms: Sizes) -> Any:
        """Return for which signals ``lam`` is too small for rounding, as kernels take it."""
        return too_small(self._known_lam, chunk, atoms)

    def safe_norm(self, atoms: Sizes, dtype: np.dtype[Any]) -> float:
        """Return ``‖x‖²`` up to which no signal is `delicate`."""
        return large_enough(self._known_lam, atoms, dtype)

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """Return ``lam Σ w_j|α_j| + ridge/2 ‖α‖²`` of each row of codes."""
        if not isinstance(codes, scipy.sparse.csr_array):
            codes = scipy.sparse.csr_array(codes)
        return self.weighted_penalty(codes, None)

    def penalty_of_codes(self, codes: Codes, n_atoms: int, groups: Array | None) -> Array:
        """Return `penalty` of codes that are not a CSR array yet."""
        if self.penalty_weights is not None:
            return self.penalty(codes.as_csr(n_atoms))
        return _elastic_net(codes.indptr, codes.values, self.lam or 0.0, self.ridge)

    def weighted_penalty(
        self, codes: Any, weights: Array | None, groups: Array | None = None
    ) -> Array:
        """Return the penalty with weights of the signals, multiplied by those of this problem."""
        weights = self.all_weights(weights)
        if weights is None:
            return _elastic_net(codes.indptr, codes.data, self.lam or 0.0, self.ridge)
        # The coefficient of an infinite weight is 0, and its penalty is 0.
        finite = np.where(np.isfinite(weights), weights, 0.0)
        sizes = np.asarray(abs(codes).multiply(finite).sum(axis=1)).ravel()
        squares = _elastic_net(codes.indptr, codes.data, 0.0, self.ridge)
        return np.asarray(float(self.lam or 0.0) * sizes + squares)

    def gap(self, left: Residuals) -> Array:
        """Return the duality gap of each row; its scaled residual is the dual point.

        A ridge is equivalent to the atoms (D, √ridge I) and the signals (x, 0).
        """
        lam = float(self.lam or 0.0)
        ridge, codes = float(self.ridge), left.codes
        sizes = np.asarray(codes.multiply(codes).sum(axis=1)).ravel()
        inner = left.inner() - ridge * sizes  # ⟨αD, r⟩ and ‖r‖², augmented
        squares = left.squares + ridge * sizes
        if ridge:
            left = left._replace(C=left.C - ridge * codes.toarray())
        top = left._replace(weights=self.all_weights(left.weights)).steepest(self.positive)
        scale = np.minimum(1.0, np.divide(lam, top, out=np.ones_like(top), where=top > lam))
        primal = 0.5 * left.squares + self.weighted_penalty(codes, left.weights)
        # The dual value of θ = scale · r is ⟨x, θ⟩ − ½‖θ‖², and ⟨x, r⟩ = ‖r‖² + ⟨αD, r⟩.
        dual = scale * (squares + inner) - 0.5 * scale * scale * squares
        gap = primal - dual
        if not lam:  # no multiple of a residual is feasible but 0
            gap = np.minimum(gap, self._unpenalized_gap(left, inner))
        return np.asarray(np.maximum(gap, 0.0))

    def _unpenalized_gap(self, left: Residuals, inner: Array) -> Array:
        """Return a bound without λ: ``⟨C, α* − α⟩``, as the cost is convex, for bounded α*."""
        longest = left.longest if self.positive else None
        if self.ridge:
            by_ridge = np.sqrt(left.norms / float(self.ridge))[:, None]
            longest = by_ridge if longest is None else np.minimum(longest, by_ridge)
        if longest is None:
            return np.full(len(inner), np.inf)
        weights = self.all_weights(left.weights)
        if weights is not None:  # an infinite weight excludes an atom
            longest = np.where(np.isfinite(weights), longest, 0.0)
        rise = np.maximum(left.C, 0.0) if self.positive else np.abs(left.C)
        return np.asarray((rise * longest).sum(axis=1) - inner)


def _elastic_net(indptr: Array, values: Array, lam: float, ridge: float) -> Array:
    """Return ``lam ‖α‖₁ + ridge/2 ‖α‖²`` of each code."""
    out = np.empty(len(indptr) - 1)
    elastic_net_of_rows(indptr, values, float(lam), float(ridge), out)
    return out


def default_lam(X: Rows) -> float:
    """Return 1.2/√m times the root mean square norm of the rows, the paper's choice, scaled."""
    data = np.asarray(X.data if scipy.sparse.issparse(X) else X)
    mean_square = float(np.mean(np.square(data, dtype=np.float64))) if data.size else 0.0
    if scipy.sparse.issparse(X):
        mean_square *= data.size / (X.shape[0] * X.shape[1])
    # mean_square is per entry: 1.2/√m · √(m · mean_square)
    return 1.2 * float(np.sqrt(mean_square))


def _nonzeros_over(G: Array, positive: bool) -> Count:
    """Return a function that counts nonzeros of codes over a dictionary with Gram matrix G."""
    exact = G.reshape(-1)
    fast = float32_copy(exact)

    def count(Q: Array, lam: float) -> int:
        chunk = Chunk(Q, np.zeros(len(Q)), np.zeros(len(Q), np.int32))
        return int(_solve_rows(exact, fast, chunk, lam, 0.0, positive).indptr[-1])

    return count


def _solve_rows(
    exact: Array,
    fast: Array,
    chunk: Chunk,
    lam: float,
    ridge: float,
    positive: bool,
    slack: float = 0.0,
) -> Codes:
    """Run the kernel on all rows."""
    gram = with_fast_rows(lazy_gram(chunk.own, exact, fast, ridge), fast)
    Q = in_own_units(chunk.own, chunk.Q)
    start = start_in_own_units(chunk.own, chunk.start) or _NO_START
    first = SparseRows(start.indptr, start.indices, start.values.astype(Q.dtype, copy=False))
    n, width = Q.shape
    tally = chunk.tally()
    out = GrowingCodes(n, Q.dtype, min(64, width), width, min(64, width))

    def run(row: int, room: int) -> int:
        search = search_of_thread(width, room, Q.dtype)
        penalty = Penalty(lam, positive, slack)
        return int(lasso_rows(gram, Q, row, penalty, first, search, out.rows, tally))

    codes = out.fill(run)
    return from_own_units(chunk.own, codes)
