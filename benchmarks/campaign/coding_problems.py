"""Random sparse coding problems: what the library is given, and the same at ordinary size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.campaign import random_data as data
from benchmarks.campaign.random_data import Array
from smalto import coders

KINDS = (
    "lasso", "lasso", "lasso", "l1 ball", "error bound", "ridge", "groups", "tree", "joint lasso",
    "omp", "l0", "joint omp", "bridge",
)  # fmt: skip
SMALLEST_ATOM = {np.float32: 1e-18, np.float64: 1e-90}  # codes of smaller ones may overflow


@dataclass
class CodingProblem:
    """A sparse coding problem at ordinary size, in float64, and its powers of two."""

    kind: str
    X: Array  # (n, m)
    D: Array  # (k, m)
    dtype: Any
    about: str  # the kind of dictionary
    numbers: dict[str, Any] = field(default_factory=dict)  # lam, eps, ... at ordinary size
    positive: bool = False
    missing: Array | None = None
    weights: Array | None = None  # (n or 1, k)
    of_coder: bool = False  # whether the coder has the weights, not the call
    labels: Array | None = None  # groups of signals
    signal: int = 0  # exponents of the powers of two
    atom: int = 0
    weight: int = 0

    def coder(self) -> Any:
        """Return the library's coder, for the scaled problem."""
        s, t, p = self.signal, self.atom, self.numbers
        on = {"positive": self.positive}

        def scaled(name: str, power: int) -> float:
            return float(np.ldexp(p.get(name, 0.0), power))

        if self.kind == "lasso":
            lam = scaled("lam", s + t - self.weight)
            own = self._given_weights() if self.of_coder else None
            return coders.Lasso(lam, ridge=scaled("ridge", 2 * t), penalty_weights=own, **on)
        if self.kind == "l1 ball":
            return coders.L1Ball(scaled("radius", s - t + self.weight), **on)
        if self.kind == "error bound":
            return coders.ErrorBound(scaled("eps", 2 * s), **on)
        if self.kind == "ridge":
            return coders.Ridge(scaled("lam", 2 * t))
        if self.kind in ("groups", "tree"):
            lam, l1, ridge = scaled("lam", s + t), scaled("l1", s + t), scaled("ridge", 2 * t)
            extra: Any = {"l1": l1, "ridge": ridge, "group_weights": p["group_weights"], **on}
            if self.kind == "groups":
                return coders.GroupLasso(lam, p["of_atoms"], **extra)
            return coders.TreeLasso(lam, p["parents"], **extra)
        if self.kind == "joint lasso":
            return coders.JointLasso(scaled("lam", s + t))
        if self.kind == "l0":
            return coders.L0(scaled("lam", 2 * s), **on)
        if self.kind == "bridge":
            lam = p["lam"] * 2.0 ** ((2.0 - p["p"]) * s + p["p"] * t)
            return coders.Bridge(lam, p["p"], scaled("delta", s - t), **on)
        limits = {}
        if "max_nonzeros" in p:
            limits["max_nonzeros"] = p["max_nonzeros"]
        if "eps" in p:
            limits["eps"] = scaled("eps", 2 * s)
        if self.kind == "joint omp":
            return coders.JointOMP(look_ahead=p["look_ahead"], **limits)
        return coders.OMP(look_ahead=p["look_ahead"], **limits, **on)

    def arguments(self) -> tuple[Array, Array, dict[str, Any]]:
        """Return X, D and options of `encode`, for the scaled problem."""
        X = np.ldexp(self.X, self.signal).astype(self.dtype)
        D = np.ldexp(self.D, self.atom).astype(self.dtype)
        options: dict[str, Any] = {}
        if self.missing is not None:
            options["mask"] = self.missing
        if self.weights is not None and not self.of_coder:
            options["penalty_weights"] = self._given_weights()
        if self.labels is not None:
            options["groups"] = self.labels
        return X, D, options

    def _given_weights(self) -> Array:
        assert self.weights is not None
        weights = np.ldexp(self.weights, self.weight)
        return weights[0] if len(weights) == 1 else weights

    def ordinary(self, codes: Array) -> Array:
        """Return codes of the scaled problem at ordinary size, in float64."""
        return np.ldexp(codes.astype(np.float64), self.atom - self.signal)

    @property
    def known(self) -> Array:
        """The signals, with zeros at missing entries."""
        return self.X if self.missing is None else np.where(self.missing, 0.0, self.X)


