"""Random dictionaries and signals: ordinary, coherent and degenerate."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray
NASTY = ("bumps", "near-duplicates", "one direction", "low rank", "sizes")  # ill-conditioned


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Return a number whose logarithm is uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def size(rng: np.random.Generator, high: int) -> int:
    """Return an integer from 1 to ``high``, small ones as likely as large ones."""
    return int(min(high, log_uniform(rng, 1.0, high + 1.0)))


def _bumps(rng: np.random.Generator, k: int, m: int) -> Array:
    t = np.linspace(0, 1, m)
    return np.exp(-0.5 * ((t - rng.random((k, 1))) / log_uniform(rng, 0.01, 1.0)) ** 2)


def _near(rng: np.random.Generator, k: int, m: int) -> Array:
    some = rng.standard_normal((-(-k // 2), m))
    noise = log_uniform(rng, 1e-9, 1e-1) * rng.standard_normal((k, m))
    return np.repeat(some, 2, axis=0)[:k] + noise


def _duplicates(rng: np.random.Generator, k: int, m: int) -> Array:
    some = rng.standard_normal((max(1, k // 3), m))
    return some[rng.integers(len(some), size=k)] * rng.choice([1.0, 1.0, -1.0, 0.5], (k, 1))


def _zeros(rng: np.random.Generator, k: int, m: int) -> Array:
    return rng.standard_normal((k, m)) * (rng.random((k, 1)) < rng.random())


def _sizes(rng: np.random.Generator, k: int, m: int) -> Array:
    return rng.standard_normal((k, m)) * 10.0 ** rng.uniform(-4, 4, (k, 1))


def _low_rank(rng: np.random.Generator, k: int, m: int) -> Array:
    rank = int(rng.integers(1, max(2, min(k, m))))
    return rng.standard_normal((k, rank)) @ rng.standard_normal((rank, m))


def on_a_grid(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return numbers with few digits, as counts and pixels are: sums and ties of them are exact."""
    kind = rng.integers(3)
    if kind == 0:
        return rng.poisson(log_uniform(rng, 0.1, 100.0), shape).astype(float)
    if kind == 1:
        return rng.integers(0, 256, shape) / 256.0
    return rng.integers(-8, 9, shape) / 8.0


def _one_direction(rng: np.random.Generator, k: int, m: int) -> Array:
    noise = log_uniform(rng, 1e-8, 1.0)
    return np.abs(rng.standard_normal((1, m)) + noise * rng.standard_normal((k, m)))


DICTIONARIES: dict[str, Any] = {
    "ordinary": lambda rng, k, m: rng.standard_normal((k, m)),
    "bumps": _bumps,
    "near-duplicates": _near,
    "duplicates": _duplicates,
    "zero atoms": _zeros,
    "sizes": _sizes,
    "low rank": _low_rank,
    "one direction": _one_direction,
    "integers": lambda rng, k, m: rng.integers(-1, 2, (k, m)).astype(float),
    "grid": lambda rng, k, m: on_a_grid(rng, (k, m)),
    "orthogonal": lambda rng, k, m: np.linalg.qr(rng.standard_normal((max(k, m),) * 2))[0][:k, :m],
    "non-negative": lambda rng, k, m: np.abs(rng.standard_normal((k, m))),
}


def dictionary(rng: np.random.Generator, k: int, m: int) -> tuple[str, Array]:
    """Return the kind and the atoms of a random dictionary; half of them have unit norm."""
    weights = np.array([4.0 if kind == "ordinary" else 1.0 for kind in DICTIONARIES])
    kind = str(rng.choice(list(DICTIONARIES), p=weights / weights.sum()))
    D = DICTIONARIES[kind](rng, k, m)
    D = D / (np.abs(D).max() or 1.0) if np.abs(D).max() < 1e-3 else D
    if kind != "sizes" and rng.random() < 0.5:
        norms = np.linalg.norm(D, axis=1, keepdims=True)
        D = D / np.where(norms > 0, norms, 1.0)
    return kind, D


def signals(rng: np.random.Generator, n: int, D: Array) -> Array:
    """Return random signals: noise, combinations of atoms, atoms, zeros, few digits, any norms."""
    k, m = D.shape
    X = rng.standard_normal((n, m))
    kind = rng.integers(8)
    if kind in (1, 2, 7):
        digits = on_a_grid(rng, (n, k)) if kind == 7 else rng.standard_normal((n, k))
        X = (digits * (rng.random((n, k)) < min(1.0, 4.0 / k))) @ D + (
            0.1 * X if kind == 1 else 0.0
        )
    elif kind == 3:
        X[: n // 2] = D[rng.integers(k, size=n // 2)]
        X[-1] = 0.0
    elif kind == 4:
        X = rng.integers(-2, 3, (n, m)).astype(float)
    elif kind == 6:
        X = on_a_grid(rng, (n, m))
    if kind == 5 or rng.random() < 0.2:
        X = X * 10.0 ** rng.uniform(-3, 3, (n, 1))
    return X


def mask(rng: np.random.Generator, n: int, m: int) -> Array:
    """Return where entries are missing; a row may have all of them or none."""
    return rng.random((n, m)) < rng.choice([0.02, 0.3, 0.8, 1.0], (n, 1), p=[0.3, 0.4, 0.25, 0.05])


# Sizes that are promised to work.
LEAST = {np.float32: 1e-18, np.float64: 1e-150}


def exponent(rng: np.random.Generator, values: Array, dtype: Any) -> int:
    """Return the exponent of a power of two that takes values anywhere in the promised range.

    The range is 1e±150 in float64 and 1e±18 in float32.
    """
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        return 0
    reach = 17.0 if np.dtype(dtype) == np.float32 else 149.0
    if rng.random() < 0.5 and abs(np.log10(largest)) <= reach:
        return 0
    wanted = rng.uniform(-reach, reach)
    return int(np.floor((wanted - np.log10(largest)) * np.log2(10.0)))
