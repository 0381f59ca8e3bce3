"""Missing pixels predicted within groups of similar patches."""

import naive_image as naive
import numpy as np
import pytest

from smalto.datasets import sample_photo
from smalto.image import inpaint, text_mask
from smalto.image.filling_effort import LEVELS
from smalto.image.joint_filling import Round, fill_jointly
from smalto.image.patch_grid import PatchGrid
from smalto.image.smooth_part import smooth_filling
from smalto.image.stages import watched
from smalto.kernels.image.group_filling import fill_groups


def psnr(a, b, mask):
    difference = np.asarray(a, float)[mask] - np.asarray(b, float)[mask]
    return 10 * np.log10(255.0**2 / np.mean(difference**2))


@pytest.fixture(scope="module")
def photo():
    return sample_photo("china")[180:276, 300:396]


def half(shape, share=0.5):
    return np.random.default_rng(0).random(shape[:2]) < share


# --- the kernel


def problem(n, channels, dtype, mask):
    rng = np.random.default_rng(n)
    pixels = rng.normal(100, 20, (1, *mask.shape, channels)).astype(dtype)
    grid = PatchGrid(pixels, (4, 5))
    trust = np.where(mask[..., None], 0.1, np.ones(pixels.shape[1:])).astype(dtype)
    positions = rng.integers(0, grid.n_positions, (7, n))
    _, rows, columns = grid.corners(positions)
    X, T = (naive.patches(part, (4, 5))[positions] for part in (pixels[0], trust))
    return grid, trust.reshape(-1), grid.offsets(0, rows, columns), X, T


def run(grid, trust, corners, ridge, least, count):
    groups, n = corners.shape
    m, dtype = grid.n_features, grid.pixels.dtype
    sizes = (n, m), (n, m), (n, n), m, m, m, n
    scratch = (*(np.full(size, np.nan, dtype) for size in sizes), np.empty(m, np.int64))
    out, filled = np.full((groups, count, m), -1.0, dtype), np.empty((groups, count), bool)
    fill_groups(grid.flat, trust, corners, grid.lines, ridge, least, scratch, out, filled)
    return out, filled


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "channels"), [(1, 3), (2, 1), (7, 1), (12, 3)])
def test_predictions_are_those_of_the_slow_twin(n, channels, dtype):
    mask = half((14, 17), 0.6)
    mask[:5, :6] = True  # nothing of some patches is known
    mask[7:, 8:] = False  # and all of others
    grid, trust, corners, X, T = problem(n, channels, dtype, mask)
    out, filled = run(grid, trust, corners, 30.0, 1e-9, n)
    np.testing.assert_array_equal(filled, (T < 1).any(axis=2))
    for g, j in np.argwhere(filled):
        expected = naive.filled_patch(X[g].astype(float), T[g].astype(float), j, n * 30.0)
        np.testing.assert_allclose(out[g, j], expected, rtol=2e-4 if dtype == np.float32 else 1e-9)
    assert np.all(out[~filled] == -1.0)


def test_codes_are_optimal():
    """``α`` is the residual's correlations with the patches, over the penalty, where known."""
    n, ridge = 9, 12.0
    grid, trust, corners, X, T = problem(n, 3, np.float64, half((14, 17)))
    out, filled = run(grid, trust, corners, ridge, 0.0, 3)
    for g, j in np.argwhere(filled):
        mean = (T[g] * X[g]).sum(axis=0) / T[g].sum(axis=0)
        Z, known = X[g] - mean, T[g, j] == 1
        alpha = np.linalg.lstsq(Z.T, out[g, j] - mean)[0]
        gradient = Z[:, known] @ (X[g, j] - out[g, j])[known] - n * ridge * alpha
        np.testing.assert_allclose(gradient, 0.0, atol=1e-6)


def test_the_penalty_is_not_tiny_beside_the_patches():
    """Else float32 would not suffice: an edge of 255 among details of 0.001."""
    mask = half((14, 17))
    grid, trust, corners, X, T = problem(12, 3, np.float32, mask)
    out, filled = run(grid, trust, corners, 1e-12, 1e-5, 4)
    assert np.isfinite(out).all()
    g, j = np.argwhere(filled)[0]
    mean = (T[g] * X[g]).sum(axis=0) / T[g].sum(axis=0)
    penalty = 1e-5 * np.sum((X[g] - mean) ** 2)
    expected = naive.filled_patch(X[g].astype(float), T[g].astype(float), j, penalty)
    np.testing.assert_allclose(out[g, j], expected, atol=0.5)


# --- pictures


@pytest.mark.parametrize(("kind", "gain"), [("text", 1.0), ("half", 1.0), ("most", 0.5)])
def test_groups_are_better_than_smoothness_and_codes(photo, kind, gain):
    masks = {"text": text_mask(photo.shape[:2]), "half": half(photo.shape),
             "most": half(photo.shape, 0.8)}  # fmt: skip
    mask = masks[kind]
    damaged = np.where(mask[..., None], 0, photo).astype(np.uint8)
    joint = inpaint(damaged, mask, channel_axis=-1)
    codes = inpaint(damaged, mask, channel_axis=-1, effort=0, stride=2, random_state=0)
    smooth = smooth_filling(damaged.astype(np.float32), mask)
    np.testing.assert_array_equal(joint[~mask], photo[~mask])
    assert psnr(joint, photo, mask) > psnr(smooth, photo, mask) + gain
    assert psnr(joint, photo, mask) > psnr(codes, photo, mask)


