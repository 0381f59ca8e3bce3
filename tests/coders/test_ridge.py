"""Ridge: the closed form, on everything."""

import numpy as np
import pytest
from problems import DEGENERATE, DTYPES, ordinary
from scipy import sparse

from smalto import encode, learn
from smalto.coders import Ridge


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("lam", [1e-3, 0.5, 10.0])
def test_optimal(name, lam, dtype):
    X, D = DEGENERATE[name]
    codes = encode(X.astype(dtype), D.astype(dtype), Ridge(lam))
    assert codes.dtype == dtype
    assert codes.has_sorted_indices
    x, d = X.astype(dtype).astype(float), D.astype(dtype).astype(float)
    a = codes.toarray().astype(float)
    gradient = (x - a @ d) @ d.T - lam * a
    size = np.abs(x @ d.T).max(initial=0.0) + np.abs(a).sum(1).max() * np.abs(d @ d.T).max()
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    assert np.abs(gradient).max(initial=0.0) <= tolerance * size


def test_agrees_with_numpy_and_stores_everything():
    X, D = ordinary(n=300, k=24, m=16)
    codes = encode(X, D, Ridge(0.3), n_threads=2)
    expected = X @ D.T @ np.linalg.inv(D @ D.T + 0.3 * np.eye(24))
    np.testing.assert_allclose(codes.toarray(), expected, atol=1e-12)
    assert codes.nnz == 300 * 24
    assert np.array_equal(codes.data, encode(X, D, Ridge(0.3), n_threads=1).data)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(24, 16), (16, 24)])
def test_one_product_gives_what_the_solver_gives(shape, dtype, monkeypatch):
    X, D = ordinary(n=300, k=shape[0], m=shape[1])
    X, D = X.astype(dtype), D.astype(dtype)
    X[7] *= dtype(1e15)  # coded at another scale
    D[3] = 0.0
    codes = encode(X, D, Ridge(0.3), n_threads=1)
    assert codes.nnz == 300 * (len(D) - 1)
    np.testing.assert_array_equal(codes.data, encode(X, D, Ridge(0.3), n_threads=3).data)
    sizes = np.linalg.norm(X, axis=1, keepdims=True)
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    same = {"atol": tolerance, "rtol": 0}
    from_csr = encode(sparse.csr_array(X), D, Ridge(0.3))
    np.testing.assert_allclose(from_csr.toarray() / sizes, codes.toarray() / sizes, **same)
    monkeypatch.setattr(Ridge, "linear", lambda self, D: None)
    solved = encode(X, D, Ridge(0.3))
    np.testing.assert_allclose(solved.toarray() / sizes, codes.toarray() / sizes, **same)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lam", [1e-20, 1e-12, 1e-8, 1e-4, 1.0])
@pytest.mark.parametrize("shape", [(12, 30), (30, 12)])
def test_product_is_refused_where_rounding_would_spoil_it(shape, lam, dtype):
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((shape[0], 6)), rng.standard_normal((6, shape[1]))
    D = (left * 10.0 ** -np.arange(6.0) @ right).astype(dtype)  # singular
    X = rng.standard_normal((40, shape[1])).astype(dtype)
    W = Ridge(lam).linear(D)
    assert W is None if lam <= 1e-12 else lam < 1.0 or W is not None
    if W is not None:
        wide = D.astype(np.float64)
        a = (X @ W.T).astype(np.float64)
        gradient = (X - a @ wide) @ wide.T - lam * a
        gap = (gradient**2).sum(axis=1) / (2 * lam)
        promised = 1e-3 if dtype == np.float32 else 1e-8
        assert np.all(gap <= 0.05 * promised * (X.astype(float) ** 2).sum(axis=1))


def test_tiny_lam_with_dependent_atoms():
    X, D = DEGENERATE["duplicate atoms"]
    for dtype in DTYPES:
        codes = encode(X.astype(dtype), D.astype(dtype), Ridge(1e-12)).toarray()
        assert np.all(np.isfinite(codes))


def test_penalty_and_learning():
    codes = sparse.csr_array(np.array([[1.0, -2.0], [0.0, 0.0]]))
    np.testing.assert_allclose(Ridge(0.5).penalty(codes), [1.25, 0])
    X, _ = ordinary(n=500)

    def cost(D):
        codes = encode(X, D, Ridge(0.1))
        return float((0.5 * ((X - codes @ D) ** 2).sum(1) + Ridge(0.1).penalty(codes)).mean())

    first = learn(X, 8, Ridge(0.1), random_state=0, max_steps=1).D
    assert cost(learn(X, 8, Ridge(0.1), random_state=0, max_epochs=4).D) < cost(first)


def test_bad_input():
    with pytest.raises(ValueError, match="lam must be > 0, got 0"):
        Ridge(0)
    with pytest.raises(ValueError, match="lam must be finite, got inf"):
        Ridge(np.inf)
    with pytest.raises(TypeError, match="lam must be a number"):
        Ridge("1")
