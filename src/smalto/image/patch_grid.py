"""The grid of all patch positions in pictures of one size, and where each patch is in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from smalto.cached import cached_property
from smalto.checks import Array, as_marks
from smalto.image.checks import as_mask, check_fits
from smalto.image.luminance import gray_of
from smalto.image.reading import as_pictures, as_volumes
from smalto.kernels.image import patch_gathering as kernels


@dataclass(frozen=True)
class PatchGrid:
    """Pictures of one size, contiguous in memory, and the size of their patches.

    A picture has two axes, a volume three, a series one. Positions number the patches of all
    pictures, row by row of each picture in turn.
    """

    pixels: Array  # (pictures, height, width, channels), C-contiguous; or with other axes
    size: tuple[int, ...]

    @property
    def flat(self) -> Array:
        """The values as they are in memory; never writable, so that kernels see one type only."""
        values = np.asarray(self.pixels.reshape(-1))
        values.flags.writeable = False
        return values

    @property
    def n_pictures(self) -> int:
        """Number of pictures."""
        return int(self.pixels.shape[0])

    @property
    def channels(self) -> int:
        """Values per pixel."""
        return int(self.pixels.shape[-1])

    @property
    def n_features(self) -> int:
        """Values per patch."""
        return math.prod(self.size) * self.channels

    @property
    def span(self) -> int:
        """Values per row of a patch."""
        return self.size[-1] * self.channels

    @property
    def line(self) -> int:
        """Values per row of a picture."""
        return int(self.pixels.shape[-2]) * self.channels

    @property
    def scale(self) -> float:
        """Factor for all values: unsigned integers become numbers in [0, 1]."""
        dtype = self.pixels.dtype
        return 1.0 / float(np.iinfo(dtype).max) if dtype.kind == "u" else 1.0

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of patch positions along each axis of a picture: rows and columns."""
        sides = self.pixels.shape[1:-1]
        return tuple(own - side + 1 for own, side in zip(sides, self.size, strict=True))

    @property
    def n_positions(self) -> int:
        """Number of patches in all pictures."""
        return self.n_pictures * math.prod(self.shape)

    def strided(self, stride: int) -> tuple[Array, ...]:
        """Every ``stride``-th row and column of positions, and always the last ones."""
        return tuple(_every(count, stride) for count in self.shape)

    def corners(self, positions: Array) -> tuple[Array, ...]:
        """Picture, row and column of the upper left corners of the patches at these positions."""
        return np.unravel_index(positions, (self.n_pictures, *self.shape))

    def offsets(self, picture: Array | int, *corner: Any) -> Array:
        """Indices into ``flat`` of the upper left corners, given by row and column."""
        first: Any = picture
        for own, place in zip(self.pixels.shape[1:-1], corner, strict=True):
            first = first * own + place
        return np.ascontiguousarray(first * self.channels, np.int64)

    def begin_of_row(self, picture: int, row: int) -> int:
        """Index into ``flat`` of the first patch of a row of positions, by the number of the row."""
        corner = np.unravel_index(row, self.shape[:-1]) if len(self.shape) > 1 else ()
        return int(self.offsets(picture, *corner, 0).item())

    @property
    def layout(self) -> kernels.Layout:
        """Where the numbers of a patch of two axes are, for kernels that compare patches."""
        return kernels.Layout(self.line, self.size[0], self.span, self.channels)

    @cached_property
    def lines(self) -> kernels.Lines:
        """Where the numbers of a patch are in a picture, for kernels."""
        starts = line_starts(self.pixels.shape[1:], self.size)
        return kernels.Lines(starts, self.span, self.channels)

    def measures(self, positions: Array) -> Array:
        """Mean, minimum, maximum and squared contrast of the patches at these positions (n, 4)."""
        out = np.empty((len(positions), 4))
        offsets = self.offsets(*self.corners(positions))
        kernels.measure(self.flat, offsets, self.lines, self.scale, out)
        return out

    def gather(
        self, offsets: Array, out: Array, means: Array, *, groups: int, normalize: bool = False
    ) -> None:
        """Write the patches at these offsets to ``out`` and their means to ``means``.

        ``groups`` is 1 to subtract the mean of each patch, the number of channels to subtract
        that of each channel, 0 to subtract nothing.
        """
        treatment = kernels.Treatment(self.scale, int(groups), bool(normalize))
        kernels.gather(self.flat, offsets, self.lines, treatment, out, means)

    def gather_known(
        self,
        offsets: Array,
        mask: Array,
        outputs: tuple[Array, Array, Array],
        *,
        groups: int,
        normalize: bool = False,
        fill: float = 0.0,
    ) -> None:
        """Write patches with missing pixels, their means, and which pixels are missing.

        ``mask`` is that of all pictures, from `flat_mask`; ``outputs`` are patches (n, m), means
        (n, groups) and missing (n, m). Missing pixels become ``fill``. Means and norms are those
        of the known pixels.
        """
        treatment = kernels.Treatment(self.scale, int(groups), bool(normalize))
        kernels.gather_known(self.flat, mask, offsets, self.lines, treatment, float(fill), outputs)


