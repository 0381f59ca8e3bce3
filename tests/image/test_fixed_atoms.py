"""Atoms that need no learning."""

import numpy as np
import pytest

from smalto.image import cosine_atoms, natural_atoms


@pytest.mark.parametrize("size", [2, 7, 8, 10, 12, 16, (3, 5), (16, 1), (1, 9)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_natural_atoms(size, dtype):
    D = natural_atoms(size, dtype=dtype)
    height, width = (size, size) if isinstance(size, int) else size
    assert D.dtype == dtype
    assert D.shape[1] == height * width
    assert height * width <= len(D) <= 256
    np.testing.assert_allclose(np.linalg.norm(D, axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(D.mean(axis=1), 0.0, atol=1e-6)
    assert np.linalg.matrix_rank(D) == height * width - 1


def test_those_that_ship_are_all_used():
    for side in (8, 10, 12, 16):
        assert natural_atoms(side).shape == (256, side * side)


def test_atoms_are_not_shared():
    natural_atoms(8)[...] = 0.0
    assert natural_atoms(8).any()


def test_a_pixel():
    np.testing.assert_array_equal(natural_atoms(1), [[1.0]])
    np.testing.assert_array_equal(cosine_atoms(1, 2), np.eye(2))


@pytest.mark.parametrize("channels", [1, 3])
def test_cosine_atoms(channels):
    D = cosine_atoms((5, 4), channels, dtype=np.float64)
    np.testing.assert_allclose(np.linalg.norm(D, axis=1), 1.0)
    np.testing.assert_allclose(D.reshape(len(D), 20, channels).mean(axis=1), 0.0, atol=1e-12)
    assert np.linalg.matrix_rank(D) >= 19


def test_bad_input():
    with pytest.raises(ValueError, match=r"at most 16 x 16 pixels, got patch_size=\(8, 17\)"):
        natural_atoms((8, 17))
    with pytest.raises(ValueError, match="float32 or float64, got int8"):
        natural_atoms(8, dtype=np.int8)
    with pytest.raises(ValueError, match="channels must be >= 1"):
        cosine_atoms(8, 0)
