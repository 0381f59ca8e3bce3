"""How strong the noise of a picture is, from the picture alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.image.frames import as_frame
from smalto.image.stack import Stack
from smalto.kernels.image.patch_gathering import gather
from smalto.sources import Order
from smalto.threads import single_threaded_blas

_SIDE = 8  # of the patches whose covariance is looked at
_MOST = 1 << 15  # patches looked at
_NORMAL = 0.6744897501960817  # the median of |x| for standard normal x


def estimate_noise(image: Any, *, channel_axis: int | None = None) -> float:
    """The standard deviation σ of white Gaussian noise in a picture, in its own units.

    Clean patches are composed of few components; white noise adds σ² to the variance along every
    direction. So along the directions of the smallest eigenvalues of the patches' covariance there
    is next to nothing but noise: of the eigenvalues in decreasing order those are left out, from
    the largest on, without which the mean of the rest is no more than their median (Chen, Zhu,
    Heng 2015). Along each direction that is left, σ is told from the median of the magnitudes,
    which the few patches with strong edges do not change.

    Parameters
    ----------
    image : array (height, width), or with an axis of channels
        Unsigned integers or floats.
    channel_axis : int, optional
        The axis of the channels; None for a grey picture.

    Returns
    -------
    float
        The root mean square over the channels.

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
    pixels = as_frame(image, channel_axis).pixels
    side = min(_SIDE, *pixels.shape[:2])
    count = (pixels.shape[0] - side + 1) * (pixels.shape[1] - side + 1)
    if side < 3 or count < 2 * side * side:
        message = (
            f"a picture of {pixels.shape[0]} x {pixels.shape[1]} is too small to tell noise from "
            "content: give sigma"
        )
        raise ValueError(message)
    with single_threaded_blas():
        return float(np.sqrt(np.mean([_variance(channel, side) for channel in _split(pixels)])))


def _split(pixels: Array) -> list[Array]:
    return [np.ascontiguousarray(pixels[:, :, i]) for i in range(pixels.shape[2])]


def _variance(channel: Array, side: int) -> float:
    """The variance of the noise of one channel."""
    stack = Stack(channel[None, :, :, None], (side, side))
    count, size = min(stack.n_places, _MOST), side * side
    corners = stack.offsets(*stack.corner(np.sort(Order(stack.n_places, 0).take(0, 0, count))))
    patches = np.empty((count, size))
    gather(stack.flat, corners, stack.line, side, side, 1.0, 0, False, patches, np.empty((0, 1)))
    patches -= patches.mean(axis=0)
    values, vectors = np.linalg.eigh(patches.T @ patches / count)  # increasing
    left = size
    while left > 1 and values[:left].mean() > np.median(values[:left]):
        left -= 1
    along = np.median(np.abs(patches @ vectors[:, :left]), axis=0) / _NORMAL
    return float(np.mean(along**2))
