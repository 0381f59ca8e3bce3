"""Passes over rows of the Gram matrix, against NumPy."""

import numpy as np
import pytest

from smalto.kernels.coding.active_set import subtract_rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("s", range(20))
def test_subtract_rows(dtype, s):
    rng, width, start = np.random.default_rng(s), 32, 48
    G = rng.standard_normal((width, width)).astype(dtype)
    q = rng.standard_normal(start + width).astype(dtype)
    atoms = rng.permutation(width)[:s]
    coefficients = rng.standard_normal(s).astype(dtype)
    buffer = np.concatenate([np.full(width, np.nan, dtype), coefficients, np.zeros(1, dtype)])
    subtract_rows(G.reshape(-1), width, q, start, atoms, s, buffer)
    wanted = q[start:].astype(float) - coefficients.astype(float) @ G[atoms]
    np.testing.assert_allclose(buffer[:width], wanted, atol=50 * np.finfo(dtype).eps)
    assert np.array_equal(buffer[width:-1], coefficients)
