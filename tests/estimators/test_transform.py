"""Codes and back, and the score."""

import numpy as np
import pytest
from estimator_problems import LASSO, K, M, costs, model, samples
from scipy import sparse

from smalto import encode
from smalto.coders import Lasso


@pytest.mark.parametrize("coder", [None, LASSO, Lasso(0.2, ridge=0.1), Lasso(mean_nonzeros=3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transform_is_the_training_problem(coder, dtype):
    X, other = samples(dtype=dtype), samples(150, dtype, seed=1)
    fitted = model(coder=coder, max_epochs=5).fit(X)
    codes = fitted.transform(other)
    assert fitted.coder_.lam == fitted.state_.coder.lam
    expected = encode(other, fitted.components_, fitted.coder_)
    np.testing.assert_array_equal(codes, expected.toarray())
    assert codes.dtype == fitted.components_.dtype == dtype
    given = encode(other, fitted.components_, Lasso(fitted.coder_.lam, fitted.coder_.ridge))
    np.testing.assert_array_equal(codes, given.toarray())
    if coder == Lasso(mean_nonzeros=3):
        assert 2 < np.count_nonzero(codes) / len(codes) < 4


def test_codes_are_optimal():
    X = samples()
    fitted = model().fit(X)
    D, codes = fitted.components_, fitted.transform(X)
    gradient = (X - codes @ D) @ D.T
    assert np.abs(gradient).max() <= LASSO.lam * (1 + 1e-6)
    used = codes != 0
    np.testing.assert_allclose(gradient[used], LASSO.lam * np.sign(codes[used]), rtol=1e-6)


@pytest.mark.parametrize("coder", [LASSO, Lasso(mean_nonzeros=3)])
def test_a_code_depends_on_its_row_alone(coder):
    X = samples()
    fitted = model(coder=coder).fit(X)
    codes = fitted.transform(X)
    tolerance = {"rtol": 1e-9, "atol": 1e-12}
    for rows in (slice(0, 1), slice(3, 10), slice(130, 271), slice(None, None, -1), [5, 5, 300]):
        np.testing.assert_allclose(fitted.transform(X[rows]), codes[rows], **tolerance)


def test_fit_transform_is_fit_then_transform():
    X = samples()
    estimator = model()
    np.testing.assert_array_equal(estimator.fit_transform(X), estimator.transform(X))


def test_a_signal_too_weak_to_code_is_no_reason_to_warn():
    fitted = model().fit(samples())
    assert not fitted.transform(np.full((1, M), 1e-3)).any()


def test_sparse_output():
    X = samples()
    dense, csr = model().fit(X), model(sparse_output=True).fit(X)
    codes = csr.transform(X)
    assert isinstance(codes, sparse.csr_array)
    assert codes.indices.dtype == codes.indptr.dtype == np.int32
    assert codes.has_sorted_indices
    np.testing.assert_array_equal(codes.toarray(), dense.transform(X))
    assert isinstance(csr.fit_transform(X), sparse.csr_array)
    assert type(dense.transform(X)) is np.ndarray


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverse_transform(dtype):
    X = samples(dtype=dtype)
    fitted = model(coder=Lasso(0.01), max_epochs=30).fit(X)
    codes = fitted.transform(X)
    for given in (
        codes,
        sparse.csr_array(codes),
        sparse.csr_matrix(codes),
        sparse.coo_array(codes),
    ):
        back = fitted.inverse_transform(given)
        assert type(back) is np.ndarray
        assert back.dtype == dtype
        np.testing.assert_allclose(back, codes @ fitted.components_, rtol=1e-4, atol=1e-5)
    assert np.mean((X - back) ** 2) < 0.01 * np.mean(X**2)
    with pytest.raises(ValueError, match=rf"each of the {K} atoms, got shape \(400, {K - 1}\)"):
        fitted.inverse_transform(codes[:, :-1])


def test_score_is_minus_the_mean_cost():
    X, other = samples(), samples(9000, seed=1)
    fitted = model().fit(X)
    by_hand = costs(other, fitted.components_, fitted.transform(other), LASSO.lam)
    assert fitted.score(other) == pytest.approx(-by_hand.mean(), rel=1e-9)
    assert fitted.score(sparse.csr_array(other)) == pytest.approx(-by_hand.mean(), rel=1e-9)
    assert isinstance(fitted.score(other), float)
