"""Samples, learners and states that the tests of learning share."""

import functools

import naive
import numpy as np
from problems import dictionary

from smalto import encode, learn
from smalto.coders import Lasso
from smalto.learners import SGD, Batch, Online
from smalto.learning.batches.dataset import DatasetBatches
from smalto.sources import as_source

LEARNERS = {
    "two-epochs": Online(32),
    "growing": Online(64, first_batch_size=16),
    "all": Online(32, memory="all", rho=0.0),
    "replace": Online(32, memory="replace"),
    "batch": Batch(),
    "sgd": SGD(a=60.0, b=2000.0, batch_size=32),
}


def planted(seed=0, n=3000, k=20, m=12, nonzeros=3, noise=0.0):
    """Samples that are sparse combinations of planted atoms."""
    rng = np.random.default_rng(seed)
    D = dictionary(rng, k, m)
    codes = np.zeros((n, k))
    for row in codes:
        chosen = rng.permutation(k)[:nonzeros]
        row[chosen] = rng.choice([-1, 1], nonzeros) * (0.5 + rng.random(nonzeros))
    return codes @ D + noise * rng.standard_normal((n, m)), D


def mean_cost(X, D, lam):
    """The mean cost of samples, by codes and costs written out."""
    return naive.lasso_cost(X, D, encode(X, D, Lasso(lam)).toarray(), lam).mean()


def batches(X):
    return DatasetBatches(as_source(X))


X0 = planted(n=60)[0]


@functools.cache
def small_state():
    """The state after one step with ``X0``."""
    return learn(X0, 8, Lasso(0.1), learner=Online(20), max_steps=1, random_state=0).state
