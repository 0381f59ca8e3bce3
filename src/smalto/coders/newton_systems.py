"""Newton's equations of the interior point method: ``(D Dᵀ + C) step = downhill``.

C is the second derivative of the penalty. Where there are as many features as atoms, the matrix is
factored by QR from D, never formed: its condition is that of D squared. Where there are more atoms,
a matrix with a row for each feature is enough, since C is easily inverted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from smalto.checks import Array
from smalto.coders.work import Work

_DAMPING = 1e-15  # share of a column's norm that is added, for atoms that depend on others
_FEW_ATOMS = 256  # up to so many, equations of the atoms take milliseconds
_LARGEST = 4e7  # numbers of a matrix: beyond this, deep trees would need gigabytes
_NESTED = 200  # multiplications that take as long as one for an atom of a group inside another
_MOST_CORRECTIONS = 5  # of a step from the matrix of features
_ENOUGH, _POOR = 1e-9, 1e-2  # shares of the right side: what such a step may miss, and may not


class Bend(NamedTuple):
    """The second derivative ``diag(curve) + Σ_g pull_g (I − (1 − along_g) u_g u_gᵀ)``.

    Groups, of which any two are nested or disjoint, have their atoms in ``members``, and in
    ``owner`` the group of each member. u_g has norm 1, or is zero.
    """

    curve: Array  # (k,)
    pull: Array  # (groups,)
    along: Array  # (groups,), at most 1
    unit: Array  # (members,): the entries of u_g
    members: Array
    owner: Array

    def times(self, v: Array) -> Array:
        """Return C v."""
        k, groups = len(self.curve), len(self.pull)
        here = v[self.members]
        inner = np.bincount(self.owner, self.unit * here, minlength=groups)
        off = self.unit * (inner * (1.0 - self.along))[self.owner]
        bent = np.bincount(self.members, self.pull[self.owner] * (here - off), minlength=k)
        return np.asarray(self.curve * v + bent)

    def depth(self) -> int:
        """Return the largest number of groups that an atom is in."""
        return int(np.bincount(self.members).max(initial=0))

    def is_positive(self) -> bool:
        """Return whether C can be inverted: whether every atom has a penalty."""
        weak = (self.pull * self.along)[self.owner]
        return bool(np.all(self.curve + np.bincount(self.members, weak, len(self.curve)) > 0))

    def square_root(self) -> Array:
        """Return a matrix (rows, k) whose square is C."""
        k, owner, top = len(self.curve), self.owner, np.diag(np.sqrt(self.curve))
        if not len(owner):
            return top
        whole = scipy.sparse.csr_array(
            (self.unit, (owner, self.members)), shape=(len(self.pull), k)
        )
        by = (self.unit * (1.0 - np.sqrt(self.along))[owner])[:, None]
        rows = scipy.sparse.eye_array(k, format="csr")[self.members] - whole[owner].multiply(by)
        return np.vstack([top, rows.multiply(np.sqrt(self.pull)[owner][:, None]).toarray()])

    def inverse(self) -> tuple[Array, scipy.sparse.csc_array]:
        """Return c and W such that ``C⁻¹ = diag(c) + W Wᵀ``, from inner groups to outer ones.

        Where B is what the groups inside of g make of C, ``(B − s u uᵀ)⁻¹`` is ``B⁻¹`` plus
        ``s/(1 − s⟨u, w⟩) w wᵀ``, with ``w = B⁻¹u``. As u is a multiple of the inner groups' own directions,
        ``1 − s⟨u, w⟩`` is a sum of positive terms.
        """
        k, groups = len(self.curve), len(self.pull)
        height = self._heights()
        pull, weak = self.pull[self.owner], (self.pull * self.along)[self.owner]
        level = height[self.owner]
        c = 1.0 / (self.curve + np.bincount(self.members, pull, minlength=k))
        W = scipy.sparse.csc_array((k, 0))
        for h in range(1, int(height.max(initial=0)) + 1):
            rest = self.curve + np.bincount(
                self.members, np.where(level <= h, weak, pull), minlength=k
            )
            some = np.flatnonzero(level == h)
            where = (self.members[some], self.owner[some])
            U = scipy.sparse.csc_array((self.unit[some], where), shape=(k, groups))
            U = U[:, np.flatnonzero(height == h)]
            V = scipy.sparse.csc_array(U.multiply(c[:, None])) + W @ (W.T @ U)
            left = np.asarray(U.multiply(V).multiply(rest[:, None]).sum(axis=0)).ravel()
            short = (self.pull * (1.0 - self.along))[height == h]
            by = np.sqrt(np.divide(short, left, out=np.zeros_like(left), where=left > 0))
            W = scipy.sparse.hstack([W, V.multiply(by[None])], format="csc")
        return c, W

    def _heights(self) -> Array:
        """Return for each group how many nested groups it holds, itself included."""
        sizes = np.bincount(self.owner, minlength=len(self.pull))
        of_atoms = np.zeros(len(self.curve), np.int64)
        height = np.zeros(len(self.pull), np.int64)
        order = np.lexsort((self.owner, sizes[self.owner]))  # inner groups first
        for part in np.split(order, np.flatnonzero(np.diff(self.owner[order])) + 1):
            atoms = self.members[part]
            top = 1 + int(of_atoms[atoms].max(initial=0))
            of_atoms[atoms] = height[self.owner[part[:1]]] = top
        return height


def newton_step(D: Array, bend: Bend, downhill: Array, work: Work) -> Array | None:
    """Return ``(D Dᵀ + C)⁻¹ downhill``; less exactly, or None, if ``work`` does not allow it."""
    k, m = D.shape
    step = None
    if k > max(m, _FEW_ATOMS) and bend.is_positive():
        nested = _NESTED * bend.depth() * len(bend.members)
        if not work.spend((k + len(bend.pull)) * m**2 / 2 + m**3 / 6 + nested):
            return None
        step, missed = _by_features(D, bend, downhill)
        if missed <= _POOR:
            return step
    rows = m + len(bend.members)
    if rows * k > _LARGEST or not work.allows(k, rows):
        return step
    return _semi_normal(np.vstack([D.T, bend.square_root()]), downhill)


def _by_features(D: Array, bend: Bend, right: Array) -> tuple[Array, float]:
    """Return the step from a matrix of the features, and how far it misses, as a share.

    ``(C + D Dᵀ)⁻¹ = C⁻¹ − C⁻¹D (I + DᵀC⁻¹D)⁻¹ DᵀC⁻¹``; what rounding leaves is corrected.
    """
    c, W = bend.inverse()
    half, rest = np.sqrt(c)[:, None] * D, W.T @ D
    M = half.T @ half + rest.T @ rest
    M[np.diag_indices_from(M)] += 1.0
    step, left, size = np.zeros_like(right), right, float(np.linalg.norm(right))
    try:
        factor = scipy.linalg.cho_factor(M, check_finite=False)
    except np.linalg.LinAlgError:
        return step, np.inf
    missed = np.inf
    for _ in range(_MOST_CORRECTIONS):
        plain = c * left + W @ (W.T @ left)
        fitted = D @ scipy.linalg.cho_solve(factor, D.T @ plain, check_finite=False)
        new = step + plain - c * fitted - W @ (W.T @ fitted)
        left = right - bend.times(new) - D @ (D.T @ new)
        before, missed = missed, float(np.linalg.norm(left)) / size
        if not missed < before:
            return step, before
        step = new
        if missed <= _ENOUGH:
            break
    return step, missed


def _semi_normal(rows: Array, right: Array) -> Array:
    """Return ``(rowsᵀ rows)⁻¹ right`` by QR, with columns of norm 1."""
    scale = np.linalg.norm(rows, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    rows = np.vstack([rows / scale, _DAMPING * np.eye(len(right))])
    R = np.linalg.qr(rows, mode="r")
    half = scipy.linalg.solve_triangular(R, right / scale, trans="T", check_finite=False)
    return np.asarray(scipy.linalg.solve_triangular(R, half, check_finite=False) / scale)
