"""Patches as a source of samples, and pictures out of patches."""

import naive_image as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from problems import examples

from smalto import learn
from smalto.coders import Lasso
from smalto.image import PatchAverage, PatchSource, read_picture, reconstruct
from smalto.image.patch_grid import PatchGrid

WHOLE = {"center": False, "normalize": False, "skip_constant": False}


def noise(*shape, seed=0, dtype=np.float64):
    values = np.random.default_rng(seed).random(shape)
    return (values * 255).astype(dtype) if np.dtype(dtype).kind == "u" else values.astype(dtype)


def all_rows(source):
    return source.rows(np.arange(source.n_rows))


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("channels", [(), (3,)])
def test_rows_are_the_patches(kind, channels):
    image = noise(9, 11, *channels, dtype=kind)
    scale = np.iinfo(kind).max if np.dtype(kind).kind == "u" else 1.0
    expected = naive.patches(image.reshape(9, 11, -1) / scale, (4, 3))
    for dtype, tolerance in ((np.float32, 1e-6), (np.float64, 1e-14)):
        X = all_rows(PatchSource(image, (4, 3), dtype=dtype, **WHOLE))
        assert X.dtype == dtype
        np.testing.assert_allclose(X, expected, atol=tolerance)


@pytest.mark.parametrize("by_channel", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
def test_centering_and_norms(by_channel, normalize):
    image = noise(8, 9, 3)
    source = PatchSource(image, 4, by_channel=by_channel, normalize=normalize, dtype=float)
    X, means = source.rows_and_means(np.arange(source.n_rows))
    expected, their = naive.centered(naive.patches(image, (4, 4)), 3 if by_channel else 1)
    if normalize:
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(X, expected, atol=1e-13)
    np.testing.assert_allclose(means, their, atol=1e-13)


def test_several_pictures_in_any_order():
    images = [noise(6, 7, seed=1), noise(9, 5, seed=2), noise(5, 5, seed=3)]
    source = PatchSource(images, 4, dtype=float, **WHOLE)
    expected = np.vstack([naive.patches(image[:, :, None], (4, 4)) for image in images])
    numbers = np.random.default_rng(0).permutation(source.n_rows)
    np.testing.assert_array_equal(source.rows(numbers), expected[numbers])
    for number, (picture, row, column) in zip(numbers, source.positions(numbers), strict=True):
        patch = images[picture][row : row + 4, column : column + 4].ravel()
        np.testing.assert_array_equal(expected[number], patch)


def test_stacks_and_memory_maps_are_not_copied(tmp_path):
    frames = np.memmap(tmp_path / "v", np.uint8, "w+", shape=(4, 9, 10, 3))
    frames[:] = noise(4, 9, 10, 3, dtype=np.uint8)
    source = PatchSource(frames, 5, **WHOLE)
    assert np.shares_memory(source._grids[0].pixels, frames)
    other = PatchSource(list(np.array(frames)), 5, **WHOLE)
    np.testing.assert_array_equal(all_rows(source), all_rows(other))


def test_pictures_that_may_be_written_to_and_others_need_the_same_kernels():
    pixels = np.zeros((1, 9, 9, 1))
    for writeable in (True, False):
        pixels.flags.writeable = writeable
        assert not PatchGrid(pixels, (4, 4)).flat.flags.writeable
        assert pixels.flags.writeable == writeable


def test_damaged_and_constant_patches_are_left_out():
    image = noise(12, 14)
    image[:6, :6] = 0.3
    mask = np.zeros(image.shape, bool)
    mask[8, 9] = True
    image[8, 9] = np.nan
    X = all_rows(PatchSource(image, 4, mask=mask, center=False, normalize=False, dtype=float))
    every = naive.patches(image[:, :, None], (4, 4))
    whole = np.isfinite(every).all(axis=1)
    np.testing.assert_array_equal(X, every[whole])
    source = PatchSource(image, 4, mask=mask, normalize=False, dtype=float)
    varied = every[whole & (np.ptp(every, axis=1) > 0)]
    np.testing.assert_allclose(all_rows(source), naive.centered(varied, 1)[0], atol=1e-14)
    assert len(varied) < whole.sum() < len(every)


def test_contrast_is_that_of_pixels_from_their_mean_color():
    image = noise(15, 16, 3) * np.linspace(0, 1, 16)[:, None]
    every = naive.patches(image, (5, 5))
    source = PatchSource(image, 5, min_contrast=0.1, dtype=float, **WHOLE)
    chosen = every[naive.contrast(every, 3) >= 0.1]
    assert 0 < len(chosen) < len(every)
    np.testing.assert_array_equal(all_rows(source), chosen)


def test_patches_with_holes():
    image, mask = noise(10, 11, 3), np.random.default_rng(1).random((10, 11)) < 0.4
    source = PatchSource(
        np.where(mask[:, :, None], np.inf, image),
        4,
        mask=mask,
        min_known=0.5,
        normalize=False,
        dtype=float,
    )
    holes = naive.patches(np.repeat(mask[:, :, None], 3, axis=2), (4, 4))
    keep = holes.mean(axis=1) <= 0.5
    expected = np.where(holes, np.nan, naive.patches(image, (4, 4)))[keep]
    expected -= np.nanmean(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(all_rows(source), expected, atol=1e-13)
    result = learn(source, 8, Lasso(0.1), max_steps=3, missing="nan", random_state=0)
    assert np.isfinite(result.D).all()


def test_learning_from_a_source_is_learning_from_its_rows():
    source = PatchSource(noise(30, 30), 5)
    kind = {"max_epochs": 2, "random_state": 3, "n_threads": 1}
    one = learn(source, 12, Lasso(0.2), **kind)
    two = learn(all_rows(source), 12, Lasso(0.2), **kind)
    np.testing.assert_array_equal(one.D, two.D)


@examples(25)
@given(
    sides=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    patch=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    channels=st.sampled_from([1, 3]),
    kind=st.sampled_from([np.float32, np.float64]),
    block=st.integers(1, 30),
    seed=st.integers(0, 1000),
)
def test_patches_and_reconstruction_are_inverses(sides, patch, channels, kind, block, seed):
    shape = (sides[0] + patch[0] - 1, sides[1] + patch[1] - 1, *([3] if channels == 3 else []))
    image = noise(*shape, seed=seed, dtype=kind) * 10.0 ** (seed % 7 - 3)
    image = image.astype(kind)
    X = all_rows(PatchSource(image, patch, dtype=kind, **WHOLE))
    back = reconstruct(X, shape, patch)
    assert back.dtype == kind
    np.testing.assert_array_equal(back, image)
    changed = X + noise(*X.shape, seed=seed + 1).astype(kind)
    blocks = (changed[i : i + block] for i in range(0, len(X), block))
    np.testing.assert_array_equal(
        reconstruct(blocks, shape, patch), reconstruct(changed, shape, patch)
    )


def test_means_and_weights_in_averages():
    image = noise(8, 9, 3)
    source = PatchSource(
        image, 4, by_channel=True, normalize=False, skip_constant=False, dtype=float
    )
    X, means = source.rows_and_means(np.arange(source.n_rows))
    np.testing.assert_allclose(reconstruct(X, image.shape, 4, means=means), image, atol=1e-14)
    rng = np.random.default_rng(0)
    rows, columns, weights = rng.integers(5, size=7), rng.integers(6, size=7), rng.random(7) + 0.1
    Y = rng.random((7, 48))
    average = PatchAverage(image.shape, 4)
    average.add(Y, rows, columns, patch_weights=weights)
    total, weight = naive.average(Y, rows, columns, weights, image.shape, (4, 4))
    covered = weight > 0
    np.testing.assert_allclose(average.weight, weight)
    np.testing.assert_allclose(
        average.image()[covered], (total / np.where(covered, weight, 1))[covered]
    )
    assert not average.image()[~covered].any()
    blended = average.image(image, 0.5)
    np.testing.assert_array_equal(blended[~covered], image[~covered])
    np.testing.assert_allclose(blended[covered], ((total + 0.5 * image) / (weight + 0.5))[covered])


@pytest.mark.parametrize(
    ("shape", "size"), [((20, 23, 3), (4, 5)), ((6, 9, 8), (2, 3, 4)), ((40,), (7,))]
)
def test_threads_do_not_matter_to_averages(shape, size):
    rng = np.random.default_rng(0)
    sides = shape[: len(size)]
    corners = [
        rng.integers(own - side + 1, size=300) for own, side in zip(sides, size, strict=True)
    ]
    channels = int(np.prod(shape[len(size) :]))
    X = rng.standard_normal((300, int(np.prod(size)) * channels))
    weights = rng.random(300) + 0.1
    one, many = PatchAverage(shape, size), PatchAverage(shape, size)
    one.add(X, *corners, patch_weights=weights)
    many.add(X, *corners, patch_weights=weights, n_threads=5)
    np.testing.assert_array_equal(many.image(), one.image())
    np.testing.assert_array_equal(many.weight, one.weight)


def test_files_and_folders(tmp_path):
    gray, rgb = noise(9, 10, dtype=np.uint8), noise(9, 10, 3, dtype=np.uint8)
    wide = (noise(9, 10) * 60000).astype(np.uint16)
    Image.fromarray(gray).save(tmp_path / "b.png")
    Image.fromarray(gray + np.uint8(1)).save(tmp_path / "a.png")
    (tmp_path / "notes.txt").write_text("no picture")
    source = PatchSource(tmp_path, 4, **WHOLE)
    np.testing.assert_array_equal(
        all_rows(source), all_rows(PatchSource([gray + np.uint8(1), gray], 4, **WHOLE))
    )
    Image.fromarray(rgb).save(tmp_path / "c.tif")
    Image.fromarray(wide).save(tmp_path / "w.png")
    np.testing.assert_array_equal(read_picture(tmp_path / "c.tif"), rgb)
    np.testing.assert_array_equal(read_picture(tmp_path / "w.png"), wide)
    with pytest.raises(ValueError, match="some images are gray and some are RGB"):
        PatchSource(tmp_path, 4)


def test_files_that_are_no_pictures(tmp_path, monkeypatch):
    path = tmp_path / "x.png"
    Image.fromarray(noise(200, 200, 3, dtype=np.uint8)).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"x\.png is damaged or truncated"):
        read_picture(path)
    path.write_text("renamed")
    with pytest.raises(ValueError, match="is not a picture that can be read"):
        read_picture(path)
    path.write_bytes(whole)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(ValueError, match="too many pixels"):
        read_picture(path)
    with pytest.raises(FileNotFoundError):
        read_picture(tmp_path / "nothing.png")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no pictures"):
        PatchSource(tmp_path / "empty", 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PatchSource(noise(9, 9), 10), "10 x 10 does not fit into image 0, which is 9 x 9"),
        (lambda: PatchSource(np.zeros((9, 9)), 4), "all 36 of them are constant"),
        (lambda: PatchSource(noise(9, 9), 4, mask=np.ones((9, 9), bool)), "damaged or constant"),
        (
            lambda: PatchSource(noise(9, 9), 4, mask=np.ones((9, 8), bool)),
            r"\(9, 9\), got \(9, 8\)",
        ),
        (lambda: PatchSource(noise(9, 9), 4, mask=np.ones((9, 9))), "booleans .* got float64"),
        (lambda: PatchSource([noise(9, 9)] * 2, 4, mask=[None]), "each of 2 pictures, got 1"),
        (lambda: PatchSource(np.full((9, 9), np.nan), 4), r"images\[0\] contains NaN"),
        (lambda: PatchSource(noise(9, 9), 4, min_known=2), r"min_known must be in \[0, 1\]"),
        (lambda: PatchSource(noise(9, 9), 4, dtype=int), "float32 or float64"),
        (lambda: PatchSource(noise(9, 9, 5), 4), r"list\(images\)"),
        (lambda: PatchSource(noise(9, 9), 4).rows(np.array([36])), "from 0 to 35, got 36"),
        (lambda: reconstruct(np.zeros((35, 16)), (9, 9), 4), "36 patches of 4 x 4, got 35"),
        (lambda: reconstruct(np.zeros((37, 16)), (9, 9), 4), r"block of shape \(37, 16\) after 0"),
        (lambda: reconstruct(np.zeros((36, 15)), (9, 9), 4), "rows of 16 numbers"),
        (lambda: reconstruct(np.full((36, 16), np.nan), (9, 9), 4), "patches contains NaN"),
        (lambda: PatchAverage((3, 9), 4), "does not fit into the picture"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises((ValueError, TypeError, IndexError), match=message):
        call()


def test_bad_corners_and_weights():
    average = PatchAverage((9, 9), 4)
    zeros = np.zeros(1, int)
    with pytest.raises(ValueError, match="rows must be between 0 and 5"):
        average.add(np.zeros((1, 16)), zeros + 6, zeros)
    with pytest.raises(ValueError, match="patch_weights must be 1 numbers > 0"):
        average.add(np.zeros((1, 16)), zeros, zeros, patch_weights=np.zeros(1))


def test_pictures_are_not_written_to():
    image, mask = noise(12, 12, 3, dtype=np.uint8), np.zeros((12, 12), bool)
    mask[3, 3] = True
    image.flags.writeable = mask.flags.writeable = False
    source = PatchSource(image, 4, mask=mask, min_contrast=0.01)
    source.rows(np.arange(3))
