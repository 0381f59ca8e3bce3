"""Slow NumPy twins of the constrained and greedy coders, and what their results satisfy."""

from __future__ import annotations

import itertools

import numpy as np


def by_bisection(x, D, lasso, excess, lam_max):
    """The lasso code at the lam where ``excess(code)`` changes sign (decreasing code size)."""
    low, high = 0.0, lam_max
    for _ in range(200):
        middle = 0.5 * (low + high)
        if excess(lasso(x, D, middle)) > 0:
            low = middle
        else:
            high = middle
    return lasso(x, D, high)


def outside(D, S):
    """The parts of all atoms outside the span of the atoms S."""
    if not S:
        return D
    basis, _ = np.linalg.qr(D[S].T)
    return D - (D @ basis) @ basis.T


def refit(x, D, S, rcond=None):
    """Least squares on S: coefficients and residual."""
    if not S:
        return np.zeros(0), x
    a = np.linalg.lstsq(D[S].T, x, rcond=rcond)[0]
    return a, x - a @ D[S]


def gains(x, D, S, look_ahead=True, positive=False):
    """By how much the squared error falls with each atom (or its square cosine, textbook)."""
    left = (outside(D, S) ** 2).sum(1) if look_ahead else (D**2).sum(1)
    _, residual = refit(x, D, S)
    c = D @ residual
    if positive:
        c = np.maximum(c, 0.0)
    own = (D**2).sum(1)
    fine = (outside(D, S) ** 2).sum(1) > 1e-9 * own
    return np.where(fine, c**2 / np.where(fine, left, 1.0), 0.0)


def omp(x, D, nonzeros, eps=0.0, look_ahead=True):
    """Orthogonal matching pursuit, from its definition."""
    S = []
    while len(S) < nonzeros:
        _, residual = refit(x, D, S)
        gain = gains(x, D, S, look_ahead)
        if residual @ residual <= eps or gain.max(initial=0.0) <= 1e-20 * (x @ x):
            break
        S.append(int(np.argmax(gain)))
    code = np.zeros(len(D))
    code[S] = refit(x, D, S)[0]
    return code


def best_subset(x, D, nonzeros):
    """The least error with so many atoms, by trying all subsets."""
    return min(
        float((refit(x, D, list(S))[1] ** 2).sum())
        for S in itertools.combinations(range(len(D)), nonzeros)
    )


def weighted_violation(X, D, codes, lam, weights, ridge=0.0, positive=False):
    """Distance from optimality: a coefficient's bound is lam times its weight."""
    X, D, codes = np.asarray(X, float), np.asarray(D, float), np.asarray(codes, float)
    c = (X - codes @ D) @ D.T - ridge * codes
    bound = lam * np.broadcast_to(weights, c.shape)
    on = np.abs(c - bound * np.sign(codes))
    off = np.maximum((c if positive else np.abs(c)) - bound, 0.0)
    assert not positive or codes.min(initial=0.0) >= 0
    return np.where(codes != 0, on, off).max(axis=1, initial=0.0)