def line_starts(shape: tuple[int, ...], size: tuple[int, ...]) -> Array:
    """Where the lines of a patch begin, from its corner on, in a picture (height, width, channels)."""
    starts = np.zeros(1, np.int64)
    for axis, side in enumerate(size[:-1]):
        steps = math.prod(shape[axis + 1 :]) * np.arange(side)
        starts = (starts[:, None] + steps).reshape(-1)
    return starts


def as_grids(
    images: Any, size: tuple[int, ...], as_gray: bool, dtype: np.dtype[Any]
) -> list[PatchGrid]:
    """Return pictures as grids, copied only if necessary; ``dtype`` is that of gray values."""
    if len(size) != 2:
        return [
            PatchGrid(_as_kernel_type(picture[None]), size)
            for picture in as_volumes(images, size, as_gray)
        ]
    if isinstance(images, np.ndarray) and images.ndim == 4 and len(images) and not as_gray:
        as_pictures(images[:1])  # raises unless its shape and dtype are those of pictures
        check_fits(size, images.shape[1:], "the images")
        return [PatchGrid(_as_kernel_type(images), size)]
    pictures = as_pictures(images)
    if not as_gray and len({picture.shape[2] for picture in pictures}) > 1:
        message = (
            "some images are gray and some are RGB: pass as_gray=True to make all of them gray"
        )
        raise ValueError(message)
    grids = []
    for i, picture in enumerate(pictures):
        check_fits(size, picture.shape, f"image {i}")
        if as_gray and picture.shape[2] == 3:
            picture = gray_of(picture).astype(dtype)[:, :, None]
        grids.append(PatchGrid(_as_kernel_type(picture[None]), size))
    return grids


def as_masks(mask: Any, grids: list[PatchGrid]) -> list[Array | None]:
    """The masks (pictures, height, width) of the grids; None for a grid without missing pixels."""
    if mask is None:
        return [None] * len(grids)
    count = sum(grid.n_pictures for grid in grids)
    axes = len(grids[0].size)
    if scipy.sparse.issparse(mask):
        mask = as_marks(mask)
    shapes = (grids[0].pixels.shape[1:-1], grids[0].pixels.shape[1:])
    single = isinstance(mask, np.ndarray) and (mask.ndim == axes or mask.shape in shapes)
    given = [mask] if single else list(mask)
    if len(given) != count:
        message = f"mask must be one array for each of {count} pictures, got {len(given)}"
        raise ValueError(message)
    out: list[Array | None] = []
    first = 0
    for grid in grids:
        some = given[first : first + grid.n_pictures]
        first += grid.n_pictures
        shape = grid.pixels.shape[1:]
        marks = [
            np.zeros(shape[:-1], np.bool_) if one is None else as_mask(one, shape[:-1], shape[-1])
            for one in some
        ]
        out.append(np.stack(marks) if any(one.any() for one in marks) else None)
    return out


def flat_mask(mask: Array) -> Array:
    """A mask as flat bytes, one per pixel, as kernels read it."""
    return np.ascontiguousarray(mask).view(np.uint8).reshape(-1)


def _as_kernel_type(pixels: Array) -> Array:
    """C-contiguous pixels of one of the four types that kernels are compiled for."""
    dtype = pixels.dtype.newbyteorder("=")
    if dtype.kind == "u" and dtype.itemsize > 2:
        return np.divide(pixels, float(np.iinfo(dtype).max))
    if dtype.kind == "f" and dtype not in (np.float32, np.float64):
        dtype = np.dtype(np.float32 if dtype.itemsize < 4 else np.float64)
    return np.ascontiguousarray(pixels, dtype)


def _every(count: int, stride: int) -> Array:
    numbers = np.arange(0, count, stride)
    return numbers if numbers[-1] == count - 1 else np.append(numbers, count - 1)
