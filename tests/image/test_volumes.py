"""Volumes and series: patches with three axes, and with one."""

import numpy as np
import pytest

from smalto import learn
from smalto.coders import Lasso
from smalto.image import PatchAverage, PatchSource, denoise, estimate_noise, inpaint, reconstruct

WHOLE = {"center": False, "normalize": False, "skip_constant": False, "dtype": float}
QUICK = {"n_atoms": 48, "max_steps": 25, "random_state": 0}
SHAPES = [((7, 8, 9), (3, 4, 2)), ((6, 7, 8, 2), (3, 2, 4)), ((40,), (9,)), ((30, 5), (7,)),
          ((5, 4, 6, 5), (2, 3, 2, 3))]  # fmt: skip


def slow_patches(values, size):
    """All patches, one after the other, the last axis first."""
    places = np.ndindex(*(own - side + 1 for own, side in zip(values.shape, size, strict=False)))
    cuts = (tuple(slice(p, p + s) for p, s in zip(place, size, strict=True)) for place in places)
    return np.array([values[cut].ravel() for cut in cuts])


def slow_average(X, shape, size):
    total, weight = np.zeros(shape), np.zeros(shape)
    places = np.ndindex(*(own - side + 1 for own, side in zip(shape, size, strict=False)))
    for x, place in zip(X, places, strict=True):
        cut = tuple(slice(p, p + s) for p, s in zip(place, size, strict=True))
        total[cut] += x.reshape(total[cut].shape)
        weight[cut] += 1
    return total / weight


def rows(source):
    return source.rows(np.arange(source.n_rows))


def body(side=20):
    """Shells and a slope in a volume, from 0 to 255."""
    z, y, x = np.mgrid[:side, : side + 4, : side + 8] - side / 2
    return 128 + 60 * np.sin(0.9 * np.sqrt(x**2 + y**2 + 2 * z**2)) + 40 * np.sign(x + y - z)


def psnr(a, b):
    return 10 * np.log10(255**2 / np.mean((np.asarray(a, float) - b) ** 2))


@pytest.mark.parametrize(("shape", "size"), SHAPES)
def test_patches_and_back(shape, size):
    values = np.random.default_rng(0).random(shape)
    source = PatchSource(values, size, **WHOLE)
    expected = slow_patches(values, size)
    np.testing.assert_array_equal(rows(source), expected)
    np.testing.assert_array_equal(reconstruct(rows(source), shape, size), values)
    other = np.random.default_rng(1).random(expected.shape)
    np.testing.assert_allclose(
        reconstruct(other, shape, size), slow_average(other, shape, size), atol=1e-12
    )
    positions = source.positions(np.arange(source.n_rows))
    assert positions.shape == (source.n_rows, 1 + len(size))
    last = [own - side for own, side in zip(shape, size, strict=False)]
    assert positions[-1].tolist() == [0, *last]


@pytest.mark.parametrize(("shape", "size"), SHAPES)
def test_contrast_masks_and_several_of_them(shape, size):
    rng = np.random.default_rng(0)
    values = [rng.random(shape), rng.random(shape)]
    sides = shape[: len(size)]
    mask = [rng.random(sides) < 0.02, None]
    channels = int(np.prod(shape[len(size) :]))
    source = PatchSource(values, size, mask=mask, min_contrast=0.27, **WHOLE)
    X = np.concatenate([slow_patches(v, size) for v in values])
    holes = np.concatenate(
        [slow_patches(m, size).any(axis=1) for m in (mask[0], np.ones(sides) < 0)]
    )
    contrast = np.sqrt(X.reshape(len(X), -1, channels).var(axis=1).mean(axis=1))
    keep = ~holes & (contrast >= 0.27)
    assert 0 < keep.sum() < len(X)
    np.testing.assert_array_equal(rows(source), X[keep])
    known = PatchSource(values[0], size, mask=mask[0], min_known=0.9, **WHOLE)
    marks = np.repeat(slow_patches(mask[0], size), channels, axis=1)
    kept = 1 - marks.mean(axis=1) >= 0.9
    holed = np.where(marks, np.nan, slow_patches(values[0], size))
    np.testing.assert_array_equal(rows(known), holed[kept])


