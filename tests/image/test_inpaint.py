"""Missing pixels filled in."""

import naive_image as naive
import numpy as np
import pytest
from scipy import sparse

from smalto.image import PatchSource, inpaint, inpaint_video
from smalto.image.damaged_picture import damaged_positions
from smalto.image.patch_grid import PatchGrid
from smalto.image.smooth_part import fill_smoothly, smooth_part

QUICK = {
    "patch_size": 8,
    "n_atoms": 32,
    "max_steps": 15,
    "n_rounds": 1,
    "stride": 2,
    "random_state": 0,
}


def error(a, b, mask):
    return float(np.sqrt(np.mean((np.asarray(a, float)[mask] - np.asarray(b, float)[mask]) ** 2)))


@pytest.fixture(scope="module")
def photo():
    planes = [naive.picture(80, 90, s).clip(0, 255) for s in (0, 1, 2)]
    return np.stack(planes, axis=2).astype(np.uint8)


def stripes(shape):
    mask = np.zeros(shape, bool)
    mask[10::25, 5:-5] = mask[11::25, 5:-5] = True
    return mask


def test_lines_are_removed_and_the_rest_is_kept(photo):
    mask = stripes(photo.shape[:2])
    damaged = np.where(mask[:, :, None], 255, photo).astype(np.uint8)
    before = damaged.copy()
    out = inpaint(damaged, mask, channel_axis=-1, **QUICK)
    np.testing.assert_array_equal(damaged, before)
    assert out.dtype == np.uint8
    np.testing.assert_array_equal(out[~mask], photo[~mask])
    assert error(out, photo, mask) < 8
    channels_first = np.moveaxis(damaged, 2, 0), np.repeat(mask[None], 3, 0)
    first = inpaint(*channels_first, channel_axis=0, **QUICK)
    np.testing.assert_array_equal(np.moveaxis(first, 0, 2), out)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_random_pixels(photo, dtype):
    gray = photo[:, :, 1].astype(dtype)
    mask = np.random.default_rng(0).random(gray.shape) < 0.5
    out = inpaint(np.where(mask, np.nan, gray).astype(dtype), mask, **QUICK)
    assert out.dtype == dtype
    assert error(out, gray, mask) < 8
    assert error(np.full_like(gray, gray[~mask].mean()), gray, mask) > 30


@pytest.mark.parametrize("stride", [1, 3, 5, 8])
def test_a_stride_leaves_no_pixel_out(stride):
    """Every stride-th row and column of patches, and the last ones."""
    mask = np.add.outer(np.arange(41), np.arange(38)) % 2 == 0
    grid = PatchGrid(np.zeros((1, 41, 38, 1)), (8, 8))
    rows, columns = np.divmod(damaged_positions(grid, mask, 1, stride), 31)
    assert sorted(set(rows)) == [r for r in range(34) if r % stride == 0 or r == 33]
    assert sorted(set(columns)) == [c for c in range(31) if c % stride == 0 or c == 30]
    assert len(rows) == len(set(rows)) * len(set(columns))


def test_a_hole_larger_than_a_patch_is_filled_from_its_border():
    slope = np.add.outer(np.arange(60.0), 2 * np.arange(60.0))
    slope += np.random.default_rng(0).normal(0, 0.1, slope.shape)
    mask = np.zeros(slope.shape, bool)
    mask[20:40, 22:42] = True
    out = inpaint(np.where(mask, 0, slope), mask, **QUICK)
    assert np.isfinite(out).all()
    assert error(out, slope, mask) < 0.6 * error(np.full_like(slope, slope.mean()), slope, mask)


def test_threads_do_not_matter(photo):
    gray = photo[:50, :60, 0]
    mask = stripes(gray.shape)
    one, two = (inpaint(gray, mask, n_threads=n, **QUICK) for n in (1, 3))
    np.testing.assert_array_equal(one, two)


