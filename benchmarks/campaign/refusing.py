"""What has to be refused at the door: broken sparse arrays, sizes beyond the range, wrong shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.campaign.report import Report
from smalto import coders, encode, learn, projections

STRUCTURE = "broken sparse arrays are refused"
SAME = "unsorted and repeated entries of sparse arrays are added up"
RANGE = "sizes beyond the range are refused"
WRONG = "wrong input is refused in plain words"
CODERS: Any = [
    lambda k: coders.Lasso(0.1), lambda k: coders.OMP(1), lambda k: coders.L0(0.1),
    lambda k: coders.Ridge(1.0), lambda k: coders.L1Ball(1.0), lambda k: coders.ErrorBound(0.5),
    lambda k: coders.GroupLasso(0.1, np.zeros(k, int)), lambda k: coders.JointOMP(1),
    lambda k: coders.JointLasso(0.1), lambda k: coders.TreeLasso(0.1, [-1] * k),
]  # fmt: skip


def refuse(rng: np.random.Generator, report: Report) -> None:
    """Give a coder, a learner or a projection something that it cannot take."""
    n, m, k = int(rng.integers(1, 12)), int(rng.integers(1, 12)), int(rng.integers(1, 12))
    dtype = np.float32 if rng.random() < 0.5 else np.float64
    X, D = rng.standard_normal((n, m)).astype(dtype), rng.standard_normal((k, m)).astype(dtype)
    coder = CODERS[rng.integers(len(CODERS))](k)
    for part in (_sparse, _range, _wrong):
        report.cases += 1
        part(rng, report, X, D, coder)


def _sparse(rng: np.random.Generator, report: Report, X: Any, D: Any, coder: Any) -> None:
    """Break the structure of a sparse array, or write the same array in another way."""
    S = sparse.csr_array(X)
    S.indices, S.indptr = S.indices.copy(), S.indptr.copy()
    place = int(rng.integers(len(S.indices)))
    kind = int(rng.integers(7))
    if kind == 0:
        S.indices[place] = int(rng.choice([X.shape[1], 10**6, 2**31 - 1]))
    elif kind == 1:
        S.indices[place] = -int(rng.integers(1, 10**6))
    elif kind == 2:
        S.indptr[-1] += int(rng.integers(1, 10**6))
    elif kind == 3:
        S.indptr[0] = int(rng.choice([-1, 1, 10**6]))
    elif kind == 4 and len(X) > 1:
        S.indptr[1] = S.indptr[-1] + int(rng.integers(1, 10**6))
    elif kind == 5:
        S.data = S.data[:-1]
    else:
        _same(rng, report, X, D, coder)
        return
    if kind == 4 and len(X) == 1:
        return
    what = f"{type(coder).__name__}, kind {kind}, {X.shape}"
    refused = (ValueError, TypeError, IndexError)
    report.refuses(STRUCTURE, lambda: encode(S, D, coder), refused, "", what)
    report.refuses(STRUCTURE, lambda: learn(S, 1, coders.Lasso(0.1)), refused, "", what)


def _same(rng: np.random.Generator, report: Report, X: Any, D: Any, coder: Any) -> None:
    """Code a sparse array whose entries are split and in any order."""
    rows, columns = np.nonzero(np.ones(X.shape))
    order = rng.permutation(2 * len(rows))
    values = np.concatenate([0.25 * X.reshape(-1), 0.75 * X.reshape(-1)])[order]
    rows, columns = np.tile(rows, 2)[order], np.tile(columns, 2)[order]
    by_row = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=len(X))
    S = sparse.csr_array(
        (values[by_row], columns[by_row], np.concatenate([[0], np.cumsum(counts)])), X.shape
    )
    whole = S.copy()
    whole.sum_duplicates()
    found, wanted = encode(S, D, coder).toarray(), encode(whole.toarray(), D, coder).toarray()
    slack = 1e-3 if X.dtype == np.float32 else 1e-6
    fits = [np.sum((X - A @ D) ** 2, axis=1) for A in (found, wanted)]
    same = np.abs(fits[0] - fits[1]) <= slack * np.sum(X**2, axis=1)
    report.check(SAME, same, f"{type(coder).__name__}, {X.shape}")


def _range(rng: np.random.Generator, report: Report, X: Any, D: Any, coder: Any) -> None:
    """Give signals or atoms whose squares overflow or vanish, or that a cast loses."""
    low, high = (24.0, 37.0) if X.dtype == np.float32 else (190.0, 300.0)
    power = rng.uniform(low, high) * (1 if rng.random() < 0.5 else -1)
    word = "more than" if power > 0 else "less than"
    wide_X, wide_D = X.astype(np.float64), D.astype(np.float64)
    kind = int(rng.integers(3))
    what = f"{type(coder).__name__}, 1e{power:.0f} in {X.dtype}, kind {kind}"
    with np.errstate(all="ignore"):
        if kind == 0:
            X = (wide_X * 10.0**power).astype(X.dtype)
        elif kind == 1:
            D = (wide_D * 10.0**power).astype(X.dtype)
        else:
            X, D = X.astype(np.float32), wide_D * (1e200 if power > 0 else 1e-200)  # a cast
    if not (X.any() and D.any() and np.isfinite(X).all() and np.isfinite(D).all()):
        return
    report.refuses(RANGE, lambda: encode(X, D, coder), ValueError, word, what)


def _wrong(rng: np.random.Generator, report: Report, X: Any, D: Any, coder: Any) -> None:
    """Give NaN, infinities, wrong shapes and wrong types."""
    bad = X.copy()
    bad[-1, -1] = rng.choice([np.nan, np.inf, -np.inf])
    calls: list[tuple[str, Any]] = [
        ("contains NaN|infinit|NaN", lambda: encode(bad, D, coder)),
        ("NaN|infinit|finite", lambda: encode(X, np.full_like(D, bad[-1, -1]), coder)),
        ("features|columns|shape|numbers", lambda: encode(np.hstack([X, X]), D, coder)),
        ("two-dimensional|2-d|shape|dim", lambda: encode(X[0], D, coder)),
        ("number|dtype|type", lambda: encode(X.astype(str), D, coder)),
        ("NaN|infinit|finite", lambda: projections.project_simplex(bad)),
        ("shape|weights", lambda: encode(X, D, coders.Lasso(0.1), penalty_weights=[1.0] * 99)),
        ("groups", lambda: encode(X, D, coders.JointOMP(1), groups=[0] * 99)),
        ("mask", lambda: encode(X, D, coders.Lasso(0.1), mask=np.zeros((99, 1), bool))),
        ("zero", lambda: learn(np.zeros_like(X), 1, coders.Lasso(0.1))),
        ("n_atoms", lambda: learn(X, 0, coders.Lasso(0.1))),
        ("NaN|infinit|finite", lambda: learn(bad, 1, coders.Lasso(0.1))),
    ]
    words, call = calls[rng.integers(len(calls))]
    what = f"{type(coder).__name__}: {words.split('|')[0]}, {X.shape}"
    report.refuses(WRONG, call, (ValueError, TypeError), words, what)
