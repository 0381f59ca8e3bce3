"""The referee of sparse codes: objectives and lower bounds by definition, in float64.

Nothing here is the library's. Everything takes problems at ordinary size and dense codes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.campaign.coding_problems import CodingProblem
from benchmarks.campaign.random_data import Array

CONVEX = ("lasso", "l1 ball", "error bound", "ridge", "groups", "tree", "joint lasso")


def residual(problem: CodingProblem, A: Array) -> Array:
    """Return ``X − A D`` at known entries, and zero elsewhere."""
    R = problem.X - A @ problem.D
    return R if problem.missing is None else np.where(problem.missing, 0.0, R)


def squares(R: Array) -> Array:
    """Return the squared norm of each row."""
    return np.einsum("ij,ij->i", R, R)


def together(problem: CodingProblem, values: Array) -> Array:
    """Return the sum over the group of each row; the values as they are without groups."""
    if problem.labels is None:
        return values
    numbers = np.unique(problem.labels, return_inverse=True)[1]
    return np.bincount(numbers, values)[numbers]


def half_norms(problem: CodingProblem) -> Array:
    """Return ``½‖x‖²``, of the whole group if there are groups."""
    return together(problem, 0.5 * squares(problem.known))


def objective(problem: CodingProblem, A: Array) -> Array:
    """Return the objective of each row, or of its group; for `ErrorBound` the ℓ1 norm."""
    fit = together(problem, 0.5 * squares(residual(problem, A)))
    p = problem.numbers
    if problem.kind == "error bound":
        return lengths(problem, A)
    if problem.kind == "lasso":
        return fit + p["lam"] * lengths(problem, A) + 0.5 * p["ridge"] * squares(A)
    if problem.kind == "ridge":
        return fit + 0.5 * p["lam"] * squares(A)
    if problem.kind in ("groups", "tree"):
        return fit + group_norms(problem, A) + 0.5 * p["ridge"] * squares(A)
    if problem.kind == "joint lasso":
        return fit + p["lam"] * _column_norms(problem, A).sum(axis=1)
    if problem.kind == "l0":
        return fit + p["lam"] * np.count_nonzero(A, axis=1)
    if problem.kind == "bridge":
        smooth = (np.abs(A) + p["delta"]) ** p["p"] - p["delta"] ** p["p"]
        return fit + p["lam"] * smooth.sum(axis=1)
    return fit


def lengths(problem: CodingProblem, A: Array) -> Array:
    """Return ``Σ w_j|α_j|`` of each row; infinite if an excluded atom is used."""
    if problem.weights is None:
        return np.abs(A).sum(axis=1)
    terms = np.where(A != 0.0, np.abs(A), 0.0)
    weights = np.broadcast_to(problem.weights, A.shape)
    return np.where(A != 0.0, terms * np.where(A != 0.0, weights, 0.0), 0.0).sum(axis=1)


def group_norms(problem: CodingProblem, A: Array) -> Array:
    """Return ``lam Σ_g w_g‖α_g‖₂ + l1‖α‖₁`` of each row."""
    p = problem.numbers
    total = p["l1"] * np.abs(A).sum(axis=1)
    for weight, atoms in groups_of(problem):
        total += p["lam"] * weight * np.sqrt(squares(A[:, atoms]))
    return total


def groups_of(problem: CodingProblem) -> list[tuple[float, Array]]:
    """Return the weight and the atoms of each group, smaller ones before those they are in."""
    p, k = problem.numbers, len(problem.D)
    if problem.kind == "groups":
        count = int(p["of_atoms"].max()) + 1
        lists = [np.flatnonzero(p["of_atoms"] == g) for g in range(count)]
    else:
        inside: list[list[int]] = [[j] for j in range(k)]
        for j in reversed(range(k)):  # a parent comes before its children
            if p["parents"][j] >= 0:
                inside[p["parents"][j]] += inside[j]
        lists = [np.array(each) for each in inside]
    weights = np.ones(len(lists)) if p["group_weights"] is None else p["group_weights"]
    order = range(len(lists)) if problem.kind == "groups" else reversed(range(len(lists)))
    return [(float(weights[g]), lists[g]) for g in order]


def shrunk(problem: CodingProblem, C: Array, groups: Any, steps: Array | float = 1.0) -> Array:
    """Return the proximal operator of ``step · (lam Σ w_g‖·_g‖₂ + l1‖·‖₁)``, for nested groups."""
    p = problem.numbers
    step = np.broadcast_to(np.asarray(steps, float).reshape(-1, 1), (len(C), 1))
    V = np.maximum(C, 0.0) if problem.positive else np.abs(C)
    V = np.maximum(V - step * p["l1"], 0.0)
    for weight, atoms in groups:
        norms = np.sqrt(squares(V[:, atoms]))[:, None]
        keep = 1.0 - step * p["lam"] * weight / np.where(norms > 0, norms, 1.0)
        V[:, atoms] *= np.where(norms > 0, np.maximum(keep, 0.0), 0.0)
    return V * np.sign(C)


def _column_norms(problem: CodingProblem, A: Array) -> Array:
    """Return the norm over its group of each coefficient, for each row of the group."""
    numbers = np.unique(problem.labels, return_inverse=True)[1]
    sums = np.zeros((int(numbers.max()) + 1, A.shape[1]))
    np.add.at(sums, numbers, A * A)
    return np.sqrt(sums)[numbers]


def lower_bound(problem: CodingProblem, theta: Array) -> Array:
    """Return a lower bound of the optimum of each row, or of its group, by duality.

    ``theta`` are dual points, such as residuals; they are scaled until they are feasible.
    """
    p, kind = problem.numbers, problem.kind
    X, theta = problem.known, _off_free_atoms(problem, theta)
    C = theta @ problem.D.T
    inner = together(problem, np.einsum("ij,ij->i", X, theta))
    norms = together(problem, squares(theta))
    if kind == "ridge" or (kind == "lasso" and p["ridge"] > 0):
        ridge, lam = (p["lam"], 0.0) if kind == "ridge" else (p["ridge"], p["lam"])
        over = np.maximum(_sides(problem, C) - lam * _weights(problem, C), 0.0)
        return inner - 0.5 * norms - squares(over) / (2.0 * ridge)
    if kind in ("groups", "tree"):
        groups = groups_of(problem)
        if p["ridge"] > 0:
            over = shrunk(problem, C, groups)
            return inner - 0.5 * norms - squares(over) / (2.0 * p["ridge"])
        largest = _largest_feasible(problem, C, groups)
    elif kind == "joint lasso":
        sizes = _column_norms(problem, C).max(axis=1)
        largest = _ratio(np.full(len(C), p["lam"]), sizes)
    else:
        sizes = _over(_sides(problem, C), _weights(problem, C)).max(axis=1, initial=0.0)
        if kind == "l1 ball":
            slope = np.maximum(inner - p["radius"] * sizes, 0.0)
            return 0.5 * slope * slope / np.where(norms > 0, norms, 1.0)
        if kind == "error bound":
            rise = inner - np.sqrt(p["eps"] * norms)
            return np.where(rise > 0, rise / np.where(sizes > 0, sizes, np.inf), 0.0)
        largest = _ratio(np.full(len(C), p["lam"]), sizes)
    best = np.where(norms > 0, inner / np.where(norms > 0, norms, 1.0), 0.0)
    factor = np.minimum(largest, np.maximum(best, 0.0))
    return factor * inner - 0.5 * factor * factor * norms


def _sides(problem: CodingProblem, C: Array) -> Array:
    """Return the correlations that the penalty bounds: the positive ones only, if positive."""
    return np.maximum(C, 0.0) if problem.positive else np.abs(C)


def _off_free_atoms(problem: CodingProblem, theta: Array) -> Array:
    """Return dual points without their parts along atoms of weight zero, over known entries."""
    if problem.weights is None or not (problem.weights == 0).any() or problem.numbers.get("ridge"):
        return theta
    theta = theta.copy()
    free = np.broadcast_to(problem.weights == 0, (len(theta), len(problem.D)))
    for row in np.flatnonzero(free.any(axis=1)):
        known = slice(None) if problem.missing is None else ~problem.missing[row]
        atoms = problem.D[free[row]][:, known]
        norms = np.linalg.norm(atoms, axis=1, keepdims=True)
        _, sizes, V = np.linalg.svd(atoms / np.where(norms > 0, norms, 1.0), full_matrices=False)
        least = 1e-6 if problem.dtype == np.float32 else 1e-12  # the others are only rounding
        V = V[sizes > least * sizes.max(initial=0.0)]
        for _ in range(2):
            theta[row, known] -= (V @ theta[row, known]) @ V
    return theta


def _over(sizes: Array, weights: Array) -> Array:
    """Return sizes divided by weights; 0 where the weight is."""
    return np.divide(sizes, weights, out=np.zeros_like(sizes), where=weights > 0)


def _weights(problem: CodingProblem, C: Array) -> Array:
    return np.broadcast_to(1.0 if problem.weights is None else problem.weights, C.shape)


def _ratio(above: Array, below: Array) -> Array:
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), np.inf)


def _largest_feasible(problem: CodingProblem, C: Array, groups: Any) -> Array:
    """Return, by bisection, the largest factors of C for which the group norms leave nothing."""
    low, high = np.zeros(len(C)), np.ones(len(C))
    whole = ~shrunk(problem, C, groups).any(axis=1)
    for _ in range(52):
        middle = 0.5 * (low + high)
        inside = ~shrunk(problem, middle[:, None] * C, groups).any(axis=1)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.where(whole, 1.0, low)