def make(rng: np.random.Generator) -> CodingProblem:
    """Return a random problem."""
    dtype = np.float32 if rng.random() < 0.5 else np.float64
    kind = str(rng.choice(KINDS))
    thousands = rng.random() < 0.003
    k, m = data.size(rng, 2000 if thousands else 64), data.size(rng, 1000 if thousands else 64)
    about, D = data.dictionary(rng, k, m)
    rows = 20 if about in data.NASTY or thousands else 600
    n = data.size(rng, rows) if rng.random() < 0.3 else int(rng.integers(rows // 3, rows + 1))
    X = data.signals(rng, n, D)
    X, D = X.astype(dtype).astype(np.float64), D.astype(dtype).astype(np.float64)
    D[np.linalg.norm(D, axis=1) < SMALLEST_ATOM[dtype]] = 0.0
    X[np.abs(X).max(axis=1) < data.LEAST[dtype]] = 0.0  # smaller than what is promised
    problem = CodingProblem(kind, X, D, dtype, about)
    if kind in ("lasso", "l1 ball", "error bound", "groups", "tree", "omp", "l0", "bridge"):
        problem.positive = bool(rng.random() < 0.3)
    if "joint" in kind:
        problem.labels = rng.integers(0, max(1, n // int(rng.integers(1, 12))), n)
    if rng.random() < 0.2:
        problem.missing = data.mask(rng, n, m)
    if kind in ("lasso", "l1 ball", "error bound") and rng.random() < 0.25:
        rows = n if rng.random() < 0.5 else 1
        problem.weights = 10.0 ** rng.uniform(-2, 2, (rows, k))
        problem.of_coder = kind == "lasso" and rows == 1 and bool(rng.random() < 0.5)
        if rng.random() < 0.3:  # an atom that hardly has a penalty
            problem.weights[:, int(rng.integers(k))] *= 10.0 ** rng.uniform(-8, -2)
        if rng.random() < 0.3:
            problem.weights[:, rng.random(k) < 0.3] = np.inf
        if not problem.positive and rng.random() < 0.4:  # atoms without a penalty
            problem.weights[rng.random(problem.weights.shape) < data.log_uniform(rng, 0.01, 1)] = (
                0.0
            )
        problem.weight = int(rng.integers(-300, 300)) if rng.random() < 0.3 else 0
    top = float(np.abs(problem.known).max(initial=0.0))
    problem.X = np.clip(problem.X, -top, top)  # what is missing has no part in the scale
    known = np.abs(problem.known).max(axis=1)
    problem.X[known < 1e-6 * np.abs(X).max()] = 0.0  # codes that a scale may make vanish
    _scale(rng, problem)
    problem.numbers = _numbers(rng, problem)
    return problem


def _scale(rng: np.random.Generator, problem: CodingProblem) -> None:
    """Choose powers of two; the codes stay within the range of their type."""
    problem.signal = data.exponent(rng, problem.X, problem.dtype)
    problem.atom = data.exponent(rng, problem.D, problem.dtype)
    reach = 60 if problem.dtype == np.float32 else 700
    if abs(problem.signal - problem.atom) > reach:
        problem.atom = 0
    if abs(problem.signal) > reach:
        problem.signal = int(np.sign(problem.signal)) * reach
    s, t, w = problem.signal, problem.atom, problem.weight
    if max(abs(s + t - w), abs(s - t + w)) > 950:  # lam and the radius are float64
        problem.weight = 0


def _numbers(rng: np.random.Generator, problem: CodingProblem) -> dict[str, Any]:
    """Choose lam, eps, ... at ordinary size, from tiny to so large that codes are zero."""
    X, D, kind = problem.known, problem.D, problem.kind
    k = len(D)
    largest = float(np.abs(X @ D.T).max(initial=0.0)) or 1.0
    lam = data.log_uniform(rng, 1e-8, 1.5) * largest
    norms = np.einsum("ij,ij->i", X, X)
    square = float(norms.max(initial=0.0)) or 1.0
    eps = data.log_uniform(rng, 1e-6, 1.5) * square
    atom = float(np.einsum("ij,ij->i", D, D).max(initial=0.0)) or 1.0
    ridge = data.log_uniform(rng, 1e-8, 1.0) * atom if rng.random() < 0.2 else 0.0
    if kind == "lasso":
        return {"lam": lam, "ridge": ridge}
    if kind == "l1 ball":
        return {"radius": data.log_uniform(rng, 1e-3, 10.0) * np.sqrt(square / atom)}
    if kind == "error bound":
        return {"eps": eps}
    if kind == "ridge":
        return {"lam": data.log_uniform(rng, 1e-8, 10.0) * atom}
    if kind in ("groups", "tree"):
        l1 = float(lam * rng.random()) if rng.random() < 0.4 else 0.0
        found: dict[str, Any] = {"lam": lam, "l1": l1, "ridge": ridge, "group_weights": None}
        if kind == "groups":
            labels = rng.integers(0, max(1, k // int(rng.integers(1, 6))), k)
            found["of_atoms"] = np.unique(labels, return_inverse=True)[1]
            count = int(found["of_atoms"].max()) + 1
        else:
            found["parents"] = [int(rng.integers(-1, max(1, j))) if j else -1 for j in range(k)]
            count = k
        if rng.random() < 0.3:
            found["group_weights"] = rng.uniform(0.1, 3.0, count)
        return found
    if kind == "joint lasso":
        return {"lam": lam}
    if kind == "l0":
        return {"lam": data.log_uniform(rng, 1e-8, 1.0) * square}
    if kind == "bridge":
        p = float(rng.uniform(0.2, 0.9))
        unit = np.sqrt(square / atom)
        delta = data.log_uniform(rng, 1e-4, 1.0) * unit
        return {"lam": lam * unit ** (1.0 - p), "p": p, "delta": delta}
    found = {"look_ahead": bool(rng.random() < 0.7)}
    if rng.random() < 0.6:
        found["max_nonzeros"] = int(rng.integers(1, min(k, D.shape[1], 12) + 1))
    if len(found) == 1 or rng.random() < 0.3:
        found["eps"] = eps
    return found
