"""Estimators on small and hard data: finite results, sets kept, defaults that are safe."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.campaign import random_data as data
from benchmarks.campaign.learning import in_set, samples
from benchmarks.campaign.random_data import Array
from benchmarks.campaign.report import Report
from smalto import NMF, DictionaryLearning, SparseCCA, SparsePCA

FITTED = "estimators: finite components in their set"
CODES = "estimators: codes finite, and no worse than none"
RATINGS = "NMF of ratings by default: no worse than their mean"
STREAM = "partial_fit of single samples: finite, in the set"
BALL = {"positive": False, "gamma1": 0.0, "gamma2": 0.0}


def fit(rng: np.random.Generator, report: Report) -> None:
    """Fit a random estimator with its defaults."""
    report.cases += 1
    [_learn, _nmf, _ratings, _pca, _cca, _stream][rng.integers(6)](rng, report)


def _codes(X: Array, A: Any, D: Array, what: str, report: Report) -> None:
    """Check that codes are finite and fit at least as well as zero codes."""
    A, X, D = (np.asarray(each, np.float64) for each in (A, X, D))
    left, none = np.sum((X - A @ D) ** 2, axis=1), np.sum(X**2, axis=1)
    report.check(CODES, np.isfinite(A).all(axis=1) & (left <= none * (1 + 1e-5)), what)


def _learn(rng: np.random.Generator, report: Report) -> None:
    X, k = samples(rng), data.size(rng, 30)
    model = DictionaryLearning(k, random_state=0, n_threads=1).fit(X)
    what = f"DictionaryLearning({k}), {X.dtype} {X.shape}"
    D = model.components_
    report.check(FITTED, np.isfinite(D).all(axis=1) & in_set(D, BALL), what)
    _codes(X, model.transform(X), D, what, report)


def _nmf(rng: np.random.Generator, report: Report) -> None:
    X, k = np.abs(samples(rng)), data.size(rng, 12)
    source: Any = sparse.csr_array(X) if rng.random() < 0.3 else X
    init = str(rng.choice(["samples", "random", "nndsvd", "nndsvda"]))
    if init.startswith("nndsvd") and k > min(X.shape):
        init = "samples"
    lam = 0.0 if rng.random() < 0.5 else 0.1 * float(X.max(initial=0.0))
    long: Any = {"tol": 0.0, "max_epochs": 1000} if rng.random() < 0.2 else {}
    model = NMF(k, lam=lam, init=init, random_state=0, n_threads=1, **long)
    A = model.fit_transform(source)
    what = f"NMF({k}, {lam=:.3g}, {init=}, {long}), {X.dtype} {X.shape}"
    D = model.components_
    report.check(FITTED, np.isfinite(D).all(axis=1) & (D >= 0).all(axis=1), what)
    report.check(CODES, (np.asarray(A) >= 0).all(axis=1), what)
    _codes(X, A, D, what, report)


def _ratings(rng: np.random.Generator, report: Report) -> None:
    """Impute ratings from 1 to 5, of which few are known, without any setting."""
    n, m = int(rng.integers(150, 400)), int(rng.integers(100, 250))
    taste = rng.standard_normal((n, 3)) @ rng.standard_normal((3, m))
    bias = rng.standard_normal((n, 1)) + rng.standard_normal(m)
    full = np.clip(
        np.round(3.5 + 0.5 * taste + 0.5 * bias + 0.3 * rng.standard_normal((n, m))), 1, 5
    )
    known = rng.random((n, m)) < rng.uniform(0.08, 0.3)
    X = np.where(known, full, np.nan)
    k = int(rng.integers(1, 8))
    model = NMF(k, missing="nan", random_state=0, n_threads=1)
    guess = model.fit_transform(X) @ model.components_
    held_out = ~known
    error = float(np.sqrt(np.mean((guess - full)[held_out] ** 2)))
    mean = float(np.sqrt(np.mean((np.nanmean(X) - full)[held_out] ** 2)))
    what = f"NMF({k}), {X.shape}, {known.mean():.0%} known: {error:.3f}, the mean {mean:.3f}"
    report.check(RATINGS, error <= 1.02 * mean, what)


def _pca(rng: np.random.Generator, report: Report) -> None:
    X, k = samples(rng), data.size(rng, 8)
    if (X[0] == X).all():  # refused: nothing is left after centering
        return
    options: Any = {"density": 0.3} if rng.random() < 0.5 else {"gamma": 0.5}
    model = SparsePCA(k, random_state=0, n_threads=1, **options).fit(X)
    what = f"SparsePCA({k}, {options}), {X.dtype} {X.shape}"
    D = model.components_
    report.check(FITTED, np.isfinite(D).all(axis=1) & in_set(D, BALL), what)
    report.check(CODES, np.isfinite(model.transform(X)).all(axis=1), what)


def _cca(rng: np.random.Generator, report: Report) -> None:
    n, p, q = int(rng.integers(3, 80)), int(rng.integers(1, 40)), int(rng.integers(1, 40))
    shared = rng.standard_normal((n, 1))
    X = rng.standard_normal((n, p)) + shared * (rng.random(p) < 0.3)
    Y = rng.standard_normal((n, q)) + shared * (rng.random(q) < 0.3)
    model = SparseCCA(int(rng.integers(1, min(p, q, 3) + 1))).fit(X, Y)
    what = f"SparseCCA, {X.shape} and {Y.shape}"
    for scores in model.transform(X, Y):
        report.check(FITTED, np.isfinite(scores).all(), what)


def _stream(rng: np.random.Generator, report: Report) -> None:
    X, k = samples(rng)[:40], data.size(rng, 10)
    if rng.random() < 0.5:
        X[: len(X) // 2] = X[0]  # the first atoms are dead
    model = DictionaryLearning(k, random_state=0, n_threads=1)
    for row in X:
        model.partial_fit(row[None])
    D = model.components_
    what = f"DictionaryLearning({k}).partial_fit, {X.dtype} {X.shape}"
    report.check(STREAM, np.isfinite(D).all(axis=1) & in_set(D, BALL), what)
