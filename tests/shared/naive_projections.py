"""Slow twins of smalto.projections: bisection, sorting and generic solvers, all in float64."""

from __future__ import annotations

import numpy as np
from scipy import optimize


def soft(v, t, positive=False):
    return np.maximum(v - t, 0.0) - (0.0 if positive else np.maximum(-v - t, 0.0))


def variation(u):
    return np.abs(np.diff(u, axis=-1)).sum(axis=-1)


def left_side(u, gamma1, gamma2=0.0, square=1.0):
    """``square ‖u‖² + gamma1 ‖u‖₁ + gamma2 FL(u)``, of a vector or of each row."""
    u = np.asarray(u, np.float64)
    return square * (u**2).sum(-1) + gamma1 * np.abs(u).sum(-1) + gamma2 * variation(u)


def bisect(excess, high):
    """The t >= 0 where the decreasing function ``excess`` is zero, to the last bit."""
    while excess(high) > 0.0:
        high *= 2.0
    low = 0.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    return high


def l2_ball(v, radius, positive=False):
    u = soft(v, 0.0, positive)
    return u * min(1.0, radius / max(np.linalg.norm(u), 1e-300))


def threshold_ball(v, l1, square, bound, positive=False):
    """Project onto ``l1 ‖u‖₁ + square ‖u‖² <= bound``."""

    def u(lam):
        return soft(v, lam * l1, positive) / (1.0 + 2.0 * square * lam)

    if left_side(u(0.0), l1, 0.0, square) <= bound:
        return u(0.0)
    return u(bisect(lambda lam: left_side(u(lam), l1, 0.0, square) - bound, 1.0))


def simplex(v, radius):
    ordered = np.sort(v)[::-1]
    means = (np.cumsum(ordered) - radius) / np.arange(1, v.size + 1)
    return np.maximum(v - means[np.flatnonzero(ordered > means)[-1]], 0.0)


def total_variation(b, gamma):
    """Minimise ``½‖b - u‖² + gamma FL(u)`` by its dual, a least squares problem in a box."""
    if b.size == 1 or gamma == 0.0:
        return b.copy()
    differences = np.diff(np.eye(b.size), axis=0)
    dual = optimize.lsq_linear(differences.T, b, (-gamma, gamma), method="bvls", tol=1e-14)
    return b - differences.T @ dual.x


def fused_lasso_signal(b, gamma1, gamma2, gamma3, positive=False):
    return soft(total_variation(b, gamma2), gamma1, positive) / (1.0 + gamma3)


def fused_lasso_ball(v, gamma1, gamma2, bound, positive=False):
    def u(tau):
        return fused_lasso_signal(v, tau * gamma1, tau * gamma2, 2.0 * tau, positive)

    if left_side(u(0.0), gamma1, gamma2) <= bound:
        return u(0.0)

    def excess(tau):
        return left_side(u(tau), gamma1, gamma2) - bound

    high = 1.0
    while excess(high) > 0.0:
        high *= 2.0
    return u(optimize.brentq(excess, 0.0, high, xtol=1e-15, rtol=1e-14))


def generic_ball(v, gamma1, gamma2, bound, positive=False):
    """Project onto ``‖u‖² + gamma1 ‖u‖₁ + gamma2 FL(u) <= bound`` with a general solver.

    Nothing of the structure is used: u = p - q and its differences s - t are split into
    non-negative parts, which makes the constraint smooth.
    """
    m = v.size
    differences = np.diff(np.eye(m), axis=0)
    sides = np.concatenate([np.full(2 * m, gamma1), np.full(2 * (m - 1), gamma2)])
    ties = np.hstack([differences, -differences, -np.eye(m - 1), np.eye(m - 1)])

    def u(x):
        return x[:m] - x[m : 2 * m]

    def gradient(x, of):
        return np.concatenate([of, -of, np.zeros(2 * (m - 1))])

    ball = {
        "type": "ineq",
        "fun": lambda x: bound - u(x) @ u(x) - sides @ x,
        "jac": lambda x: -gradient(x, 2.0 * u(x)) - sides,
    }
    equal = {"type": "eq", "fun": lambda x: ties @ x, "jac": lambda x: ties}
    limits = [(0, None)] * m + [(0, 0 if positive else None)] * m + [(0, None)] * (2 * (m - 1))
    found = optimize.minimize(
        lambda x: 0.5 * (u(x) - v) @ (u(x) - v),
        np.zeros(4 * m - 2),
        jac=lambda x: gradient(x, u(x) - v),
        bounds=limits,
        constraints=[ball, equal] if m > 1 else [ball],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 2000},
    )
    return u(found.x)
