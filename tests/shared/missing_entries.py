"""Signals with missing entries, and coding them without warnings."""

import warnings

import numpy as np
from problems import dictionary

from smalto import encode


def quiet(*args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return encode(*args, **kwargs)


def holes(X, share, seed=0):
    return np.random.default_rng(seed).random(X.shape) < share


def planted(n=5000, k=20, m=16, seed=0):
    rng = np.random.default_rng(seed)
    D = dictionary(rng, k, m)
    codes = np.zeros((n, k))
    for code in codes:
        code[rng.choice(k, 2, replace=False)] = rng.choice([-1, 1], 2) * rng.uniform(1, 2, 2)
    return codes @ D, D
