"""Rounds in which similar patches are combined, against slow twins."""

import naive_image as naive
import numpy as np
import pytest

from smalto.image import denoise
from smalto.image.denoising_rounds import denoise_in_rounds
from smalto.image.patch_grid import PatchGrid
from smalto.image.similar_patches import similar_groups
from smalto.image.stages import watched
from smalto.kernels.image.patch_combining import combine_groups, combining_scratch
from smalto.kernels.image.patch_gathering import Lines


def weights_of(X, noise):
    """The weights Θ of one group by its Lagrange conditions, patch by patch."""
    n, m = X.shape
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = X @ X.T + m * noise**2 * np.eye(n)
    system[n, n] = 0.0
    right = np.vstack([X @ X.T, np.ones((1, n))])
    return np.linalg.solve(system, right)[:n].T


def mse(a, b):
    return np.mean((np.asarray(a, np.float64) - b) ** 2)


def combine_patches(Z, X, noise):
    """Combinations of the patches Z of groups, by the weights for X, and their weights."""
    groups, n, m = X.shape
    corners = (m * np.arange(groups * n)).reshape(groups, n)
    lines = Lines(np.zeros(1, np.int64), m, 1)
    out, weights = np.empty_like(Z), np.empty((groups, n))
    scratch = combining_scratch(n, m, X.dtype)
    combine_groups(Z.reshape(-1), X.reshape(-1), corners, lines, noise, scratch, out, weights)
    return out, weights


