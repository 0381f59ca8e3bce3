"""Noise of photons and electronics: its variance grows with the brightness."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from smalto.checks import Array, check_finite_number
from smalto.image.noise import noise_by_brightness
from smalto.image.picture import as_picture

_HALF = 0.375  # added before the root: the variance is then nearest to 1 (Anscombe 1948)
_LARGEST = 150.0  # photons up to which the mean is summed up; an expansion is exact beyond
_STEPS = 400  # places of the table, denser for few photons
_NODES = 1001  # of the integral over Gaussian noise
_ROUNDS = 30  # of the robust fit of a line


@dataclass(frozen=True)
class PoissonNoise:
    """Noise of a camera: of photons, and of the electronics that read them out.

    A pixel of brightness x has the value ``y = gain · Poisson((x − offset) / gain) + offset +
    N(0, read_noise²)``. Its mean is x, its variance ``gain · (x − offset) + read_noise²``.

    Parameters
    ----------
    gain : float
        Units of the picture per photon, > 0.
    read_noise : float, default 0
        Standard deviation of the noise in the dark, in units of the picture.
    offset : float, default 0
        The value of black.

    See Also
    --------
    estimate_poisson_noise : From a picture.
    denoise : Takes it as ``sigma``.

    References
    ----------
    Starck, Murtagh, Bijaoui: Image processing and data analysis. Cambridge University Press, 1998.

    Makitalo, Foi: Optimal inversion of the generalized Anscombe transformation for Poisson-Gaussian
    noise. IEEE Transactions on Image Processing 22, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.image import PoissonNoise
    >>> noise = PoissonNoise(gain=2.0, read_noise=3.0)
    >>> rng = np.random.default_rng(0)
    >>> dark, bright = (2.0 * rng.poisson(x / 2.0, 10000) + rng.normal(0, 3, 10000) for x in (20, 900))
    >>> [round(float(np.std(noise.stabilize(values))), 1) for values in (dark, bright)]
    [1.0, 1.0]
    >>> round(float(noise.unstabilize(noise.stabilize(dark).mean())))
    20
    """

    gain: float
    read_noise: float = 0.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        check_finite_number("gain", self.gain, low=0.0, strict=True)
        check_finite_number("read_noise", self.read_noise, low=0.0)
        check_finite_number("offset", self.offset, low=-np.inf)

    @property
    def _dark(self) -> float:
        """Variance of the noise in the dark, in squared photons."""
        return (self.read_noise / self.gain) ** 2

    def deviation(self, clean: Any) -> Array:
        """Return the standard deviation of the noise for clean values."""
        photons = np.maximum((np.asarray(clean) - self.offset) / self.gain, 0.0)
        return np.asarray(self.gain * np.sqrt(photons + self._dark))

    def stabilize(self, values: Any) -> Array:
        """Transform values so that the standard deviation of their noise is about 1 everywhere.

        ``2 sqrt(p + 3/8 + (read_noise/gain)²)`` for ``p = (y − offset) / gain`` photons, zero if
        that is not real.
        """
        photons = (np.asarray(values) - self.offset) / self.gain
        return np.asarray(2.0 * np.sqrt(np.maximum(photons + (_HALF + self._dark), 0.0)))

    def unstabilize(self, values: Any) -> Array:
        """Return the brightness whose noisy values, transformed, have this mean.

        The mean of a root is not the root of the mean: squaring would make dark areas too dark.
        What is below the mean for no light becomes ``offset``.
        """
        values = np.asarray(values)
        photons, means = _table(self._dark)
        inside = np.interp(values, means, photons)
        beyond = _invert_expansion(values, self._dark)
        found = np.where(values < means[-1], inside, beyond)
        return np.asarray(self.gain * found + self.offset).astype(values.dtype, copy=False)


def estimate_poisson_noise(
    image: Any, *, channel_axis: int | None = None, offset: float = 0.0
) -> PoissonNoise:
    """Estimate the noise of a camera, whose variance grows with the brightness.

    Patches are sorted by their brightness and cut into groups; the noise of each is estimated as in
    `estimate_noise`. A line through variance and brightness has gain and read noise. It is fitted
    robustly, since groups with much texture have too large a variance. Patches with clipped values,
    as bright as the brightest, do not count, and of the others only the smoothest third of each group.

    Parameters
    ----------
    image : array (height, width), or with an axis of channels
        Integers or floats, linear in the light: before any gamma correction.
    channel_axis : int, optional
        The axis of the channels; None for a gray picture. All of them have the same noise.
    offset : float, default 0
        The value of black.

    Returns
    -------
    PoissonNoise
        With the estimated gain and read noise.

    See Also
    --------
    estimate_noise : For noise that is the same everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.image import estimate_poisson_noise
    >>> clean = np.tile(np.linspace(10.0, 500.0, 200), (160, 1))
    >>> noise = estimate_poisson_noise(4.0 * np.random.default_rng(0).poisson(clean / 4.0))
    >>> bool(3.5 < noise.gain < 4.5)
    True
    """
    offset = check_finite_number("offset", offset, low=-np.inf)
    picture = as_picture(image, channel_axis)
    brightness, variances = noise_by_brightness(picture)
    slope, constant = _fit_line(brightness - offset, variances)
    if not slope > 0.0:
        message = (
            "the noise does not grow with the brightness: use estimate_noise, or give "
            "PoissonNoise(gain, read_noise)"
        )
        raise ValueError(message)
    return PoissonNoise(slope, float(np.sqrt(constant)), offset)


def _fit_line(x: Array, y: Array) -> tuple[float, float]:
    """Slope and constant, both >= 0, of a line with few large relative errors above it.

    Least absolute deviations relative to the line, by reweighted least squares.
    """
    slope, constant = 0.0, float(np.median(y))
    for _ in range(_ROUNDS):
        level = np.maximum(slope * x + constant, 1e-12 * float(np.max(y)) + 1e-300)
        weights = 1.0 / (level * np.maximum(np.abs(y - level), 1e-3 * level))
        columns = np.stack([x, np.ones_like(x)], axis=1)
        root = np.sqrt(weights)
        solution = np.linalg.lstsq(columns * root[:, None], y * root, rcond=None)[0]
        slope, constant = float(solution[0]), float(solution[1])
        if constant < 0.0:
            slope, constant = float(np.sum(weights * x * y) / np.sum(weights * x * x)), 0.0
        elif slope < 0.0:
            slope, constant = 0.0, float(np.sum(weights * y) / np.sum(weights))
    return slope, constant


@lru_cache(maxsize=16)
def _table(dark: float) -> tuple[Array, Array]:
    """Numbers of photons, and the mean of the transformed values for each of them.

    ``dark`` is the variance of the Gaussian noise in squared photons. The mean is a sum over the
    Poisson distribution and an integral over the Gaussian one.
    """
    photons = _LARGEST * np.linspace(0.0, 1.0, _STEPS) ** 2
    counts = np.arange(int(_LARGEST + 12.0 * np.sqrt(_LARGEST)) + 1)
    nodes = np.linspace(-7.0, 7.0, _NODES) if dark > 0.0 else np.zeros(1)
    weights = np.exp(-0.5 * nodes**2)
    weights /= weights.sum()
    inside = counts[:, None] + (_HALF + dark) + np.sqrt(dark) * nodes
    of_count = 2.0 * np.sqrt(np.maximum(inside, 0.0)) @ weights
    logs = np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
    with np.errstate(divide="ignore"):
        log_photons = np.maximum(np.log(photons), -1e6)
    chances = np.exp(counts * log_photons[:, None] - photons[:, None] - logs)
    return photons, np.asarray(chances @ of_count)


def _invert_expansion(values: Array, dark: float) -> Array:
    """Invert the mean of transformed values of many photons, by Newton's method.

    With z the photons, μ = z + 3/8 + dark and the central moments of z, the mean of 2√z is
    ``2μ^½ − v μ^(−3/2)/4 + κ₃ μ^(−5/2)/8 − 5 (κ₄ + 3v²) μ^(−7/2)/64 + ...``.
    """
    photons = np.maximum(np.square(values, dtype=np.float64) / 4.0 - _HALF - dark, _LARGEST / 2)
    for _ in range(4):
        mean = photons + (_HALF + dark)
        variance = photons + dark
        expected = (
            2.0 * mean**0.5
            - variance * mean**-1.5 / 4.0
            + photons * mean**-2.5 / 8.0
            - 5.0 * (photons + 3.0 * variance**2) * mean**-3.5 / 64.0
        )
        photons = np.maximum(photons + (values - expected) * mean**0.5, _LARGEST / 2)
    return np.asarray(photons)
