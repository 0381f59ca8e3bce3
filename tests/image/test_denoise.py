"""Noise: how strong it is, and pictures and streams without it."""

import naive_image as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import examples

from smalto.coders import Lasso
from smalto.image import FrameLearner, cosine_atoms, denoise, denoise_video, estimate_noise
from smalto.image.denoise import average_over, default_gain
from smalto.image.patch_grid import PatchGrid
from smalto.image.similar_patches import code_over_each_other, similar_groups

QUICK = {"n_atoms": 48, "max_steps": 25, "patch_size": 8, "random_state": 0}


def psnr(a, b, top=255.0):
    return 10 * np.log10(top**2 / np.mean((np.asarray(a, float) - b) ** 2))


@pytest.fixture(scope="module")
def gray():
    clean = naive.picture(96, 120).astype(np.float32)
    noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape).astype(np.float32)
    return clean, noisy


@pytest.fixture(scope="module")
def color():
    clean = np.stack([naive.picture(80, 90, s) for s in (0, 1, 2)], axis=2).clip(0, 255)
    clean = clean.astype(np.uint8)
    noisy = clean + np.random.default_rng(1).normal(0, 20, clean.shape)
    return clean, np.clip(np.rint(noisy), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("sigma", [10.0, 25.0])
def test_noise_level(gray, sigma):
    clean, _ = gray
    noisy = clean + np.random.default_rng(3).normal(0, sigma, clean.shape)
    assert abs(estimate_noise(noisy) - sigma) < 0.15 * sigma
    rgb = np.stack([noisy, noisy[::-1], noisy[:, ::-1]])
    assert estimate_noise(rgb, channel_axis=0) == pytest.approx(estimate_noise(noisy), rel=0.02)
    assert estimate_noise(np.full((40, 50), 7.0)) == 0.0


def test_noise_goes(gray):
    clean, noisy = gray
    out = denoise(noisy, 20.0, **QUICK)
    assert out.dtype == np.float32
    assert psnr(out, clean) > psnr(noisy, clean) + 6.0
    guessed = denoise(noisy, **QUICK)
    assert psnr(guessed, clean) > psnr(noisy, clean) + 5.5


@pytest.mark.parametrize("kind", [{"random_state": 0}, QUICK])
def test_more_effort_is_better(gray, kind):
    clean, noisy = gray
    none, some, most = (denoise(noisy, 20.0, effort=i, **kind) for i in range(3))
    assert psnr(some, clean) > psnr(none, clean) + 0.3
    assert psnr(most, clean) > psnr(some, clean)


@pytest.mark.parametrize("effort", [0, 1])
def test_atoms_of_whole_color_patches(color, effort):
    clean, noisy = color
    D = cosine_atoms(6, 3)
    out = denoise(noisy, 20.0, D=D, patch_size=6, effort=effort, channel_axis=-1)
    assert psnr(out, clean) > psnr(noisy, clean) + 4.0
    if effort == 0:  # the axes of colors do not matter
        grid = PatchGrid(noisy[None].astype(np.float32), (6, 6))
        plain = average_over(D, grid, default_gain(108) * 20.0, 1, 1).image(noisy, 0.01 * 36)
        assert psnr(out, plain) > 45.0


@pytest.mark.parametrize("side", [5, (9, 16), 17])
def test_any_size_of_patches(gray, side):
    clean, noisy = gray
    for effort in (0, 1):
        out = denoise(noisy, 20.0, effort=effort, patch_size=side, random_state=0)
        assert psnr(out, clean) > psnr(noisy, clean) + 5.5


def test_color_dtype_and_axis(color):
    clean, noisy = color
    before = noisy.copy()
    kind = {**QUICK, "patch_size": 6}
    out = denoise(noisy, 20.0, channel_axis=-1, **kind)
    np.testing.assert_array_equal(noisy, before)
    assert out.dtype == np.uint8
    assert out.shape == noisy.shape
    assert psnr(out, clean) > psnr(noisy, clean) + 6.0
    first = denoise(np.moveaxis(noisy, 2, 0), 20.0, channel_axis=0, **kind)
    np.testing.assert_array_equal(np.moveaxis(first, 0, 2), out)


def test_units_do_not_matter(gray):
    _, noisy = gray
    one = denoise(noisy.astype(np.float64), 20.0, **QUICK)
    two = denoise(noisy.astype(np.float64) / 256, 20.0 / 256, **QUICK)
    assert one.dtype == np.float64
    np.testing.assert_allclose(256 * two, one, atol=1e-3)


def test_threads_do_not_matter(gray):
    _, noisy = gray
    kind = {"n_atoms": 20, "max_steps": 3, "patch_size": 6, "random_state": 0}
    one, two = (denoise(noisy[:50, :60], 20.0, n_threads=n, **kind) for n in (1, 3))
    np.testing.assert_array_equal(one, two)


def test_special_pictures(gray):
    _, noisy = gray
    np.testing.assert_array_equal(denoise(noisy, 0.0), noisy)
    flat = np.full((20, 20), 5, np.uint8)
    np.testing.assert_array_equal(denoise(flat, 3.0), flat)
    np.testing.assert_array_equal(denoise(flat), flat)
    half = np.where(np.arange(90)[:, None] < 45, noisy[:90], 0.0)  # many patches are equal
    for effort in (0, 1, 2):
        out = denoise(half, 20.0, effort=effort, random_state=0)
        assert np.abs(out[60:]).max() < 1.0


@pytest.mark.parametrize("shape", [(1, 1), (4, 5), (1, 30), (3, 60), (7, 7)])
def test_pictures_smaller_than_a_patch(gray, shape):
    clean, noisy = (image[: shape[0], : shape[1]] for image in gray)
    out = denoise(noisy, 20.0, n_atoms=8, max_steps=3, random_state=0)
    assert out.shape == shape
    if shape == (1, 1):
        np.testing.assert_allclose(out, noisy, rtol=1e-6)
    else:
        assert np.ptp(out) > 0.3 * np.ptp(clean)
        assert psnr(out, clean) > psnr(noisy, clean)


def test_masked_arrays(gray):
    clean, noisy = gray
    hidden = np.zeros(noisy.shape, bool)
    hidden[20:30, 40:60] = True
    masked = np.ma.array(np.where(hidden, np.nan, noisy), mask=hidden)
    assert estimate_noise(masked) == pytest.approx(20.0, rel=0.1)
    out = denoise(masked, 20.0, **QUICK)
    assert isinstance(out, np.ma.MaskedArray)
    assert out.dtype == noisy.dtype
    np.testing.assert_array_equal(out.mask, hidden)
    np.testing.assert_array_equal(out.data[hidden], masked.data[hidden])
    assert psnr(out[~hidden], clean[~hidden]) > psnr(noisy[~hidden], clean[~hidden]) + 6.0
    # What is hidden does not matter.
    other = np.ma.array(np.where(hidden, np.float32(1e6), noisy), mask=hidden)
    np.testing.assert_array_equal(denoise(other, 20.0, **QUICK)[~hidden], out[~hidden])
    plain = denoise(np.ma.array(noisy), 20.0, **QUICK)
    np.testing.assert_array_equal(plain, denoise(noisy, 20.0, **QUICK))
    with pytest.raises(ValueError, match=r"all of the 11520 pixels of image are masked"):
        denoise(np.ma.array(noisy, mask=True), 20.0)


def test_one_masked_channel_of_a_pixel(color):
    noisy = color[1]
    masked = np.ma.array(noisy, mask=False)
    masked[5, 6, 1] = np.ma.masked
    out = denoise(masked, 20.0, channel_axis=-1, **{**QUICK, "patch_size": 6})
    assert out.mask.sum() == 1
    assert out.data[5, 6, 1] == noisy[5, 6, 1]


def test_noise_of_each_channel(color):
    clean = color[0].astype(float)
    sigmas = np.array([5.0, 15.0, 30.0])
    noisy = clean + np.random.default_rng(0).normal(0, sigmas, clean.shape)
    found = estimate_noise(noisy, channel_axis=2, per_channel=True)
    np.testing.assert_allclose(found, sigmas, rtol=0.15)
    whole = estimate_noise(noisy, channel_axis=2)
    assert whole == pytest.approx(np.sqrt(np.mean(found**2)))
    np.testing.assert_allclose(
        estimate_noise(noisy[:, :, 1], per_channel=True), found[1:2], rtol=1e-12
    )


@pytest.mark.parametrize(("scale", "offset"), [(1e-9, 0.0), (1e9, 0.0), (1.0, -1e5), (257.0, 0.0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_of_any_range(gray, dtype, scale, offset):
    clean, noisy = gray
    image = (noisy.astype(np.float64) * scale + offset).astype(dtype)
    assert estimate_noise(image) == pytest.approx(scale * estimate_noise(noisy), rel=1e-2)
    out = denoise(image, 20.0 * scale, **QUICK)
    assert out.dtype == dtype
    back = (out.astype(np.float64) - offset) / scale
    assert psnr(back, clean) > psnr(noisy, clean) + 6.0


def test_sixteen_bits(gray):
    clean, noisy = gray
    deep = np.clip(np.rint(noisy * 257.0), 0, 65535).astype(np.uint16)
    out = denoise(deep, 20.0 * 257.0, **QUICK)
    assert out.dtype == np.uint16
    assert len(np.unique(out)) > 1000
    assert psnr(out / 257.0, clean) > psnr(noisy, clean) + 6.0


@pytest.mark.parametrize("stride", [1, 3, 5, 8])
def test_a_stride_leaves_no_pixel_out(gray, stride):
    """Every stride-th row and column of patches, and the last ones."""
    image, size = gray[1][:41, :38], (8, 8)
    zero = {"D": np.zeros((1, 64)), "patch_size": 8, "blend": 0.0, "effort": 0}
    out = denoise(image, 20.0, stride=stride, **zero)
    lines = [r for r in range(34) if r % stride == 0 or r == 33]
    columns = [c for c in range(31) if c % stride == 0 or c == 30]
    places = [(r, c) for r in lines for c in columns]
    means = [np.full(64, image[r : r + 8, c : c + 8].mean()) for r, c in places]
    total, weight = naive.average(
        means, *zip(*places, strict=True), np.ones(len(places)), image.shape, size
    )
    assert weight.min() > 0
    np.testing.assert_allclose(out, total / weight, rtol=1e-5)


def test_given_atoms_are_used(gray):
    _, noisy = gray
    out = denoise(noisy, 20.0, D=np.zeros((1, 64)), patch_size=8, blend=0.0, effort=0)
    means = naive.centered(naive.patches(noisy[:, :, None], (8, 8)), 1)[1].reshape(89, 113)
    assert out[50, 60] == pytest.approx(means[43:51, 53:61].mean(), rel=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: denoise(x, -1.0), "sigma must be >= 0, got -1.0"),
        (lambda x: denoise(x, 1.0, patch_size=33), "33 x 33 is too large for the default atoms"),
        (lambda x: denoise(np.zeros((9, 9, 3)), 1.0), "pass channel_axis=-1"),
        (lambda x: denoise(np.zeros((9, 9)), 1.0, channel_axis=-1), "leave channel_axis out"),
        (lambda x: denoise(x[:5, :5]), "too small to tell noise from content: pass sigma"),
        (lambda x: denoise(np.where(x > 0, x, np.nan) * np.nan, 1.0), "image contains NaN"),
        (
            lambda x: denoise(x, 1.0, stride=9, patch_size=8),
            "at most the side of a patch, 8, got 9",
        ),
        (lambda x: denoise(x, 1.0, D=np.ones((3, 5))), "D has 5 features"),
        (lambda x: denoise(x, 1.0, n_atoms=0), "n_atoms must be >= 1"),
        (lambda x: denoise(x, 1.0, effort=3), "effort must be <= 2, got 3"),
        (lambda x: denoise(x, 1.0, effort=-1), "effort must be >= 0, got -1"),
    ],
)
def test_bad_input(gray, call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(gray[1])


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_signed_integers(dtype):
    limits = np.iinfo(dtype)
    scale = 1 if dtype == np.int8 else 100
    clean = scale * (naive.picture(40, 44) / 2 - 60)
    values = np.rint(clean + np.random.default_rng(0).normal(0, 8 * scale, clean.shape))
    if dtype == np.int8:
        values[:20, :10] = limits.min  # what is clipped stays so
    signed = np.clip(values, limits.min, limits.max).astype(dtype)
    out = denoise(signed, 8.0 * scale, random_state=0)
    assert out.dtype == dtype
    expected = denoise(
        signed.astype(np.float32 if signed.itemsize < 4 else float), 8.0 * scale, random_state=0
    )
    np.testing.assert_array_equal(
        out,
        np.rint(np.clip(expected, limits.min, np.nextafter(float(limits.max), 0))).astype(dtype),
    )
    assert np.std((out - clean)[20:, 10:]) < 0.7 * np.std((signed - clean)[20:, 10:])


@examples(20)
@given(
    sides=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    size=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    channels=st.integers(1, 2),
    stride=st.integers(1, 5),
    reach=st.integers(0, 4),
    most=st.integers(1, 6),
    levels=st.sampled_from([1, 3, 1000]),
    seed=st.integers(0, 100),
)
def test_similar_patches(sides, size, channels, stride, reach, most, levels, seed):
    shape = (sides[0] + size[0] - 1, sides[1] + size[1] - 1, channels)
    guide = np.random.default_rng(seed).integers(0, levels, shape).astype(float)
    found = similar_groups(PatchGrid(guide[None], size), most, 2, stride=stride, reach=reach)
    np.testing.assert_array_equal(found, naive.similar_groups(guide, size, most, stride, reach))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("levels", [2, 1000])
def test_similar_patches_far_away(dtype, levels):
    # More of them in a row than are compared at a time, at all borders.
    guide = np.random.default_rng(0).integers(0, levels, (9, 170, 2)).astype(dtype)
    found = similar_groups(PatchGrid(guide[None], (3, 4)), 30, 2, stride=40, reach=90)
    np.testing.assert_array_equal(found, naive.similar_groups(guide, (3, 4), 30, 40, 90))


@pytest.mark.parametrize("channels", [1, 3])
def test_patches_over_each_other(channels):
    rng = np.random.default_rng(0)
    guide = naive.picture(17, 20)[:, :, None] * rng.random(channels)
    noisy = guide + rng.normal(0, 20, guide.shape)
    grids = [PatchGrid(pixels[None], (4, 3)) for pixels in (noisy, guide)]
    groups = similar_groups(grids[1], 6, 1, stride=3, reach=5)
    for sigma in (0.01, 20.0, 1e9):
        out = code_over_each_other(*grids, groups, sigma, 2).image()
        expected = naive.over_each_other(noisy, guide, groups, (4, 3), sigma)
        np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-6)


# --- video


def clip(n=6, sigma=20.0):
    clean = [naive.picture(56, 72, 2 * t).astype(np.float32) for t in range(n)]
    rng = np.random.default_rng(0)
    return clean, [x + rng.normal(0, sigma, x.shape).astype(np.float32) for x in clean]


@pytest.mark.parametrize("depth", [1, 3])
def test_a_stream_is_cleaned_as_it_comes(depth):
    clean, noisy = clip()
    taken = []

    def stream():
        for frame in noisy:
            taken.append(len(taken))
            yield frame

    run = denoise_video(stream(), 20.0, depth=depth, n_atoms=48, steps_per_frame=3, random_state=0)
    first = next(run)
    assert len(taken) == depth
    out = [first, *run]
    assert len(out) == len(noisy)
    gains = [psnr(z, x) - psnr(y, x) for x, y, z in zip(clean, noisy, out, strict=True)]
    assert min(gains) > 4.0


def test_short_streams_and_dtypes():
    _, noisy = clip(2)
    frames = [np.clip(np.rint(x), 0, 255).astype(np.uint8) for x in noisy]
    out = list(denoise_video(frames, n_atoms=16, steps_per_frame=1, random_state=0))
    assert [x.dtype for x in out] == [np.uint8] * 2
    assert list(denoise_video([])) == []
    black = [np.zeros((20, 20), np.uint8)] * 4
    np.testing.assert_array_equal(list(denoise_video(black, 5.0)), black)
    np.testing.assert_array_equal(list(denoise_video(frames, 0.0)), frames)
    with pytest.raises(ValueError, match="all frames must have the same shape"):
        list(denoise_video([frames[0], frames[1][:30]], 5.0))


def test_the_dictionary_follows_the_stream():
    rng = np.random.default_rng(0)
    across = np.sin(np.arange(60) * 1.3)[None, :] * np.ones((60, 1))
    frames = [across + 0.05 * rng.standard_normal((60, 60)) for _ in range(6)]
    frames += [across.T + 0.05 * rng.standard_normal((60, 60)) for _ in range(12)]
    shares = {}
    for retain in (0.3, 1.0):
        learner = FrameLearner(6, 4, Lasso(0.3), retain=retain, steps_per_frame=1, random_state=0)
        for frame in frames:
            learner.partial_fit(frame)
        atoms = learner.D.reshape(-1, 6, 6)
        down, side = (np.ptp(atoms, axis=a).mean(axis=1) for a in (1, 2))
        shares[retain] = np.mean(down > side)
        assert learner.n_frames == 18
    assert shares[0.3] >= shares[1.0]
    assert shares[0.3] == 1.0


def test_frame_learner_bad_input():
    learner = FrameLearner(6, 4)
    with pytest.raises(ValueError, match="nothing has been learned yet"):
        learner.D  # noqa: B018
    learner.partial_fit(np.zeros((20, 20)))  # nothing to see: skipped
    assert learner.n_frames == 1
    with pytest.raises(ValueError, match="does not fit into frame"):
        learner.partial_fit(np.zeros((4, 20)))
    with pytest.raises(ValueError, match=r"retain must be in \[0, 1\]"):
        FrameLearner(6, 4, retain=1.5)


def test_a_path_and_booleans_are_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"got 'x.png': smalto.image.read_picture reads"):
        denoise("x.png")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"got bool: convert it, such as with .astype\(float\)"):
        denoise(np.ones((20, 20), bool))
    holed = np.ones((20, 20))
    holed[3, 5] = np.nan
    with pytest.raises(ValueError, match=r"the first \(NaN\) at \(3, 5\)$"):
        denoise(holed)