def test_more_effort_is_better_under_text(photo):
    mask = text_mask(photo.shape[:2])
    damaged = np.where(mask[..., None], 0, photo).astype(np.uint8)
    kind = {"channel_axis": -1, "random_state": 0}
    outs = [inpaint(damaged, mask, effort=effort, **kind) for effort in (1, 2)]
    assert psnr(outs[1], photo, mask) > psnr(outs[0], photo, mask)


def test_threads_axes_and_types(photo):
    mask = half((40, 50))
    some = np.where(mask[..., None], 7, photo[:40, :50]).astype(np.uint8)
    one = inpaint(some, mask, channel_axis=-1, n_threads=1)
    three = inpaint(np.moveaxis(some, -1, 0), mask, channel_axis=0, n_threads=3)
    np.testing.assert_array_equal(np.moveaxis(three, 0, -1), one)
    exact = np.where(mask, np.nan, photo[:40, :50, 0])
    assert inpaint(exact, mask).dtype == np.float64
    single = inpaint(exact.astype(np.float32), mask)
    np.testing.assert_allclose(single, inpaint(exact, mask), atol=1.0)


def test_units_and_brightness_do_not_matter(photo):
    mask = half((40, 50))
    gray = photo[:40, :50, 0].astype(float)
    expected = inpaint(gray, mask)
    np.testing.assert_allclose(inpaint(1e-6 * gray + 3.0, mask), 1e-6 * expected + 3.0, atol=1e-8)


@pytest.mark.parametrize(("dtype", "unit"), [(np.float32, 1e-30), (np.float32, 1e30),
                                             (np.float64, 1e-140), (np.float64, 1e140)])  # fmt: skip
def test_tiny_and_huge_values(photo, dtype, unit):
    mask = half((40, 50))
    gray = photo[:40, :50, 0].astype(dtype)
    out = inpaint((dtype(unit) * gray), mask)
    np.testing.assert_allclose(out / dtype(unit), inpaint(gray, mask), atol=0.1)


def test_known_pixels_keep_every_bit():
    rng = np.random.default_rng(0)
    picture = rng.normal(0, 1, (60, 50)) * 10.0 ** rng.integers(-6, 6, (60, 50))
    mask = half(picture.shape)
    np.testing.assert_array_equal(inpaint(picture, mask)[~mask], picture[~mask])


def test_all_rounds_are_one_progress(photo):
    mask = half((30, 30))
    told = []
    with watched(lambda what, share: told.append((what, share))):
        inpaint(photo[:30, :30], mask, channel_axis=-1)
    assert {what for what, _ in told} == {"filling groups"}
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) == len(LEVELS[1].rounds)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (5, 4), (9, 40)])
def test_small_pictures(shape):
    rng = np.random.default_rng(0)
    picture, mask = rng.random(shape), rng.random(shape) < 0.5
    mask[0, 0] = False
    out = inpaint(picture, mask)
    assert out.shape == shape
    assert np.isfinite(out).all()
    np.testing.assert_array_equal(out[~mask], picture[~mask])


def test_a_single_color_stays_exact():
    pixels = np.full((20, 20, 2), 0.1)
    mask = half(pixels.shape)
    np.testing.assert_array_equal(fill_jointly(pixels, mask, (Round(8, 4, 8, 0.1),), 1), pixels)


def test_large_holes_are_filled_smoothly_and_warned_of(photo):
    gray = photo[..., 0].astype(float)
    mask = np.zeros(gray.shape, bool)
    mask[20:70, 30:80] = True
    with pytest.warns(UserWarning, match="is 25 pixels away from all known ones"):
        out = inpaint(np.where(mask, np.nan, gray), mask)
    np.testing.assert_array_equal(out[~mask], gray[~mask])
    low, high = gray[~mask].min(), gray[~mask].max()
    assert out.min() > low - 0.5 * (high - low)
    assert out.max() < high + 0.5 * (high - low)


def test_efforts(photo):
    mask = half(photo.shape)
    with pytest.raises(ValueError, match="effort must be <= 2, got 3"):
        inpaint(photo, mask, channel_axis=-1, effort=3)
    volume = np.zeros((9, 9, 9))
    with pytest.raises(ValueError, match="effort=2 is for pictures"):
        inpaint(volume, volume > 1, effort=2, patch_size=(3, 3, 3))


def test_naming_a_parameter_of_codes_begins_with_them(photo):
    mask = half((30, 30))
    steps = []
    settings = {"callbacks": [lambda *_: steps.append(1)], "random_state": 0}
    inpaint(photo[:30, :30, 0], mask, **settings)
    assert not steps
    inpaint(photo[:30, :30, 0], mask, n_atoms=8, max_steps=4, **settings)
    assert steps
