"""The joint lasso, solved slowly and certainly: see `certain_lasso.py` for the method.

Newton's equation for all signals at once has a matrix that is the same for each signal, ``D Dᵀ``
and a diagonal, but for one direction per atom, its row of coefficients: a system of one number per
atom accounts for these.
"""

from __future__ import annotations

import numpy as np
import scipy

from smalto.checks import Array
from smalto.coders.certain_lasso import BOUND_WORK, LEAST, MOST_WORK, with_correlations
from smalto.coders.work import Work

_AIM = 1e-12  # gap that is aimed at, relative to ½‖X‖²
_FALL = 0.1
_MOST_STEPS = 40
_HALVINGS = 40


def certain_joint(X: Array, D: Array, lam: float) -> Array:
    """Return ``argmin_A ½‖X − AD‖² + lam Σ_j ‖A_j‖₂``."""
    size, length = float(np.linalg.norm(X)), float(np.linalg.norm(D, axis=1).max(initial=0.0))
    if size == 0.0 or length == 0.0:
        return np.zeros((len(X), len(D)))
    # Rotations of the signals leave the norms as they are: as many as their rank are enough.
    U, sizes, V = np.linalg.svd(X / size, full_matrices=False)
    keep = sizes > 1e-15 * sizes[0]
    X, back, U = sizes[keep, None] * V[keep], size / length, U[:, keep]
    D, lam = D / length, lam / (size * length)
    A = np.zeros((len(X), len(D)))
    mu, last, work = 0.5 / len(D), 0.5 * _AIM / len(D), Work(MOST_WORK)
    while True:
        A = _at(X, D, lam, A, mu, work)
        if mu <= last or work.left < 0:
            break
        mu = max(_FALL * mu, last)
    allowed = max(2.0 * _gap(X, D, lam, A), 0.5e-10)
    for least in LEAST:
        some = np.flatnonzero(lam * np.linalg.norm(A, axis=0) >= least)
        new = np.zeros_like(A)
        if some.size:
            new[:, some] = _at(X, D[some], lam, A[:, some], mu, work)
        if _gap(X, D, lam, new) <= allowed:
            A = new
            break
    return back * (U @ A)


def joint_dual_value(
    X: Array, D: Array, lam: float, A: Array, missing: Array | None = None
) -> float:
    """Return a lower bound of the objective from codes near the optimum.

    At the optimum the residuals have correlations ``lam A_j/‖A_j‖`` with the atoms in use; see
    `corrected_residuals`. Entries of X may be missing, where it is zero.
    """
    norms, half = np.linalg.norm(A, axis=0), 0.5 * float(np.sum(X * X))
    best, used, work = -np.inf, -1, Work(BOUND_WORK)
    for least in (0.0, *LEAST[::-1]):
        some = np.flatnonzero((norms > 0) & (lam * norms >= least * half))
        if some.size == used:
            continue
        used, m = some.size, X.shape[1]
        if not work.allows(min(used, m), max(used, m)):
            break
        target = lam * A[:, some] / norms[some]
        if missing is None:
            left = with_correlations(X - A @ D, D[some], target)
        else:
            left = _over_known(X - A @ D, D[some], target, missing)
        top = float(np.linalg.norm(left @ D.T, axis=0).max(initial=0.0))
        left = left / max(1.0, top / lam)
        best = max(best, float(np.sum(X * left) - 0.5 * np.sum(left * left)))
    return best


def _over_known(left: Array, D: Array, target: Array, missing: Array) -> Array:
    """Return `with_correlations` over the known entries of each signal, and zero elsewhere."""
    out = np.zeros_like(left)
    for row, known in enumerate(~missing):
        some = with_correlations(left[[row]][:, known], D[:, known], target[[row]])
        out[row, known] = some[0]
    return out


def _at(X: Array, D: Array, lam: float, A: Array, mu: float, work: Work) -> Array:
    """Return the minimum for one μ, or how far ``work`` led."""
    for _ in range(_MOST_STEPS):
        if not work.allows(*D.shape):
            break
        A, fell = _newton(X, D, lam, A, mu)
        if fell <= 0.01 * mu:
            break
    return A


def _newton(X: Array, D: Array, lam: float, A: Array, mu: float) -> tuple[Array, float]:
    norms = np.linalg.norm(A, axis=0)
    root = np.sqrt(mu * mu + lam * lam * norms * norms)
    pull = lam * lam / (mu + root)
    downhill = (X - A @ D) @ D.T - A * pull
    rows = np.vstack([D.T, np.diag(np.sqrt(pull))])
    scale = np.linalg.norm(rows, axis=0)
    R = np.linalg.qr(rows / scale, mode="r")
    half = scipy.linalg.solve_triangular(R, np.diag(1.0 / scale), trans="T", check_finite=False)
    inverse = half.T @ half
    U = A / np.where(norms > 0, norms, 1.0)
    plain = downhill @ inverse
    by = pull * (1.0 - mu / root)
    matrix = np.eye(len(D)) - ((U.T @ U) * inverse) * by
    along = np.linalg.lstsq(matrix, np.einsum("ij,ij->j", U, plain))[0]
    step = plain + (U * (by * along)) @ inverse
    slope = float(np.sum(downhill * step))
    if not slope > 0.0:
        step, slope = plain, float(np.sum(downhill * plain))
    before, length = _smooth(X, D, lam, A, mu), 1.0
    for _ in range(_HALVINGS):
        new = A + length * step
        if _smooth(X, D, lam, new, mu) <= before - 0.1 * length * slope:
            return new, slope
        length *= 0.5
    return A, 0.0


def _smooth(X: Array, D: Array, lam: float, A: Array, mu: float) -> float:
    """Return the objective with its barrier."""
    left = X - A @ D
    return float(0.5 * np.sum(left * left)) + smooth_penalty(lam, A, mu)


def smooth_penalty(lam: float, A: Array, mu: float) -> float:
    """Return ``lam Σ_j ‖A_j‖₂`` with its barrier."""
    root = np.sqrt(mu * mu + lam * lam * np.einsum("ij,ij->j", A, A))
    return float(np.sum(root - mu * np.log((mu + root) / lam)))


def _gap(X: Array, D: Array, lam: float, A: Array) -> float:
    """Return the duality gap; the scaled residuals are the dual point."""
    left = X - A @ D
    C = left @ D.T
    scale = 1.0 / max(1.0, float(np.linalg.norm(C, axis=0).max()) / lam)
    missed = lam * np.linalg.norm(A, axis=0).sum() - scale * np.sum(A * C)
    return float(0.5 * np.sum(left * left) * (1.0 - scale) ** 2 + missed)