def test_a_sigma_in_other_units_is_doubted(gray):
    noisy = gray[1]
    atoms = np.eye(16)
    with pytest.warns(UserWarning, match=r"sigma=0.08 is far from the estimate, 2\d\.?\d*: it is"):
        denoise(noisy, 0.08, D=atoms, patch_size=4)
    denoise(noisy, 15.0, D=atoms, patch_size=4)  # silent


def test_small_pictures_are_learned_from_a_bounded_number_of_times():
    rng = np.random.default_rng(0)
    noisy = 200.0 * (np.indices((24, 24)).sum(0) // 6 % 2) + rng.normal(0, 20, (24, 24))
    seen = []
    denoise(
        noisy, 20.0, n_atoms=32, patch_size=8, random_state=0,
        callbacks=[lambda state, record: seen.append(record.samples)],
    )  # fmt: skip
    assert seen[-1] == 16 * 17 * 17


def test_new_content_after_a_cut_is_learned_with_few_atoms(monkeypatch):
    """Exact codes of patches that no atom fits have as many nonzeros as pixels: minutes a frame."""
    rng = np.random.default_rng(0)
    film = [
        np.roll(scene, number, axis=1) + rng.normal(0, 5, scene.shape)
        for scene in (naive.picture(48, 56, 0), rng.uniform(0, 255, (48, 56)))
        for number in range(6)
    ]
    coders = []
    learn_from = FrameLearner.learn_from

    def watched(learner, pixels):
        coders.append(type(learner.coder).__name__)
        return learn_from(learner, pixels)

    monkeypatch.setattr(FrameLearner, "learn_from", watched)
    found = list(denoise_video(film, 5.0, n_atoms=64, random_state=0))
    assert coders[:4] == ["ErrorBound"] * 4
    assert "OMP" in coders[4:]  # frames before and after the cut are in one window
    assert all(psnr(a, b) > 28 for a, b in zip(found[:6], film[:6], strict=True))
