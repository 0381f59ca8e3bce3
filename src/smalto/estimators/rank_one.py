"""Sparse rank-one approximation of a cross-product ``YᵀX``, which is never formed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from smalto.checks import Array
from smalto.coders.base import Coder
from smalto.coders.checked_coder import solver_of
from smalto.coders.chunks import PADDING, Chunk
from smalto.constraints.base import Constraint, project_checked, projected
from smalto.learning.batches.base import is_power_of_two

_SETTLE = 64  # iterations after which λ and the set are fixed, so that the cost only falls
_KERNEL = 2048  # number n of samples up to which an n by n matrix is formed for the start
_START = 64  # iterations of the power method; the start need not be accurate
_SAMPLE = 2048  # columns from which the open parameters of a coder are chosen
_TIED = 64  # sizes that differ by at most so many roundings of the largest are tied
_PENALIZED = 1e-5  # the share of the norm of u, at least, that a penalty changes


@dataclass(frozen=True)
class Side:
    """One block of variables, deflated: ``Z = (I − TTᵀ) X`` for an orthonormal T (n, r).

    Z is never formed; the methods compute products with it.
    """

    X: Array
    T: Array

    def rest(self, a: Array) -> Array:
        """Return ``(I − TTᵀ) a``."""
        return np.asarray(a - self.T @ (self.T.T @ a))

    def score(self, weights: Array) -> Array:
        """Return ``Z w``; if few weights are nonzero, only their columns are read."""
        used = np.flatnonzero(weights)
        few = 4 * len(used) < len(weights)
        return self.rest(self.X[:, used] @ weights[used] if few else self.X @ weights)

    def correlate(self, a: Array) -> Array:
        """Return ``Zᵀ a``."""
        return self.X.T @ self.rest(a)

    def moment(self) -> Callable[[Array], Array]:
        """Return the map ``a ↦ Z Zᵀ a``, by a matrix (n, n) if that is small."""
        n, p = self.X.shape
        if n < p and n <= _KERNEL:
            K = self.X @ self.X.T
            return lambda a: self.rest(K @ self.rest(a))
        return lambda a: self.score(self.correlate(a))

    def without(self, score: Array) -> Side:
        """Return this side deflated by one more direction."""
        rest = self.rest(self.rest(score))  # twice: orthogonal up to rounding
        norm = float(np.linalg.norm(rest))
        # If the score was already in the span of T, the rest is only rounding.
        if norm <= 1e-6 * float(np.linalg.norm(score)):
            return self
        return Side(self.X, np.column_stack([self.T, rest / norm]))


@dataclass(frozen=True)
class Pair:
    """A solution of `find_pair`: weights u of the coded side and v of the ordered side."""

    u: Array
    v: Array
    lam: float | None
    n_iter: int
    converged: bool
    penalized: bool  # whether ψ makes u another than that of the best fit


# A function of c = Zₓᵀ Zᵧ v (p,), ‖v‖², the atom v and the iteration that returns u and λ.
Codes: TypeAlias = Callable[[Array, float, Array, int], "tuple[Array, float | None]"]


def find_pair(
    coded: Side, ordered: Side, codes: Codes, constraint: Constraint, max_iter: int, tol: float
) -> Pair:
    """Minimize ``½‖ZᵧᵀZₓ − v uᵀ‖² + ψ(u)`` over u and over v in a convex set, in turn.

    This is dictionary learning with a single atom v and the columns of ZᵧᵀZₓ as samples. An
    iteration takes two products with each block.
    """
    v = _leading(coded, ordered)
    constraint = constraint.begun(v[None])
    v = _with_better_sign(v, coded, ordered, codes, constraint)
    u, lam, norm = np.zeros(coded.X.shape[1], v.dtype), None, 0.0
    c, square, converged = u, 0.0, False
    for iteration in range(1, max_iter + 1):
        square = float(v @ v)
        if square > 0:
            c = coded.correlate(ordered.score(v))
            u, lam = codes(c, square, v, iteration)
        norm = float(u @ u)
        if not square > 0 or not norm > 0:
            return Pair(np.zeros_like(u), np.zeros_like(v), lam, iteration, True, True)
        before, free = v, ordered.correlate(coded.score(u)) / v.dtype.type(norm)
        if iteration < _SETTLE:
            constraint = constraint.adapted(partial(projected, free[None]))
        v = free.copy()
        project_checked(constraint, v)
        converged = float(np.linalg.norm(v - before)) <= tol * float(np.linalg.norm(v))
        if converged:
            break
    missing = np.linalg.norm(c - u * u.dtype.type(square))
    penalized = bool(missing > _PENALIZED * np.linalg.norm(c))
    return Pair(u, v, lam, iteration, converged, penalized)


def keep_largest(count: int) -> Codes:
    """Return codes by a lasso whose λ leaves ``count`` nonzeros; see `_threshold` for ties."""
    held: list[float] = []

    def codes(c: Array, square: float, v: Array, iteration: int) -> tuple[Array, float | None]:
        size = np.abs(c)
        if iteration <= _SETTLE or not held:
            held[:] = [_threshold(size, count)]
        lam = held[0]
        u = np.copysign(np.maximum(size - c.dtype.type(lam), 0), c) / c.dtype.type(square)
        return u, lam

    return codes


def _threshold(size: Array, count: int) -> float:
    """Return the number above which ``count`` sizes are.

    Sizes that are tied up to rounding are all above or not: there are fewer then, or more where
    the largest ones are tied, since none would be left.
    """
    rest = len(size) - count
    if not rest:
        return 0.0
    largest = size.max()
    rounding = _TIED * np.finfo(size.dtype).eps * largest
    lam = np.partition(size, rest - 1)[rest - 1]
    lam = size[size <= lam + rounding].max()
    if lam == largest:
        lam = size[size < largest - rounding].max(initial=0)
    return float(lam)


def codes_of(coder: Coder, coded: Side, ordered: Side) -> Codes:
    """Return codes by any coder, with the columns of ZᵧᵀZₓ as signals and v as the dictionary."""
    columns = coded.rest(coded.X)
    p = columns.shape[1]
    chosen = np.unique(np.linspace(0, p - 1, min(p, _SAMPLE)).astype(np.intp))
    sample = np.ascontiguousarray(ordered.correlate(columns[:, chosen]).T)
    moment = ordered.moment()
    norms = np.einsum("ij,ij->j", columns, moment(columns)).astype(np.float64)
    held = [coder]

    def codes(c: Array, square: float, v: Array, iteration: int) -> tuple[Array, float | None]:
        if iteration <= _SETTLE and is_power_of_two(iteration):
            held[0] = coder.resolve(sample, np.ascontiguousarray(v[None]), 1)
        G, Q = np.zeros((PADDING, PADDING), c.dtype), np.zeros((p, PADDING), c.dtype)
        G[0, 0], Q[:, 0] = square, c
        chunk = Chunk(Q, norms, np.zeros(p, np.int32))
        solution = solver_of(held[0], G, 1)(chunk).as_csr(PADDING)
        return solution[:, [0]].toarray().reshape(-1), held[0].describe()["lam"]

    return codes


def _leading(coded: Side, ordered: Side) -> Array:
    """Return about the first right singular vector of ZₓᵀZᵧ, by a reproducible power method.

    Returns zero if one of the sides is zero up to rounding.
    """
    near, far = ordered.moment(), coded.moment()
    a = np.random.default_rng(0).standard_normal(len(coded.X)).astype(coded.X.dtype)
    for _ in range(_START):
        a = far(near(a))
        norm = a.dtype.type(np.linalg.norm(a))
        if not norm > 0:
            break
        a /= norm
    v = ordered.correlate(a)
    rounding = 100 * float(np.finfo(v.dtype).eps)
    for side, image in ((coded, coded.correlate(a)), (ordered, v)):
        if not np.linalg.norm(image) > rounding * np.linalg.norm(side.X):
            return np.zeros_like(v)
    return np.asarray(v / v.dtype.type(np.linalg.norm(v)))


def _with_better_sign(
    v: Array, coded: Side, ordered: Side, codes: Codes, constraint: Constraint
) -> Array:
    """Return the projection of v or of −v, whichever explains more under sign constraints."""
    best, largest = np.zeros_like(v), -1.0
    for start in (v.copy(), -v):
        project_checked(constraint, start)
        square, size = float(start @ start), 0.0
        if square > 0:
            u, _ = codes(coded.correlate(ordered.score(start)), square, start, 1)
            size = square * float(u @ u)
        if size > largest * (1 + 1e-6):
            best, largest = start, size
    return best
