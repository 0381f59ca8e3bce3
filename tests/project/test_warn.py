"""That warnings point at the user's own line."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from smalto import NMF, SparsePCA, encode, learn
from smalto.coders import Lasso
from smalto.constraints import ElasticNetBall

X = np.random.default_rng(0).standard_normal((200, 12))
CALLS = {
    "encode": lambda: encode(X, np.eye(12), Lasso(1e6)),
    "learn": lambda: learn(X, 3, Lasso(1e6), max_steps=3, random_state=0),
    "sparse PCA": lambda: SparsePCA(3, density=0.01, random_state=0).fit(X),
    "fit_transform": lambda: NMF(
        3, constraint=ElasticNetBall(0.1, positive=True), random_state=0
    ).fit_transform(np.abs(X)),
}


@pytest.mark.parametrize("name", CALLS)
def test_warnings_name_the_line_of_the_user(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CALLS[name]()
    assert caught
    assert {Path(warning.filename).name for warning in caught} == {Path(__file__).name}
