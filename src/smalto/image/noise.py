"""Estimation of the noise level of a picture."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, Literal, overload

import numpy as np
from scipy import ndimage

from smalto.checks import Array
from smalto.image.correlated_noise import most_correlated, warn_if_correlated
from smalto.image.patch_grid import PatchGrid
from smalto.image.picture import Picture, as_picture
from smalto.sources import Order
from smalto.threads import run_tasks, single_threaded_blas
from smalto.warn import warn

_COLORS = (3, 4)  # channels: a last axis as long as that is taken for them by other libraries
_SIDE = 8  # of the patches from which the covariance is estimated
_MAX_PATCHES = 1 << 15
_FAR = 20.0  # times: then a given σ is doubted
_SLICES = 16  # of a volume that are looked at, at most
_GROUPS = 16  # of equally bright patches
_PER_GROUP = 48  # patches in a group, at least, per value of a patch
_SMOOTHEST = 0.1  # share of the patches that are looked at where detail may pass for noise ...
_ENOUGH = 16  # ... if these are so many per value of a patch
_SMOOTH = 3  # of so many patches of a group, the smoothest one is looked at
_BLUR = 1.5  # pixels: by which noise is removed to see which patches are smooth
_CLIPPED = 1e-3  # share of pixels with the largest value, from which on it is called clipped
_MEDIAN = 0.6744897501960817  # of |x| for standard normal x


@overload
def estimate_noise(
    image: Any, *, channel_axis: int | None = None, per_channel: Literal[False] = False
) -> float: ...


@overload
def estimate_noise(
    image: Any, *, channel_axis: int | None = None, per_channel: Literal[True]
) -> Array: ...


def estimate_noise(
    image: Any, *, channel_axis: int | None = None, per_channel: bool = False
) -> float | Array:
    """Estimate the standard deviation σ of white Gaussian noise in a picture, in its own units.

    Clean patches vary along few directions, white noise adds σ² to the variance along every one.
    The directions of the smallest eigenvalues of the patches' covariance thus carry little but
    noise. They are found by dropping the largest eigenvalues until the mean of the rest is at most
    their median (Chen, Zhu, Heng 2015). Along each of these directions σ is estimated from the
    median magnitude, which is robust to the few patches with strong edges.

    Parameters
    ----------
    image : array (height, width), or with an axis of channels
        Integers or floats. Patches with masked values of a NumPy masked array do not
        count. Of a volume, with more axes, slices along the last two of them are looked at; of a
        series (length,) second differences.
    channel_axis : int, optional
        The axis of the channels; None for a gray picture.
    per_channel : bool, default False
        Return σ of each channel.

    Returns
    -------
    float or array (channels,)
        σ: the root mean square over the channels, or one for each of them.

    See Also
    --------
    denoise : Removes the noise.

    References
    ----------
    Chen, Zhu, Heng: An efficient statistical method for image noise level estimation. ICCV 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.image import estimate_noise
    >>> noise = np.random.default_rng(0).normal(0.0, 3.0, (100, 120))
    >>> round(estimate_noise(np.linspace(0.0, 50.0, 120) + noise), 1)
    3.0
    """
    shape = np.shape(image)
    if channel_axis is None and len(shape) == 3 and shape[-1] in _COLORS:
        warn(
            f"image has shape {shape} and no channel_axis, so it is taken for a volume: for a color "
            "picture pass channel_axis=-1"
        )
    return noise_of(image, channel_axis, per_channel)


def noise_of(image: Any, channel_axis: int | None, per_channel: bool) -> float | Array:
    """As `estimate_noise`, of a picture that is not questioned."""
    axes = np.ndim(image) - (channel_axis is not None)
    picture = as_picture(image, channel_axis, axes=max(axes, 1))
    pixels, hidden = picture.pixels, picture.hidden
    if axes == 1:
        levels = _noise_of_series(pixels, hidden)
        return levels if per_channel else float(np.sqrt(np.mean(levels**2)))
    if axes > 2:
        return _noise_of_slices(pixels, hidden, per_channel)
    side = min(_SIDE, *pixels.shape[:2])
    variances = np.empty(pixels.shape[2])
    with single_threaded_blas():
        for number, channel in enumerate(np.moveaxis(pixels, 2, 0)):
            positions = _positions(channel, side, None if hidden is None else hidden[:, :, number])
            if side < 3 or len(positions) < 2 * side * side:
                message = (
                    f"a picture of {pixels.shape[0]} x {pixels.shape[1]} is too small to tell noise "
                    "from content: pass sigma"
                )
                raise ValueError(message)
            variances[number] = _variance(channel, side, positions)
    return np.sqrt(variances) if per_channel else float(np.sqrt(variances.mean()))


def _noise_of_series(values: Array, hidden: Array | None) -> Array:
    """σ of each channel of a series (length, channels), from the median of its second differences."""
    bent = np.abs(values[:-2] - 2.0 * values[1:-1] + values[2:])
    if hidden is not None:
        bent = np.where(hidden[:-2] | hidden[1:-1] | hidden[2:], np.nan, bent)
    if np.isfinite(bent).sum(axis=0).min(initial=len(bent)) < _SIDE:
        message = f"a series of {len(values)} is too short to tell noise from content: pass sigma"
        raise ValueError(message)
    return np.asarray(np.nanmedian(bent, axis=0) / (_MEDIAN * math.sqrt(6.0)), np.float64)


def _noise_of_slices(pixels: Array, hidden: Array | None, per_channel: bool) -> float | Array:
    """σ of a volume, the mean of the variances of some of its slices."""
    slices = pixels.reshape(-1, *pixels.shape[-3:])
    marks = None if hidden is None else hidden.reshape(slices.shape)
    some = np.unique(np.linspace(0, len(slices) - 1, _SLICES).astype(int))
    found = [
        noise_of(slices[i] if marks is None else np.ma.array(slices[i], mask=marks[i]), -1, True)
        for i in some
        if marks is None or not marks[i].all()
    ]
    variances = np.mean(np.square(np.array(found)), axis=0)
    return np.sqrt(variances) if per_channel else float(np.sqrt(variances.mean()))


def _positions(channel: Array, side: int, hidden: Array | None) -> Array:
    """Positions of all patches of one channel (height, width) without hidden values."""
    rows, columns = (length - side + 1 for length in channel.shape)
    if hidden is None:
        return np.arange(rows * columns)
    counts = np.pad(np.cumsum(np.cumsum(hidden, axis=0), axis=1), ((1, 0), (1, 0)))
    below, above = counts[side:], counts[:-side]
    inside = below[:, side:] - below[:, :-side] - above[:, side:] + above[:, :-side]
    return np.flatnonzero(inside == 0)


def _variance(channel: Array, side: int, positions: Array) -> float:
    """The variance of the noise in one channel (height, width), from patches at these positions."""
    grid = PatchGrid(np.ascontiguousarray(channel)[None, :, :, None], (side, side))
    count = min(len(positions), _MAX_PATCHES)
    positions = positions[np.sort(Order(len(positions), 0).take(0, 0, count))]
    patches = np.empty((count, grid.n_features))
    grid.gather(grid.offsets(*grid.corners(positions)), patches, np.empty((0, 1)), groups=0)
    patches -= patches.mean(axis=0)
    values, vectors = np.linalg.eigh(patches.T @ patches / count)  # increasing
    kept = len(values)
    while kept > 1 and values[:kept].mean() > np.median(values[:kept]):
        kept -= 1
    deviations = np.median(np.abs(patches @ vectors[:, :kept]), axis=0) / _MEDIAN
    return float(np.mean(deviations**2))


def noise_by_brightness(picture: Picture) -> tuple[Array, Array]:
    """Brightness of groups of equally bright patches, and the variance of the noise in each.

    Patches with clipped values do not count: as bright as the brightest, if many values are.
    """
    pixels, hidden = picture.pixels, picture.hidden
    side = min(_SIDE, *pixels.shape[:2])
    brightness, variances = [], []
    with single_threaded_blas():
        for number, channel in enumerate(np.moveaxis(pixels, 2, 0)):
            unusable = channel == channel.max()
            if unusable.mean() <= _CLIPPED:
                unusable[...] = False
            if hidden is not None:
                unusable |= hidden[:, :, number]
            positions = _positions(channel, side, unusable)
            means, textures = _means_and_textures(channel, side, positions)
            groups = min(_GROUPS, len(positions) // (_PER_GROUP * side * side))
            if side < 3 or groups < 2:
                message = (
                    f"a picture of {pixels.shape[0]} x {pixels.shape[1]} has too few patches to "
                    "tell noise from content: pass PoissonNoise(gain, read_noise)"
                )
                raise ValueError(message)
            for some in np.array_split(np.argsort(means, kind="stable"), groups):
                some = some[np.argsort(textures[some], kind="stable")[: len(some) // _SMOOTH]]
                brightness.append(float(means[some].mean()))
                variances.append(_variance(channel, side, np.sort(positions[some])))
    return np.array(brightness), np.array(variances)


def _means_and_textures(channel: Array, side: int, positions: Array) -> tuple[Array, Array]:
    """Means of patches, and their variances in the blurred channel, which has little of its noise."""
    rows, columns = (length - side + 1 for length in channel.shape)

    def mean(values: Array) -> Array:
        means = ndimage.uniform_filter(values, side, origin=-(side // 2))
        return np.asarray(means[:rows, :columns].reshape(-1)[positions])

    values = channel.astype(np.float64)
    blurred = ndimage.gaussian_filter(values - values.mean(), _BLUR)
    return mean(values), mean(blurred**2) - mean(blurred) ** 2


def noise_of_smooth_parts(channel: Array, hidden: Array | None) -> float:
    """σ of one channel (height, width), as `estimate_noise`, from the smoothest patches of any brightness.

    ``hidden`` (height, width, channels) marks values that do not count. All patches are looked at if
    there are few.
    """
    side = min(_SIDE, *channel.shape)
    positions = _positions(channel, side, None if hidden is None else hidden[:, :, 0])
    means, textures = _means_and_textures(channel, side, positions)
    if len(positions) * _SMOOTHEST >= _ENOUGH * side * side:
        chosen = []
        for some in np.array_split(np.argsort(means, kind="stable"), _GROUPS):
            count = math.ceil(_SMOOTHEST * len(some))
            chosen.append(some[np.argsort(textures[some], kind="stable")[:count]])
        positions = np.sort(positions[np.concatenate(chosen)])
    with single_threaded_blas():
        return math.sqrt(_variance(channel, side, positions))


def rms_of_noise(m: int, slack: float) -> float:
    """Root mean square, in units of σ, of noise ``slack`` standard deviations above its mean energy."""
    return float(np.sqrt(1.0 + slack * np.sqrt(2.0 / m)))


def is_far(sigma: float, estimate: float) -> bool:
    """Whether σ is so far from its estimate that it must be in other units."""
    return estimate > 0.0 and sigma > 0.0 and not 1.0 / _FAR < sigma / estimate < _FAR


def question_noise(
    sigma: float,
    image: Any,
    channel_axis: int | None,
    estimate: float | None = None,
    n_threads: int = 1,
) -> None:
    """Warn if a given σ is far from the estimate, as in wrong units, or if the noise is not white.

    Pictures too small to tell are not questioned. ``estimate`` is that of `estimate_noise`, if known.
    """
    axes = np.ndim(image) - (channel_axis is not None)
    found = estimate
    in_smooth_parts = 0.0, 0.0

    def task(number: int) -> None:
        nonlocal found, in_smooth_parts
        if number == 0 and estimate is None:
            with suppress(ValueError):
                found = float(noise_of(image, channel_axis, False))
        elif number == 1 and axes > 1:
            pixels = as_picture(image, channel_axis, axes=axes).pixels
            pixels = pixels.reshape(-1, *pixels.shape[-3:])
            in_smooth_parts = most_correlated(pixels[len(pixels) // 2])  # of a volume a slice

    with single_threaded_blas():
        run_tasks(task, 2, n_threads)
    if found is None:
        return
    if is_far(sigma, found):
        message = (
            f"sigma={sigma:.3g} is far from the estimate, {found:.3g}: it is the standard "
            f"deviation of the noise in the units of the picture, whose largest value is "
            f"{np.max(image):.3g}"
        )
        warn(message)
    warn_if_correlated(*in_smooth_parts, sigma, found)
