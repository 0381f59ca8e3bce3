"""Noise that is not white: found in the smoothest parts of a picture, and warned of."""

from __future__ import annotations

import numpy as np

from smalto.checks import Array
from smalto.warn import warn

_SIDE = 8  # of the patches that are looked at
_MAX_PATCHES = 1 << 15
_SMOOTHEST = 0.05  # share of the patches, those with the least variance
_MIN_PATCHES = 250
_UNEVEN = 2.6  # ratio of the quartiles of the variances along principal axes
_CORRELATION = 0.2  # of neighboring pixels, from which on noise is called correlated
_CONTENT = 0.75  # a larger one is that of smooth content, or cannot be told from it
_ABOVE = 1.05  # times σ of white noise that smooth patches must vary
_MATTERS = 0.3  # times the σ that is removed


def noise_of_smooth_patches(channel: Array) -> tuple[float, float]:
    """Standard deviation, and the larger correlation of neighbors, in the smoothest patches.

    Planes are subtracted from patches of ``channel`` (height, width). White noise has a correlation
    of about -0.03 then, noise that was blurred, interpolated or compressed one of 0.25 and more. It
    also varies very differently along the principal axes; where it does not, both are zero.
    """
    height, width = channel.shape
    if min(height, width) < _SIDE:
        return 0.0, 0.0
    windows = np.lib.stride_tricks.sliding_window_view(channel, (_SIDE, _SIDE))
    step = max(1, int(np.ceil(np.sqrt(windows[:, :, 0, 0].size / _MAX_PATCHES))))
    patches = windows[::step, ::step].reshape(-1, _SIDE * _SIDE).astype(np.float64)
    count = int(_SMOOTHEST * len(patches))
    if count < _MIN_PATCHES:
        return 0.0, 0.0
    ramp = np.arange(_SIDE) - (_SIDE - 1) / 2
    planes = np.stack([np.ones(_SIDE**2), np.repeat(ramp, _SIDE), np.tile(ramp, _SIDE)])
    planes /= np.linalg.norm(planes, axis=1, keepdims=True)
    patches -= (patches @ planes.T) @ planes
    energies = np.einsum("ij,ij->i", patches, patches)
    smooth = patches[np.argsort(energies, kind="stable")[:count]].reshape(-1, _SIDE, _SIDE)
    variance = float(np.mean(smooth**2))
    flat = smooth.reshape(count, -1)
    along_axes = np.linalg.eigvalsh(flat.T @ flat)[len(planes) :]  # increasing
    lower, upper = along_axes[len(along_axes) // 4], along_axes[3 * len(along_axes) // 4]
    if not (variance > 0.0 and upper > _UNEVEN * lower):
        return 0.0, 0.0  # content along few axes, and white noise along all
    right = float(np.mean(smooth[:, :, 1:] * smooth[:, :, :-1]))
    down = float(np.mean(smooth[:, 1:] * smooth[:, :-1]))
    deviation = np.sqrt(variance * _SIDE**2 / (_SIDE**2 - len(planes)))
    return float(deviation), max(right, down) / variance


def most_correlated(pixels: Array) -> tuple[float, float]:
    """As `noise_of_smooth_patches`, of the channel of pixels (height, width, channels) with the most."""
    found = [noise_of_smooth_patches(channel) for channel in np.moveaxis(pixels, 2, 0)]
    return max(found, key=lambda one: one[1])


def warn_if_correlated(deviation: float, correlation: float, sigma: float, white: float) -> None:
    """Warn if the noise in smooth patches is not white.

    ``sigma`` is the noise that is removed, ``white`` that which was estimated as white noise:
    correlated noise is stronger in smooth areas than that.
    """
    least = max(_ABOVE * white, _MATTERS * sigma)
    if _CORRELATION < correlation < _CONTENT and deviation > least:
        warn(
            f"the noise is not white: neighboring pixels of smooth areas have a correlation of "
            f"{correlation:.2f}, so part of the noise will be taken for detail. Use the picture as "
            f"it was before it was resized or compressed, or average blocks of 2 x 2 pixels first"
        )
