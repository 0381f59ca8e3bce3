"""Data frames of pandas and polars as the output of every transform."""

import numpy as np
import pytest

from smalto import NMF, DictionaryLearning, SparseCCA, SparsePCA

X = np.random.default_rng(0).random((60, 8))
Y = np.random.default_rng(1).random((60, 6))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("kind", [DictionaryLearning, NMF, SparsePCA])
def test_codes_come_as_data_frames(library, kind):
    frames = pytest.importorskip(library)
    model = kind(3, random_state=0).set_output(transform=library).fit(X)
    codes = model.transform(X)
    assert isinstance(codes, frames.DataFrame)
    assert list(codes.columns) == [f"{kind.__name__.lower()}{j}" for j in range(3)]
    plain = model.set_output(transform="default").transform(X)
    assert (codes.to_numpy() == plain).all()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_both_blocks_come_as_data_frames(library):
    frames = pytest.importorskip(library)
    model = SparseCCA(2).set_output(transform=library).fit(X, Y)
    for scores in (*model.transform(X, Y), model.transform(X)):
        assert isinstance(scores, frames.DataFrame)
        assert scores.shape == (60, 2)
