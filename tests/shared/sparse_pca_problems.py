"""The model and the samples that the tests of SparsePCA share."""

import numpy as np

from smalto import SparsePCA

BLOCKS = np.kron(np.eye(4), np.ones(5))  # four groups of five features


def blocks(n=600, seed=0, dtype=np.float64, offset=20.0, noise=0.2):
    """Each group of features moves with a hidden variable; far from the origin."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((n, 4)) * [3.0, 2.5, 2.0, 1.5]
    X = hidden @ BLOCKS + noise * rng.standard_normal((n, 20))
    return (X + offset * np.arange(20)).astype(dtype)


def model(k=4, **options):
    return SparsePCA(k, **{"density": 0.25, "max_epochs": 10, "random_state": 0, **options})
