"""Products of signals and atoms, against sums in float64 and against each other, bit by bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smalto.coders import products
from smalto.coders.products import Packed, PackedTerms, gram
from smalto.kernels.dense_products import BLOCK

DTYPES = [np.float32, np.float64]
SIZES = st.tuples(st.integers(0, 20), st.integers(1, 70), st.integers(1, 2 * BLOCK + 20))


def random_pair(n, k, m, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, m)).astype(dtype), rng.standard_normal((k, m)).astype(dtype)


@given(SIZES, st.sampled_from(DTYPES), st.integers(0, 99))
def test_products_are_sums_up_to_rounding(sizes, dtype, seed):
    X, D = random_pair(*sizes, dtype, seed)
    found = Packed(D).products(X)
    assert found.shape == sizes[:2]
    assert found.dtype == dtype
    exact = X.astype(np.float64) @ D.astype(np.float64).T
    terms = np.abs(X).astype(np.float64) @ np.abs(D).astype(np.float64).T
    rounding = np.finfo(dtype).eps * (min(sizes[2], BLOCK) + 4)  # of sums of blocks
    assert np.all(np.abs(found - exact) <= rounding * terms)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [16, 48, 50])
def test_a_row_has_the_same_bits_whatever_is_beside_it(k, dtype):
    X, D = random_pair(40, k, 2 * BLOCK + 3, dtype)
    packed = Packed(D)
    together = packed.products(X)
    for rows in (slice(0, 1), slice(5, 12), slice(39, 40)):
        np.testing.assert_array_equal(packed.products(X[rows]), together[rows])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [8, 16, 40, 64, 70])
def test_tiles_of_one_and_of_two_vectors_give_the_same_bits(k, dtype, monkeypatch):
    X, D = random_pair(23, k, BLOCK + 9, dtype)
    found = []
    for vectors in (1, 2):
        monkeypatch.setattr(products, "vectors_at_once", lambda vectors=vectors: vectors)
        found.append(Packed(D).products(X))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [1, 16, 97, 200])
def test_a_gram_matrix_is_symmetric_and_made_of_products(k, dtype):
    _, D = random_pair(1, k, 70, dtype)
    G = gram(Packed(D), 1)
    np.testing.assert_array_equal(G, G.T)
    np.testing.assert_array_equal(G, Packed(D).products(D))
    np.testing.assert_array_equal(G, gram(Packed(D), 3))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_may_be_read_only_strided_or_without_features(dtype):
    X, D = random_pair(9, 20, 30, dtype)
    wanted = Packed(D).products(X)
    X.flags.writeable = D.flags.writeable = False
    np.testing.assert_array_equal(Packed(D).products(X), wanted)
    strided = np.asfortranarray(X), np.asfortranarray(D)
    np.testing.assert_array_equal(Packed(strided[1]).products(strided[0]), wanted)
    assert not Packed(D[:, :0]).products(X[:, :0]).any()
    assert Packed(D[:0]).products(X).shape == (9, 0)


@given(SIZES, st.sampled_from(DTYPES), st.integers(0, 99))
def test_sums_of_some_atoms_follow_the_changes_of_the_dictionary(sizes, dtype, seed):
    n, m, k = sizes
    A, D = random_pair(n, m, k, dtype, seed)[0], random_pair(k, 1, m, dtype, seed)[0]
    packed, rng = PackedTerms(D), np.random.default_rng(seed)
    for _ in range(2):
        begin = int(rng.integers(k))
        some = slice(begin, int(rng.integers(begin, k)) + 1)
        exact = A[:, some].astype(np.float64) @ D[some].astype(np.float64)
        terms = np.abs(A[:, some]).astype(np.float64) @ np.abs(D[some]).astype(np.float64)
        rounding = np.finfo(dtype).eps * (min(k, BLOCK) + 4)
        assert np.all(np.abs(packed.products(A, some) - exact) <= rounding * terms)
        D[some] *= 3
        packed.renew(some)
