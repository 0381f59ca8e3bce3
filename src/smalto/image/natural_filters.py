"""Filters learned from photographs, which put the estimates of a denoised picture together."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from scipy import ndimage

from smalto.checks import Array
from smalto.kernels.image.class_filters import apply_filters
from smalto.threads import run_tasks

RADIUS = 2  # of the windows
ANGLES = 8
_BLUR = 1.5  # standard deviation of the window of the structure tensor, in pixels
_ROWS = 32  # of pixels, filtered as one task


class Classes(NamedTuple):
    """Bounds between classes of pixels: of the contrast in units of noise, and of coherence."""

    contrasts: Array
    coherences: Array

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return (len(self.contrasts) + 1) * (len(self.coherences) + 1) * ANGLES


@cache
def _natural() -> tuple[Classes, Array]:
    """The classes, and their filters (classes, estimates, 5, 5), that ship with the library."""
    path = files("smalto.image") / "natural_filters.npz"
    with path.open("rb") as file, np.load(file) as arrays:
        classes = Classes(arrays["contrasts"], arrays["coherences"])
        return classes, balanced(arrays["filters"].astype(np.float64))


def balanced(filters: Array) -> Array:
    """The same filters, of which those of the first estimate sum to zero: brightness is kept."""
    out = filters.copy()
    out[:, 0] -= out[:, 0].mean(axis=(1, 2), keepdims=True)
    return out


def combine(estimates: list[Array], sigma: float, n_threads: int) -> Array:
    """Put estimates (height, width) of one picture together; the first is the best of them.

    The others are the noisy picture and earlier estimates. A pixel of the best one is corrected by
    a filter of its surroundings in all of them; which one depends on contrast, coherence and angle
    of the edges there.
    """
    classes, filters = _natural()
    return correct(estimates, sigma, classes, filters, n_threads)


def correct(
    estimates: list[Array], sigma: float, classes: Classes, filters: Array, n_threads: int
) -> Array:
    """As `combine`, with these filters."""
    planes = planes_of(estimates, sigma)
    numbers = classes_of(estimates[0] / sigma, classes)
    out = np.empty(estimates[0].shape)

    def task(number: int) -> None:
        some = slice(number * _ROWS, (number + 1) * _ROWS)
        apply_filters(planes, filters, numbers[some], number * _ROWS, out[some])

    run_tasks(task, -(-len(out) // _ROWS), n_threads)
    return np.asarray(estimates[0] + sigma * out)


def planes_of(estimates: list[Array], sigma: float) -> Array:
    """Planes (estimates, height + 4, width + 4) in units of noise: the first, and the rest less it."""
    best = estimates[0] / sigma
    planes = [best, *(other / sigma - best for other in estimates[1:])]
    return np.stack([np.pad(plane, RADIUS, mode="symmetric") for plane in planes])


def classes_of(pixels: Array, classes: Classes) -> Array:
    """The number of the class of each pixel, by the structure tensor (height, width)."""
    down, across = (ndimage.correlate1d(pixels, [-0.5, 0.0, 0.5], axis) for axis in (0, 1))
    a, b, c = (ndimage.gaussian_filter(product, _BLUR)
               for product in (across * across, across * down, down * down))  # fmt: skip
    spread = np.hypot(a - c, 2.0 * b)
    large, small = (np.sqrt(np.maximum(a + c + sign * spread, 0.0) / 2.0) for sign in (1, -1))
    coherence = (large - small) / (large + small + 1e-6)
    angle = np.rint(np.arctan2(2.0 * b, a - c) / (2.0 * np.pi) * ANGLES).astype(np.int64) % ANGLES
    steps = [np.searchsorted(*pair) for pair in
             ((classes.contrasts, large), (classes.coherences, coherence))]  # fmt: skip
    return np.asarray((steps[0] * (len(classes.coherences) + 1) + steps[1]) * ANGLES + angle)