def test_special_masks(photo):
    gray = photo[:, :, 0]
    none = np.zeros(gray.shape, bool)
    same = inpaint(gray, none)
    np.testing.assert_array_equal(same, gray)
    assert same is not gray
    flat = np.full((30, 30), 9.0)
    mask = np.zeros(flat.shape, bool)
    mask[10:14, 10:14] = True
    np.testing.assert_allclose(inpaint(flat, mask), flat)
    one = np.ones((20, 20), bool)
    one[7, 9] = False
    np.testing.assert_allclose(inpaint(np.full((20, 20), 4.0), one, **QUICK), 4.0, rtol=1e-5)


def test_masked_arrays(photo):
    mask = stripes(photo.shape[:2])
    expected = inpaint(photo, mask, channel_axis=-1, **QUICK)
    masked = np.ma.array(np.where(mask[:, :, None], 0, photo).astype(np.uint8), mask=False)
    masked[mask] = np.ma.masked
    out = inpaint(masked, channel_axis=-1, **QUICK)
    assert not isinstance(out, np.ma.MaskedArray)
    np.testing.assert_array_equal(out, expected)
    # A mask that is given adds to it.
    first, rest = mask.copy(), mask.copy()
    first[40:], rest[:40] = False, False
    masked = np.ma.array(photo, mask=np.repeat(first[:, :, None], 3, axis=2))
    np.testing.assert_array_equal(inpaint(masked, rest, channel_axis=-1, **QUICK), expected)
    same = inpaint(np.ma.array(photo), channel_axis=-1)
    np.testing.assert_array_equal(same, photo)


def test_pictures_smaller_than_a_patch():
    slope = np.add.outer(np.arange(6.0), 2 * np.arange(9.0))
    mask = np.zeros(slope.shape, bool)
    mask[2, 3:5] = True
    out = inpaint(np.where(mask, np.nan, slope), mask, n_atoms=8, max_steps=3, random_state=0)
    assert out.shape == slope.shape
    np.testing.assert_array_equal(out[~mask], slope[~mask])
    assert np.abs(out - slope).max() < 2.0


def test_given_atoms(photo):
    gray = photo[:, :, 0].astype(float)
    mask = stripes(gray.shape)
    D = np.random.default_rng(0).standard_normal((20, 64))
    out = inpaint(gray, mask, D=D, patch_size=8)
    assert np.isfinite(out).all()
    np.testing.assert_array_equal(out[~mask], gray[~mask])


def test_nan_is_missing_unless_a_mask_is_given(photo):
    color = photo.astype(float)
    mask = stripes(color.shape[:2])
    expected = inpaint(color, mask, channel_axis=2)
    color[mask, 1] = np.nan
    np.testing.assert_array_equal(inpaint(color, channel_axis=2), expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, m: inpaint(x, np.ones_like(m)), "all of the 7200 pixels are masked"),
        (lambda x, m: inpaint(x, m[:-1]), r"shape of its picture, \(80, 90\), got \(79, 90\)"),
        (lambda x, m: inpaint(np.dstack([x] * 3), m), "for a color picture pass channel_axis=-1"),
        (lambda x, m: inpaint(np.stack([x] * 3), m), "for a color picture pass channel_axis=0"),
        (lambda x, m: inpaint(x, m.astype(float)), "True = missing"),
        (lambda x, m: inpaint(x), "pass mask, True where a pixel is missing, or a masked array"),
        (lambda x, m: inpaint(np.where(m, x, np.nan), m), "image contains NaN"),
        (lambda x, m: inpaint(x, m, lam=-1.0), "lam must be >= 0"),
        (lambda x, m: inpaint(x, m, patch_size=1, max_steps=1), "share no patch of 1 x 1"),
        (lambda x, m: inpaint(x, m, D=np.ones((2, 9))), "D has 9 features"),
    ],
)
def test_bad_input(photo, call, message):
    gray = photo[:, :, 0].astype(float)
    with pytest.raises((ValueError, TypeError), match=message):
        call(gray, stripes(gray.shape))


