"""The model and the samples that the tests of DictionaryLearning share."""

import numpy as np

from smalto.coders import Lasso
from smalto.estimators import DictionaryLearning
from smalto.learners import Online

K, M = 12, 9
LASSO = Lasso(lam=0.3)
SMALL = Online(batch_size=50)


def planted():
    atoms = np.random.default_rng(100).standard_normal((K, M))
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


def samples(n=400, dtype=np.float64, seed=0):
    """Noisy combinations of three planted atoms."""
    rng = np.random.default_rng(seed)
    codes = np.zeros((n, K))
    for row in codes:
        row[rng.choice(K, 3, replace=False)] = rng.normal(0, 2, 3)
    return (codes @ planted() + 0.05 * rng.standard_normal((n, M))).astype(dtype)


def model(**settings):
    return DictionaryLearning(
        **{"n_components": K, "coder": LASSO, "learner": SMALL, "random_state": 0, **settings}
    )


def costs(X, D, codes, lam):
    """The objective, written out."""
    return 0.5 * np.sum((X - codes @ D) ** 2, axis=1) + lam * np.abs(codes).sum(axis=1)


def assert_same_state(a, b):
    np.testing.assert_array_equal(a.D, b.D)
    assert (a.coder, a.step, a.samples) == (b.coder, b.step, b.samples)
    np.testing.assert_equal(a.surrogate, b.surrogate)
    for one, other in zip(a.stats, b.stats, strict=True):
        np.testing.assert_array_equal(one.A, other.A)
        np.testing.assert_array_equal(one.B, other.B)
        assert (one.weight, one.scale) == (other.weight, other.scale)
