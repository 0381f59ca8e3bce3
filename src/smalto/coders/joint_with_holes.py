"""The joint lasso of a group of signals, each with missing entries of its own.

``min_A Σ_i ½‖known_i ∘ (x_i − α_i D)‖² + lam Σ_j ‖A_j‖₂``: see `certain_lasso.py` for the method and
`certain_joint.py` for Newton's equation. Here its matrix differs from signal to signal. So atoms join
a working set, and each signal has a matrix of the few atoms in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from smalto.checks import Array
from smalto.coders.certain_joint import smooth_penalty
from smalto.coders.certain_lasso import LEAST
from smalto.coders.work import Work

_LOOSE = 0.5  # share of μ by which the model of the last Newton step for it may fall
_FALL = 0.02  # factor by which μ falls
_MOST_STEPS = 40  # Newton steps for one μ
_LAST_STEPS = 8  # with hardly any μ
_HALVINGS = 40
_MOST_ROUNDS = 200
_FIRST = 16  # atoms that may join at once, or as many as have joined before ...
_SHARE = 0.5  # ... if they violate by more than this share of the worst violation
_EASE = 0.1  # what the solution of a round may miss, as a share of the gap
_MOST_WORK = 1e11  # multiplications for one group
_AT_ONCE = 1 << 21  # numbers of matrices that are computed at once ...
_KEPT = 1 << 25  # ... and that are kept until the end of a step


class Group(NamedTuple):
    """The problem of a group; ‖X‖ and the longest atom are 1."""

    X: Array  # (n, m), zero where missing
    D: Array  # (k, m)
    known: Array  # (n, m): 1 where an entry is known, 0 elsewhere
    lam: float

    def of(self, atoms: Array) -> Group:
        """Return the problem with some atoms only."""
        return self._replace(D=self.D[atoms])

    def left(self, A: Array) -> Array:
        """Return the residuals."""
        return np.asarray(self.known * (self.X - A @ self.D))


def joint_with_holes(
    X: Array, D: Array, missing: Array, lam: float, enough: float, *, careful: bool = False
) -> tuple[Array, int, float]:
    """Return codes, the number of rounds, and their gap as a share of the objective.

    ``enough`` is the gap that is aimed at. If ``careful``, Newton's equations are factored from D,
    never from ``D Dᵀ``, which takes longer.
    """
    size, length = float(np.linalg.norm(X)), float(np.linalg.norm(D, axis=1).max(initial=0.0))
    if size == 0.0 or length == 0.0:
        return np.zeros((len(X), len(D))), 0, 0.0
    known = (~missing).astype(np.float64)
    group = Group(X / size, D / length, known, lam / (size * length))
    search = _Search(group, enough, careful)
    A = search.run()
    return A * (size / length), search.rounds, search.gap / search.objective


class _Search:
    """The search for the codes of a group."""

    def __init__(self, group: Group, enough: float, careful: bool) -> None:
        self.group, self.enough, self.careful = group, enough, careful
        self.work, self.rounds = Work(_MOST_WORK), 0
        self.gap, self.objective = np.inf, 0.5

    def run(self) -> Array:
        """Let atoms join until the gap is small enough."""
        group, k = self.group, len(self.group.D)
        A, ease, before, last = np.zeros((len(group.X), k)), _EASE, np.inf, False
        while self.rounds < _MOST_ROUNDS and self.work.left >= 0:
            sizes = self._measure(A)
            if self.gap <= self.enough * self.objective or last:
                break
            used = A.any(axis=0)
            over = np.where(used, 0.0, sizes - group.lam)
            joins = (over > 0.0) & (over >= _SHARE * over.max(initial=0.0))
            most = max(_FIRST, int(used.sum()))
            if np.count_nonzero(joins) > most:
                joins[np.argsort(-over, kind="stable")[most:]] = False
            ease = ease if self.gap <= 0.5 * before and joins.any() else 0.1 * ease
            before = self.gap
            some = np.flatnonzero(used | joins)
            least = max(0.1 * self.enough * self.objective, 1e-16)
            aim = max(ease * self.gap, least)
            last = not joins.any() and aim == least  # rounding is all that remains
            A[:, some], mu = self._solve(group.of(some), A[:, some], self.gap, aim)
            A = self._without_idle(A, mu)
            self.rounds += 1
        return self._sparse(A)

    def _measure(self, A: Array) -> Array:
        """Set the duality gap and the objective; return the norms of the correlations.

        The scaled residuals are the dual point.
        """
        group, some = self.group, np.flatnonzero(A.any(axis=0))
        left = group.of(some).left(A[:, some])
        C = left @ group.D.T
        sizes = _sizes(C)
        scale = 1.0 / max(1.0, float(sizes.max()) / group.lam)
        square, penalty = float(np.sum(left * left)), group.lam * _sizes(A).sum()
        self.objective = 0.5 * square + penalty
        self.gap = 0.5 * square * (1.0 - scale) ** 2 + penalty - scale * np.sum(A * C)
        return sizes

    def _without_idle(self, A: Array, mu: float) -> Array:
        """Return the codes without atoms that the barrier alone may keep, if that is as good."""
        idle = self.group.lam * _sizes(A) <= mu
        slim = np.where(idle, 0.0, A)
        self._measure(A)
        allowed = 2.0 * self.gap
        self._measure(slim)
        return slim if self.gap <= allowed else A

    def _solve(self, group: Group, A: Array, first: float, aim: float) -> tuple[Array, float]:
        """Return the codes on a working set, and μ; the barrier falls until it is below ``aim``."""
        count = len(group.D)
        matrices = _Matrices(group, self.careful)
        mu, last = max(first, aim) / count, aim / count
        while True:
            for _ in range(_MOST_STEPS):
                if not self.work.allows(*matrices.sizes):
                    return A, mu
                A, fell = _newton(group, matrices, A, mu)
                if fell <= _LOOSE * mu:
                    break
            if mu <= last:
                return A, mu
            mu = max(_FALL * mu, last)

    def _sparse(self, A: Array) -> Array:
        """Return the codes without atoms that only the barrier keeps, solved to the end."""
        self._measure(A)
        best = self.gap
        allowed = max(2.0 * best, 0.5 * self.enough * self.objective)
        for least in LEAST:
            some = np.flatnonzero(self.group.lam * _sizes(A) > least * self.objective)
            new = np.zeros_like(A)
            if some.size:
                new[:, some] = self._polished(self.group.of(some), A[:, some])
            self._measure(new)
            if self.gap <= allowed:
                return new
        self._measure(A)
        return A

    def _polished(self, group: Group, A: Array) -> Array:
        matrices, mu = _Matrices(group, self.careful), 1e-16 / len(group.D)
        for _ in range(_LAST_STEPS):
            if not self.work.allows(*matrices.sizes):
                break
            A, fell = _newton(group, matrices, A, mu)
            if fell <= 1e-16:
                break
        return A


class _Matrices:
    """The matrices ``D Dᵀ`` of each signal over its known entries, or factors of them."""

    def __init__(self, group: Group, careful: bool) -> None:
        self.group, self.careful = group, careful
        n, k, m = len(group.X), *group.D.shape
        self.sizes = k, n * k + m
        step = max(1, _AT_ONCE // (k * max(k, m)))
        self.blocks = [slice(a, a + step) for a in range(0, n, step)]
        keep = n * k * k <= _KEPT
        self.made = [self._matrix(rows) for rows in self.blocks] if keep else None

    def _matrix(self, rows: slice) -> Array:
        """Return the matrices of some signals; triangular factors of them if careful."""
        atoms = self.group.D * self.group.known[rows, None, :]
        if not self.careful:
            return np.asarray(atoms @ atoms.transpose(0, 2, 1))
        if atoms.shape[1] >= atoms.shape[2]:
            return np.asarray(atoms.transpose(0, 2, 1))
        return np.asarray(np.linalg.qr(atoms.transpose(0, 2, 1), mode="r"))

    def inverses(self, pull: Array) -> Iterator[tuple[slice, Array]]:
        """Yield the inverses of the matrices with ``pull`` on the diagonal."""
        k = len(pull)
        for number, rows in enumerate(self.blocks):
            matrix = self._matrix(rows) if self.made is None else self.made[number]
            if self.careful:
                extra = np.broadcast_to(np.diag(np.sqrt(pull)), (len(matrix), k, k))
                matrix = np.concatenate([matrix, extra], axis=1)
                scale = 1.0 / np.linalg.norm(matrix, axis=1)
                R = np.asarray(np.linalg.qr(matrix * scale[:, None, :], mode="r"))
                half = _inverse(R.transpose(0, 2, 1)) * scale[:, None, :]
                yield rows, half.transpose(0, 2, 1) @ half
            else:
                matrix = matrix + np.diag(pull)
                scale = 1.0 / np.sqrt(np.diagonal(matrix, axis1=1, axis2=2))
                matrix *= scale[:, :, None] * scale[:, None, :]
                yield rows, _inverse(matrix) * (scale[:, :, None] * scale[:, None, :])


def _newton(group: Group, matrices: _Matrices, A: Array, mu: float) -> tuple[Array, float]:
    """Return the codes after a Newton step for one μ, and by how much its model falls."""
    lam, D = group.lam, group.D
    norms = _sizes(A)
    root = np.sqrt(mu * mu + lam * lam * norms * norms)
    pull = lam * lam / (mu + root)
    left = group.left(A)
    downhill = left @ D.T - A * pull
    U = A / np.where(norms > 0, norms, 1.0)
    by = pull * (1.0 - mu / root)
    plain, matrix = np.empty_like(A), np.eye(len(D))
    made = matrices.inverses(pull)
    kept = list(made) if matrices.made is not None else None
    for rows, inverse in made if kept is None else kept:
        plain[rows] = _products(downhill[rows], inverse)
        matrix -= np.einsum("ia,iab,ib->ab", U[rows], inverse, U[rows]) * by
    along = _solved(matrix, np.einsum("ij,ij->j", U, plain))
    step = plain.copy()
    for rows, inverse in matrices.inverses(pull) if kept is None else kept:
        step[rows] += _products(U[rows] * (by * along), inverse)
    slope = float(np.sum(downhill * step))
    if not slope > 0.0:
        step, slope = plain, float(np.sum(downhill * plain))
    if not (slope > 0.0 and np.isfinite(step).all()):
        return A, 0.0
    change, length = group.known * (step @ D), 1.0
    before = smooth_penalty(lam, A, mu)
    straight, bent = float(np.sum(left * change)), 0.5 * float(np.sum(change * change))
    for _ in range(_HALVINGS):
        new = A + length * step
        rise = smooth_penalty(lam, new, mu) - before - length * straight + length**2 * bent
        if rise <= -0.1 * length * slope + 1e-16:
            return new, slope
        length *= 0.5
    return A, 0.0


def _inverse(matrices: Array) -> Array:
    """Return inverses; pseudoinverses where rounding makes a matrix singular."""
    try:
        return np.asarray(np.linalg.inv(matrices))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(matrices))


def _solved(matrix: Array, right: Array) -> Array:
    """Return the solution of a system; if it is singular, that of least squares."""
    try:
        return np.asarray(np.linalg.solve(matrix, right))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, right)[0])


def _products(rows: Array, matrices: Array) -> Array:
    """Return each row times a matrix of its own."""
    return np.asarray((rows[:, None, :] @ matrices)[:, 0])


def _sizes(A: Array) -> Array:
    """Return the norms ‖A_j‖₂."""
    return np.asarray(np.linalg.norm(A, axis=0))
