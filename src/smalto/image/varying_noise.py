"""Denoising where the noise is not the same everywhere: by brightness, or by a map of σ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import ndimage

from smalto.checks import Array
from smalto.image.checks import by
from smalto.image.noise import estimate_noise, is_far
from smalto.image.picture import Picture, as_picture
from smalto.image.poisson_noise import PoissonNoise
from smalto.warn import warn, without_warnings

Denoise = Callable[[Any, float], Array]  # a picture of unit noise, and σ = 1

_WIDTH = 4.0  # pixels: standard deviation of the window in which noise counts as even
_UNEVEN = 1.5  # times the noise around it: a pixel with more noise is pulled to its neighbors
_PASSES = 3  # over pictures with such pixels
_LEFT = 0.25  # error of a denoised pixel, as a share of the noise, roughly
_SMALLEST = 1e-3  # of the root mean square of a map; pixels with less noise are kept as they are


def varies(sigma: Any) -> bool:
    """Whether this describes noise that is not the same for all values of a picture."""
    return isinstance(sigma, PoissonNoise) or (sigma is not None and np.ndim(sigma) > 0)


def denoise_varying(image: Any, noise: Any, channel_axis: int | None, denoise: Denoise) -> Array:
    """Denoise a picture with noise of a camera, or a map of σ, by denoising even noise."""
    axes = np.ndim(image) - (channel_axis is not None)
    picture = as_picture(image, channel_axis, axes=max(axes, 1))

    def denoise_even(values: Array) -> Array:
        """Denoise values (height, width, channels) with noise of σ = 1 everywhere."""
        _warn_if_not_even(values, noise)
        with without_warnings("sigma=1 is far from the estimate"):
            given = values if picture.hidden is None else np.ma.array(values, mask=picture.hidden)
            clean = denoise(given if channel_axis is not None else given[..., 0], 1.0)
        return np.asarray(np.ma.getdata(clean)).reshape(values.shape)

    if isinstance(noise, PoissonNoise):
        stable = noise.stabilize(picture.pixels)
        return picture.convert_back(noise.unstabilize(denoise_even(stable)))
    return picture.convert_back(_denoise_by_map(picture, _as_map(noise, picture), denoise_even))


def _denoise_by_map(
    picture: Picture, sigma: Array, denoise_even: Callable[[Array], Array]
) -> Array:
    """Divide by the noise around each pixel, and pull pixels with more noise to the estimate.

    With s the noise around a pixel, of which it has σ > s, the value y is replaced by ``x + (s/σ)²
    (y − x)``, whose noise is below s, for the present estimate x. Then all is repeated.
    """
    noisy = picture.pixels
    exact = sigma <= _SMALLEST * float(np.sqrt(np.mean(sigma**2)))
    if exact.all():
        return noisy
    sigma = np.where(exact, sigma[~exact].min(), sigma)
    around = np.exp(_smooth(np.log(sigma)))
    share = np.minimum((around / sigma) ** 2, 1.0)
    clean = _smooth(noisy / sigma**2, 2.0) / _smooth(1.0 / sigma**2, 2.0)
    is_even = not (sigma > _UNEVEN * around).any()
    if is_even:
        around, share = sigma, np.ones_like(sigma)
    every = tuple(range(picture.axes))
    center = np.sum(noisy / sigma**2, axis=every) / np.sum(1.0 / sigma**2, axis=every)
    for _ in range(1 if is_even else _PASSES):
        values = clean + share * (noisy - clean) - center
        clean = denoise_even((values / around).astype(noisy.dtype)) * around + center
    if not is_even:  # values with little noise are better than the estimate
        error = (_LEFT * around) ** 2
        clean += error / (error + sigma**2) * (noisy - clean)
    return np.where(exact, noisy, clean)


def _smooth(values: Array, width: float = _WIDTH) -> Array:
    return np.asarray(ndimage.gaussian_filter(values, (*[width] * (values.ndim - 1), 0.0)))


def _as_map(sigma: Any, picture: Picture) -> Array:
    """Return σ of every value (height, width, channels), float64."""
    given = np.asarray(np.ma.getdata(sigma))
    shape = picture.pixels.shape
    out = given
    if picture.channel_axis is not None and given.ndim == len(shape):
        out = np.moveaxis(given, picture.channel_axis, -1)
    elif given.shape == shape[:-1]:
        out = np.repeat(given[..., None], shape[-1], axis=-1)
    elif given.shape == (shape[-1],) and picture.channel_axis is not None:
        out = np.broadcast_to(given, shape)
    if given.dtype.kind not in "uif" or out.shape != shape:
        ways = "(height, width), the whole picture" + (
            "" if picture.channel_axis is None else ", or (channels,)"
        )
        message = (
            f"sigma must be a number or an array of the shape of {ways}: got shape {given.shape} "
            f"of {given.dtype} for {by(shape[:-1])} pixels of {shape[-1]} channels"
        )
        raise ValueError(message)
    out = out.astype(np.float64)
    if not (np.isfinite(out).all() and out.min() >= 0.0):
        message = f"sigma must hold finite numbers >= 0, got {out.min():g} to {out.max():g}"
        raise ValueError(message)
    return np.asarray(out)


def _warn_if_not_even(values: Array, noise: Any) -> None:
    """Warn if the noise is far from 1 after the transformation."""
    try:
        found = estimate_noise(values, channel_axis=-1)
    except ValueError:  # a picture too small
        return
    if is_far(1.0, found):
        what = f"{noise}" if isinstance(noise, PoissonNoise) else "the map sigma"
        warn(
            f"there is {found:.3g} times as much noise in the picture as {what} says: it is in the "
            "units of the picture"
        )
