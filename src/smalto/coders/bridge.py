"""Sparse coding with the bridge penalty, by reweighted lassos."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy

from smalto.checks import Array, Rows, check_finite_number, check_integer, check_number
from smalto.coders.base import Coder, Solver
from smalto.coders.certain_lasso import certain_lasso
from smalto.coders.chunks import Chunk, OwnGram, Problem
from smalto.coders.codes import Codes
from smalto.coders.lasso import Lasso, default_lam
from smalto.coders.masked_gram import with_weights
from smalto.coders.parameters import scaled_number


@dataclass(frozen=True)
class Bridge(Coder):
    """Powers below one: ``min_α ½‖x − αD‖² + lam Σ ((|α_j| + delta)^p − delta^p)``, locally.

    Here 0 < p < 1. Codes are sparser than those of the lasso at the same fit, and large
    coefficients shrink less. The problem is not convex, and this is a local method. It starts from
    the lasso whose penalty is the same for a coefficient of size ``‖x‖/‖d_j‖``, and then solves a
    sequence of lassos exactly, in which the weight of coefficient j is ``p (|α_j| + delta)^(p−1)``
    at the previous code. The tangent of the penalty is an upper bound of it, so the objective never
    increases. The limit is a stationary point, not always the global minimum; if the zero code
    costs less, the code is zero.

    Parameters
    ----------
    lam : float
        Weight of the penalty.
    p : float, default 0.5
        The power, strictly between 0 and 1.
    delta : float, optional
        Smoothing of the penalty near zero, in units of coefficients: the smaller it is, the
        closer the penalty is to ``Σ |α_j|^p``, and the more local minima there are. By default
        a hundredth of the root mean square norm of the signals, divided by the median norm of the
        atoms.
    positive : bool, default False
        Require α ≥ 0.
    max_iter : int, default 50
        Maximum number of reweighted lassos; fewer are solved if the code no longer changes.

    See Also
    --------
    Lasso : The convex problem, p = 1.
    L0 : The limit for p → 0.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto import encode
    >>> from smalto.coders import Bridge, Lasso
    >>> x, D = np.array([[3.0, 0.5]]), np.eye(2)
    >>> encode(x, D, Lasso(lam=0.4)).toarray().round(2)
    array([[2.6, 0.1]])
    >>> encode(x, D, Bridge(lam=0.4, delta=0.01)).toarray().round(2)
    array([[2.88, 0.  ]])
    """

    lam: float
    p: float = 0.5
    delta: float | None = None
    positive: bool = False
    max_iter: int = 50

    own_gram: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_finite_number("lam", self.lam)
        if not 0.0 < check_number("p", self.p) < 1.0:
            message = f"p must lie strictly between 0 and 1, got {self.p!r}"
            raise ValueError(message)
        if self.delta is not None:
            check_finite_number("delta", self.delta, low=0, strict=True)
        check_integer("max_iter", self.max_iter)

    def resolve(self, X: Rows, D: Array, n_threads: int = 1) -> Bridge:
        """Return this problem with ``delta`` chosen from sample rows X and the dictionary D."""
        if self.delta is not None:
            return self
        lengths = np.linalg.norm(D.astype(np.float64), axis=1)
        used = lengths[lengths > 0]
        signal = default_lam(X) / 1.2 * np.sqrt(X.shape[1])
        size = signal / np.median(used) if used.size and signal > 0 else 1.0
        return replace(self, delta=0.01 * float(size))

    def matching(self, other: Coder) -> Coder:
        """Return this problem with an undecided ``delta`` taken from ``other``."""
        if isinstance(other, Bridge) and self.delta is None:
            return replace(self, delta=other.delta)
        return self

    @property
    def undecided(self) -> bool:
        """Whether ``delta`` has not been chosen yet."""
        return self.delta is None

    def describe(self) -> dict[str, float | None]:
        """Return ``lam``."""
        return {"lam": self.lam}

    def rescaled(self, signals: float, atoms: float, weights: float = 1.0) -> Bridge:
        """Return the problem with the same codes, times ``signals/atoms``, at another scale."""
        lam = scaled_number(self.lam, signals ** (2.0 - self.p), atoms**self.p)
        return replace(self, lam=lam, delta=scaled_number(self._delta, signals, 1.0 / atoms))

    def solver(self, G: Array) -> Solver:
        """Return a function that codes chunks of signals over a dictionary with Gram matrix G."""
        lasso = Lasso(self.lam, positive=self.positive).solver(G)
        still = 1e-4 if G.dtype == np.float32 else 1e-8

        def solve(chunk: Chunk) -> Codes:
            first = self._first_weights(chunk.norms[:, None], _squared_atoms(G, chunk.own))
            codes = lasso(with_weights(chunk, first))
            total = chunk.rounds.copy()
            rows = np.arange(len(chunk.Q))  # those that still change
            worse = np.zeros(len(rows), np.bool_)
            for _ in range(self.max_iter):
                old = codes.take(rows)
                some = chunk.take(rows)._replace(start=old)
                weights = self._weights(old, len(G))
                new = lasso(with_weights(some, weights))
                total[rows] += some.rounds
                worse[rows] = self._worse(new, weights, some.Q)
                moved = _moves(old, new, len(G), still)
                codes = codes.put(rows, new)
                rows = rows[moved]
                if not rows.size:
                    break
            chunk.rounds[:] = total
            lost = np.flatnonzero(worse)
            return codes.put(lost, _zeros(len(lost), G.dtype))

        return solve

    def certain(self, problem: Problem) -> Array:
        """Return float64 codes, found slowly however similar the atoms are."""
        x, D, positive = problem.X[0], problem.D, bool(self.positive)
        lam, p, delta = float(self.lam), float(self.p), self._delta
        first = self._first_weights(x @ x, np.einsum("ij,ij->i", D, D))
        code = certain_lasso(x, D, lam * first, 0.0, positive)
        for _ in range(self.max_iter):
            lams = lam * p * (np.abs(code) + delta) ** (p - 1.0)
            before, code = code, certain_lasso(x, D, lams, 0.0, positive)
            if np.abs(code - before).max() <= 1e-8 * np.abs(code).max(initial=0.0):
                break
        return code[None]

    def _first_weights(self, signals: Array, atoms: Array) -> Array:
        """Return the weights of the first lasso, given squared norms of signals and atoms.

        They are the slopes of chords of the penalty, from 0 to ``‖x‖/‖d_j‖``: so the first code,
        as those after it, is that of the rescaled problem if signals or atoms are rescaled.
        """
        known = (signals > 0) & (atoms > 0)
        sizes = np.sqrt(np.divide(signals, atoms, where=known, out=np.ones(known.shape)))
        chords = np.expm1(self.p * np.log1p(sizes / self._delta)) * self._delta**self.p
        return np.asarray(chords / sizes)

    def _worse(self, codes: Codes, weights: Array, Q: Array) -> Array:
        """Return which codes of weighted lassos cost more than zero codes.

        The fit of such a code is ``½‖x‖² − ½ Σ (q_j α_j + lam w_j|α_j|)``.
        """
        rows = np.repeat(np.arange(len(Q)), np.diff(codes.indptr))
        values, lam = codes.values.astype(np.float64), float(self.lam)
        sizes, places = np.abs(values), (rows, codes.indices)
        penalties = (sizes + self._delta) ** self.p - self._delta**self.p
        gains = 0.5 * (Q[places] * values + lam * weights[places] * sizes)
        return np.bincount(rows, lam * penalties - gains, minlength=len(Q)) > 0

    def _weights(self, codes: Codes, width: int) -> Array:
        """Return the derivative of the penalty, divided by lam, at each coefficient (n, width)."""
        sizes = np.abs(codes.as_csr(width).toarray().astype(np.float64))
        return np.asarray(self.p * (sizes + self._delta) ** (self.p - 1.0))

    @property
    def _delta(self) -> float:
        if self.delta is None:
            message = "delta is not decided yet: call resolve(X, D) first"
            raise ValueError(message)
        return float(self.delta)

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """Return ``lam Σ ((|α_j| + delta)^p − delta^p)`` of each row of codes."""
        codes = scipy.sparse.csr_array(codes, dtype=np.float64, copy=True)
        codes.data = (np.abs(codes.data) + self._delta) ** self.p - self._delta**self.p
        return np.asarray(float(self.lam) * codes.sum(axis=1)).ravel()


def _squared_atoms(G: Array, own: OwnGram | None) -> Array:
    """Return the squared norms of the atoms (n or 1, width), over the known entries of signals."""
    if own is None or own.missing is None:
        return np.diagonal(G).astype(np.float64)[None]
    return np.asarray(~own.missing @ np.square(own.features, dtype=np.float64))


def _zeros(n: int, dtype: Any) -> Codes:
    """Return zero codes."""
    return Codes(np.zeros(n + 1, np.int64), np.empty(0, np.int32), np.empty(0, dtype))


def _moves(old: Codes, new: Codes, width: int, still: float) -> Array:
    """Return whether each code has changed by more than rounding errors."""
    change = abs(new.as_csr(width) - old.as_csr(width)).max(axis=1).toarray().ravel()
    size = abs(new.as_csr(width)).max(axis=1).toarray().ravel()
    return np.asarray(change > still * np.maximum(size, np.finfo(np.float32).tiny))