def test_masks_may_be_bytes_or_integers(photo):
    mask = stripes(photo.shape[:2])
    pillows = (mask.view(np.uint8) * np.uint8(255)).view(bool)  # as np.array of a bilevel picture
    expected = inpaint(photo, mask, channel_axis=-1, **QUICK)
    assert np.array_equal(inpaint(photo, pillows, channel_axis=-1, **QUICK), expected)
    for integers in (mask.astype(np.uint8) * np.uint8(255), mask.astype(int)):
        assert np.array_equal(inpaint(photo, integers, channel_axis=-1, **QUICK), expected)
    with pytest.raises(TypeError, match="zeros and one other integer, got uint8"):
        inpaint(photo, photo[:, :, 0], channel_axis=-1, **QUICK)


# --- the smooth part


def test_least_curvature():
    rng = np.random.default_rng(0)
    pixels, mask = rng.random((9, 11, 2)), rng.random((9, 11)) < 0.4
    out = fill_smoothly(pixels, mask)
    np.testing.assert_array_equal(out[~mask], pixels[~mask])
    np.testing.assert_allclose(out, naive.least_curvature(pixels, mask), atol=2e-3)


def test_smooth_part():
    y, x = np.mgrid[:300, :40].astype(float)
    plane = (2 * y - x)[:, :, None]
    mask = np.random.default_rng(0).random(plane.shape[:2]) < 0.5
    mask[120:126] = True
    damaged = np.where(mask[:, :, None], 1e6, plane)
    inner = np.s_[10:-10, 10:-10]
    np.testing.assert_allclose(smooth_part(damaged, mask)[inner], plane[inner], atol=0.1)
    np.testing.assert_array_equal(smooth_part(np.full((30, 20, 1), 0.1), mask[:30, :20]), 0.1)
    mask[:] = True
    mask[0, 0] = False
    np.testing.assert_array_equal(smooth_part(damaged, mask), damaged[0, 0, 0])


def test_no_warning_of_a_penalty_that_nobody_has_set():
    # Warnings are errors here.
    picture = np.random.default_rng(0).random((40, 40)).cumsum(axis=0).cumsum(axis=1)
    mask = np.random.default_rng(1).random((40, 40)) < 0.99
    assert np.isfinite(inpaint(picture, mask, patch_size=6, random_state=0)).all()


@pytest.mark.parametrize("undamaged", [True, False])
def test_small_pictures_are_learned_from_a_bounded_number_of_times(undamaged):
    clean = np.random.default_rng(0).standard_normal((24, 24))
    mask = np.zeros(clean.shape, bool)
    mask[:, 23] = undamaged
    mask[::4, ::4] |= not undamaged
    seen = []
    inpaint(
        clean, mask, n_atoms=8, patch_size=8, n_rounds=2, random_state=0,
        callbacks=[lambda state, record: seen.append(record.samples)],
    )  # fmt: skip
    patches = 16 * 17 if undamaged else 17 * 17
    assert max(seen) == 8 * patches
    assert seen.count(8 * patches) == (1 if undamaged else 2)


def test_a_sparse_mask_is_as_good_as_a_dense_one():
    rng = np.random.default_rng(0)
    image, mask = rng.random((20, 24)), rng.random((20, 24)) < 0.1
    for kind in (sparse.csr_array, sparse.coo_matrix):
        thin = kind(mask)
        np.testing.assert_array_equal(inpaint(image, thin), inpaint(image, mask))
        frames = [image, image]
        for one, other in ((thin, mask), ([thin, thin], [mask, mask])):
            np.testing.assert_array_equal(
                list(inpaint_video(frames, one)), list(inpaint_video(frames, other))
            )
        sources = [PatchSource(image, 4, mask=m) for m in (thin, mask)]
        np.testing.assert_array_equal(*(s.rows(np.arange(s.n_rows)) for s in sources))
