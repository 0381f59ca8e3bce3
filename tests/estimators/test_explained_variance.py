"""Explained variance, order and signs of sparse components."""

import numpy as np
import pytest
from problems import DTYPES
from sklearn.decomposition import PCA
from sparse_pca_problems import BLOCKS, blocks, model

from smalto.coders import Lasso
from smalto.estimators.variance import adjusted_variances, principal_components, score_moments
from smalto.learning.dictionary.wanted_density import feasible


def test_adjusted_variances_are_those_of_the_qr_decomposition():
    rng = np.random.default_rng(0)
    X = blocks(200) @ rng.standard_normal((20, 20))
    D = rng.standard_normal((6, 20))
    mean = X.mean(axis=0)
    moments, total = score_moments(X, D, mean)
    order, variances = adjusted_variances(moments)
    Z = (X - mean) @ (D / np.linalg.norm(D, axis=1, keepdims=True)).T
    R = np.linalg.qr(Z[:, order])[1]
    np.testing.assert_allclose(variances, np.diag(R) ** 2 / len(X), rtol=1e-8)
    assert sorted(order) == list(range(6))
    assert (np.diff(variances) <= 0).all()
    assert total == pytest.approx(np.var(X, axis=0).sum())
    pca = PCA(6).fit(X)
    assert variances.sum() <= pca.explained_variance_.sum()
    exact = adjusted_variances(score_moments(X, pca.components_, mean)[0])[1]
    np.testing.assert_allclose(exact, pca.explained_variance_ * 199 / 200, rtol=1e-8)


def test_components_that_add_nothing_explain_nothing():
    X = blocks(200)
    mean = X.mean(axis=0)
    D = np.vstack([np.zeros(20), BLOCKS[1], BLOCKS[0], -2 * BLOCKS[1], BLOCKS[0] + BLOCKS[1]])
    order, variances = adjusted_variances(score_moments(X, D, mean)[0])
    assert list(order) == [2, 1, 0, 3, 4]
    np.testing.assert_array_equal(variances[2:], 0)
    assert variances[1] > 0
    assert sorted(order) == list(range(5))


def test_order_and_signs_are_canonical():
    X = blocks(noise=1.0)
    one = model(k=3, density=0.6).fit(X)
    rows = np.arange(3)
    assert (one.components_[rows, np.argmax(np.abs(one.components_), axis=1)] > 0).all()
    turned = model(k=3, density=0.6, init=-one.components_[::-1], max_epochs=20).fit(X)
    straight = model(k=3, density=0.6, init=one.components_, max_epochs=20).fit(X)
    np.testing.assert_allclose(turned.components_, straight.components_, atol=0.05)


def test_components_keep_their_sign_where_codes_have_one():
    X = blocks()
    fitted = model(k=8, coder=Lasso(0.5, positive=True)).fit(X)
    assert sorted({*map(tuple, fitted.components_)}) == sorted(
        {*map(tuple, feasible(fitted.state_).D)}
    )
    assert fitted.components_.min() < 0
    free = model(k=8, coder=Lasso(0.5)).fit(X)
    assert not np.signbit(free.components_[free.components_ == 0]).any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(50, 8), (8, 50)])
def test_principal_components(dtype, shape):
    X = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    X -= X.mean(axis=0)
    found = principal_components(X, 4)
    expected = np.linalg.svd(X.astype(np.float64), full_matrices=False)[2][:4]
    np.testing.assert_allclose(np.abs(np.sum(found * expected, axis=1)), 1, rtol=1e-4)
    assert found.dtype == dtype
    assert principal_components(X, 9) is None
    assert principal_components(X[:, :1] * np.ones(8, dtype), 2) is None
