"""Pictures as they stand in memory, and how patches are found in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.image.pictures import as_mask, as_pictures, check_colour, check_fits, grey_of, scale_of
from smalto.kernels.image.patch_gathering import measure


@dataclass(frozen=True)
class Stack:
    """Pictures of one size, one behind the other in memory, and the size of patches."""

    pixels: Array  # (frames, height, width, channels), C-contiguous
    size: tuple[int, int]

    @property
    def flat(self) -> Array:
        """The numbers as they stand in memory."""
        return np.asarray(self.pixels.reshape(-1))

    @property
    def frames(self) -> int:
        """How many pictures."""
        return int(self.pixels.shape[0])

    @property
    def channels(self) -> int:
        """How many numbers a pixel has."""
        return int(self.pixels.shape[3])

    @property
    def line(self) -> int:
        """How many numbers a line of pixels has."""
        return int(self.pixels.shape[2]) * self.channels

    @property
    def scale(self) -> float:
        """What values are multiplied by."""
        return scale_of(self.pixels.dtype)

    @property
    def grid(self) -> tuple[int, int]:
        """Lines of places in a picture, and places in a line."""
        _, height, width, _ = self.pixels.shape
        return height - self.size[0] + 1, width - self.size[1] + 1

    @property
    def n_places(self) -> int:
        """How many patches there are."""
        return self.frames * self.grid[0] * self.grid[1]

    def corner(self, places: Array) -> tuple[Array, Array, Array]:
        """Frame, row and column of the upper left corners of the patches at these places."""
        lines, columns = self.grid
        line, column = np.divmod(places, columns)
        return line // lines, line % lines, column

    def offsets(self, frame: Array | int, row: Array, column: Array) -> Array:
        """Where in ``flat`` patches with these corners begin."""
        begin = (frame * self.pixels.shape[1] + row) * self.line + column * self.channels
        return np.ascontiguousarray(begin, np.int64)

    def measures(self, places: Array) -> Array:
        """Mean, least and largest value and contrast² of the patches at these places (n, 4)."""
        out = np.empty((len(places), 4))
        span = self.size[1] * self.channels
        measure(
            self.flat, self.offsets(*self.corner(places)), self.line, self.size[0], span,
            self.channels, self.scale, out,
        )  # fmt: skip
        return out


def as_stacks(
    images: Any, colour: bool | None, size: tuple[int, int], dtype: np.dtype[Any]
) -> list[Stack]:
    """Pictures as stacks in memory order, copied only where they must be."""
    if isinstance(images, np.ndarray) and images.ndim == 4 and len(images):
        check_colour(as_pictures(images[:1]), colour)
        if colour is not False:
            check_fits(size, images.shape[1:], "the images")
            return [Stack(_plain(images), size)]
    pictures = as_pictures(images)
    keep = check_colour(pictures, colour)
    stacks = []
    for i, picture in enumerate(pictures):
        check_fits(size, picture.shape, f"image {i}")
        if not keep and picture.shape[2] == 3:
            picture = grey_of(picture).astype(dtype)[:, :, None]
        stacks.append(Stack(_plain(picture[None]), size))
    return stacks


def _plain(pixels: Array) -> Array:
    """C-contiguous pixels of one of the four types that kernels are compiled for."""
    kind = pixels.dtype.newbyteorder("=")
    if kind.kind == "u" and kind.itemsize > 2:
        return np.divide(pixels, float(np.iinfo(kind).max))
    if kind.kind == "f" and kind not in (np.float32, np.float64):
        kind = np.dtype(np.float32 if kind.itemsize < 4 else np.float64)
    return np.ascontiguousarray(pixels, kind)


def as_masks(mask: Any, stacks: list[Stack]) -> list[Array | None]:
    """For each stack, its mask (frames, height, width)."""
    if mask is None:
        return [None] * len(stacks)
    count = sum(stack.frames for stack in stacks)
    shapes = (stacks[0].pixels.shape[1:3], stacks[0].pixels.shape[1:])
    single = isinstance(mask, np.ndarray) and (mask.ndim == 2 or mask.shape in shapes)
    given = [mask] if single else list(mask)
    if len(given) != count:
        message = f"mask must be one array for each of {count} pictures, got {len(given)}"
        raise ValueError(message)
    out: list[Array | None] = []
    begin = 0
    for stack in stacks:
        some = given[begin : begin + stack.frames]
        begin += stack.frames
        shape = stack.pixels.shape[1:]
        marks = [
            np.zeros(shape[:2], np.bool_) if one is None else as_mask(one, shape) for one in some
        ]
        out.append(np.stack(marks) if any(one.any() for one in marks) else None)
    return out