def test_learning_from_volumes():
    source = PatchSource(body().astype(np.float32), (4, 4, 4))
    assert source.patch_shape == (4, 4, 4)
    result = learn(source, 24, Lasso(0.2), max_steps=5, random_state=0)
    assert result.D.shape == (24, 64)


def test_noise_of_a_volume_goes():
    clean = body()
    noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
    outs = [denoise(noisy, 20.0, n_threads=n, **QUICK) for n in (1, 2)]
    assert np.array_equal(*outs)
    assert psnr(outs[0], clean) > psnr(noisy, clean) + 6
    slices = np.stack([denoise(one, 20.0, **QUICK) for one in noisy])
    assert psnr(outs[0], clean) > psnr(slices, clean) + 1
    assert estimate_noise(noisy) == pytest.approx(20.0, rel=0.4)
    by_map = denoise(noisy, np.full(clean.shape, 20.0), **QUICK)
    assert psnr(by_map, clean) == pytest.approx(psnr(outs[0], clean), abs=0.5)


def test_holes_of_a_volume_are_filled():
    clean = body()
    mask = np.random.default_rng(0).random(clean.shape) < 0.5
    damaged = np.where(mask, np.nan, clean)
    outs = [inpaint(damaged, mask, n_threads=n, **QUICK) for n in (1, 2)]
    assert np.array_equal(*outs)
    assert np.array_equal(outs[0][~mask], clean[~mask])
    slices = np.stack(
        [inpaint(*one, effort=0, patch_size=8, **QUICK) for one in zip(damaged, mask, strict=True)]
    )
    assert psnr(outs[0], clean) > psnr(slices, clean)


def test_channels_of_volumes_and_series():
    t = np.arange(400)
    clean = 100 + 50 * np.stack([np.sin(0.3 * t), np.sign(np.cos(0.11 * t)), t / 400])
    noisy = clean + np.random.default_rng(0).normal(0, 10, clean.shape)
    out = denoise(noisy, 10.0, channel_axis=0, patch_size=(32,), **QUICK)
    assert out.shape == clean.shape
    assert psnr(out, clean) > psnr(noisy, clean) + 4
    mask = np.random.default_rng(1).random(400) < 0.3
    filled = inpaint(np.where(mask, np.nan, clean), mask, channel_axis=0, patch_size=(64,), **QUICK)
    assert np.array_equal(filled[:, ~mask], clean[:, ~mask])
    assert psnr(filled, clean) > 28
    volume = np.stack([body(12), body(12)[::-1]], axis=-1).astype(np.uint8)
    out = denoise(volume, 5.0, channel_axis=-1, **QUICK)
    assert out.shape == volume.shape
    assert out.dtype == np.uint8


def test_what_looks_like_a_color_picture():
    picture = np.random.default_rng(0).random((20, 22, 3))
    with pytest.raises(
        ValueError, match="pass channel_axis=-1, for a volume a patch_size of three"
    ):
        denoise(picture, 0.1)
    assert denoise(picture, 0.1, patch_size=(4, 4, 2), **QUICK).shape == picture.shape
    with pytest.raises(ValueError, match=r"for a series pass patch_size=\(32,\)"):
        denoise(picture[:, :, 0], 0.1, channel_axis=-1)
    assert denoise(picture[:, 0, 0], 0.1, **QUICK).shape == (20,)


def test_wrong_axes():
    volume = body()
    with pytest.raises(ValueError, match="effort=2 is for pictures"):
        denoise(volume, 1.0, effort=2)
    with pytest.raises(ValueError, match="one integer >= 1, or three"):
        denoise(volume, 1.0, patch_size=(4, 4))
    with pytest.raises(ValueError, match="must have 3 axes, as patch_size"):
        PatchSource(volume[0], (4, 4, 4))
    with pytest.raises(
        ValueError, match="4 x 4 x 40 does not fit into images, which is 20 x 24 x 28"
    ):
        PatchSource(volume, (4, 4, 40))
    with pytest.raises(ValueError, match="shape must have 3 axes"):
        PatchAverage((4, 4), (2, 2, 2))
    with pytest.raises(TypeError, match="got 2 arrays"):
        PatchAverage((4, 4, 4), (2, 2, 2)).add(np.zeros((1, 8)), np.zeros(1, int), np.zeros(1, int))
    with pytest.raises(ValueError, match="a series of 5 is too short"):
        estimate_noise(volume[0, 0, :5])
