"""Slow second opinions of the referee, on the rows where its quick bound decides nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import optimize

from benchmarks.campaign import referee
from benchmarks.campaign.coding_problems import CodingProblem
from benchmarks.campaign.random_data import Array

MOST_WORK = 1e10  # multiplications for one signal: some seconds
MOST_NORMS = 20_000  # norms of groups of atoms for one signal: some seconds


def one_row(problem: CodingProblem, row: int) -> CodingProblem:
    """Return the problem of one signal over its known entries, or of the group it is in."""
    rows = (
        [row] if problem.labels is None else np.flatnonzero(problem.labels == problem.labels[row])
    )
    missing = None if problem.missing is None else problem.missing[rows]
    if missing is not None and (len(rows) == 1 or not missing.any()):
        known, missing = ~missing[0], None
    else:
        known = np.ones(problem.D.shape[1], bool)
    weights = problem.weights
    if weights is not None and len(weights) > 1:
        weights = weights[rows]
    labels = None if problem.labels is None else problem.labels[rows]
    return replace(
        problem,
        X=problem.X[rows][:, known],
        D=problem.D[:, known],
        missing=missing,
        weights=weights,
        labels=labels,
    )


def single(problem: CodingProblem, row: int) -> CodingProblem:
    """Return the problem of one signal over its known entries, whatever its group."""
    return one_row(replace(problem, labels=None), row)


def worst_condition(problem: CodingProblem) -> float:
    """Return the largest `condition` of what the signals know of the dictionary."""
    if problem.missing is None:
        return condition(problem.D)
    return max(condition(problem.D[:, known]) for known in ~problem.missing)


def condition(D: Array) -> float:
    """Return the ratio of the largest to the smallest singular value of a dictionary."""
    if not D.size or not D.any():
        return 1.0
    values = np.linalg.svd(D, compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > 0 else np.inf


def least_error(problem: CodingProblem) -> float:
    """Return the smallest squared error found for codes of one signal (or group)."""
    if problem.missing is not None:
        return sum(least_error(single(problem, row)) for row in range(len(problem.X)))
    norms = np.linalg.norm(problem.D, axis=1)
    atoms = (problem.D[norms > 0] / norms[norms > 0, None]).T
    least = float((problem.X**2).sum())
    if not atoms.size:
        return least
    # Directions that only rounding has given to the atoms do not count.
    smallest = (1e-6, 1e-5) if problem.dtype == np.float32 else (1e-11, 1e-7)
    if problem.positive:
        tries = [_nonnegative(_without_rounding(atoms, r), problem.X) for r in smallest]
    else:
        tries = [np.linalg.lstsq(atoms, problem.X.T, rcond=r)[0].T for r in smallest]
    for codes in tries:  # as codes of this type
        found = np.asarray(codes).astype(problem.dtype).astype(np.float64)
        least = min(least, float(((found @ atoms.T - problem.X) ** 2).sum()))
    return least


def _nonnegative(atoms: Array, X: Array) -> Array:
    """Return the codes of least squares with no negative coefficient."""
    return np.array([optimize.nnls(atoms, x, maxiter=50 * atoms.shape[1])[0] for x in X])


def _without_rounding(atoms: Array, smallest: float) -> Array:
    """Return the atoms on the directions of their larger singular values."""
    U, sizes, V = np.linalg.svd(atoms, full_matrices=False)
    keep = sizes > smallest * sizes[0]
    return (U[:, keep] * sizes[keep]) @ V[keep]


def better_code(problem: CodingProblem, code: Array) -> tuple[float, float]:
    """Return an upper and a lower bound of the optimum of one signal (or group).

    Starts from a code that is given, and improves it.
    """
    if problem.kind == "ridge":
        return _ridge(problem)
    free = problem.weights is not None and bool((problem.weights == 0).any())
    if problem.kind == "lasso" and problem.numbers["lam"] > 0 and not free:
        return _feature_signs(problem, code[0])
    if problem.kind in ("groups", "tree"):
        return _proximal(problem, code)
    value = float(referee.objective(problem, code)[0])
    return value, float(referee.lower_bound(problem, referee.residual(problem, code))[0])


def _ridge(problem: CodingProblem) -> tuple[float, float]:
    lam, D = problem.numbers["lam"], problem.D
    wide = np.hstack([D, np.sqrt(lam) * np.eye(len(D))])
    x = np.concatenate([problem.X[0], np.zeros(len(D))])
    code = np.linalg.lstsq(wide.T, x, rcond=None)[0]
    value = float(referee.objective(problem, code[None])[0])
    return value, float(referee.lower_bound(problem, referee.residual(problem, code[None]))[0])


def _feature_signs(problem: CodingProblem, code: Array) -> tuple[float, float]:
    """Solve a lasso by an active set on orthogonal factors, from a code on."""
    lam, ridge = problem.numbers["lam"], problem.numbers["ridge"]
    weights = np.ones(len(code)) if problem.weights is None else problem.weights[0]
    used = np.isfinite(weights)
    D = problem.D[used] / weights[used, None]
    if ridge > 0:
        D = np.hstack([D, np.diag(np.sqrt(ridge) / weights[used])])
    x = np.zeros(D.shape[1])
    x[: problem.X.shape[1]] = problem.X[0]
    b = code[used] * weights[used]

    def value(b: Array) -> float:
        r = x - b @ D
        return float(0.5 * r @ r + lam * np.abs(b).sum())

    if problem.positive:
        b = np.maximum(b, 0.0)
    best, signs, theta = value(b), np.sign(b), x - b @ D
    work = MOST_WORK
    for _ in range(6 * len(b) + 20):
        some = np.flatnonzero(signs)
        work -= 6.0 * some.size**2 * D.shape[1]
        if work < 0.0:  # undecided
            break
        if some.size > D.shape[1]:  # dependent: without the smallest
            signs[some[np.argmin(np.abs(b[some]))]] = 0.0
            continue
        if some.size:
            Q, R = np.linalg.qr(D[some].T)
            if np.abs(np.diagonal(R)).min() <= 1e-13 * np.abs(np.diagonal(R)).max():
                signs[some[np.argmin(np.abs(np.diagonal(R)))]] = 0.0  # dependent: without it
                continue
            dual = np.linalg.solve(R.T, lam * signs[some])
            target = np.zeros(len(b))
            target[some] = np.linalg.solve(R, Q.T @ x - dual)
            # along the segment to the target, at the points where signs change
            move = target - b
            with np.errstate(divide="ignore", invalid="ignore"):
                stops = -b / move
            stops = np.unique(np.append(stops[(stops > 0) & (stops < 1)], 1.0))
            values = [value(b + t * move) for t in stops]
            if problem.positive:
                values = values[:1]
            place = int(np.argmin(values))
            new = b + stops[place] * move
            new[np.abs(new) <= 1e-15 * np.abs(new).max(initial=0.0)] = 0.0
            if problem.positive:
                new = np.maximum(new, 0.0)
            if value(new) <= best:
                b, best = new, value(new)
            signs = np.sign(b)
        r = x - b @ D
        for _ in range(2 if signs.any() else 0):
            on = np.flatnonzero(signs)
            r = r + np.linalg.lstsq(D[on], lam * signs[on] - D[on] @ r, rcond=None)[0]
        theta = r
        c = D @ r
        over = np.where(signs == 0, c if problem.positive else np.abs(c), 0.0)
        j = int(np.argmax(over))
        if over[j] <= lam * (1 + 1e-12):
            break
        signs[j] = np.sign(c[j])
    c = D @ theta
    sizes = float((np.maximum(c, 0.0) if problem.positive else np.abs(c)).max(initial=0.0))
    theta = theta * min(1.0, lam / sizes if sizes > 0 else 1.0)
    return best, float(x @ theta - 0.5 * theta @ theta)


def _proximal(problem: CodingProblem, code: Array) -> tuple[float, float]:
    """Improve a grouped code by accelerated proximal steps, with restarts."""
    groups, p = referee.groups_of(problem), problem.numbers
    step = 1.0 / (float(np.linalg.norm(problem.D, 2)) ** 2 + p["ridge"] or 1.0)
    A = B = code.copy()
    best: Any = float(referee.objective(problem, A)[0])
    bound, momentum, last = -np.inf, 1.0, best
    for number in range(max(100, min(3000, MOST_NORMS // len(groups)))):
        gradient = p["ridge"] * B - referee.residual(problem, B) @ problem.D.T
        new = referee.shrunk(problem, B - step * gradient, groups, step)
        following = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
        B, A, momentum = new + (momentum - 1) / following * (new - A), new, following
        if number % 20 == 19:
            now = float(referee.objective(problem, A)[0])
            if now > last:
                B, momentum = A, 1.0
            last = now
            best = min(best, now)
            point = referee.residual(problem, A)
            bound = max(bound, float(referee.lower_bound(problem, point)[0]))
            if best - bound <= 1e-10 * best:
                break
    return best, bound
