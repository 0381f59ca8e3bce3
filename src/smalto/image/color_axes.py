"""Axes of colors, along which the channels of a picture are denoised, and the noise along them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from smalto.checks import Array
from smalto.image.noise import estimate_noise, noise_of_smooth_parts
from smalto.image.picture import Picture

_NOTHING = 1e-5  # range along an axis, as a share of that along the first one: as in gray pictures
_WHITE = 1.5  # times the noise along other axes: with less along the first one, noise is white ...
_SHARED = 6.0  # ... with more, channels share it


class ColorAxes(NamedTuple):
    """Axes along which colors are told, and what they have beside that, the same everywhere."""

    axes: Array  # (number, channels), orthonormal
    rest: Array  # (channels,)

    def turn(self, colors: Array) -> Array:
        """Return colors (..., channels) by their coordinates (..., number)."""
        return np.asarray(colors @ self.axes.T.astype(colors.dtype))

    def turn_back(self, coordinates: Array) -> Array:
        """Return colors from their coordinates."""
        axes, rest = (part.astype(coordinates.dtype) for part in self)
        return np.asarray(coordinates @ axes + rest)


def color_axes(pixels: Array) -> ColorAxes:
    """Orthonormal axes of colors, by decreasing detail along them; none along which there is none.

    The principal axes of the differences between neighboring pixels (..., channels): the first one
    has most of the edges and is near to gray in most pictures. White noise stays white, and does not
    turn the axes.
    """
    c = pixels.shape[-1]
    total = np.zeros((c, c))
    for axis in range(pixels.ndim - 1):
        steps = np.diff(pixels, axis=axis).reshape(-1, c).astype(np.float64)
        total += steps.T @ steps
    _, vectors = np.linalg.eigh(total)  # increasing
    axes = vectors[:, ::-1].T
    axes = axes * np.where(axes.sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    ranges = np.array([np.ptp(pixels @ axis) for axis in axes])
    axes = axes[: max(1, np.count_nonzero(ranges > _NOTHING * ranges[0]))]
    mean = pixels.reshape(-1, c).mean(axis=0, dtype=np.float64)
    return ColorAxes(axes, mean - (mean @ axes.T) @ axes)


def noise_along(colors: ColorAxes, picture: Picture) -> Array:
    """Estimate σ of the noise along each axis of colors.

    Noise that is the same in all channels is all along the first axis. That has most of the detail,
    too: some of it is taken for noise in a picture with little.
    """
    planes, hidden = colors.turn(picture.pixels), picture.hidden
    if hidden is not None:
        hidden = np.broadcast_to(hidden.any(axis=-1, keepdims=True), planes.shape)
    given = planes if hidden is None else np.ma.array(planes, mask=hidden)
    levels = estimate_noise(given, channel_axis=-1, per_channel=True)
    if len(levels) > 1:
        others = float(np.median(levels[1:]))
        if levels[0] < _WHITE * others:
            levels[:] = np.sqrt(levels[0] * others)
        elif levels[0] < _SHARED * others:
            levels[0] = np.sqrt(levels[0] * others)
        elif picture.axes == 2:
            levels[0] = min(levels[0], noise_of_smooth_parts(planes[:, :, 0], hidden))
    return levels


def with_hidden_noise(levels: Array, share: float) -> Array:
    """Return σ along each axis, at least this share of the strongest.

    Most JPEG files and films blur the other colors: of their noise, which is still there, estimates
    see nothing.
    """
    return np.asarray(np.maximum(levels, share * levels.max()))
