"""Products of small matrices and elimination, against NumPy."""

import numpy as np
import pytest

from smalto.kernels.image.group_products import eliminate, gram, product, whole


def padded(matrix):
    """A matrix with rounded numbers of rows and columns, flat, and its width."""
    rows, columns = (whole(count, matrix.dtype) for count in matrix.shape)
    out = np.zeros((rows, columns), matrix.dtype)
    out[: matrix.shape[0], : matrix.shape[1]] = matrix
    return out.reshape(-1), columns


def fours(count):
    return -(-count // 4) * 4


def tolerance(dtype):
    return 1e-4 if dtype == np.float32 else 1e-12


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("count", "rows", "columns"), [(1, 1, 1), (7, 3, 20), (40, 36, 17)])
def test_products(count, rows, columns, dtype):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((count, rows)).astype(dtype)
    B = rng.standard_normal((count, columns)).astype(dtype)
    (flat, a), (other, b) = padded(A), padded(B)
    C = np.full(fours(rows) * (b + 3), 9, dtype)  # a part of wider rows
    product(flat, a, other, b, count, fours(rows), b, C, b + 3)
    C = C.reshape(-1, b + 3)
    np.testing.assert_allclose(C[:rows, :columns], A.T @ B, atol=tolerance(dtype))
    assert not C[rows:, :b].any()
    assert not C[:, columns:b].any()
    assert (C[:, b:] == 9).all()
    G = np.zeros(fours(rows) * a, dtype)
    gram(flat, a, count, fours(rows), G, a)
    G = np.triu(G.reshape(-1, a)[:rows, :rows])
    np.testing.assert_allclose(G, np.triu(A.T @ A), atol=tolerance(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (6, 3), (8, 40), (33, 50)])
def test_elimination(n, m, dtype):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, m)).astype(dtype)
    G = X @ X.T + np.eye(n, dtype=dtype)
    left, right = whole(n, dtype), whole(m, dtype)
    R = np.zeros((left, left + right), dtype)
    R[:n, :n] = np.triu(G)
    R[np.arange(n, left), np.arange(n, left)] = 1.0
    R[:n, left : left + m] = X
    out = R.reshape(-1).copy()
    eliminate(out, left + right, fours(n))
    out = out.reshape(R.shape)
    L = np.linalg.cholesky(G.astype(np.float64))
    np.testing.assert_allclose(np.triu(out[:n, :n]), L.T, atol=10 * tolerance(dtype))
    expected = np.linalg.solve(L, X)
    np.testing.assert_allclose(out[:n, left : left + m], expected, atol=10 * tolerance(dtype))
    assert not out[:, left + m :].any()
