"""Kinds of data that DictionaryLearning takes."""

import tracemalloc

import numpy as np
import pytest
from estimator_problems import LASSO, M, model, samples
from scipy import sparse

from smalto.coders import Lasso
from smalto.estimators import DictionaryLearning
from smalto.learners import Online


def test_float32_stays_float32():
    X = samples(dtype=np.float32)
    fitted = model(max_epochs=2).fit(X)
    assert fitted.components_.dtype == fitted.transform(X).dtype == np.float32
    assert fitted.transform(X.astype(np.float64)).dtype == np.float64
    assert model().fit(X.astype(np.float16)).components_.dtype == np.float64
    reference = model(max_epochs=2).fit(X.astype(np.float64))
    assert fitted.score(X) == pytest.approx(reference.score(X), rel=1e-3)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
def test_sparse_input(kind):
    X = samples()
    X[np.abs(X) < 1] = 0
    dense, other = model(max_epochs=2).fit(X), model(max_epochs=2).fit(kind(X))
    np.testing.assert_allclose(other.components_, dense.components_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(other.transform(kind(X)), dense.transform(X), rtol=1e-6, atol=1e-9)
    dense.partial_fit(X[:33])
    other.partial_fit(kind(X[:33]))
    np.testing.assert_allclose(other.components_, dense.components_, rtol=1e-6, atol=1e-9)


def test_sparse_input_out_of_order_and_twice():
    X = sparse.csr_array(
        (np.array([1.0, 2, 3, 4, 5, 6]), np.array([2, 0, 2, 1, 1, 0]), np.array([0, 3, 4, 6])),
        shape=(3, 3),
    )
    before = X.copy()
    ours = DictionaryLearning(2, coder=LASSO, random_state=0).fit(X).partial_fit(X)
    dense = DictionaryLearning(2, coder=LASSO, random_state=0).fit(X.toarray())
    dense.partial_fit(X.toarray())
    np.testing.assert_allclose(ours.components_, dense.components_, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(X.data, before.data)
    np.testing.assert_array_equal(X.indices, before.indices)


@pytest.mark.parametrize("make", [np.array, np.asfortranarray, sparse.csr_array])
def test_input_is_never_changed(make):
    X = make(samples())
    arrays = [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    fitted = model(max_epochs=2).fit(X).partial_fit(X)
    fitted.transform(X)
    fitted.score(X)
    for array, was in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, was)


def test_integers_and_lists():
    X = np.rint(10 * samples()).astype(np.int16)
    ours = model().fit(X)
    assert ours.components_.dtype == np.float64
    np.testing.assert_array_equal(ours.components_, model().fit(X.astype(float)).components_)
    np.testing.assert_array_equal(ours.components_, model().fit(X.tolist()).components_)


def test_a_memory_map_is_not_loaded(tmp_path):
    n, m = 10_000_000, 32
    X = np.memmap(tmp_path / "X", np.uint8, "w+", shape=(n, m))
    X[:] = np.random.default_rng(0).integers(0, 255, (1, m), np.uint8)
    X[::2, ::3] = 7
    X.flush()
    X = np.memmap(tmp_path / "X", np.uint8, "r", shape=(n, m))
    settings = {"n_components": 2, "coder": Lasso(50.0), "learner": Online(), "max_steps": 5}
    reference = model(**settings).fit(np.array(X[: n // 100]))  # compiles what is needed
    tracemalloc.start()
    try:
        fitted = model(**settings).fit(X)
        score = fitted.score(X[: n // 100])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < X.nbytes / 2  # what is shuffled together is 64 MB at most
    assert score == pytest.approx(reference.score(X[: n // 100]), rel=0.1)
    np.testing.assert_array_equal(fitted.transform(X[:9]), fitted.transform(np.array(X[:9])))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_a_memory_map_is_as_good_as_an_array(tmp_path, dtype):
    X = np.memmap(tmp_path / "X", dtype, "w+", shape=(4000, M))
    X[:] = np.random.default_rng(0).integers(0, 255, X.shape, np.uint8)
    expected = model(coder=Lasso(50.0)).fit(np.array(X)).components_
    np.testing.assert_array_equal(model(coder=Lasso(50.0)).fit(X).components_, expected)


def test_of_a_memory_map_only_what_is_drawn_is_read(tmp_path):
    X = np.memmap(tmp_path / "X", np.float64, "w+", shape=(200_000, M))
    X[:400] = samples()
    X[400:] = X[0]
    X[777, 4] = np.nan
    with pytest.raises(ValueError, match=r"NaN.*\(777, 4\)"):
        model(learner=Online()).fit(X)
    assert model(max_steps=1).fit(X).n_iter_ == 1  # one row in a hundred is drawn
