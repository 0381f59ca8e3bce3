"""The lasso: the paper's sparse coding problem."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from smalto.checks import Array, Rows, check_number
from smalto.coders.base import Coder, Solver
from smalto.coders.chunks import Chunk, Residuals
from smalto.coders.codes import Codes
from smalto.coders.dense_nonnegative import inverse, solve_dense
from smalto.coders.kernel_output import GrowingCodes
from smalto.coders.lasso_paths import lam_for_nonzeros
from smalto.coders.masked_gram import (
    from_own_units,
    in_own_units,
    lazy_gram,
    start_in_own_units,
    with_weights,
)
from smalto.kernels import aligned
from smalto.kernels.coding.arguments import SparseRows, Tally
from smalto.kernels.coding.fit import elastic_net_of_rows
from smalto.kernels.coding.lasso import Penalty, lasso_rows, make_search

_NO_START = Codes(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0))


@dataclass(frozen=True)
class Lasso(Coder):
    """``min_α ½‖x − αD‖² + lam Σ w_j|α_j| + ridge/2 ‖α‖²`` (Eq. 2; w = 1 unless said).

    Solved exactly, to rounding, by an active-set method on the Gram matrix. Where atoms are so
    alike that rounding makes this matrix singular (overlapping bumps, say) and lam is small, it
    ends near the optimum and warns; a small ``ridge`` helps, and so does float64.

    Parameters
    ----------
    lam : float, optional
        The paper's λ, never rescaled. By default 1.2/√m times the root mean square norm of
        the signals, which is the paper's choice for signals of norm 1.
    ridge : float, default 0
        Weight of the squared norm of the code; above zero this is the elastic net.
    positive : bool, default False
        Demand α ≥ 0.
    mean_nonzeros : float, optional
        Instead of ``lam``: choose it so that codes have about this many nonzeros on average.
        It is found exactly on a sample, from the whole regularisation path of each signal;
        while a dictionary is being learned it is found again at steps 1, 2, 4, 8, ...
    penalty_weights : array (k,), optional
        The share w_j > 0 of each coefficient in the penalty, one per atom; infinity bars an
        atom. (``encode`` takes weights for each signal too.)
    """

    lam: float | None = None
    ridge: float = 0.0
    positive: bool = False
    mean_nonzeros: float | None = None
    penalty_weights: Any = None

    own_gram: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.lam is not None:
            check_number("lam", self.lam, low=0)
            if not np.isfinite(self.lam):
                message = f"lam must be finite, got {self.lam}"
                raise ValueError(message)
        check_number("ridge", self.ridge, low=0)
        if self.mean_nonzeros is not None:
            check_number("mean_nonzeros", self.mean_nonzeros, low=0, strict=True)
        if self.penalty_weights is not None:
            object.__setattr__(self, "penalty_weights", as_weights(self.penalty_weights))

    def resolve(self, X: Rows, D: Array, n_threads: int = 1) -> Lasso:
        """This problem with ``lam`` decided from sample rows X (and D, where it matters)."""
        lam: float | None
        if self.penalty_weights is not None:
            if len(self.penalty_weights) != len(D):
                message = f"penalty_weights has {len(self.penalty_weights)} numbers, there are {len(D)} atoms"
                raise ValueError(message)
            D = D / np.asarray(self.penalty_weights, D.dtype)[:, None]
        if self.mean_nonzeros is not None:
            lam = lam_for_nonzeros(X, D, self.mean_nonzeros, self.ridge, self.positive, n_threads)
            if lam is None:
                if self.lam is not None:  # nothing to be learned from these rows
                    return self
                message = (
                    "mean_nonzeros cannot be calibrated: no signal is correlated with any atom"
                )
                raise ValueError(message)
        elif self.lam is None:
            lam = default_lam(X)
        else:
            return self
        return replace(self, lam=lam)

    @property
    def takes(self) -> frozenset[str]:  # type: ignore[override]
        """All but groups; a λ is calibrated only for whole signals without weights."""
        everything = frozenset({"mask", "penalty_weights", "start"})
        return everything if self.mean_nonzeros is None else frozenset({"start"})

    def refusal(self, name: str) -> str:
        """Say why ``name`` cannot be given."""
        if self.mean_nonzeros is not None and name != "groups":
            what = "entries are missing" if name == "mask" else "there are penalty_weights"
            return f"Lasso(mean_nonzeros=) cannot be calibrated where {what}: give lam"
        return super().refusal(name)

    @property
    def undecided(self) -> bool:
        """Whether ``lam`` is to be chosen."""
        return self.lam is None or self.mean_nonzeros is not None

    def describe(self) -> dict[str, float | None]:
        """Return ``lam``."""
        return {"lam": self.lam}

    def relaxed(self, factor: float) -> Lasso:
        """Return this problem with ``lam`` multiplied by ``factor``."""
        return replace(self, lam=self._known_lam * factor)

    def advice_on_zeros(self, X: Rows, D: Array) -> str | None:
        """Name a ``lam`` that is small enough, where this one is not."""
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
        """This problem with its ``lam`` for good: ``mean_nonzeros`` is not aimed at again."""
        return replace(self, mean_nonzeros=None)

    def matching(self, other: Coder) -> Coder:
        """This problem with an undecided ``lam`` taken from the other one."""
        if isinstance(other, Lasso) and (self.lam is None or self.mean_nonzeros is not None):
            return replace(self, lam=other.lam)
        return self

    def solver(self, G: Array) -> Solver:
        """How to code over a dictionary with Gram matrix G ."""
        lam = self._known_lam
        width = len(G)
        if self.ridge:
            G = G.copy()
            G[np.diag_indices(width)] += G.dtype.type(self.ridge)
        weights = None if self.penalty_weights is None else np.ones((1, width))
        if weights is not None:
            weights[0, : len(self.penalty_weights)] = self.penalty_weights
        exact = G.reshape(-1)
        # For float64 the search runs on a float32 copy, then the end is made exact.
        fast = exact if G.dtype == np.float32 else aligned.copy(exact, np.float32)
        ridge, positive = float(self.ridge), bool(self.positive)

        H = inverse(G) if lam == 0.0 and positive else None

        def solve(chunk: Chunk) -> Codes:
            if H is not None and chunk.own is None:  # weights make no difference to lam = 0
                return solve_dense(G, H, chunk, active_set)
            if weights is not None:
                chunk = with_weights(chunk, weights)
            return _solve_rows(exact, fast, chunk, lam, ridge, positive)

        def active_set(G: Array, chunk: Chunk) -> Codes:
            flat = G.reshape(-1)
            return _solve_rows(flat, flat.astype(np.float32, copy=False), chunk, 0.0, 0.0, True)

        return solve

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """``lam Σ w_j|α_j| + ridge/2 ‖α‖²`` of each row of codes."""
        return self._penalty(sparse.csr_array(codes), None)

    def _penalty(self, codes: Any, weights: Array | None) -> Array:
        lam, out = self.lam or 0.0, np.empty(codes.shape[0])
        weights = self._all_weights(weights)
        if weights is None:
            elastic_net_of_rows(codes.indptr, codes.data, lam, float(self.ridge), out)
            return out
        # An infinite weight has the coefficient 0, and 0 is what it costs.
        finite = np.where(np.isfinite(weights), weights, 0.0)
        sizes = np.asarray(abs(codes).multiply(finite).sum(axis=1)).ravel()
        elastic_net_of_rows(codes.indptr, codes.data, 0.0, float(self.ridge), out)
        return np.asarray(lam * sizes + out)

    def _all_weights(self, weights: Array | None) -> Array | None:
        """The weights of this problem times those of single signals."""
        if self.penalty_weights is None:
            return weights
        own = np.asarray(self.penalty_weights)[None, :]
        return own if weights is None else own * weights

    def gap(self, left: Residuals) -> Array:
        """The duality gap of each row: scaled residuals are feasible for the dual problem.

        With a ridge that is the problem over the atoms (D, √ridge I) and the signals (x, 0).
        """
        lam = self.lam or 0.0
        ridge, codes = float(self.ridge), left.codes
        sizes = np.asarray(codes.multiply(codes).sum(axis=1)).ravel()
        inner = left.inner() - ridge * sizes  # ⟨αD, r⟩ and ‖r‖², augmented
        squares = left.squares + ridge * sizes
        if ridge:
            left = left._replace(C=left.C - ridge * codes.toarray())
        top = left._replace(weights=self._all_weights(left.weights)).steepest(self.positive)
        scale = np.minimum(1.0, np.divide(lam, top, out=np.ones_like(top), where=top > lam))
        primal = 0.5 * left.squares + self._penalty(codes, left.weights)
        # The dual value of θ = scale · r is ⟨x, θ⟩ − ½‖θ‖², and ⟨x, r⟩ = ‖r‖² + ⟨αD, r⟩.
        dual = scale * (squares + inner) - 0.5 * scale * scale * squares
        return np.asarray(np.maximum(primal - dual, 0.0))


def as_weights(weights: Any) -> tuple[float, ...]:
    """Weights above zero as a tuple (which compares and hashes)."""
    values = np.asarray(weights)
    if values.ndim != 1 or values.dtype.kind not in "fiu":
        message = f"penalty_weights must be numbers, one per atom, got {weights!r}"
        raise TypeError(message)
    bad = np.flatnonzero(~(values > 0))
    if bad.size:
        place = int(bad[0])
        message = f"penalty_weights must be > 0, got {values[place]} for atom {place}"
        raise ValueError(message)
    return tuple(float(value) for value in values)


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


def _solve_rows(
    exact: Array, fast: Array, chunk: Chunk, lam: float, ridge: float, positive: bool
) -> Codes:
    """Run the kernel over all rows."""
    gram = lazy_gram(chunk.own, exact, fast, ridge)
    Q = in_own_units(chunk.own, chunk.Q)
    start = start_in_own_units(chunk.own, chunk.start) or _NO_START
    first = SparseRows(start.indptr, start.indices, start.values.astype(Q.dtype, copy=False))
    n, width = Q.shape
    tally = Tally(chunk.rounds, np.zeros(1, np.int64))
    out = GrowingCodes(n, Q.dtype, min(128, width), width, min(64, width))

    def run(row: int, room: int) -> int:
        search = make_search(width, room, Q.dtype)
        penalty = Penalty(lam, positive)
        return int(lasso_rows(gram, Q, row, penalty, first, search, out.rows, tally))

    codes = out.fill(run)
    if tally.stuck[0]:
        warn_short(int(tally.stuck[0]), n)
    return from_own_units(chunk.own, codes)
