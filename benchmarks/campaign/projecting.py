"""Projections onto convex sets, judged by the definition of the nearest point."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.campaign import random_data as data
from benchmarks.campaign.random_data import Array
from benchmarks.campaign.report import Report
from smalto import projections

INSIDE = "projections are in the set"
NEAREST = "projections are the nearest points"
SETS = ("l2", "l1", "simplex", "elastic net", "fused")
SLACK = {np.float32: 2e-5, np.float64: 1e-10}


def project(rng: np.random.Generator, report: Report) -> None:
    """Project random points, and compare them with points of the set that are near."""
    kind = str(rng.choice(SETS))
    dtype = np.float32 if rng.random() < 0.5 else np.float64
    m = data.size(rng, 3000 if rng.random() < 0.02 else 60)
    n = int(rng.integers(1, 40))
    V = _points(rng, n, m).astype(dtype)
    positive = kind == "simplex" or bool(rng.random() < 0.4)
    numbers = _numbers(rng, kind)
    U = _call(kind, V, numbers, positive, rng)
    report.cases += n
    what = f"{kind} {numbers} in {np.dtype(dtype)}, {n} x {m}, {positive=}"
    u, v = U.astype(np.float64), V.astype(np.float64)
    slack, bound = SLACK[dtype], numbers["bound"]
    shape = U.shape == V.shape and U.dtype == dtype and bool(np.isfinite(u).all())
    left = _left(kind, u, numbers)
    inside = left <= bound * (1 + slack) + _rounding(U, numbers) + 1e-300
    if kind == "simplex":
        inside &= left >= bound * (1 - slack)
    if positive:
        inside &= (u >= 0).all(axis=1)
    report.check(INSIDE, inside & shape, what, left / (bound or 1.0))
    # u is nearest if and only if (v - u) . (z - u) <= 0 for all z of the set
    Z = _rivals(rng, kind, u, v, numbers, positive)
    away = v - u
    off = np.einsum("ij,zij->zi", away, Z - u[None]).max(axis=0)
    reach = np.linalg.norm(Z, axis=2).max(axis=0)
    size = np.linalg.norm(u, axis=1)
    unit = (np.linalg.norm(v, axis=1) + size) * np.maximum(size, reach)
    report.check(NEAREST, off <= slack * 10 * unit + 1e-300, what, off / np.where(unit, unit, 1.0))


def _points(rng: np.random.Generator, n: int, m: int) -> Array:
    """Return points far outside, near the boundary and inside; with steps, ties and zeros."""
    V = rng.standard_normal((n, m))
    kind = rng.integers(5)
    if kind == 1:
        V = np.repeat(rng.standard_normal((n, -(-m // 4))), 4, axis=1)[:, :m]
    elif kind == 2:
        V = rng.integers(-2, 3, (n, m)).astype(float)
    elif kind == 3:
        V *= rng.random((n, m)) < 0.3
    elif kind == 4:
        return data.on_a_grid(rng, (n, m)) * 2.0 ** rng.integers(-20, 21, (n, 1))
    return V * 10.0 ** rng.uniform(-6, 6, (n, 1))


def _numbers(rng: np.random.Generator, kind: str) -> dict[str, float]:
    bound = data.log_uniform(rng, 1e-6, 1e6) if rng.random() < 0.5 else 1.0
    found = {"bound": bound, "square": 1.0, "gamma1": 0.0, "gamma2": 0.0}
    if kind in ("l1", "simplex"):
        found |= {"square": 0.0, "gamma1": 1.0}
    if kind in ("elastic net", "fused"):
        found["gamma1"] = data.log_uniform(rng, 1e-4, 1e2) if rng.random() < 0.9 else 0.0
    if kind == "fused":
        found["gamma2"] = data.log_uniform(rng, 1e-4, 1e2) if rng.random() < 0.9 else 0.0
    return found


def _call(kind: str, V: Array, p: dict[str, float], positive: bool, rng: Any) -> Array:
    """Return the library's projection."""
    bound, threads = p["bound"], {"n_threads": int(rng.integers(1, 3))}
    if kind == "l2":
        return projections.project_l2_ball(V, np.sqrt(bound), positive=positive, **threads)
    if kind == "l1":
        return projections.project_l1_ball(V, bound, positive=positive, **threads)
    if kind == "simplex":
        return projections.project_simplex(V, bound, **threads)
    if kind == "elastic net":
        return projections.project_elastic_net_ball(
            V, p["gamma1"], bound=bound, positive=positive, **threads
        )
    method: Any = str(rng.choice(["auto", "direct", "merge", "homotopy"]))
    return projections.project_fused_lasso_ball(
        V, p["gamma1"], p["gamma2"], bound=bound, positive=positive, method=method, **threads
    )


def _left(kind: str, U: Array, p: dict[str, float]) -> Array:
    """Return the left side of the inequality that defines a set."""
    sizes = p["gamma1"] * (U if kind == "simplex" else np.abs(U)).sum(axis=-1)
    jumps = p["gamma2"] * np.abs(np.diff(U, axis=-1)).sum(axis=-1)
    return p["square"] * (U * U).sum(axis=-1) + sizes + jumps


def _rounding(U: Array, p: dict[str, float]) -> Array:
    """Return by how much rounding the exact point to its type may lengthen its jumps."""
    sizes = np.where(np.diff(U) != 0, np.abs(U[:, 1:]) + np.abs(U[:, :-1]), 0.0)
    return p["gamma2"] * 0.5 * float(np.finfo(U.dtype).eps) * sizes.sum(axis=1, dtype=np.float64)


def _rivals(
    rng: np.random.Generator, kind: str, u: Array, v: Array, p: dict[str, float], positive: bool
) -> Array:
    """Return points of the set: near u, toward v, single coordinates, steps and zero."""
    n, m = u.shape
    size = np.abs(u).max(axis=1, keepdims=True) + 1e-300
    places = np.abs(v).argmax(axis=1)
    single = np.zeros_like(u)
    single[np.arange(n), places] = 1.0 if positive else np.sign(v[np.arange(n), places])
    steps = np.cumsum(rng.standard_normal((4, n, m)) * (rng.random((4, n, m)) < 0.2), axis=2)
    Z = np.concatenate(
        [
            u + size * 10.0 ** rng.uniform(-6, 0, (6, 1, 1)) * rng.standard_normal((6, n, m)),
            u + size * 10.0 ** rng.uniform(-6, 0, (4, 1, 1)) * steps,
            u * (1 + 10.0 ** rng.uniform(-4, -1, (4, 1, 1)) * rng.standard_normal((4, n, m))),
            u[None] + 1e-3 * (v - u)[None],
            single[None],
            rng.standard_normal((2, n, m)),
            np.sign(u)[None] + (kind == "simplex"),
        ]
    )
    Z = np.maximum(Z, 0.0) if positive else Z
    if kind == "simplex":
        sums = Z.sum(axis=2, keepdims=True)
        return np.where(sums > 0, p["bound"] * Z / np.where(sums > 0, sums, 1.0), u[None])
    # scaled onto the boundary, where that makes them smaller: square t^2 + linear t = bound
    square = p["square"] * (Z * Z).sum(axis=2, keepdims=True)
    linear = _left(kind, Z, p)[..., None] - square
    factor = 2 * p["bound"] / (linear + np.sqrt(linear**2 + 4 * square * p["bound"]) + 1e-300)
    return Z * np.minimum(1.0, factor * (1 - 1e-12))
