"""Estimation of the noise level of a picture."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from smalto.checks import Array
from smalto.image.patch_grid import PatchGrid
from smalto.image.picture import as_picture
from smalto.sources import Order
from smalto.threads import single_threaded_blas
from smalto.warn import warn

_SIDE = 8  # of the patches from which the covariance is estimated
_MAX_PATCHES = 1 << 15
_FAR = 20.0  # times: then a given σ is doubted
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
        Unsigned integers or floats. Patches with masked values of a NumPy masked array do not
        count.
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
    picture = as_picture(image, channel_axis)
    pixels, hidden = picture.pixels, picture.hidden
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


def rms_of_noise(m: int, slack: float) -> float:
    """Root mean square, in units of σ, of noise ``slack`` standard deviations above its mean energy."""
    return float(np.sqrt(1.0 + slack * np.sqrt(2.0 / m)))


def warn_if_implausible(sigma: float, image: Any, channel_axis: int | None) -> None:
    """Warn if a given σ is far from the estimate, as in wrong units; not if there is none."""
    try:
        estimate = estimate_noise(image, channel_axis=channel_axis)
    except ValueError:  # a picture too small
        return
    if estimate > 0.0 and not 1.0 / _FAR < sigma / estimate < _FAR and sigma > 0.0:
        message = (
            f"sigma={sigma:.3g} is far from the estimate, {estimate:.3g}: it is the standard "
            f"deviation of the noise in the units of the picture, whose largest value is "
            f"{np.max(image):.3g}"
        )
        warn(message)
