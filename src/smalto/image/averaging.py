"""Pictures from overlapping patches: each pixel is the mean of the patches that cover it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from smalto.checks import Array, check_finite, float_dtype
from smalto.image.checks import by, check_fits, check_patch_size, check_shape
from smalto.image.patch_grid import line_starts
from smalto.kernels.image.patch_gathering import PATCH_WEIGHT, Lines, put
from smalto.threads import resolve_threads, run_tasks

_ROWS = 1 << 14  # patches added at a time


class PatchAverage:
    """Weighted mean ``Σ w x / Σ w`` of the overlapping patches that cover each pixel.

    Memory does not grow with the number of patches. Where all patches agree on a pixel the mean is
    exactly their value. Patches added in the same order give the same bits, in blocks of any size.

    Parameters
    ----------
    shape : (height, width) or (height, width, channels)
        The shape of the picture; or that of a volume or a series, with as many axes as patches.
    patch_size : int or tuple of int
        Height and width of a patch, or its sides along all axes, as (depth, height, width).

    See Also
    --------
    reconstruct : The same for all patches at once.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.image import PatchAverage
    >>> average = PatchAverage((1, 3), (1, 2))
    >>> average.add(np.array([[1.0, 2.0], [4.0, 5.0]]), np.array([0, 0]), np.array([0, 1]))
    >>> average.image()
    array([[1., 3., 5.]])
    """

    def __init__(self, shape: tuple[int, ...], patch_size: int | tuple[int, ...]) -> None:
        self.patch_size = check_patch_size(patch_size, None)
        axes = len(self.patch_size)
        self.shape = check_shape(shape, axes)
        check_fits(self.patch_size, self.shape, "the picture")
        self._channels = math.prod(self.shape[axes:])
        # Sums are relative to the first value of each pixel, the origin: little cancels.
        self._sums = np.zeros((math.prod(self.shape), 3))

    def add(
        self,
        patches: Array,
        *corners: Array,
        means: Array | None = None,
        patch_weights: Array | None = None,
        n_threads: int = 1,
    ) -> None:
        """Add patches whose upper left corners are at these rows and columns.

        ``add(patches, rows, columns)``, with as many arrays as patches have axes.

        Parameters
        ----------
        patches : array (n, m)
            One patch per row: its pixels row by row, the channels of a pixel side by side.
        *corners : array of int (n,)
            Row and column of the upper left corner of each patch.
        means : array (n,), (n, 1) or (n, channels), optional
            What was subtracted from each patch, to be added back.
        patch_weights : array (n,), optional
            Weight of each patch, > 0; 1 by default.
        n_threads : int, default 1
            Number of threads. It does not affect the result.
        """
        threads = resolve_threads(n_threads)
        patches = np.asarray(patches)
        patches = np.ascontiguousarray(patches, float_dtype(patches.dtype))
        n, m = len(patches), math.prod(self.patch_size) * self._channels
        if patches.shape != (n, m):
            message = f"patches must be rows of {m} numbers, got shape {patches.shape}"
            raise ValueError(message)
        offsets = np.zeros(n, np.int64)
        names = _names(len(self.patch_size))
        if len(corners) != len(names):
            message = (
                f"add takes patches and their {' and '.join(names)}, got {len(corners)} arrays"
            )
            raise TypeError(message)
        for name, own, side, places in zip(
            names, self.shape, self.patch_size, corners, strict=False
        ):
            offsets = offsets * own + _check_corners(name, places, n, own - side)
        offsets *= self._channels
        means = np.zeros((n, 1)) if means is None else np.asarray(means, np.float64)
        means = np.ascontiguousarray(means.reshape(n, -1) if n else means.reshape(0, 1))
        if n and means.shape[1] not in (1, self._channels):
            message = f"means must be one per patch or per channel, got shape {means.shape}"
            raise ValueError(message)
        weights = np.ones(n)
        if patch_weights is not None:
            weights = np.ascontiguousarray(patch_weights, np.float64)
        if weights.shape != (n,) or not np.all(weights > 0):
            message = f"patch_weights must be {n} numbers > 0, one per patch"
            raise ValueError(message)
        starts = line_starts((*self.shape[: len(names)], self._channels), self.patch_size)
        lines = Lines(starts, self.patch_size[-1] * self._channels, self._channels)
        line = self.shape[len(names) - 1] * self._channels

        def task(part: int) -> None:
            put(patches, means, offsets, weights, lines, line, self._sums, part, threads)

        run_tasks(task, threads, threads)

    @property
    def weight(self) -> Array:
        """Total weight of the patches that cover each value, in the picture's shape."""
        return np.ascontiguousarray(self._sums[:, PATCH_WEIGHT]).reshape(self.shape)

    def at(self, pixels: Array) -> Array:
        """The mean at the pixels selected by a mask (height, width), all of them covered.

        For a few pixels this needs less memory than the whole `image`.
        """
        some = pixels.reshape(-1)
        origin, total, weight = np.moveaxis(self._sums.reshape(some.size, -1, 3)[some], -1, 0)
        return np.asarray(
            (origin + total / weight).reshape(-1, *self.shape[len(self.patch_size) :])
        )

    def image(self, other: Array | None = None, other_weight: Array | float = 0.0) -> Array:
        """The mean so far, float64; zero where no patch has been added.

        Parameters
        ----------
        other : array of the picture's shape, optional
            A picture to average with the patches. It fills pixels without a patch.
        other_weight : float or array of the picture's shape, default 0
            Weight of ``other``.
        """
        origin, total, weight = self._sums.T
        covered = weight > 0
        weight = np.where(covered, weight, 1.0)
        mean = np.where(covered, origin + total / weight, 0.0).reshape(self.shape)
        if other is None:
            return mean
        weight = weight.reshape(self.shape)
        share = np.where(covered.reshape(self.shape), other_weight / (weight + other_weight), 1.0)
        return np.asarray(mean + share * (other - mean))


