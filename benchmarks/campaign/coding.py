"""Codes of random problems, judged row by row."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.campaign import careful, coding_problems, referee
from benchmarks.campaign.coding_problems import CodingProblem
from benchmarks.campaign.random_data import Array
from benchmarks.campaign.report import Report
from smalto import encode

FINITE = "codes are finite"
ZERO = "codes are never worse than zero codes"
WITHIN = "codes keep their constraints, or it is said"
OPTIMAL = "codes are optimal, or it is said"
GAP = "gaps tell the truth"
FORM = "codes are valid sparse arrays"
LARGE = "codes are refused only beyond the range of their type"
SCALE = "pursuits and local methods find as good codes at another scale"

ALLOWED = {np.float32: 1e-3, np.float64: 1e-8}  # of ½‖x‖²
FITTED = {np.float32: 1e-2, np.float64: 1e-6}  # of pursuits, from least squares on their atoms
ROUNDING = {np.float32: 1e-6, np.float64: 1e-12}
FEASIBLE = {np.float32: 2e-5, np.float64: 1e-9}  # of radii; errors have to be smaller than ...
FINEST = {np.float32: 1.1e-10, np.float64: 1.1e-13}  # ... 1.01 eps, and this share of ‖x‖² more
CONDITION, SMALLEST_LAM = 1e7, 1e-8  # up to which codes have to be optimal
GOING_ON = "pursuits end only where nothing is gained, or it is said"
ALL_THERE = {np.float32: 1e-5, np.float64: 1e-10}  # error that is too small to go on, of ‖x‖²
WORTH = {np.float32: 1e-2, np.float64: 1e-4}  # gain of an atom that has to be taken, of ‖x‖²
APART = {np.float32: 1e-8, np.float64: 1e-16}  # squared distance of unit atoms that has to be used
KNOWN = {np.float32: 1e-3, np.float64: 1e-7}  # share of an atom's norm that has to be used
CANCELLING = {np.float32: 5e5, np.float64: 1e9}  # Σ|α_j|‖d_j‖/‖x‖ of codes that have to be used
NOT_PROVEN = "not proven optimal"  # what the warning says
LOOKED_AT = 12  # rows of a problem that get a second opinion
BEYOND = {np.float32: 1e37, np.float64: 1e306}  # coefficients that may overflow
MANY, NOT_FAR = 50, 1e-2  # ties may end otherwise in some of so many rows, which moves means so far


def code(rng: np.random.Generator, report: Report) -> None:
    """Code the signals of a random problem, and judge the codes."""
    problem = coding_problems.make(rng)
    X, D, options = problem.arguments()
    if problem.missing is None and rng.random() < 0.1:
        X = sparse.csr_array(X)
    threads = int(rng.integers(1, 4)) if rng.random() < 0.2 else 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            codes, info = encode(
                X, D, problem.coder(), n_threads=threads, return_info=True, **options
            )
        except ValueError as error:
            if "overflow" not in str(error):
                raise
            report.check(LARGE, _largest(problem) > BEYOND[problem.dtype], str(error))
            return
    said = " / ".join(str(each.message) for each in caught)
    judge(problem, codes, info, said, report)
    if problem.kind not in referee.CONVEX and len(problem.X) >= MANY and rng.random() < 0.3:
        _compare_scales(problem, codes, report)


def judge(problem: CodingProblem, codes: Any, info: Any, said: str, report: Report) -> None:
    """Compare codes with what is promised of them."""
    n, k = len(problem.X), len(problem.D)
    report.signals += n
    what = f"{problem.kind} in {np.dtype(problem.dtype)}, {problem.about}, {n} x {k}"
    valid = codes.shape == (n, k) and codes.has_canonical_format and codes.dtype == problem.dtype
    report.check(FORM, bool(valid) and np.array_equal(info.nonzeros, np.diff(codes.indptr)), what)
    A = codes.toarray()
    finite = np.isfinite(A).all(axis=1)
    report.check(FINITE, finite, what)
    A = problem.ordinary(np.where(finite[:, None], A, 0.0))
    value, nothing = referee.objective(problem, A), referee.objective(problem, np.zeros_like(A))
    half = referee.half_norms(problem)
    if problem.kind == "error bound":
        nothing = np.full(n, np.inf)
    allowed = nothing + ROUNDING[problem.dtype] * half
    with np.errstate(invalid="ignore", divide="ignore"):
        report.check(ZERO, value <= allowed, what, value / nothing)
    reached = _constraints(problem, A, info, said, what, report)
    if problem.kind in referee.CONVEX:
        _optimality(problem, A, info, said, what, report, reached)
    else:
        _fit(problem, A, said, what, report)


def _constraints(
    problem: CodingProblem, A: Array, info: Any, said: str, what: str, report: Report
) -> Array:
    """Check signs, sizes and errors; return the rows whose bounds are met."""
    n, p, slack = len(A), problem.numbers, FEASIBLE[problem.dtype]
    held = np.ones(n, bool)
    if problem.positive:
        held &= (A >= 0).all(axis=1)
    if problem.weights is not None:
        held &= ~((A != 0) & np.isinf(problem.weights)).any(axis=1)
    if problem.kind == "l1 ball":
        held &= referee.lengths(problem, A) <= p["radius"] * (1 + slack)
    if "max_nonzeros" in p:
        used = np.count_nonzero(A, axis=1)
        if problem.kind == "joint omp":
            used = np.count_nonzero(referee._column_norms(problem, A), axis=1)
        held &= used <= p["max_nonzeros"]
    report.check(WITHIN, held, what)
    if "eps" not in p or "max_nonzeros" in p:  # the first limit that is reached counts
        return held
    errors = referee.together(problem, referee.squares(referee.residual(problem, A)))
    sizes = referee.together(problem, np.ones(n))
    norms = referee.together(problem, referee.squares(problem.known))
    eps = p["eps"] * sizes
    missed = errors > eps + np.minimum(slack * norms, 0.011 * eps + FINEST[problem.dtype] * norms)
    rows = np.flatnonzero(missed)
    if not rows.size:
        return held
    if NOT_PROVEN in said:
        return held & ~missed
    report.check(WITHIN, "out of reach" in said, f"{what}: eps missed unsaid, rows {rows[:3]}")
    rows = rows[:LOOKED_AT]
    least = np.array([careful.least_error(careful.one_row(problem, row)) for row in rows])
    margin = 10 * slack * norms[rows] + 1e-3 * eps[rows]  # on the edge, both are right
    excess = (errors[rows] - least) / norms[rows]
    report.check(WITHIN, least > eps[rows] - margin, f"{what}: eps was in reach", excess)
    return held & ~missed


def _fit(problem: CodingProblem, A: Array, said: str, what: str, report: Report) -> None:
    """Check that pursuits fit least squares on their atoms."""
    if problem.kind == "bridge":
        return
    R, half = referee.residual(problem, A), referee.half_norms(problem)
    shorts = []
    for row in range(min(len(A), LOOKED_AT)):
        part, rows = careful.one_row(problem, row), slice(row, row + 1)
        if part.missing is not None:  # each signal has atoms of its own
            part = careful.single(problem, row)
        elif problem.labels is not None:
            rows = problem.labels == problem.labels[row]
        used = A[rows].any(axis=0)
        if not used.any() or careful.condition(_unit(part.D[used])) > CONDITION:
            continue
        if problem.labels is None and not problem.positive:
            gained = _left_to_gain(part, A[row], np.linalg.norm(problem.D, axis=1))
            report.check(
                GOING_ON, gained <= WORTH[problem.dtype] or NOT_PROVEN in said, what, gained
            )
        part.D = part.D[used]
        part.positive = False
        error = float(referee.squares(R[rows]).sum())
        best = careful.least_error(part)
        shorts.append(0.5 * (error - best) / max(half[row], 1e-300))
    short = np.array(shorts)
    if short.size:
        held = (short <= FITTED[problem.dtype]) | (NOT_PROVEN in said)
        report.check(OPTIMAL, held, what, short)


def _left_to_gain(problem: CodingProblem, code: Array, norms: Array) -> float:
    """Return by how much another atom would gain, as a share of ‖x‖², in the problem of one signal.

    ``norms`` are those of whole atoms, of which the signal may know a part.
    """
    p, used, D, x = problem.numbers, code != 0, _unit(problem.D), problem.X[0]
    left = x - code @ problem.D
    square, error = float(x @ x), float(left @ left)
    limit = p.get("max_nonzeros", min(D.shape))
    if used.sum() >= min(limit, *D.shape) or error <= max(
        p.get("eps", 0.0), ALL_THERE[problem.dtype] * square
    ):
        return 0.0
    basis = np.linalg.qr(D[used].T)[0]
    rest = D - (D @ basis) @ basis.T
    rest -= (rest @ basis) @ basis.T
    outside = referee.squares(rest)
    known = np.linalg.norm(problem.D, axis=1) > KNOWN[problem.dtype] * norms
    able = known & (outside > APART[problem.dtype])
    gains = np.where(able, (rest @ left) ** 2 / np.where(able, outside, 1.0), 0.0)
    cost = 2.0 * p["lam"] if problem.kind == "l0" else 0.0
    gains = np.maximum(gains - cost, 0.0) / max(square, 1e-300)
    largest = CANCELLING[problem.dtype] * np.sqrt(square)
    for atom in np.argsort(-gains):
        if gains[atom] <= WORTH[problem.dtype]:
            break
        atoms = D[used | (np.arange(len(D)) == atom)]
        if np.abs(np.linalg.lstsq(atoms.T, x)[0]).sum() <= largest:
            return float(gains[atom])
    return 0.0


def _at_ordinary_size(problem: CodingProblem) -> Array:
    """Return the codes of the same problem, not scaled, in float64."""
    ordinary = replace(problem, signal=0, atom=0)
    X, D, options = ordinary.arguments()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return encode(X, D, ordinary.coder(), **options).toarray().astype(np.float64)


def _largest(problem: CodingProblem) -> float:
    """Return how large the coefficients of a scaled problem are, in float64."""
    size = np.abs(_at_ordinary_size(replace(problem, dtype=np.float64))).max(initial=0.0)
    return float(np.ldexp(size, problem.signal - problem.atom))


def _compare_scales(problem: CodingProblem, codes: Any, report: Report) -> None:
    """Check that codes are as good, on average, as those of the same problem at ordinary size."""
    found = referee.objective(problem, problem.ordinary(codes.toarray()))
    expected = referee.objective(problem, _at_ordinary_size(problem))
    half = referee.half_norms(problem)
    off = abs(np.mean((found - expected) / np.where(half > 0, half, 1.0)))
    what = f"{problem.kind} in {np.dtype(problem.dtype)}, {problem.about}"
    report.check(SCALE, off <= NOT_FAR, what, off)


def _unit(D: Array) -> Array:
    return D / np.maximum(np.linalg.norm(D, axis=1, keepdims=True), 1e-300)


def _optimality(
    problem: CodingProblem, A: Array, info: Any, said: str, what: str, report: Report, rows: Array
) -> None:
    """Check objectives against lower bounds; where these say little, ask for more."""
    value = referee.objective(problem, A)
    bound = referee.lower_bound(problem, referee.residual(problem, A))
    unit = value if problem.kind == "error bound" else referee.half_norms(problem)
    unit = np.where(unit > 0, unit, 1.0)
    limit = 1.01 * ALLOWED[problem.dtype]
    gap = _gaps(problem, info)
    short = (value - bound) / unit
    proven = short <= limit
    admitted = ~(gap / unit <= limit) & (NOT_PROVEN in said)
    doubtful = np.flatnonzero(rows & ~proven)
    held = np.ones(len(A), bool)
    for row in doubtful[:LOOKED_AT]:
        part = careful.one_row(problem, row)
        own = A[[row]] if problem.labels is None else A[problem.labels == problem.labels[row]]
        mine = float(referee.objective(part, own)[0])  # rounded as the better code's
        best, better = careful.better_code(part, own)
        excess = (mine - best) / unit[row]
        slack = ROUNDING[problem.dtype] * unit[row] + _own_rounding(problem, A, row)
        report.check(GAP, (mine - best) <= gap[row] + slack, what, excess)
        short[row] = excess
        if excess > limit:
            scope = _in_scope(problem, row) and not _coarse(problem, A, row)
            held[row] = admitted[row] and not scope
        elif (value[row] - max(better, bound[row])) / unit[row] > limit and not admitted[row]:
            report.notes["rows on which the referee could not decide"] += 1
    report.check(OPTIMAL, held[rows], what, short[rows])
    finite = np.isfinite(gap)
    report.check(GAP, gap[finite] >= 0, what)


def _coarse(problem: CodingProblem, A: Array, row: int) -> bool:
    """Return whether rounding the coefficients of a code to its dtype is more than is allowed."""
    sizes = float(np.abs(A[row]) @ np.linalg.norm(problem.D, axis=1))
    rounding = 0.5 * float(np.finfo(problem.dtype).eps) * sizes
    return rounding**2 > ALLOWED[problem.dtype] * 2.0 * float(referee.half_norms(problem)[row])


def _own_rounding(problem: CodingProblem, A: Array, row: int) -> float:
    """Return how far the referee's objective of a code may be off: its terms may cancel."""
    sizes = np.abs(A[row]) @ np.linalg.norm(problem.D, axis=1)
    return float(np.finfo(float).eps * sizes * np.linalg.norm(problem.X[row]))


def _gaps(problem: CodingProblem, info: Any) -> Array:
    """Return the library's gaps at ordinary size, those of groups added up."""
    s, t = problem.signal, problem.atom
    unit = problem.weight + s - t if problem.kind == "error bound" else 2 * s
    with np.errstate(over="ignore"):
        return referee.together(problem, np.ldexp(info.gap, -unit))


def _in_scope(problem: CodingProblem, row: int) -> bool:
    """Return whether this problem has to be solved whatever is said."""
    part = careful.one_row(problem, row)
    if careful.worst_condition(part) > CONDITION:
        return False
    lam = problem.numbers.get("lam", np.inf)
    if problem.weights is not None:
        weights = part.weights
        lam *= float(weights.min(where=weights > 0, initial=np.inf))  # type: ignore[union-attr]
    return bool(lam >= SMALLEST_LAM * np.abs(part.known @ part.D.T).max(initial=0.0))
