"""Sparse coding problems that the tests share, ordinary and degenerate."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

DTYPES = [np.float32, np.float64]


def examples(count):
    """How many examples Hypothesis tries; where it explores (`conftest.py`), 50 times as many."""
    explores = settings.get_current_profile_name() == "explore"
    return settings(max_examples=count * (50 if explores else 1))


def dictionary(rng, k, m, correlated=0.0):
    """Unit atoms; ``correlated`` pulls all of them towards one direction."""
    D = rng.standard_normal((k, m)) + correlated * rng.standard_normal(m)
    return D / np.linalg.norm(D, axis=1, keepdims=True)


def ordinary(seed=0, n=20, k=24, m=16, correlated=0.0):
    rng = np.random.default_rng(seed)
    D = dictionary(rng, k, m, correlated)
    X = rng.standard_normal((n, m))
    return X / np.linalg.norm(X, axis=1, keepdims=True), D


def _degenerate():
    rng = np.random.default_rng(7)
    X, D = ordinary()
    duplicates = np.vstack([D[:8], D[:8], -D[:4]])
    near = np.vstack([D[:8], D[:8] + 1e-3 * rng.standard_normal((8, 16))])
    zeros = np.vstack([D[:5], np.zeros((3, 16)), D[5:9]])
    low_rank = rng.standard_normal((20, 3)) @ rng.standard_normal((3, 16))
    return {
        "ordinary": (X, D),
        "correlated": ordinary(1, correlated=3.0),
        "k > m": ordinary(2, k=60, m=8),
        "k < m": ordinary(3, k=5, m=30),
        "m = 1": ordinary(4, k=4, m=1),
        "k = 1": ordinary(5, k=1, m=6),
        "n = 1": ordinary(6, n=1),
        "n < k": ordinary(6, n=3, k=40),
        "duplicate atoms": (X, duplicates),
        "nearly duplicate atoms": (X, near),
        "zero atoms": (X, zeros),
        "only zero atoms": (X, np.zeros((4, 16))),
        "zero signals": (np.zeros((3, 16)), D),
        "signals equal to atoms": (D[:6].copy(), D),
        "low rank": (X, low_rank / np.linalg.norm(low_rank, axis=1, keepdims=True)),
        "large": (1e4 * X, D),
        "small": (1e-4 * X, D),
        "atoms of any norm": (X, D * np.geomspace(0.01, 100, len(D))[:, None]),
    }


DEGENERATE = _degenerate()


@st.composite
def problems(draw):
    """A small problem with whatever structure Hypothesis likes: ties, zeros, repeats."""
    k, m, n = draw(st.integers(1, 8)), draw(st.integers(1, 6)), draw(st.integers(1, 4))
    entry = st.sampled_from([0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 0.1, -0.3])
    D = np.array(draw(st.lists(entry, min_size=k * m, max_size=k * m))).reshape(k, m)
    X = np.array(draw(st.lists(entry, min_size=n * m, max_size=n * m))).reshape(n, m)
    lam = draw(st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0, 3.0]))
    ridge = draw(st.sampled_from([0.0, 0.0, 0.1, 1.0]))
    return X, D, lam, ridge, draw(st.booleans())
