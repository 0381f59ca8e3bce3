"""A user's own constraint, coder, callback or source that goes wrong."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.campaign.random_data import Array
from benchmarks.campaign.report import Report
from smalto import DictionaryLearning, encode, learn
from smalto.coders import Coder, Lasso
from smalto.coders.codes import Codes
from smalto.constraints import Constraint
from smalto.learners import Online
from smalto.sources import Source

NAMED = "a user's own part that goes wrong is named"
UNCHANGED = "a model is as it was before a failure"
VALUES = {"nan": np.nan, "infinity": np.inf, "minus infinity": -np.inf}
FAULTS = ("raises", "shape", "returns", *VALUES)


class Failed(ArithmeticError):
    """What the parts here raise."""


@dataclass(frozen=True)
class OwnConstraint(Constraint):
    """The ℓ2 ball, until it has projected so many atoms."""

    fault: str
    after: int
    counts: list[int]

    def project(self, atom: Array) -> Any:
        """Project, or do something wrong."""
        atom /= max(1.0, float(np.linalg.norm(atom)))
        self.counts.append(1)
        if len(self.counts) <= self.after:
            return None
        if self.fault == "raises":
            raise Failed
        if self.fault == "returns":
            return atom
        atom[0] = VALUES.get(self.fault, 1e6)
        return None

    def gauge(self, atom: Array) -> float:
        """Return the norm."""
        return float(np.linalg.norm(atom))


@dataclass(frozen=True)
class OwnCoder(Coder):
    """One coefficient for each signal, or something wrong."""

    fault: str

    def solver(self, G: Array) -> Any:
        """Return a function that codes a chunk."""

        def solve(chunk: Any) -> Any:
            n = len(chunk.Q)
            indices = np.zeros(n, np.int32)
            values = 0.1 * chunk.Q[:, 0]
            if self.fault == "raises":
                raise Failed
            if self.fault == "returns":
                return values
            if self.fault == "shape":
                indices = indices[:-1]
            values[0] = VALUES.get(self.fault, values[0])
            return Codes(np.arange(n + 1), indices, values)

        return solve

    def penalty(self, codes: Any, groups: Array | None = None) -> Array:
        """Return zeros."""
        return np.zeros(codes.shape[0])


class OwnSource(Source):
    """Rows of an array, or something wrong."""

    def __init__(self, X: Array, fault: str) -> None:
        self.X, self.fault, self.calls = X, fault, 0
        self.n_rows, self.n_features = X.shape
        self.dtype = X.dtype

    def rows(self, numbers: Any) -> Any:
        """Return rows."""
        rows = self.X[numbers].copy()
        self.calls += 1
        if self.calls < 3:
            return rows
        if self.fault == "raises":
            raise Failed
        if self.fault == "returns":
            return None
        if self.fault == "shape":
            return rows[:, :-1]
        rows[0, 0] = VALUES[self.fault]
        return rows


def own_callback(fault: str, place: int) -> Any:
    """Return a callback that does something wrong at the second step."""

    def own_callback(state: Any, record: Any) -> None:
        if record.step != 2:
            return
        if fault == "raises":
            raise Failed
        if fault == "returns":
            state.D[0] = 10.0
        elif fault == "shape":
            state.D = state.D[:, :-1]
        else:
            sums = state.stats[-1]
            array = (state.D, sums.A, sums.B, sums.code_sum, sums.sample_sum)[place]
            array.reshape(-1)[0] = VALUES[fault]

    return own_callback


def misbehave(rng: np.random.Generator, report: Report) -> None:
    """Give a part that goes wrong to `learn`, `encode` or an estimator."""
    X = rng.standard_normal((int(rng.integers(20, 60)), int(rng.integers(3, 9))))
    k, fault = int(rng.integers(2, 6)), str(rng.choice(FAULTS))
    coder, learner = Lasso(0.3), Online(5)
    after, own = int(rng.integers(k, 2 * k + 1)), own_callback(fault, int(rng.integers(5)))
    options: Any = {"random_state": 0, "n_threads": 1}
    calls: list[tuple[str, Any]] = [
        (
            "OwnConstraint",
            lambda: learn(X, k, coder, OwnConstraint(fault, after, []), learner, **options),
        ),
        ("OwnCoder", lambda: encode(X, X[:k], OwnCoder(fault))),
        ("OwnCoder", lambda: learn(X, k, OwnCoder(fault), learner=learner, **options)),
        ("OwnSource", lambda: learn(OwnSource(X, fault), k, coder, learner=learner, **options)),
        (
            "own_callback",
            lambda: learn(X, k, coder, learner=learner, callbacks=[own], **options),
        ),
    ]
    for name, call in calls:
        report.cases += 1
        try:
            call()
        except (Failed, ValueError, TypeError) as error:
            text = " ".join([str(error), *getattr(error, "__notes__", [])])
            report.check(NAMED, name in text, f"{name} {fault}: {text[:200]!r}")
        else:
            report.check(NAMED, False, f"{name} {fault}: accepted")
    _unchanged(X, k, fault, report)


def _unchanged(X: Array, k: int, fault: str, report: Report) -> None:
    """Check that `partial_fit` with a part that goes wrong leaves an estimator as it was."""
    report.cases += 1
    constraint = OwnConstraint(fault, 10**9, [])
    model = DictionaryLearning(
        k, coder=Lasso(0.3), constraint=constraint, random_state=0, n_threads=1
    )
    model.partial_fit(X)
    before = pickle.dumps((model.components_, model.state_.D, model.state_.step))
    object.__setattr__(constraint, "after", 0)
    object.__setattr__(model.state_.constraint, "after", 0)
    try:
        model.partial_fit(X)
    except (Failed, ValueError, TypeError):
        after = pickle.dumps((model.components_, model.state_.D, model.state_.step))
        report.check(UNCHANGED, before == after, fault)
    else:
        report.check(UNCHANGED, False, f"{fault}: accepted")
