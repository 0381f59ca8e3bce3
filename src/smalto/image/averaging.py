"""Pictures from overlapping patches: the mean of all that cover a pixel."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from smalto.checks import Array, check_finite, check_integer, float_dtype
from smalto.image.pictures import check_fits, check_size
from smalto.kernels.image.patch_gathering import put

_ROWS = 1 << 14  # patches checked at a time


class PatchAverage:
    """The weighted mean ``Σ w x / Σ w`` of the patches that cover each pixel, patch by patch.

    What has been added so far is two numbers per value, whatever the number of patches. Where
    all patches agree on a pixel the mean is what they say, to the last bit. Patches that are
    added in the same order give the same bits, however they are cut into blocks.

    Parameters
    ----------
    shape : (height, width) or (height, width, channels)
        The shape of the picture.
    patch_size : int or (int, int)
        Height and width of a patch.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.image import PatchAverage
    >>> average = PatchAverage((1, 3), (1, 2))
    >>> average.add(np.array([[1.0, 2.0], [4.0, 5.0]]), rows=np.array([0, 0]), columns=np.array([0, 1]))
    >>> average.image()
    array([[1., 3., 5.]])
    """

    def __init__(self, shape: tuple[int, ...], patch_size: int | tuple[int, int]) -> None:
        self.shape = check_shape(shape)
        self.patch_size = check_size(patch_size)
        check_fits(self.patch_size, self.shape, "the picture")
        self._channels = self.shape[2] if len(self.shape) == 3 else 1
        self._origin, self._total, self._weight = np.zeros((3, int(np.prod(self.shape))))

    def add(
        self,
        patches: Array,
        rows: Array,
        columns: Array,
        *,
        means: Array | None = None,
        weights: Array | None = None,
    ) -> None:
        """Add patches (n, m) with their upper left corners at these rows and columns.

        Parameters
        ----------
        patches : array (n, m)
            One patch per row: its pixels row by row, the channels of a pixel side by side.
        rows, columns : array of int (n,)
            Where each one lies.
        means : array (n,), (n, 1) or (n, channels), optional
            What was subtracted from each patch and is to be added to it again.
        weights : array (n,), optional
            How much each patch counts, more than zero; 1 by default.
        """
        height, width = self.patch_size
        patches = np.asarray(patches)
        patches = np.ascontiguousarray(patches, float_dtype(patches.dtype))
        n, m = len(patches), height * width * self._channels
        if patches.shape != (n, m):
            message = f"patches must be rows of {m} numbers, got shape {patches.shape}"
            raise ValueError(message)
        rows = _check_corners("rows", rows, n, self.shape[0] - height)
        columns = _check_corners("columns", columns, n, self.shape[1] - width)
        means = np.zeros((n, 1)) if means is None else np.asarray(means, np.float64)
        means = np.ascontiguousarray(means.reshape(n, -1) if n else means.reshape(0, 1))
        if n and means.shape[1] not in (1, self._channels):
            message = f"means must be one per patch or per channel, got shape {means.shape}"
            raise ValueError(message)
        weights = np.ones(n) if weights is None else np.ascontiguousarray(weights, np.float64)
        if weights.shape != (n,) or not np.all(weights > 0):
            message = f"weights must be {n} numbers > 0, one per patch"
            raise ValueError(message)
        line = self.shape[1] * self._channels
        corners = rows * line + columns * self._channels
        put(
            patches, means, corners, weights, line, height, width * self._channels,
            self._origin, self._total, self._weight,
        )  # fmt: skip

    @property
    def weight(self) -> Array:
        """The sum of the weights of the patches that cover each value, in the picture's shape."""
        return self._weight.reshape(self.shape)

    def at(self, pixels: Array) -> Array:
        """The mean at some pixels, all of them covered: a mask (height, width) says which.

        For a few of them it takes less memory than the whole `image`.
        """
        some = pixels.reshape(-1)
        origin, total, weight = (
            part.reshape(some.size, -1)[some] for part in (self._origin, self._total, self._weight)
        )
        total /= weight
        total += origin
        return np.asarray(total.reshape(-1, *self.shape[2:]))

    def image(self, blend: Array | None = None, amount: Array | float = 0.0) -> Array:
        """The mean so far, float64; zero where no patch has been added.

        Parameters
        ----------
        blend : array of the picture's shape, optional
            Another picture that joins the mean at each pixel with weight ``amount``, and that
            fills pixels without a patch.
        amount : float or array of the picture's shape
            Its weight.
        """
        covered = self._weight > 0
        weight = np.where(covered, self._weight, 1.0)
        mean = np.where(covered, self._origin + self._total / weight, 0.0).reshape(self.shape)
        if blend is None:
            return mean
        share = np.where(
            covered.reshape(self.shape), amount / (weight.reshape(self.shape) + amount), 1.0
        )
        return np.asarray(mean + share * (blend - mean))


