"""Slow NumPy twins of the kernels, and the conditions that optimal results satisfy."""

from __future__ import annotations

import numpy as np


def lasso(X, D, lam, ridge=0.0, positive=False, sweeps=20_000, tol=1e-15):
    """Codes by cyclic coordinate descent in float64, until nothing moves."""
    X, D = np.asarray(X, float), np.asarray(D, float)
    G, Q = D @ D.T, X @ D.T
    codes = np.zeros((len(X), len(D)))
    for x in range(len(X)):
        a, c = codes[x], Q[x].copy()
        for _ in range(sweeps):
            largest = 0.0
            for j in range(len(D)):
                if G[j, j] == 0:
                    continue
                z = c[j] + G[j, j] * a[j]
                shrunk = max(z - lam, 0.0) - (0.0 if positive else max(-z - lam, 0.0))
                change = shrunk / (G[j, j] + ridge) - a[j]
                if change:
                    a[j] += change
                    c -= change * G[j]
                    largest = max(largest, abs(change))
            if largest <= tol:
                break
    return codes


def lasso_cost(X, D, codes, lam, ridge=0.0):
    """``½‖x − αD‖² + lam‖α‖₁ + ridge/2‖α‖²`` of each row."""
    X, D, codes = np.asarray(X, float), np.asarray(D, float), np.asarray(codes, float)
    fit = 0.5 * ((X - codes @ D) ** 2).sum(1)
    return fit + lam * np.abs(codes).sum(1) + 0.5 * ridge * (codes**2).sum(1)


def lasso_violation(X, D, codes, lam, ridge=0.0, positive=False):
    """How far each row is from satisfying the optimality conditions (Eq. 10 of the paper)."""
    X, D, codes = np.asarray(X, float), np.asarray(D, float), np.asarray(codes, float)
    c = (X - codes @ D) @ D.T - ridge * codes
    on = np.abs(c - lam * np.sign(codes))
    off = np.maximum((c if positive else np.abs(c)) - lam, 0.0)
    violation = np.where(codes != 0, on, off)
    if positive:
        violation = np.maximum(violation, np.where(codes < 0, np.inf, 0.0))
    return violation.max(1, initial=0.0)


def lasso_gap(X, D, codes, lam, ridge=0.0, positive=False):
    """The duality gap of each row; zero just at the optimum.

    The ridge is part of the fit, of the signal (x, 0) over the atoms (d_j, √ridge e_j).
    """
    X, D, codes = np.asarray(X, float), np.asarray(D, float), np.asarray(codes, float)
    residual = np.hstack([X - codes @ D, -np.sqrt(ridge) * codes])
    atoms = np.hstack([D, np.sqrt(ridge) * np.eye(len(D))])
    signal = np.hstack([X, np.zeros((len(X), len(D)))])
    c = residual @ atoms.T
    top = np.max(c if positive else np.abs(c), axis=1, initial=0.0)
    scale = np.minimum(1.0, np.divide(lam, top, out=np.ones_like(top), where=top > 0))
    dual = scale[:, None] * residual
    primal = lasso_cost(X, D, codes, lam, ridge)
    return primal - (0.5 * (signal**2).sum(1) - 0.5 * ((signal - dual) ** 2).sum(1))


def inverse_factor(G):
    """``L⁻¹`` of ``G = L Lᵀ``."""
    return np.linalg.inv(np.linalg.cholesky(np.asarray(G, float)))


def statistics(codes, X, weight=1.0):
    """``A = weight Σ αᵀα`` and ``B = weight Σ αᵀx`` from dense codes."""
    codes, X = np.asarray(codes, float), np.asarray(X, float)
    return weight * codes.T @ codes, weight * codes.T @ X


def sweep(D, A, B, project):
    """Algorithm 2, one pass, atom after atom (the text of the paper)."""
    D = np.array(D, float)
    for j in range(len(D)):
        if A[j, j] > 0:
            atom = (B[j] - A[j] @ D) / A[j, j] + D[j]
            project(atom)
            D[j] = atom
    return D


def surrogate(D, A, B):
    """``½ Σ A∘DDᵀ − Σ B∘D``."""
    D = np.asarray(D, float)
    return 0.5 * np.sum(A * (D @ D.T)) - np.sum(B * D)


def project_l2_ball(atom, positive=False):
    """Onto ``‖u‖₂ ≤ 1``, in place."""
    if positive:
        np.maximum(atom, 0.0, out=atom)
    atom /= max(1.0, np.linalg.norm(atom))


def matched(found, planted, threshold=0.95):
    """The share of planted atoms that some found atom matches, up to sign."""
    cosines = np.abs(found @ planted.T)
    cosines /= np.linalg.norm(found, axis=1)[:, None] * np.linalg.norm(planted, axis=1)
    return float(np.mean(cosines.max(axis=0) > threshold))
