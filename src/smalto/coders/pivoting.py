"""Lassos solved by pivots: an active set with an orthogonal factorization of its atoms.

Unlike the kernels' active set, which works on the Gram matrix, it is exact up to rounding for atoms of
any condition, and it goes on where as many atoms are in use as there are features: then the atom that
joins depends on the others, and one of them has to leave, as in the simplex method.
"""

from __future__ import annotations

import numpy as np
import scipy

from smalto.checks import Array

_DEPENDENT = 1e-10  # share of an atom's norm that is not in the span of others
_LIMIT = 1e-13  # violations that are rounding, as a share of ‖x‖‖d‖
_UPDATES = 64  # of a factorization, until it is computed anew
_PATIENCE = 64  # pivots without progress
_LEAST = 256  # atoms whose factorization must be affordable to begin at all


class _Basis:
    """Independent atoms in use, and the factorization QR of the matrix whose columns they are."""

    def __init__(self, D: Array, atoms: Array) -> None:
        self.D, self.atoms, self._updates = D, atoms, 0
        if not len(atoms):
            self.Q, self.R = np.eye(D.shape[1]), np.zeros((D.shape[1], 0))
            return
        self.Q, self.R, order = scipy.linalg.qr(D[atoms].T, pivoting=True, check_finite=False)
        norms = np.linalg.norm(D[atoms[order]], axis=1)[: len(self.R)]
        diagonal = np.abs(np.diagonal(self.R))
        kept = int(np.argmin(np.append(diagonal > _DEPENDENT * norms, False)))
        self.atoms, self.R = atoms[order[:kept]], self.R[:, :kept]

    def solve(self, right: Array, slopes: Array) -> Array:
        """Return ``argmin ½‖right − αD‖² + ⟨slopes, α⟩`` over these atoms."""
        R = self.R[: len(self.atoms)]
        half = scipy.linalg.solve_triangular(R, slopes, trans="T", check_finite=False)
        goal = (self.Q.T @ right)[: len(R)] - half
        return np.asarray(scipy.linalg.solve_triangular(R, goal, check_finite=False))

    def holds(self, atom: int) -> bool:
        """Return whether an atom depends on these."""
        outside = self.Q[:, len(self.atoms) :].T @ self.D[atom]
        return bool(np.linalg.norm(outside) <= _DEPENDENT * np.linalg.norm(self.D[atom]))

    def add(self, atom: int) -> None:
        """Let an atom join that does not depend on the others."""
        place = len(self.atoms)
        self.Q, self.R = scipy.linalg.qr_insert(
            self.Q, self.R, self.D[atom], place, which="col", check_finite=False
        )
        self.atoms = np.append(self.atoms, atom)

    def drop(self, place: int) -> None:
        """Let an atom leave."""
        self.Q, self.R = scipy.linalg.qr_delete(
            self.Q, self.R, place, which="col", check_finite=False
        )
        self.atoms = np.delete(self.atoms, place)
        self._updates += 1

    def renewed(self) -> _Basis:
        """Return the same atoms with a new factorization after many updates."""
        return self if self._updates < _UPDATES else _Basis(self.D, self.atoms)


