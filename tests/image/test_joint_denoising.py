"""Joint denoising of colors: the gray picture first, then the differences in its groups."""

import numpy as np
import pytest

from smalto.datasets import sample_photo
from smalto.image import cosine_atoms, denoise
from smalto.image.color_axes import color_axes

FAST = {"n_atoms": 192, "max_steps": 25, "random_state": 0, "channel_axis": -1}


def psnr(a, b):
    return 10 * np.log10(255.0**2 / np.mean((np.asarray(a, float) - b) ** 2))


@pytest.fixture(scope="module")
def photo():
    clean = sample_photo("flower")[20:116, 20:116].astype(np.float32)
    noisy = clean + np.random.default_rng(0).normal(0, 25, clean.shape).astype(np.float32)
    return clean, noisy


@pytest.mark.parametrize("channels", [1, 2, 3, 5])
def test_axes_keep_white_noise_white(channels):
    pixels = np.random.default_rng(0).random((9, 8, channels)).astype(np.float32)
    axes = color_axes(pixels).axes
    np.testing.assert_allclose(axes @ axes.T, np.eye(channels), atol=1e-14)


def test_the_first_axis_is_that_of_the_edges(photo):
    clean, noisy = photo
    colors = np.array([0.6, 0.64, 0.48])
    pixels = 50.0 * clean[:, :, :1] * colors + 0.01 * clean
    assert abs(color_axes(pixels).axes[0] @ colors) > 0.999
    assert abs(color_axes(pixels + noisy - clean).axes[0] @ colors) > 0.99
    np.testing.assert_array_equal(np.abs(color_axes(np.zeros((1, 1, 3))).axes).sum(), 1.0)


def test_colors_gain_from_joint_coding(photo):
    clean, noisy = photo
    alone, joint = (denoise(noisy, 25.0, effort=effort, **FAST) for effort in (0, 1))
    assert joint.dtype == np.float32
    assert psnr(joint, clean) > psnr(alone, clean) + 0.5


def test_a_gray_picture_in_three_channels_is_that_of_one(photo):
    gray = photo[1].mean(axis=2)
    D = cosine_atoms(8)
    kind = {"D": D, "patch_size": 8}
    three = np.repeat(gray[:, :, None], 3, axis=2) / np.float32(3**0.5)
    out = denoise(three, 25.0, channel_axis=-1, **kind) * 3**0.5
    one = denoise(gray, 25.0, **kind)
    np.testing.assert_allclose(out, np.repeat(one[:, :, None], 3, axis=2), atol=0.05)


def test_atoms_are_of_gray_patches(photo):
    _, noisy = photo
    D = np.random.default_rng(2).standard_normal((80, 64)).astype(np.float32)
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    out = denoise(noisy[:40, :50], 25.0, D=D, patch_size=8, channel_axis=-1)
    assert out.shape == (40, 50, 3)
    with pytest.raises(ValueError, match="64"):
        denoise(noisy, 25.0, D=np.ones((9, 128)), patch_size=8, channel_axis=-1)


def test_axes_threads_and_integers(photo):
    _, noisy = photo
    few = np.clip(np.rint(noisy[:40, :44]), 0, 255).astype(np.uint8)
    kind = {**FAST, "max_steps": 3}
    out = denoise(few, 25.0, n_threads=1, **kind)
    assert out.dtype == np.uint8
    kind["channel_axis"] = 0
    first = denoise(np.moveaxis(few, 2, 0), 25.0, n_threads=3, **kind)
    np.testing.assert_array_equal(np.moveaxis(first, 0, 2), out)
