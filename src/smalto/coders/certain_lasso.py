"""Lassos solved slowly and certainly, however similar the atoms are.

``min_α ½‖x − αD‖² + Σ_g λ_g‖α_g‖₂ + ridge/2 ‖α‖²`` over any groups of atoms, optionally with α ≥ 0:
an interior point method. With ``‖α_g‖ = min_η ½(‖α_g‖²/η + η)`` and a barrier ``−μ log η`` the
problem is smooth, and its minimum is at most μ per group above that of the problem itself. Newton's
method finds it while μ falls; its equations are solved in `newton_systems.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy

from smalto.checks import Array
from smalto.coders.newton_systems import Bend, newton_step
from smalto.coders.pivoting import pivoted
from smalto.coders.work import Work

_AIM = 1e-12  # gap that is aimed at, relative to ½‖x‖²
_FALL = 0.1  # factor by which μ falls
_MOST_STEPS = 40  # Newton steps for one μ
_LAST_STEPS = 10  # after groups were set to zero
_HALVINGS = 40
LEAST = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12)  # shares of a group in the objective: zero or not
_ENOUGH = 1e-10  # gap up to which a sparser code is taken, relative to ½‖x‖²
USABLE = {4: 1e-6, 8: 1e-11}  # singular values, relative to the largest
_AT_ONCE = 64  # atoms that join the working set at once
MOST_WORK = 2e9  # multiplications that a code may cost: seconds
_PIVOT_WORK = 6e9  # and those of pivots, which need less time
BOUND_WORK = 5e8  # multiplications that a bound on its optimum may cost

# A function that bounds the suboptimality of a code.
Gap: TypeAlias = Callable[[Array], float]


class Norms(NamedTuple):
    """The penalty ``Σ_g λ_g‖α_g‖₂``, and whether α ≥ 0."""

    lams: Array  # (groups,), above zero
    members: Array  # atoms of the groups, one group after the other
    owner: Array  # the group of each member
    positive: bool = False

    @classmethod
    def of_atoms(cls, lams: Array, positive: bool) -> Norms:
        """Return ``Σ_j λ_j|α_j|`` over the atoms with a λ above zero."""
        members = np.flatnonzero(lams > 0)
        return cls(lams[members], members, np.arange(len(members)), positive)

    def squares(self, code: Array) -> Array:
        """Return ``‖α_g‖²`` of each group."""
        return np.bincount(self.owner, code[self.members] ** 2, minlength=len(self.lams))

    def slopes(self, code: Array) -> Array:
        """Return the gradient of the penalty, without groups that are zero."""
        sizes = np.sqrt(self.squares(code))
        pull = np.where(sizes > 0, self.lams / np.where(sizes > 0, sizes, 1.0), 0.0)
        return np.bincount(self.members, pull[self.owner] * code[self.members], minlength=len(code))

    def large(self, code: Array, least: float) -> Array:
        """Return for each atom whether all its groups have at least this share of the penalty."""
        small = self.lams * np.sqrt(self.squares(code)) < least
        stays = np.ones(len(code), np.bool_)
        stays[self.members[small[self.owner]]] = False
        return stays

    def above_zero(self) -> Norms:
        """Return the penalty without groups whose λ is zero."""
        kept = np.flatnonzero(self.lams > 0)
        here = self.lams[self.owner] > 0
        return self._replace(
            lams=self.lams[kept],
            members=self.members[here],
            owner=np.searchsorted(kept, self.owner[here]),
        )

    @property
    def sizes(self) -> Array:
        """Number of atoms of each group."""
        return np.bincount(self.owner, minlength=len(self.lams))

    def of(self, atoms: Array) -> Norms:
        """Return the penalty on these atoms only (increasing), without groups that have none."""
        number = np.full(max(self.members.max(initial=-1), atoms.max(initial=-1)) + 1, -1)
        number[atoms] = np.arange(len(atoms))
        here = number[self.members] >= 0
        kept, owner = np.unique(self.owner[here], return_inverse=True)
        return self._replace(
            lams=self.lams[kept], members=number[self.members[here]], owner=owner.reshape(-1)
        )


def certain_code(
    x: Array, D: Array, norms: Norms, ridge: float, gap: Gap, work: Work | None = None
) -> Array:
    """Return the code of one signal, or how far ``work`` led; ``gap`` certifies codes.

    Groups are set to zero where rounding, or the barrier, is all that keeps them from it.
    """
    size, length = float(np.linalg.norm(x)), float(np.linalg.norm(D, axis=1).max(initial=0.0))
    if size == 0.0 or length == 0.0:
        return np.zeros(len(D))
    norms = norms._replace(lams=norms.lams / (size * length))
    x, D, ridge, back = x / size, D / length, ridge / length**2, size / length
    work = Work(MOST_WORK) if work is None else work
    code, mu = _interior(x, D, norms, ridge, work)
    if work.left < 0:
        return back * code
    allowed = max(2.0 * gap(back * code), _ENOUGH * 0.5 * size * size)
    for least in LEAST:
        sparse = _without_small(x, D, norms, ridge, code, mu, least, work)
        if gap(back * sparse) <= allowed:
            return back * sparse
    return back * code


def improved_lasso(
    x: Array, D: Array, lams: Array, ridge: float, positive: bool, start: Array
) -> Array:
    """Return the code of one signal, by pivots from a code near it; by `certain_lasso` if these fail."""
    if ridge:  # the pivots know none
        return certain_lasso(x, D, lams, ridge, positive)
    some = np.isfinite(lams)
    atoms, few = D[some], lams[some]
    enough = _ENOUGH * 0.5 * float(x @ x)
    code = pivoted(x, atoms, few, positive, start[some], enough, _PIVOT_WORK)
    if not _lasso_gap(x, atoms, few, 0.0, positive, code) <= enough:
        other = certain_lasso(x, atoms, few, 0.0, positive)
        code = min(code, other, key=lambda each: _cost(x, atoms, few, each))
    out = np.zeros(len(D))
    out[some] = code
    return out


def _cost(x: Array, D: Array, lams: Array, code: Array) -> float:
    """Return ``½‖x − αD‖² + Σ λ_j|α_j|``."""
    left = x - code @ D
    return float(0.5 * left @ left + np.abs(code) @ lams)


def certain_lasso(
    x: Array, D: Array, lams: Array, ridge: float, positive: bool, work: Work | None = None
) -> Array:
    """Return the code of one signal with the penalty ``Σ λ_j|α_j|``; infinite λ exclude atoms.

    Atoms join a working set until none violates optimality.
    """
    work = Work(MOST_WORK) if work is None else work
    code = np.zeros(len(D))
    allowed = np.isfinite(lams) & (np.einsum("ij,ij->i", D, D) > 0)
    working = allowed & (lams == 0)
    floor = 1e-14 * np.linalg.norm(x) * np.linalg.norm(D, axis=1)
    for _ in range(len(D)):
        c = D @ (x - code @ D) - ridge * code
        over = np.where(allowed & ~working, (c if positive else np.abs(c)) - lams - floor, -1.0)
        joining = np.argsort(-over)[:_AT_ONCE]
        working[joining[over[joining] > 0]] = True
        some = np.flatnonzero(working)
        if work.left < 0 or (not np.any(over > 0) and (code[some].any() or not some.size)):
            break

        few = lams[some]

        def gap(part: Array, atoms: Array = D[some], few: Array = few) -> float:
            return _lasso_gap(x, atoms, few, ridge, positive, part)

        code[some] = certain_code(x, D[some], Norms.of_atoms(few, positive), ridge, gap, work)
    return code


def _lasso_gap(x: Array, D: Array, lams: Array, ridge: float, positive: bool, code: Array) -> float:
    """Return the duality gap; the dual point is the scaled residual, or a corrected one."""
    left = x - code @ D
    c = D @ left - ridge * code
    penalized = lams > 0
    ratio = (c if positive else np.abs(c))[penalized] / lams[penalized]
    scale = 1.0 / max(1.0, float(ratio.max(initial=0.0)))
    square = left @ left + ridge * code @ code
    inner = code @ c
    length = lams @ np.abs(code)
    gap = float(0.5 * square * (1.0 - scale) ** 2 + length - scale * inner)
    if ridge or gap <= _ENOUGH * 0.5 * x @ x:
        return gap
    return min(gap, float(0.5 * square + length) - dual_value(x, D, lams, positive, code))


def dual_value(x: Array, D: Array, lams: Array, positive: bool, code: Array) -> float:
    """Return a lower bound of ``½‖x − αD‖² + Σ λ_j|α_j|`` from a code near the optimum."""
    best = -np.inf
    for left in corrected_residuals(x, D, lams, code):
        c = D @ left if positive else np.abs(D @ left)
        if np.any(c[lams == 0] > 0.0):
            continue
        left /= max(1.0, float(np.max(c / np.where(lams > 0, lams, 1.0), initial=0.0)))
        best = max(best, float(x @ left - 0.5 * left @ left))
    return best


def strongly_convex_bound(
    x: Array, D: Array, lams: Array, ridge: float, positive: bool, code: Array
) -> float:
    """Return the objective less ``‖v‖²/(2 ridge)``, where v is the smallest subgradient."""
    left = x - code @ D
    c = D @ left - ridge * code
    off = np.maximum((c if positive else np.abs(c)) - lams, 0.0)
    v = np.where(code != 0, c - lams * np.sign(code), off)
    v = np.where(np.isfinite(lams), v, 0.0)
    length = np.abs(code) @ np.where(np.isfinite(lams), lams, 0.0)
    value = 0.5 * left @ left + length + 0.5 * ridge * code @ code
    return float(value - v @ v / (2.0 * ridge))


def least_error(x: Array, D: Array, positive: bool, dtype: np.dtype[Any]) -> float:
    """Return the squared error of least squares over D; with α ≥ 0 if ``positive``.

    Directions that take coefficients too large for ``dtype`` are left out.
    """
    least, D = USABLE[dtype.itemsize], unit_atoms(D)
    if positive:
        extra = least * np.linalg.norm(D) * np.eye(len(D))
        code = scipy.optimize.nnls(np.vstack([D.T, extra]), np.append(x, np.zeros(len(D))))[0]
        left = x - code @ D
        return float(left @ left)
    _, sizes, V = np.linalg.svd(D, full_matrices=False)
    V = V[sizes > least * sizes.max(initial=0.0)]
    left = x - (V @ x) @ V
    return float(left @ left)


def unit_atoms(D: Array) -> Array:
    """Return the atoms divided by their norms: small ones span as much as large ones."""
    norms = np.linalg.norm(D, axis=1, keepdims=True)
    return np.asarray(D / np.where(norms > 0, norms, 1.0))


def corrected_residuals(x: Array, D: Array, lams: Array, code: Array) -> Iterator[Array]:
    """Yield residuals of a code near the optimum, without the rounding of the code.

    The optimal one has correlation ±λ_j with the atoms in use: the smallest change makes it so.
    Which atoms are in use is uncertain for tiny coefficients: first all are, then fewer and fewer.
    """
    shares = np.where(np.isfinite(lams), lams, 0.0) * np.abs(code) / max(0.5 * x @ x, 1e-300)
    used, work = -1, Work(BOUND_WORK)
    for least in (0.0, *LEAST[::-1]):
        some = np.flatnonzero((code != 0) & ((shares >= least) | (lams == 0)))
        if some.size == used:
            continue
        used = some.size
        if not work.allows(min(used, len(x)), max(used, len(x))):
            break
        target = lams[some] * np.sign(code[some])
        yield with_correlations((x - code @ D)[None], D[some], target[None])[0]


def with_correlations(left: Array, D: Array, target: Array) -> Array:
    """Return the nearest residuals (n, m) that have given correlations (n, k) with atoms."""
    for _ in range(2 if len(D) else 0):
        missed = target - left @ D.T
        left = left + np.linalg.lstsq(D, missed.T, rcond=1e-14)[0].T
    return left


def with_signs(x: Array, D: Array, slopes: Array, ridge: float = 0.0) -> tuple[Array, Array]:
    """Return b and d such that ``b − λd`` minimizes ``½‖x − αD‖² + λ⟨slopes, α⟩ + ridge/2 ‖α‖²``."""
    rows = np.vstack([D.T, np.sqrt(ridge) * np.eye(len(D))]) if ridge else D.T
    right = np.append(x, np.zeros(len(D))) if ridge else x
    Q, R = np.linalg.qr(rows)
    diagonal = np.abs(np.diagonal(R))
    if len(D) > len(rows) or diagonal.min(initial=1.0) <= 1e-15 * diagonal.max(initial=0.0):
        return np.full(len(D), np.nan), np.full(len(D), np.nan)
    z = scipy.linalg.solve_triangular(R, slopes, trans="T", check_finite=False)
    fitted = scipy.linalg.solve_triangular(R, Q.T @ right, check_finite=False)
    return fitted, scipy.linalg.solve_triangular(R, z, check_finite=False)


def _interior(x: Array, D: Array, norms: Norms, ridge: float, work: Work) -> tuple[Array, float]:
    """Return the code for the last μ, and μ; x and the longest atom have norm 1."""
    k = len(D)
    count = len(norms.lams) + (k if norms.positive else 0)
    code = np.full(k, 1e-2 if norms.positive else 0.0)
    if not count:
        rows = np.vstack([D.T, np.sqrt(ridge) * np.eye(k)])
        return np.linalg.lstsq(rows, np.append(x, np.zeros(k)))[0], 0.0
    mu, last = 0.5 / count, 0.5 * _AIM / count
    while True:
        for _ in range(_MOST_STEPS):
            code, fell = _newton(x, D, norms, ridge, code, mu, work)
            if work.left < 0:
                return code, mu
            if fell <= 0.01 * mu:
                break
        if mu <= last:
            return code, mu
        mu = max(_FALL * mu, last)


def _newton(
    x: Array, D: Array, norms: Norms, ridge: float, code: Array, mu: float, work: Work
) -> tuple[Array, float]:
    """Return the code after a Newton step for one μ, and by how much its model falls."""
    k, lams, members, owner = len(D), norms.lams, norms.members, norms.owner
    squares = norms.squares(code)
    root = np.sqrt(mu * mu + lams * lams * squares)
    pull = lams * lams / (mu + root)  # λ/η
    left = x - code @ D
    downhill = D @ left - ridge * code
    downhill -= np.bincount(members, pull[owner] * code[members], minlength=k)
    # The second derivative of a group is pull (I − (1 − along) u uᵀ), with u = α_g/‖α_g‖.
    along = mu / root
    curve = np.full(k, ridge)
    if norms.positive:
        downhill += mu / code
        curve = curve + mu / code**2
    large = norms.sizes > 1
    rest = large[owner]
    alone = np.where(rest, 0.0, (pull * along)[owner])
    curve = curve + np.bincount(members, alone, minlength=k)
    unit = code[members] / np.sqrt(np.where(squares > 0, squares, 1.0))[owner]
    number = np.cumsum(large) - 1
    bend = Bend(curve, pull[large], along[large], unit[rest], members[rest], number[owner[rest]])
    step = newton_step(D, bend, downhill, work)
    slope = 0.0 if step is None else float(downhill @ step)
    if step is None or not slope > 0.0:
        return code, 0.0
    length = 1.0
    if norms.positive and np.any(step < 0):
        length = min(1.0, 0.99 * float((code[step < 0] / -step[step < 0]).min()))
    before = _smooth(left, code, norms, ridge, mu)
    for _ in range(_HALVINGS):
        new = code + length * step
        if _smooth(x - new @ D, new, norms, ridge, mu) <= before - 0.1 * length * slope:
            return new, slope
        length *= 0.5
    return code, 0.0


def _smooth(left: Array, code: Array, norms: Norms, ridge: float, mu: float) -> float:
    """Return the objective with its barrier."""
    lams = norms.lams
    root = np.sqrt(mu * mu + lams * lams * norms.squares(code))
    value = 0.5 * left @ left + 0.5 * ridge * code @ code
    value += np.sum(root - mu * np.log((mu + root) / lams))
    if norms.positive:
        value -= mu * np.log(code).sum()
    return float(value)


def _without_small(
    x: Array,
    D: Array,
    norms: Norms,
    ridge: float,
    code: Array,
    mu: float,
    least: float,
    work: Work,
) -> Array:
    """Return the optimum over the groups whose share of the penalty is at least ``least``."""
    stays = norms.large(code, least)
    if norms.positive:
        stays &= code >= least
    some = np.flatnonzero(stays)
    new = np.zeros(len(code))
    part, few = code[some], norms.of(some)
    single = few.sizes.max(initial=0) <= 1
    if single and len(some):
        slopes = np.zeros(len(some))
        slopes[few.members] = few.lams * np.sign(part[few.members])
        fitted, falls = with_signs(x, D[some], slopes, ridge)
        if np.all((fitted - falls) * part > 0):
            new[some] = fitted - falls
            return new
    for _ in range(_LAST_STEPS if len(some) else 0):
        part, fell = _newton(x, D[some], few, ridge, part, mu, work)
        if fell <= 1e-4 * mu:
            break
    new[some] = part
    return new
