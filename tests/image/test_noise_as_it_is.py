"""Noise that is not the same everywhere, of a camera or by a map, and noise that is not white."""

import io
import warnings

import naive_image as naive
import numpy as np
import pytest
from PIL import Image
from scipy import ndimage, stats

from smalto.image import PoissonNoise, denoise, estimate_noise, estimate_poisson_noise
from smalto.image.poisson_noise import _table
from smalto.image.stages import noise_told

QUICK = {"n_atoms": 48, "max_steps": 25, "patch_size": 8, "random_state": 0}


def psnr(a, b, top=255.0):
    return 10 * np.log10(top**2 / np.mean((np.asarray(a, float) - b) ** 2))


def counted(clean, gain, read_noise, seed=0):
    rng = np.random.default_rng(seed)
    return gain * rng.poisson(clean / gain) + rng.normal(0.0, read_noise, clean.shape)


@pytest.fixture(scope="module")
def camera():
    skimage = pytest.importorskip("skimage")
    return skimage.data.camera()[60:220, 150:342].astype(float)


@pytest.fixture
def loud():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize(("gain", "read_noise"), [(1.0, 0.0), (2.0, 3.0), (0.5, 5.0)])
def test_mean_of_transformed_values_as_summed_slowly(gain, read_noise):
    noise = PoissonNoise(gain, read_noise, offset=10.0)
    nodes = np.linspace(-8, 8, 4001)
    weights = stats.norm.pdf(nodes) / stats.norm.pdf(nodes).sum()
    for photons in (0.0, 0.4, 3.0, 60.0, 149.9, 150.1, 400.0, 3000.0):
        counts = np.arange(int(photons + 15 * np.sqrt(photons) + 20))
        values = noise.stabilize(10.0 + gain * counts[:, None] + read_noise * nodes)
        mean = stats.poisson.pmf(counts, photons) @ (values @ weights)
        found = (noise.unstabilize(mean) - 10.0) / gain
        assert found == pytest.approx(photons, abs=2e-3, rel=2e-5)


def test_stabilized_noise_is_even():
    noise = PoissonNoise(3.0, 4.0, offset=-7.0)
    for x in (5.0, 50.0, 2000.0):
        values = counted(np.full(200_000, x), 3.0, 4.0) - 7.0
        assert np.std(values) == pytest.approx(noise.deviation(x - 7.0), rel=0.01)
        assert np.std(noise.stabilize(values)) == pytest.approx(1.0, abs=0.06)
    assert noise.unstabilize(np.float32([-1.0, 0.0])).tolist() == [-7.0, -7.0]
    photons, means = _table(0.0)
    assert np.all(np.diff(means) > 0)
    assert photons[0] == 0.0
    assert means[0] == pytest.approx(2 * np.sqrt(0.375))


@pytest.mark.parametrize(
    "bad", [{"gain": 0.0}, {"gain": 1.0, "read_noise": -1.0}, {"gain": np.inf}]
)
def test_impossible_cameras(bad):
    with pytest.raises(ValueError, match="must be"):
        PoissonNoise(**bad)


@pytest.mark.parametrize(("gain", "read_noise"), [(1.0, 2.0), (4.0, 5.0), (10.0, 0.0)])
def test_noise_of_a_camera_is_found(camera, gain, read_noise):
    found = estimate_poisson_noise(counted(camera, gain, read_noise))
    assert found.gain == pytest.approx(gain, rel=0.25)
    truth = PoissonNoise(gain, read_noise)
    assert found.deviation(120.0) == pytest.approx(truth.deviation(120.0), rel=0.12)


def test_clipped_values_do_not_mislead(camera):
    noisy = np.minimum(counted(camera, 2.0, 3.0) + 16.0, 200.0)
    assert estimate_poisson_noise(noisy, offset=16.0).gain == pytest.approx(2.0, rel=0.3)


def test_even_noise_has_no_gain():
    noisy = np.tile(np.linspace(0, 200, 150), (150, 1)) + 0.0
    noisy += np.random.default_rng(0).normal(0, 1, noisy.shape) * np.linspace(20, 5, 150)
    with pytest.raises(ValueError, match="does not grow with the brightness"):
        estimate_poisson_noise(noisy)
    with pytest.raises(ValueError, match="too few patches"):
        estimate_poisson_noise(noisy[:20, :20])


def test_few_photons(camera):
    noisy = counted(camera, 10.0, 3.0)
    even = psnr(denoise(noisy, **QUICK), camera)
    known = denoise(noisy, PoissonNoise(10.0, 3.0), **QUICK)
    found = denoise(noisy, estimate_poisson_noise(noisy), **QUICK)
    assert psnr(known, camera) > even + 1.0
    assert psnr(found, camera) > psnr(known, camera) - 0.5