def pivoted(
    x: Array,
    D: Array,
    lams: Array,
    positive: bool,
    start: Array,
    enough: float,
    most: float,
) -> Array:
    """Return a code that minimizes ``½‖x − αD‖² + Σ λ_j|α_j|``, or the last one of ``most`` operations.

    Parameters
    ----------
    x, D : array (m,), array (k, m)
        A signal and the atoms.
    lams : array (k,)
        Penalties.
    positive : bool
        Whether α ≥ 0.
    start : array (k,)
        A code; one near the optimum saves pivots.
    enough : float
        The duality gap at which to end.
    most : float
        Multiplications that may be spent.
    """
    if D.shape[1] > len(D) + 1:
        x, D = _in_their_span(x, D)
    k, m = D.shape
    norms = np.linalg.norm(D, axis=1)
    usable = norms > 0
    code = np.where(usable & np.isfinite(start), start, 0.0)
    code = np.maximum(code, 0.0) if positive else code
    floor = _LIMIT * np.linalg.norm(x) * norms
    most -= float(m) * m * max(np.count_nonzero(code), _LEAST)
    if most < 0:
        return code
    basis = _Basis(D, np.flatnonzero(code))
    lowest, idle = np.inf, 0
    while most > 0:
        code = np.where(np.isin(np.arange(k), basis.atoms), code, 0.0)
        try:
            most -= _descend(x, basis, code, lams)
        except np.linalg.LinAlgError:  # the last atom to join depends on the others after all
            break
        left = x - code @ D
        c = D @ left
        over = np.where(usable, (c if positive else np.abs(c)) - lams, -np.inf)
        length = np.abs(code[basis.atoms]) @ lams[basis.atoms]
        value = 0.5 * left @ left + length
        idle = 0 if value < lowest * (1.0 - 1e-14) else idle + 1
        lowest = min(lowest, value)
        # The largest multiple of the residual that is feasible for the dual problem.
        with np.errstate(divide="ignore", over="ignore"):
            scale = 1.0 / (1.0 + float(np.max(over[over > 0] / lams[over > 0], initial=0.0)))
        gap = 0.5 * left @ left * (1.0 - scale) ** 2 + length - scale * (code @ c)
        if idle > _PATIENCE or gap <= enough:
            break
        over[basis.atoms] = -np.inf
        atom = int(np.argmax(over / np.where(norms > 0, norms, 1.0)))
        if not over[atom] > floor[atom]:
            break
        most -= 4.0 * k * m + 10.0 * m * m
        if basis.holds(atom) and not _exchange(basis, atom, np.sign(c[atom]), code):
            break
        basis.add(atom)
        basis = basis.renewed()
    return code


def _in_their_span(x: Array, D: Array) -> tuple[Array, Array]:
    """Return a signal and atoms of fewer features with the same products.

    One feature more than the span of the atoms holds what of the signal is outside of it.
    """
    Q, R = np.linalg.qr(D.T)
    inside = Q.T @ x
    rest = np.linalg.norm(x - Q @ inside)
    return np.append(inside, rest), np.hstack([R.T, np.zeros((len(D), 1))])


def _descend(x: Array, basis: _Basis, code: Array, lams: Array) -> float:
    """Move a code to the optimum over its atoms, in place; return how many multiplications it took.

    Atoms leave whose coefficients would change their sign.
    """
    work = 0.0
    while len(basis.atoms):
        atoms = basis.atoms
        now = code[atoms]
        # An atom that has just joined moves away from zero: its sign is that of its correlation.
        signs = np.where(
            now != 0.0, np.sign(now), np.sign(basis.D[atoms] @ (x - now @ basis.D[atoms]))
        )
        best = basis.solve(x, lams[atoms] * signs)
        work += 4.0 * len(x) * (len(x) + len(atoms))
        wrong = best * signs <= 0.0
        if not wrong.any():
            code[atoms] = best
            return work
        ratio, moving = np.where(wrong, 0.0, np.inf), wrong & (now != best)
        ratio[moving] = now[moving] / (now - best)[moving]
        place = int(np.argmin(ratio))
        code[atoms] = now + ratio[place] * (best - now)
        code[atoms[place]] = 0.0
        basis.drop(place)
    return work


def _exchange(basis: _Basis, atom: int, sign: float, code: Array) -> bool:
    """Move a code along the dependence of an atom on those in use until one of these can leave.

    The residual stays as it is. Return False if none leaves.
    """
    atoms = basis.atoms
    along = sign * basis.solve(basis.D[atom], np.zeros(len(atoms)))
    falling = along * np.sign(code[atoms]) > 0.0
    if not falling.any():
        return False
    ratio = np.where(falling, np.abs(code[atoms]) / np.where(falling, np.abs(along), 1.0), np.inf)
    place = int(np.argmin(ratio))
    code[atoms] -= ratio[place] * along
    code[atom] = sign * ratio[place]
    code[atoms[place]] = 0.0
    basis.drop(place)
    return True
