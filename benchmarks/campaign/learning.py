"""Dictionaries that are learned with random settings: atoms in their sets, limits that are kept."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.campaign import random_data as data
from benchmarks.campaign.random_data import Array
from benchmarks.campaign.report import Report
from smalto import coders, constraints, learn
from smalto.learners import SGD, Batch, Online, Replacement

ATOMS = "atoms are finite and in their set"
LIMITS = "limits of a run are kept"
DENSITY = "a wanted density is reached, or it is said"
BITS = "the same bits on any number of threads"
LARGE_CODES = "learning refuses only codes beyond the range"
LARGE = {np.float32: np.inf, np.float64: 1e130}  # samples whose codes may be beyond the range
UNPENALIZED = (coders.OMP, coders.L0, coders.ErrorBound)


def coder(rng: np.random.Generator, k: int, m: int, unit: float) -> Any:
    """Return a coder for signals of this norm over atoms of norm 1."""
    lam = data.log_uniform(rng, 1e-3, 0.5) * unit
    makers: list[Any] = [
        lambda: coders.Lasso(lam, positive=bool(rng.random() < 0.3)),
        lambda: coders.Lasso(),
        lambda: coders.Lasso(mean_nonzeros=0.3 * min(k, m)),
        lambda: coders.OMP(int(rng.integers(1, k + 1))),
        lambda: coders.L0(lam * unit),
        lambda: coders.L1Ball(lam),
        lambda: coders.ErrorBound(lam * unit),
        lambda: coders.Ridge(lam / unit if unit else 1.0),
        lambda: coders.GroupLasso(lam, np.arange(k) // 2),
        lambda: coders.TreeLasso(lam, [-1, *((j - 1) // 2 for j in range(1, k))]),
        lambda: coders.Bridge(lam * unit**0.5),
    ]
    return makers[rng.integers(len(makers))]()


def constraint(rng: np.random.Generator) -> tuple[Any, dict[str, Any]]:
    """Return a constraint, and its numbers for the referee."""
    positive = bool(rng.random() < 0.4)
    gamma, jumps = data.log_uniform(rng, 1e-2, 3.0), data.log_uniform(rng, 1e-2, 3.0)
    kind = rng.integers(4)
    numbers: dict[str, Any] = {"positive": positive, "gamma1": 0.0, "gamma2": 0.0}
    if kind == 0:
        return constraints.L2Ball(positive=positive), numbers
    if kind == 1:
        return constraints.Simplex(), {**numbers, "positive": True, "simplex": True}
    if kind == 2:
        return constraints.ElasticNetBall(gamma, positive), {**numbers, "gamma1": gamma}
    both = {"gamma1": gamma, "gamma2": jumps}
    return constraints.FusedLassoBall(gamma, jumps, positive), {**numbers, **both}


def in_set(D: Array, numbers: dict[str, Any]) -> Array:
    """Return which atoms are in their set, by its definition."""
    slack = 1e-3 if D.dtype == np.float32 else 1e-6
    D = D.astype(np.float64)
    if numbers.get("simplex"):
        return (np.abs(D.sum(axis=1) - 1) <= slack) & (D >= 0).all(axis=1)
    left = (D * D).sum(axis=1) + numbers["gamma1"] * np.abs(D).sum(axis=1)
    left += numbers["gamma2"] * np.abs(np.diff(D, axis=1)).sum(axis=1)
    held = left <= 1 + slack
    return held & (D >= 0).all(axis=1) if numbers["positive"] else held


def samples(rng: np.random.Generator) -> Array:
    """Return samples of any size and dtype: sparse combinations of atoms with noise.

    Some are zero, constant or repeated, but not all zero, which is refused.
    """
    n, m = data.size(rng, 300), data.size(rng, 30)
    X = data.signals(rng, n, data.dictionary(rng, data.size(rng, 20), m)[1])
    if rng.random() < 0.2:
        X[:, rng.integers(m)] = 1.0
    if rng.random() < 0.2:
        X[n // 2 :] = X[0]
    dtype = np.float32 if rng.random() < 0.5 else np.float64
    X = np.ldexp(X, data.exponent(rng, X, dtype)).astype(dtype)
    X[np.abs(X).max(axis=1) < data.LEAST[dtype]] = 0.0  # refused if it comes alone
    if not X[0].any():
        X[0, 0] = 1.0
    return X


def train(rng: np.random.Generator, report: Report) -> None:
    """Learn a dictionary from random samples, with random settings."""
    X = samples(rng)
    n, _ = X.shape
    k = int(min(data.size(rng, 24), 24))
    unit = float(np.sqrt(np.mean(np.sum(X.astype(np.float64) ** 2, axis=1)))) or 1.0
    wanted, numbers = constraint(rng)
    batch = int(rng.integers(1, n + 8))
    learner = [
        Online(batch), Online(batch, memory="replace"), Online(batch, memory="two-epochs"),
        Batch(), SGD(batch), None,
    ][rng.integers(6)]  # fmt: skip
    steps = int(rng.integers(1, 6))
    options: dict[str, Any] = {"random_state": int(rng.integers(1000)), "max_steps": steps}
    if rng.random() < 0.2:
        options["sample_weight"] = rng.random(n) + 1e-3
    if rng.random() < 0.2:
        options["replacement"] = Replacement(correlation=0.9, every=2)
    problem = coder(rng, k, X.shape[1], unit)
    whole = getattr(learner, "memory", "") == "replace" or problem.undecided  # nothing missing
    if rng.random() < 0.2 and not whole:
        options["mask"] = data.mask(rng, *X.shape)
        options["mask"][0] = False
    source: Any = X
    if "mask" not in options and rng.random() < 0.15:
        source = sparse.csr_array(X)
    what = f"{problem!r:.60}, {wanted}, {learner}, {X.dtype} {X.shape}, {k} atoms"
    report.cases += 1
    try:
        result = learn(source, k, problem, wanted, learner, n_threads=1, **options)
    except ValueError as error:
        # Over similar atoms, or the few entries that a mask leaves of one, coefficients may exceed
        # the range, unless a penalty keeps them small.
        free = "mask" in options or isinstance(problem, UNPENALIZED)
        large = free and float(np.abs(X).max()) > LARGE[X.dtype.type]
        report.check(LARGE_CODES, large and "their squares overflow" in str(error), str(error))
        return
    report.check(ATOMS, np.isfinite(result.D).all(axis=1) & in_set(result.D, numbers), what)
    report.check(LIMITS, result.stopped == "steps" and result.state.step == steps, what)
    if rng.random() < 0.2:
        again = learn(source, k, problem, wanted, learner, n_threads=3, **options)
        report.check(BITS, np.array_equal(again.D, result.D), what)


def density(rng: np.random.Generator, report: Report) -> None:
    """Learn a dictionary of a wanted density with the default method."""
    n, m, k = int(rng.integers(5, 300)), int(rng.integers(20, 200)), int(rng.integers(1, 12))
    X = rng.standard_normal((n, m)) + rng.standard_normal((n, 3)) @ rng.standard_normal((3, m))
    wanted = data.log_uniform(rng, 0.02, 0.6)
    positive = bool(rng.random() < 0.3)
    kind = constraints.FusedLassoBall if rng.random() < 0.2 else constraints.ElasticNetBall
    extra: Any = {"gamma2": 0.05} if kind is constraints.FusedLassoBall else {}
    report.cases += 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = learn(
            X, k, coders.Lasso(0.3 * np.sqrt(m)), kind(density=wanted, positive=positive, **extra),
            random_state=0, n_threads=1,
        )  # fmt: skip
    said = any("density" in str(each.message) for each in caught)
    found = np.count_nonzero(result.D) / result.D.size
    near = abs(found - wanted) <= 0.1 * wanted + 2.0 / result.D.size
    what = f"{kind.__name__}, wanted {wanted:.3f}, found {found:.3f}, {X.shape}, {k} atoms"
    report.check(DENSITY, near or said, what)
    report.check(ATOMS, np.isfinite(result.D).all(axis=1), what)