def test_dark_areas_do_not_get_darker():
    noisy = counted(np.full((80, 90), 12.0), 8.0, 0.0)
    out = denoise(noisy, PoissonNoise(8.0), **QUICK)
    assert out.mean() == pytest.approx(noisy.mean(), rel=0.03)  # squaring would make it 9.9


@pytest.mark.usefixtures("loud")
def test_a_map_of_the_noise(camera):
    sigma = np.tile(np.linspace(5.0, 50.0, camera.shape[1]), (camera.shape[0], 1))
    noisy = camera + np.random.default_rng(0).normal(0, 1, camera.shape) * sigma
    mean = float(np.sqrt(np.mean(sigma**2)))
    assert (
        psnr(denoise(noisy, sigma, **QUICK), camera)
        > psnr(denoise(noisy, mean, **QUICK), camera) + 2
    )


def test_hot_and_exact_pixels(camera):
    rng = np.random.default_rng(0)
    sigma = np.where(rng.random(camera.shape) < 0.1, 100.0, 10.0)
    sigma[:5] = 0.0
    noisy = camera + rng.normal(0, 1, camera.shape) * sigma
    out = denoise(noisy, sigma, **QUICK)
    assert np.array_equal(out[:5], noisy[:5])
    plain = camera + rng.normal(0, 10, camera.shape)
    assert psnr(out, camera) > psnr(denoise(plain, 10.0, **QUICK), camera) - 1.5
    assert np.array_equal(denoise(noisy, 0.0 * sigma, **QUICK), noisy)


@pytest.mark.filterwarnings("ignore:eps is out of reach")
def test_maps_of_all_shapes():
    clean = np.stack([naive.picture(64, 70, s) for s in (0, 1, 2)])
    deviations = np.array([5.0, 10.0, 30.0])
    noisy = clean + np.random.default_rng(0).normal(0, 1, clean.shape) * deviations[:, None, None]
    whole = np.broadcast_to(deviations[:, None, None], clean.shape)
    outs = [denoise(noisy, s, channel_axis=0, **QUICK) for s in (deviations, whole)]
    assert np.array_equal(*outs)
    assert psnr(outs[0], clean) > psnr(noisy, clean) + 4
    assert estimate_noise(noisy, channel_axis=0, per_channel=True) == pytest.approx(
        deviations, rel=0.2
    )
    gray = np.broadcast_to(12.0, (64, 70))
    one = denoise(noisy[1], gray, **QUICK)
    assert one.shape == (64, 70)
    masked = np.ma.masked_where(np.eye(64, 70) > 0, noisy[1])
    kept = denoise(masked, gray, **QUICK)
    assert np.array_equal(kept.mask, masked.mask)


@pytest.mark.parametrize(
    "bad", [np.ones((3, 4)), np.full((64, 70), -1.0), np.full((64, 70), np.nan)]
)
def test_bad_maps(bad):
    with pytest.raises(ValueError, match="sigma must"):
        denoise(np.zeros((64, 70)), bad)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 257.0])
def test_floats_and_sixteen_bits(camera, scale):
    noisy = (camera + np.random.default_rng(0).normal(0, 20, camera.shape)).clip(0, 255) * scale
    if scale == 257.0:
        noisy = np.rint(noisy).astype(np.uint16)
    out = denoise(noisy, 20.0 * scale, **QUICK)
    assert out.dtype == noisy.dtype
    assert psnr(out / scale, camera) > psnr(noisy / scale, camera) + 5
    poisson = denoise(noisy, PoissonNoise(0.5 * scale, 18.0 * scale), **QUICK)
    assert poisson.dtype == noisy.dtype
    assert psnr(poisson / scale, camera) > psnr(noisy / scale, camera) + 5


@pytest.mark.filterwarnings("ignore:eps is out of reach")
def test_wrong_units_of_a_camera_are_questioned(camera):
    noisy = counted(camera, 4.0, 2.0)
    with pytest.warns(UserWarning, match="times as much noise in the picture as PoissonNoise"):
        denoise(noisy, PoissonNoise(4.0 / 65535), **QUICK)


@pytest.mark.parametrize("blur", [(0.6, 0.6), (1.0, 1.0), (0.0, 1.0)])
def test_correlated_noise_is_warned_of(camera, blur):
    noise = ndimage.gaussian_filter(np.random.default_rng(0).normal(0, 1, camera.shape), blur)
    noisy = camera + 15.0 * noise / noise.std()
    with pytest.warns(UserWarning, match="the noise is not white.*average blocks"):
        denoise(noisy, **QUICK)


@pytest.mark.usefixtures("loud")
def test_white_noise_is_not_warned_of(camera):
    for sigma in (2.0, 10.0, 40.0):
        noisy = camera + np.random.default_rng(1).normal(0, sigma, camera.shape)
        denoise(noisy, **QUICK)
        denoise(noisy, sigma, **QUICK)


