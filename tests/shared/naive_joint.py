"""Slow NumPy twins of the coders of several signals at once, from their definitions."""

from __future__ import annotations

import numpy as np
from naive_coders import outside


def refit(X, D, S):
    """Least squares on the atoms S for all rows of X: coefficients and residuals."""
    if not S:
        return np.zeros((len(X), 0)), X
    A = np.linalg.lstsq(D[S].T, X.T, rcond=None)[0].T
    return A, X - A @ D[S]


def joint_gains(X, D, S, look_ahead=True):
    """By how much the group's squared error falls with each atom (or the textbook's score)."""
    own = (D**2).sum(1)
    left = (outside(D, S) ** 2).sum(1)
    fine = left > 1e-9 * own
    _, residual = refit(X, D, S)
    scores = ((residual @ D.T) ** 2).sum(0)
    return np.where(fine, scores / np.where(fine, left if look_ahead else own, 1.0), 0.0)


def joint_omp(X, D, nonzeros, eps=0.0, look_ahead=True):
    """Simultaneous orthogonal matching pursuit for the rows of one group."""
    S = []
    while len(S) < nonzeros:
        residual = refit(X, D, S)[1]
        gain = joint_gains(X, D, S, look_ahead)
        if (residual**2).sum() <= eps * len(X) or gain.max(initial=0.0) <= 1e-20 * (X**2).sum():
            break
        S.append(int(np.argmax(gain)))
    codes = np.zeros((len(X), len(D)))
    codes[:, S] = refit(X, D, S)[0]
    return codes


def joint_omp_error(X, D, nonzeros):
    """``‖X − AD‖²`` of the same pursuit, in a way that is fast for many atoms.

    Atoms and signals lose what the chosen atoms explain of them (modified Gram-Schmidt).
    """
    X, D = X.copy(), D.copy()
    own = (D**2).sum(1)
    for _ in range(nonzeros):
        left = (D**2).sum(1)
        fine = left > 1e-9 * own
        gain = np.where(fine, ((X @ D.T) ** 2).sum(0) / np.where(fine, left, 1.0), 0.0)
        unit = D[np.argmax(gain)] / np.sqrt(left[np.argmax(gain)])
        X -= np.outer(X @ unit, unit)
        D -= np.outer(D @ unit, unit)
    return (X**2).sum()


def joint_lasso(X, D, lam, sweeps=20_000, tol=1e-15):
    """One group's codes by cyclic block coordinate descent in float64, until nothing moves."""
    X, D = np.asarray(X, float), np.asarray(D, float)
    G, C = D @ D.T, X @ D.T
    A = np.zeros((len(X), len(D)))
    for _ in range(sweeps):
        largest = 0.0
        for j in np.flatnonzero(G.diagonal() > 0):
            z = C[:, j] + G[j, j] * A[:, j]
            size = np.linalg.norm(z)
            new = max(1.0 - lam / size, 0.0) * z / G[j, j] if size > 0 else 0.0 * z
            change = new - A[:, j]
            if change.any():
                A[:, j] = new
                C -= np.outer(change, G[j])
                largest = max(largest, np.abs(change).max())
        if largest <= tol:
            break
    return A


def joint_lasso_cost(X, D, A, lam):
    """``½‖X − AD‖² + lam Σ_j ‖A_j‖₂`` of one group."""
    return 0.5 * ((X - A @ D) ** 2).sum() + lam * np.linalg.norm(A, axis=0).sum()


def joint_lasso_violation(X, D, A, lam):
    """How far one group is from satisfying the optimality conditions."""
    C = (X - A @ D) @ D.T
    sizes = np.linalg.norm(A, axis=0)
    on = sizes > 0
    off = np.maximum(np.linalg.norm(C[:, ~on], axis=0) - lam, 0.0)
    missed = np.linalg.norm(C[:, on] - lam * A[:, on] / sizes[on], axis=0)
    return max(off.max(initial=0.0), missed.max(initial=0.0))


def joint_lasso_holes(X, D, lam, mask, sweeps=20_000, tol=1e-15):
    """One group's codes with missing entries, by block coordinate descent.

    The coefficients of an atom are ``z_i/(g_i + lam/t)`` with ``t`` their norm, by bisection.
    """
    known = ~mask
    A = np.zeros((len(X), len(D)))
    g = known @ (D**2).T  # squared norms of what each signal knows of each atom
    left = np.where(known, X, 0.0)
    for _ in range(sweeps):
        largest = 0.0
        for j in np.flatnonzero((D**2).sum(1) > 0):
            z = left @ D[j] + g[:, j] * A[:, j]
            new = _shrunk(z, g[:, j], lam)
            largest = max(largest, np.abs(new - A[:, j]).max())
            left -= np.outer(new - A[:, j], D[j]) * known
            A[:, j] = new
        if largest <= tol:
            break
    return A


def _shrunk(z, g, lam):
    """``argmin_a Σ ½ g_i a_i² − z_i a_i + lam ‖a‖``."""
    if np.linalg.norm(z) <= lam:
        return np.zeros_like(z)
    on = g > 0
    low, high = 0.0, np.linalg.norm(z[on] / g[on])
    for _ in range(200):
        t = 0.5 * (low + high)
        if np.linalg.norm(z / (g * t + lam)) > 1.0:
            low = t
        else:
            high = t
    return t * z / (g * t + lam)


def joint_omp_holes(X, D, nonzeros, mask, eps=0.0, look_ahead=True):
    """Simultaneous orthogonal matching pursuit with missing entries, from its definition."""
    atoms = [np.where(row, 0.0, D) for row in mask]  # as each signal knows them
    X = np.where(mask, 0.0, X)
    S = []
    while True:
        scores, error, codes = np.zeros(len(D)), 0.0, np.zeros((len(X), len(D)))
        for i, (x, own) in enumerate(zip(X, atoms, strict=True)):
            taken = []
            for j in S:  # without those that depend on earlier ones
                if (outside(own, taken)[j] ** 2).sum() > 1e-9 * (own[j] ** 2).sum():
                    taken.append(j)
            A, residual = refit(x[None], own, taken)
            codes[i, taken] = A[0]
            error += (residual**2).sum()
            scores += joint_gains(x[None], own, taken, look_ahead)
        small = scores.max(initial=0.0) <= 1e-20 * (X**2).sum()
        if len(S) == nonzeros or error <= eps * len(X) or small:
            return codes
        S.append(int(np.argmax(scores)))