def reconstruct(
    patches: Any,
    shape: tuple[int, ...],
    patch_size: int | tuple[int, int],
    *,
    means: Any = None,
    weights: Any = None,
) -> Array:
    """The picture whose pixels are the means of all patches that cover them.

    The inverse of cutting a picture into all its overlapping patches (`PatchSource` with
    ``center=False, normalize=False, skip_constant=False``), exact to the last bit.

    Parameters
    ----------
    patches : array (n, m), or iterable of such arrays
        All overlapping patches, row of places by row of places; at once or block by block, with
        the same result.
    shape : (height, width) or (height, width, channels)
        The shape of the picture.
    patch_size : int or (int, int)
        Height and width of a patch.
    means : array (n,), (n, 1) or (n, channels), optional
        What was subtracted from each patch and is to be added to it again.
    weights : array (n,), optional
        How much each patch counts.

    Returns
    -------
    array
        float32 if the patches are, else float64.

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
    height, width = average.patch_size
    columns = average.shape[1] - width + 1
    count = (average.shape[0] - height + 1) * columns
    blocks: Iterable[Any] = [patches] if isinstance(patches, np.ndarray) else patches
    done, dtype = 0, np.dtype(np.float32)
    for block in blocks:
        block = np.asarray(block)
        if block.ndim != 2 or done + len(block) > count:
            message = (
                f"a picture of {average.shape[0]} x {average.shape[1]} has {count} patches of "
                f"{height} x {width}: got a block of shape {block.shape} after {done} of them"
            )
            raise ValueError(message)
        check_finite("patches", block, done)
        dtype = np.result_type(dtype, float_dtype(block.dtype))
        for begin in range(0, len(block), _ROWS):
            some = block[begin : begin + _ROWS]
            numbers = slice(done, done + len(some))
            rows, places = np.divmod(np.arange(numbers.start, numbers.stop), columns)
            average.add(
                some, rows, places,
                means=None if means is None else np.asarray(means)[numbers],
                weights=None if weights is None else np.asarray(weights)[numbers],
            )  # fmt: skip
            done += len(some)
    if done < count:
        message = (
            f"a picture of {average.shape[0]} x {average.shape[1]} has {count} patches of "
            f"{height} x {width}, got {done}"
        )
        raise ValueError(message)
    return average.image().astype(dtype)


def check_shape(shape: Any) -> tuple[int, ...]:
    """The shape of a picture: two sides, and perhaps a number of channels."""
    sides = tuple(check_integer("shape", side) for side in shape)
    if len(sides) not in (2, 3):
        message = f"shape must be (height, width) or (height, width, channels), got {sides}"
        raise ValueError(message)
    return sides


def _check_corners(name: str, values: Any, n: int, last: int) -> Array:
    corners = np.asarray(values)
    if corners.shape != (n,) or (n and corners.dtype.kind not in "iu"):
        message = f"{name} must be {n} integers, one per patch, got shape {corners.shape}"
        raise ValueError(message)
    if n and not (corners.min() >= 0 and corners.max() <= last):
        bad = corners[(corners < 0) | (corners > last)][0]
        message = f"{name} must lie between 0 and {last} for the patch to fit, got {bad}"
        raise ValueError(message)
    return corners.astype(np.int64)
