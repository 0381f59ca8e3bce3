"""Patches at random places of pictures."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pictures import noise
from problems import examples

from smalto.datasets import luminance, random_patches, sample_photo


def places_of(patches, picture, height, width):
    """Where each patch, read row by row with its channels side by side, lies in the picture."""
    rows, cols = picture.shape[0] - height + 1, picture.shape[1] - width + 1
    known = {
        np.float64(picture[r : r + height, c : c + width]).tobytes(): (r, c)
        for r in range(rows)
        for c in range(cols)
    }
    return [known[np.float64(patch).tobytes()] for patch in patches]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("as_gray", [True, False])
def test_patches_are_centered_and_of_unit_norm(dtype, as_gray):
    X = random_patches(sample_photo(), 8, 2000, random_state=0, as_gray=as_gray, dtype=dtype)
    assert X.shape == (2000, 64 if as_gray else 192)
    assert X.dtype == dtype
    assert X.flags.c_contiguous
    tol = 1e-6 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(X.mean(axis=1), 0.0, atol=tol)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, atol=tol)


@pytest.mark.parametrize("channels", [(), (3,)])
def test_a_row_is_the_patch_read_row_by_row_with_channels_last(channels):
    picture = noise(9, 11, *channels)
    X = random_patches(
        picture, (2, 4), 500, random_state=1, center=False, normalize=False, dtype=np.float64
    )
    places = places_of(X, picture, 2, 4)
    assert set(places) == {(r, c) for r in range(8) for c in range(8)}  # corners and all


def test_every_place_of_every_picture_is_equally_likely():
    small, large = np.full((4, 5), 0.25), np.full((10, 13), 0.75)  # 6 and 88 places
    X = random_patches(
        [small, large], 3, 20_000, random_state=2, center=False, normalize=False, dtype=np.float64
    )
    # six standard deviations of the share of the small picture
    share, expected = np.mean(X[:, 0] == 0.25), 6 / (6 + 88)
    assert abs(share - expected) < 6 * math.sqrt(expected / 20_000)
    picture = noise(6, 7)
    X = random_patches(
        picture, 3, 20_000, random_state=3, center=False, normalize=False, dtype=np.float64
    )
    counts = np.unique(places_of(X, picture, 3, 3), axis=0, return_counts=True)[1]
    assert len(counts) == 20
    assert np.abs(counts - 1000).max() < 6 * math.sqrt(1000)


def test_integers_are_scaled_and_floats_are_kept():
    X = random_patches(np.full((5, 5), 51, np.uint8), 2, 3, center=False, normalize=False)
    np.testing.assert_allclose(X, 0.2)
    X = random_patches(np.full((5, 5), 51.0), 2, 3, center=False, normalize=False)
    np.testing.assert_array_equal(X, 51.0)


def test_gray_patches_of_a_color_picture_are_its_luminance():
    photo = sample_photo("china")[:60, :60]
    kind = {"random_state": 4, "dtype": np.float64}
    np.testing.assert_allclose(
        random_patches(photo, 6, 100, as_gray=True, **kind),
        random_patches(luminance(photo), 6, 100, **kind),
        atol=1e-12,
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_constant_patches_are_dropped_and_drawn_again(dtype):
    picture = np.full((40, 40), 77, dtype=dtype)
    picture[20, 20] = 78  # 16 of 37 * 37 patches are not constant
    X = random_patches(picture, 4, 200, random_state=5, dtype=np.float64)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0)
    assert len(np.unique(X.argmax(axis=1))) == 16
    np.testing.assert_allclose(X.max(axis=1), math.sqrt(15) / 4)


def test_rounding_does_not_hide_a_constant_patch():
    picture = np.full((40, 40), 0.1)
    assert picture[:7, :7].mean() != 0.1
    picture[20, 20] = 0.2
    X = random_patches(picture, 7, 200, random_state=5, dtype=np.float64)
    np.testing.assert_allclose(X.max(axis=1), math.sqrt(48) / 7)


def test_without_centering_only_zero_patches_are_dropped():
    picture = np.zeros((30, 30))
    picture[:15] = 0.5
    X = random_patches(picture, 3, 300, random_state=6, center=False)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, atol=1e-6)
    assert (X.std(axis=1) < 1e-7).any()


def test_patches_of_little_contrast_are_dropped_too():
    picture = np.full((40, 40, 3), [200, 60, 60], np.uint8)  # a red that centering leaves red
    picture[:, 20:] += np.array([10, 20, 20], np.uint8)
    contrast = math.sqrt((10**2 + 20**2 + 20**2) / 3) / 2 / 255  # half of a patch on each side
    kind = {"random_state": 9, "center": False, "normalize": False, "dtype": np.float64}
    X = random_patches(picture, 4, 50, min_contrast=0.999 * contrast, **kind)
    X = X.reshape(50, 4, 4, 3)
    np.testing.assert_allclose(X[:, :, :2, 0], 200 / 255)
    np.testing.assert_allclose(X[:, :, :2, 1], 60 / 255)
    np.testing.assert_allclose(X[:, :, 2:, 1], 80 / 255)
    with pytest.raises(ValueError, match=r"contrast below 0\.1: only 0 of \d+ draws"):
        random_patches(picture, 4, 50, min_contrast=0.1)
    flat = random_patches(picture, 4, 50, **kind).reshape(50, 16, 3)
    assert (np.ptp(flat, axis=1) == 0).all(axis=1).any()  # without it they are there


@pytest.mark.parametrize(
    ("picture", "center", "word"),
    [(np.full((50, 50), 3, np.uint8), True, "constant"), (np.zeros((50, 50)), False, "zero")],
)
def test_pictures_without_a_usable_patch(picture, center, word):
    with pytest.raises(
        ValueError, match=rf"not {word}: only 0 of \d+ draws were usable, and n is 10"
    ):
        random_patches(picture, 8, 10, random_state=0, center=center)


def test_seeds():
    photo = sample_photo()

    def draw(seed):
        return random_patches(photo, 5, 50, random_state=seed)

    np.testing.assert_array_equal(draw(7), draw(7))
    np.testing.assert_array_equal(draw(7), draw(np.random.default_rng(7)))
    assert (draw(7) != draw(8)).any()


def test_pictures_are_not_written_to():
    picture = noise(20, 20, 3)
    picture.flags.writeable = False
    random_patches([picture], 4, 20, random_state=0)
    luminance(picture)


def test_an_array_of_four_axes_is_a_stack_of_pictures():
    stack = noise(3, 10, 10, 3)
    np.testing.assert_array_equal(
        random_patches(stack, 4, 30, random_state=0),
        random_patches(list(stack), 4, 30, random_state=0),
    )


@examples(30)
@given(
    sizes=st.lists(st.tuples(st.integers(3, 9), st.integers(4, 9)), min_size=1, max_size=4),
    height=st.integers(1, 3),
    width=st.integers(1, 4),
    n=st.integers(1, 40),
    seed=st.integers(0, 2**32),
)
def test_patches_lie_in_their_pictures(sizes, height, width, n, seed):
    pictures = [noise(*size, seed=i) for i, size in enumerate(sizes)]
    X = random_patches(
        pictures,
        (height, width),
        n,
        random_state=seed,
        center=False,
        normalize=False,
        dtype=np.float64,
    )
    known = {
        p[r : r + height, c : c + width].tobytes()
        for p in pictures
        for r in range(p.shape[0] - height + 1)
        for c in range(p.shape[1] - width + 1)
    }
    assert all(x.tobytes() in known for x in X)


@pytest.mark.parametrize(
    ("images", "kind", "message"),
    [
        (np.zeros(5), {}, r"got shape \(5,\)"),
        (np.zeros((9, 9, 4)), {}, r"got shape \(9, 9, 4\)"),
        (np.zeros((0, 9)), {}, r"got shape \(0, 9\)"),
        ([], {}, r"sequence of pictures, got \[\]"),
        (None, {}, "sequence of pictures, got None"),
        ([noise(9, 9), np.zeros((9, 9), np.int64)], {}, r"images\[1\] must hold .* got int64"),
        (np.zeros((9, 9), bool), {}, "got bool"),
        ([noise(9, 9), noise(9, 9, 3)], {}, "some images are gray and some are RGB"),
        (np.full((9, 9), np.nan), {}, r"images\[0\] contains NaN"),
        ([noise(9, 9), np.full((9, 9), np.inf)], {}, r"images\[1\] contains NaN or infinity"),
        ([noise(9, 9), noise(3, 9)], {}, "4 x 4 does not fit into image 1, which is 3 x 9"),
        (noise(9, 9), {"patch_size": 0}, "got 0"),
        (noise(9, 9), {"patch_size": 2.5}, "got 2.5"),
        (noise(9, 9), {"patch_size": (2, 2, 2)}, r"got \(2, 2, 2\)"),
        (noise(9, 9), {"n": 0}, "n must be >= 1, got 0"),
        (noise(9, 9), {"n": 1.5}, "got 1.5"),
        (noise(9, 9), {"n": True}, "got True"),
        (noise(9, 9), {"dtype": np.int32}, "got int32"),
        (noise(9, 9), {"min_contrast": -0.1}, "min_contrast must be >= 0, got -0.1"),
    ],
)
def test_bad_input(images, kind, message):
    arguments = {"patch_size": 4, "n": 50, **kind}
    with pytest.raises((TypeError, ValueError), match=message):
        random_patches(
            images, arguments.pop("patch_size"), arguments.pop("n"), random_state=0, **arguments
        )
