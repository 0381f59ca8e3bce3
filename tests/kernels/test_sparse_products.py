"""Products of sparse rows and a dense table, against SciPy's."""

import numpy as np
import pytest
from scipy import sparse

from smalto.coders.products import Packed, as_columns
from smalto.coders.scaling import squared_norms
from smalto.learning.alternating.sparse_data import SparseData


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 16, 17, 40, 64, 90])
def test_products_with_atoms_and_with_codes_are_those_of_scipy(k, dtype):
    rng = np.random.default_rng(k)
    X = sparse.random_array((130, 1500), density=0.05, rng=rng, format="csr", dtype=dtype)
    X = sparse.csr_array(X.multiply(np.arange(130)[:, None] % 7 > 0))  # rows without entries
    D, C = rng.standard_normal((k, 1500)).astype(dtype), rng.standard_normal((k, 130)).astype(dtype)
    data = SparseData(X, k)
    rows = slice(3, 130)
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    found = data.by_samples(as_columns(D), rows)
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, (X[rows] @ D.T).T, rtol=tolerance, atol=tolerance)
    one, two = np.full((2, k, 1500), np.nan)
    data.by_features(C, one, 1)
    data.by_features(C, two, 2)
    np.testing.assert_allclose(one, C @ X.toarray(), rtol=tolerance, atol=10 * tolerance)
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [3, 16, 40])
def test_products_of_samples_to_code_and_their_norms(k, dtype):
    rng = np.random.default_rng(k)
    X = sparse.random_array((90, 700), density=0.05, rng=rng, format="csr", dtype=dtype)
    X = sparse.csr_array(X.multiply(np.arange(90)[:, None] % 5 > 1))
    D = rng.standard_normal((k, 700)).astype(dtype)
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    found = Packed(D).products(X)
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, X @ D.T, rtol=tolerance, atol=tolerance)
    expected = np.sum(X.toarray().astype(float) ** 2, axis=1)
    np.testing.assert_allclose(squared_norms(X), expected, rtol=tolerance)
    for few in (X[:0], X[:2]):  # no rows, and only rows without entries
        assert Packed(D).products(few).shape == (few.shape[0], k)
        np.testing.assert_array_equal(squared_norms(few), np.zeros(few.shape[0]))