# --- noise that channels share


@pytest.fixture(scope="module")
def astronaut():
    skimage = pytest.importorskip("skimage")
    return skimage.data.astronaut()[30:158, 180:308].astype(float)


def test_gray_pictures_stored_as_color_ones(camera):
    gray = camera + np.random.default_rng(0).normal(0.0, 20.0, camera.shape)
    alone = denoise(gray, effort=0)
    color = np.repeat(gray[:, :, None], 3, axis=2)
    together = denoise(color, channel_axis=2, effort=0)
    assert np.ptp(together, axis=2).max() < 1e-6
    assert psnr(together[:, :, 0], camera) > psnr(alone, camera) - 0.1
    tinted = color * (1.0, 0.8, 0.5) + (3.0, 20.0, 0.0)
    again = denoise(tinted, channel_axis=2, effort=0)
    np.testing.assert_allclose(again, together * (1.0, 0.8, 0.5) + (3.0, 20.0, 0.0), atol=1e-3)


def test_noise_that_is_the_same_in_all_channels(astronaut):
    rng = np.random.default_rng(0)
    noisy = astronaut + rng.normal(0.0, 20.0, (*astronaut.shape[:2], 1))
    clean = denoise(noisy, channel_axis=2, effort=0)
    white = denoise(noisy, 20.0, channel_axis=2, effort=0)  # what estimates by channel would give
    assert psnr(clean, astronaut) > psnr(white, astronaut) + 2.0


def test_noise_under_blurred_colors(astronaut):
    noisy = astronaut + np.random.default_rng(0).normal(0.0, 20.0, astronaut.shape)
    held = io.BytesIO()
    pixels = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(held, "JPEG", quality=95, subsampling=2)
    file = np.array(Image.open(held))
    estimate = estimate_noise(file, channel_axis=2)
    clean = denoise(file, channel_axis=2, effort=0)
    assert psnr(clean, astronaut) > psnr(file, astronaut) + 4.0
    assert (
        psnr(clean, astronaut)
        > psnr(denoise(file, estimate, channel_axis=2, effort=0), astronaut) + 1.5
    )


@pytest.mark.parametrize("sigma", [5.0, 20.0])
def test_white_noise_of_colors_is_no_worse_than_by_channel(astronaut, sigma):
    noisy = astronaut + np.random.default_rng(0).normal(0.0, sigma, astronaut.shape)
    by_channel = denoise(noisy, estimate_noise(noisy, channel_axis=2), channel_axis=2, effort=0)
    found = denoise(noisy, channel_axis=2, effort=0)
    assert psnr(found, astronaut) > psnr(by_channel, astronaut) - 0.1


def test_series():
    rng = np.random.default_rng(0)
    clean = np.sin(np.arange(600) / 20)
    noisy = clean + rng.normal(0.0, 0.2, 600)
    assert estimate_noise(noisy) == pytest.approx(0.2, rel=0.1)
    pair = np.stack([noisy, 3.0 * noisy])
    assert estimate_noise(pair, channel_axis=0, per_channel=True)[1] == pytest.approx(0.6, rel=0.1)
    hidden = np.ma.array(
        np.where(np.arange(600) < 300, 1e3 * noisy, noisy), mask=np.arange(600) < 300
    )
    assert estimate_noise(hidden) == pytest.approx(0.2, rel=0.15)
    assert np.std(denoise(noisy, random_state=0) - clean) < 0.08
    with pytest.raises(ValueError, match="a series of 7 is too short"):
        denoise(noisy[:7])


@pytest.mark.parametrize("channels", [3, 4])
def test_a_color_picture_is_not_silently_a_volume(channels):
    picture = np.random.default_rng(0).normal(0, 5.0, (60, 70, channels))
    with pytest.warns(
        UserWarning, match="is taken for a volume: for a color picture pass channel_axis=-1"
    ):
        estimate_noise(picture)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert estimate_noise(picture, channel_axis=-1) == pytest.approx(5.0, rel=0.1)
        estimate_noise(np.moveaxis(picture, -1, 0))
        denoise(picture[:20, :20, :3], 5.0, patch_size=(3, 3, 3), max_steps=2, random_state=0)


def test_noise_that_is_estimated_is_told():
    gray = np.random.default_rng(0).normal(100, 5.0, (60, 70))
    told = []
    with noise_told(told.append):
        denoise(gray, effort=0)
        denoise(np.stack([gray] * 3, axis=2), channel_axis=2, effort=0)
        denoise(gray, 5.0, effort=0)  # given: nothing is estimated
    assert told == pytest.approx([5.0, 5.0], rel=0.1)  # that of a channel, also where all share it
    denoise(gray, effort=0)
    assert len(told) == 2