@pytest.mark.parametrize(("n", "m"), [(7, 4), (5, 9), (1, 4), (40, 36)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_combinations(n, m, dtype):
    rng = np.random.default_rng(0)
    X, Z = (5.0 + 3.0 * rng.standard_normal((2, 3, n, m))).astype(dtype)
    noise = np.array([0.2, 1.0, 4.0])
    out, weights = combine_patches(Z, X, noise)
    rtol = 1e-3 if dtype == np.float32 else 1e-9
    for i in range(3):
        theta = weights_of(X[i].astype(np.float64), noise[i])
        np.testing.assert_allclose(out[i], theta @ Z[i], rtol=rtol)
        np.testing.assert_allclose(weights[i], 1.0 / np.sum(theta**2, axis=1), rtol=rtol)


def test_combinations_have_the_least_expected_error():
    rng = np.random.default_rng(1)
    n, m, noise = 6, 8, 0.7
    X = rng.standard_normal((1, n, m))
    theta, _ = combine_patches(np.eye(n, m)[None].copy(), X, np.array([noise]))
    theta = theta[0, :, :n]

    def risk(theta):
        return np.sum((X[0] - theta @ X[0]) ** 2) + m * noise**2 * np.sum(theta**2)

    np.testing.assert_allclose(theta.sum(axis=1), 1.0, rtol=1e-12)
    for _ in range(50):
        step = 1e-3 * rng.standard_normal((n, n))
        step -= step.mean(axis=1, keepdims=True)
        assert risk(theta + step) > risk(theta)


def rounds_by_hand(noisy, clean, sigma, sides, n_rounds):
    """A gray picture in rounds, group by group."""
    left = noisy
    h, w = noisy.shape
    for number in range(n_rounds):
        kept = 0.85 * (1 - (number + 1) / n_rounds)
        if number % 3 == 0:
            guide = left if number else clean
            side = sides[number // 3 % len(sides)]
            groups = similar_groups(
                PatchGrid(guide[None, :, :, None], (side, side)), 40, 1, stride=3
            )
        total, weight = np.zeros((2, h, w))
        for group in groups:
            places = [divmod(int(at), w - side + 1) for at in group]
            Y, Z, X = (
                np.array([part[r : r + side, c : c + side].ravel() for r, c in places])
                for part in (noisy, left, clean)
            )
            noise = sigma * max(1 - np.std(Y - Z) / sigma, kept, 0.03)
            theta = weights_of(X, noise)
            for (r, c), patch, own in zip(places, theta @ Z, theta, strict=True):
                total[r : r + side, c : c + side] += patch.reshape(side, side) / np.sum(own**2)
                weight[r : r + side, c : c + side] += 1 / np.sum(own**2)
        clean = total / weight
        share = kept / max(1 - np.std(noisy - left) / sigma, kept, 0.03)
        left = clean + share * (left - clean)
    return clean


@pytest.fixture(scope="module")
def photo():
    clean = naive.picture(96, 120)
    return clean, clean + np.random.default_rng(0).normal(0, 20, clean.shape)


def test_rounds(photo):
    noisy = photo[1][:22, :24]
    start = photo[0][:22, :24] + 0.2 * noisy
    expected = rounds_by_hand(noisy, start, 20.0, (5, 4), 7)
    assert np.std(expected - noisy) > 5.0
    for n_threads in (1, 3):
        out = denoise_in_rounds(noisy[..., None], start[..., None], 20.0, (5, 4), 7, n_threads)
        np.testing.assert_allclose(out[:, :, 0], expected, rtol=1e-8)


def test_channels_share_their_groups(photo):
    clean, noisy = (part[:40, :44, None] for part in photo)
    one = denoise_in_rounds(noisy, clean, 20.0, (6,), 4, 1)
    two = denoise_in_rounds(
        np.repeat(noisy, 2, axis=2), np.repeat(clean, 2, axis=2), 20.0, (6,), 4, 1
    )
    np.testing.assert_allclose(two, np.repeat(one, 2, axis=2), rtol=1e-9)


def test_rounds_help(photo):
    clean, noisy = photo
    start = denoise(noisy, 20.0, random_state=0)
    out = denoise_in_rounds(noisy[..., None], start[..., None], 20.0, (6,), 12, 2)[:, :, 0]
    assert mse(out, clean) < 0.98 * mse(start, clean)
    best = denoise(noisy, 20.0, effort=2, random_state=0)
    assert mse(best, clean) < 0.95 * mse(start, clean)


@pytest.mark.parametrize("scale", [1e-30, 1e25])
def test_units_do_not_matter(photo, scale):
    clean, noisy = (part[:30, :32, None].astype(np.float32) for part in photo)
    one = denoise_in_rounds(noisy, clean, 20.0, (6,), 4, 1)
    factor = np.float32(scale)
    other = denoise_in_rounds(noisy * factor, clean * factor, 20.0 * float(factor), (6,), 4, 1)
    assert other.dtype == np.float32
    np.testing.assert_allclose(other / factor, one, atol=0.05)


def test_threads_do_not_matter(photo):
    few = photo[1][:50, :60].astype(np.float32)
    one, two = (denoise(few, 20.0, effort=2, n_threads=n, random_state=0) for n in (1, 3))
    assert one.dtype == np.float32
    np.testing.assert_array_equal(one, two)


def test_flat_pictures_stay():
    flat = np.full((12, 13, 1), 7.0)
    np.testing.assert_allclose(denoise_in_rounds(flat, flat, 2.0, (6,), 12, 1), flat, rtol=1e-12)


@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (3, 60), (7, 7)])
def test_small_pictures(photo, shape):
    noisy = photo[1][: shape[0], : shape[1]]
    out = denoise(noisy, 20.0, effort=2, random_state=0)
    assert out.shape == shape
    assert np.all(np.isfinite(out))


def test_integers_in_color(photo):
    gray = np.clip(np.rint(photo[1][:40, :44]), 0, 255).astype(np.uint8)
    picture = np.stack([gray, gray[::-1], gray], axis=2)
    out = denoise(picture, 20.0, effort=2, channel_axis=-1, random_state=0)
    assert out.dtype == np.uint8
    assert out.shape == picture.shape
    assert out.std() < picture.std()


def test_progress_and_interruption(photo):
    few = photo[1][:40, :44, None]
    told = []
    with watched(lambda what, share: told.append((what, share))):
        denoise_in_rounds(few, few, 20.0, (6,), 4, 1)
    assert told == [("denoising in rounds", share) for share in (0.25, 0.5, 0.75, 1.0)]

    def interrupt(what, share):
        if share >= 0.5:
            raise KeyboardInterrupt

    with watched(interrupt), pytest.raises(KeyboardInterrupt):
        denoise_in_rounds(few, few, 20.0, (6,), 4, 2)
    expected = denoise_in_rounds(few, few, 20.0, (6,), 4, 1)
    np.testing.assert_array_equal(denoise_in_rounds(few, few, 20.0, (6,), 4, 2), expected)
