"""Colors from a Bayer mask."""

import numpy as np
import pytest
from scipy import ndimage

from smalto.image import demosaic
from smalto.image.demosaic import PATTERNS, along_edges, bayer_mask

QUICK = {"n_atoms": 64, "max_steps": 20, "random_state": 0}


def photo():
    skimage = pytest.importorskip("skimage")
    return skimage.data.astronaut()[60:140, 180:276]


def psnr(a, b):
    inner = np.s_[8:-8, 8:-8]
    return 10 * np.log10(255**2 / np.mean((np.asarray(a, float)[inner] - b[inner]) ** 2))


def sensor(clean, pattern):
    return (clean * bayer_mask(clean.shape[:2], pattern)).sum(axis=2).astype(clean.dtype)


def bilinear(raw, known):
    weights = np.outer([1, 2, 1], [1, 2, 1]).astype(float)
    out = np.empty(known.shape)
    for color in range(3):
        has = known[:, :, color].astype(float)
        total = ndimage.convolve(raw * has, weights, mode="mirror")
        out[:, :, color] = total / ndimage.convolve(has, weights, mode="mirror")
    return out


@pytest.mark.parametrize("pattern", PATTERNS)
def test_colors_come_back(pattern):
    clean = photo()
    raw, known = sensor(clean, pattern), bayer_mask(clean.shape[:2], pattern)
    outs = [demosaic(raw, pattern, n_threads=n, **QUICK) for n in (1, 2)]
    assert np.array_equal(*outs)
    assert outs[0].dtype == np.uint8
    assert outs[0].shape == clean.shape
    assert np.array_equal(outs[0][known], clean[known])
    first = along_edges(raw.astype(float), known)
    assert psnr(first, clean) > psnr(bilinear(raw, known), clean) + 2
    assert psnr(outs[0], clean) > psnr(bilinear(raw, known), clean) + 3


def test_codes_are_better_than_edges():
    skimage = pytest.importorskip("skimage")
    clean = skimage.data.astronaut()[60:188, 160:288]
    first = along_edges(sensor(clean, "RGGB").astype(float), bayer_mask(clean.shape[:2], "RGGB"))
    assert psnr(demosaic(sensor(clean, "RGGB"), random_state=0), clean) > psnr(first, clean) + 0.3


def test_masks_are_as_their_names_say():
    for pattern in PATTERNS:
        mask = bayer_mask((5, 7), pattern)
        assert (mask.sum(axis=2) == 1).all()
        assert "".join("RGB"[mask[r, c].argmax()] for r in (0, 1) for c in (0, 1)) == pattern


def test_patterns_in_lower_case():
    raw = sensor(photo(), "BGGR")[:24, :24]
    few = {"n_atoms": 8, "max_steps": 2, "random_state": 0}
    assert np.array_equal(demosaic(raw, "bggr", **few), demosaic(raw, "BGGR", **few))


def test_units_and_constants():
    clean = photo()
    raw = sensor(clean, "RGGB")
    deep = demosaic(raw.astype(np.uint16) * 257, **QUICK)
    assert deep.dtype == np.uint16
    assert np.abs(deep / 257 - demosaic(raw, **QUICK)).mean() < 1
    assert np.array_equal(demosaic(np.full((12, 14), 7.0)), np.full((12, 14, 3), 7.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: demosaic(np.zeros((20, 20)), "RGB"), "pattern must be one of RGGB"),
        (lambda: demosaic(np.zeros((20, 20)), 5), "pattern must be one of RGGB"),
        (
            lambda: demosaic(np.zeros((20, 20, 3))),
            "(?!.*channel_axis)raw must have shape .* one value",
        ),
        (lambda: demosaic(np.zeros(20)), "raw must have shape"),
        (lambda: demosaic(np.zeros((20, 5))), "does not fit into raw"),
        (lambda: demosaic(np.full((20, 20), np.nan)), "raw contains NaN"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