def reconstruct(
    patches: Any,
    shape: tuple[int, ...],
    patch_size: int | tuple[int, ...],
    *,
    means: Any = None,
    patch_weights: Any = None,
) -> Array:
    """Reconstruct a picture by averaging all its overlapping patches.

    The exact inverse, bit for bit, of cutting a picture into all its patches with `PatchSource`
    and ``center=False, normalize=False, skip_constant=False``.

    Parameters
    ----------
    patches : array (n, m), or iterable of such arrays
        All overlapping patches, in the order of `PatchSource`; at once or in blocks, with the same
        result.
    shape : (height, width) or (height, width, channels)
        The shape of the picture; or that of a volume or a series, with as many axes as patches.
    patch_size : int or tuple of int
        Height and width of a patch, or its sides along all axes, as (depth, height, width).
    means : array (n,), (n, 1) or (n, channels), optional
        What was subtracted from each patch, to be added back.
    patch_weights : array (n,), optional
        Weight of each patch, > 0; 1 by default.

    Returns
    -------
    array
        float32 if the patches are, else float64.

    See Also
    --------
    PatchAverage : Patches that arrive in parts, or with weights.
    PatchSource : From a picture to its patches.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.image import PatchSource, reconstruct
    >>> image = np.random.default_rng(0).random((20, 30))
    >>> source = PatchSource(image, 8, center=False, normalize=False, skip_constant=False, dtype=float)
    >>> patches = source.rows(np.arange(source.n_rows))
    >>> bool((reconstruct(patches, image.shape, 8) == image).all())
    True
    """
    average = PatchAverage(shape, patch_size)
    size = average.patch_size
    sides = average.shape[: len(size)]
    places = tuple(own - side + 1 for own, side in zip(sides, size, strict=True))
    count = math.prod(places)
    blocks: Iterable[Any] = [patches] if isinstance(patches, np.ndarray) else patches
    done, dtype = 0, np.dtype(np.float32)
    for block in blocks:
        block = np.asarray(block)
        if block.ndim != 2 or done + len(block) > count:
            message = (
                f"a picture of {by(sides)} has {count} patches of "
                f"{by(size)}: got a block of shape {block.shape} after {done} of them"
            )
            raise ValueError(message)
        check_finite("patches", block, done)
        dtype = np.result_type(dtype, float_dtype(block.dtype))
        for first in range(0, len(block), _ROWS):
            some = block[first : first + _ROWS]
            numbers = slice(done, done + len(some))
            corners = np.unravel_index(np.arange(numbers.start, numbers.stop), places)
            their_means = None if means is None else np.asarray(means)[numbers]
            their_weights = None if patch_weights is None else np.asarray(patch_weights)[numbers]
            average.add(some, *corners, means=their_means, patch_weights=their_weights)
            done += len(some)
    if done < count:
        message = f"a picture of {by(sides)} has {count} patches of {by(size)}, got {done}"
        raise ValueError(message)
    return average.image().astype(dtype)


def _names(axes: int) -> tuple[str, ...]:
    """What places along each axis are called in messages."""
    return ("rows", "columns") if axes == 2 else tuple(f"places on axis {i}" for i in range(axes))


def _check_corners(name: str, values: Any, n: int, last: int) -> Array:
    corners = np.asarray(values)
    if corners.shape != (n,) or (n and corners.dtype.kind not in "iu"):
        message = f"{name} must be {n} integers, one per patch, got shape {corners.shape}"
        raise ValueError(message)
    if n and not (corners.min() >= 0 and corners.max() <= last):
        bad = corners[(corners < 0) | (corners > last)][0]
        message = f"{name} must be between 0 and {last} for the patch to fit, got {bad}"
        raise ValueError(message)
    return corners.astype(np.int64)
