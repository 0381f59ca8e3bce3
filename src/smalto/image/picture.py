"""A picture under restoration: floats to work on, and the conversion back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from smalto.checks import Array, check_integer, float_dtype
from smalto.image.checks import check_pixel_type, check_pixels_finite
from smalto.image.smooth_part import smooth_part


@dataclass(frozen=True)
class Picture:
    """A picture as floats (height, width, channels) in its own units, and its original form.

    It may have any number of axes in place of height and width.
    """

    pixels: Array
    dtype: np.dtype[Any]
    channel_axis: int | None
    sides: tuple[int, ...] | None = None  # height and width, if the pixels have been mirrored
    masked: Any = None  # the masked array that the picture was given as

    @property
    def axes(self) -> int:
        """Number of axes without that of the channels: 2 for a picture, 3 for a volume."""
        return self.pixels.ndim - 1

    def mirrored(self, size: tuple[int, ...]) -> Picture:
        """Return the picture continued by its mirror image if it is smaller than a patch."""
        pixels = mirror(self.pixels, size)
        if pixels is self.pixels:
            return self
        return replace(self, pixels=pixels, sides=self.pixels.shape[:-1])

    @property
    def hidden(self) -> Array | None:
        """Which values of the picture (height, width, channels) are masked, if any."""
        if self.masked is None:
            return None
        return _channels_last(np.ma.getmaskarray(self.masked), self.channel_axis)

    def convert_back(self, pixels: Array) -> Array:
        """Return pixels (height, width, channels) with the original dtype and axes.

        Integers are rounded and clipped to the range of their type. Masked values stay as they were.
        """
        if self.sides is not None:
            pixels = pixels[tuple(slice(side) for side in self.sides)]
        if self.dtype.kind in "ui":
            limits = np.iinfo(self.dtype)
            # float64 rounds the largest 64-bit integer up: clip to the largest float64 below it.
            most = float(limits.max)
            top = np.nextafter(most, 0.0) if int(most) > limits.max else most
            pixels = np.rint(np.clip(pixels, float(limits.min), top))
        out = pixels[..., 0] if self.channel_axis is None else pixels
        if self.channel_axis is not None:
            out = np.moveaxis(out, -1, self.channel_axis)
        out = np.ascontiguousarray(out).astype(self.dtype)
        if self.masked is None:
            return out
        hidden = np.ma.getmaskarray(self.masked)
        return np.ma.array(np.where(hidden, np.ma.getdata(self.masked), out), mask=hidden.copy())


def mirror(pixels: Array, size: tuple[int, ...]) -> Array:
    """Continue the sides (height, width) that are shorter than a patch by their mirror image.

    There are then as many positions of patches along them as a patch is long.
    """
    short = [2 * side - 1 - own if own < side else 0
             for own, side in zip(pixels.shape, size, strict=False)]  # fmt: skip
    if not any(short):
        return pixels
    rest = [(0, 0)] * (pixels.ndim - len(size))
    return np.pad(pixels, [*((0, more) for more in short), *rest], mode="symmetric")


def as_picture(
    image: Any,
    channel_axis: int | None,
    *,
    what: str = "image",
    mask: Array | None = None,
    axes: int | None = 2,
) -> Picture:
    """Check a picture and copy it to floats with the channels last.

    It must have so many ``axes`` beside that of the channels; with None any number. What looks
    like a color picture without an axis of channels is refused unless ``axes`` is 3, and what looks
    like a gray one with such an axis unless ``axes`` is 1.

    Values where ``mask`` (height, width) is True are not checked and may be NaN. Without a mask,
    those that are masked in a NumPy masked array are replaced by local means of the others.
    """
    given = np.asarray(np.ma.getdata(image))
    check_pixel_type(given, what, signed=True)
    rest = 0 if channel_axis is None else 1
    hint = ""
    if (
        given.ndim == 3
        and axes != 3
        and channel_axis is None
        and 3 in (given.shape[0], given.shape[2])
    ):
        hint = f"; for a color picture pass channel_axis={0 if given.shape[0] == 3 else -1}"
        hint += "" if axes == 2 else ", for a volume a patch_size of three numbers"
    if given.ndim == 2 and channel_axis is not None and axes is None:
        hint = "; for a gray picture leave channel_axis out, for a series pass patch_size=(32,)"
    is_wrong = given.ndim != axes + rest if axes is not None else given.ndim <= rest
    if is_wrong or not given.size or hint:
        shape = "shape (height, width)" if channel_axis is None else "two axes and one of channels"
        message = f"{what} must have {shape}, got shape {given.shape}{hint}"
        raise ValueError(message)
    if channel_axis is not None:
        channel_axis = check_integer("channel_axis", channel_axis, low=-given.ndim)
        if channel_axis >= given.ndim:
            message = (
                f"channel_axis must be an axis of a picture of shape {given.shape}, "
                f"got {channel_axis}"
            )
            raise ValueError(message)
    pixels = _channels_last(given, channel_axis)
    hidden = None if mask is not None else _hidden(image, channel_axis, what)
    missing = mask if hidden is None else np.asarray(hidden.any(axis=-1))
    check_pixels_finite(pixels, what, missing)
    dtype = np.float32 if given.dtype.itemsize <= 2 else float_dtype(given.dtype)
    pixels = np.array(pixels, dtype=dtype, order="C")
    if hidden is None or missing is None:
        return Picture(pixels, given.dtype, channel_axis)
    pixels[hidden] = smooth_part(pixels, missing)[hidden]
    return Picture(pixels, given.dtype, channel_axis, masked=image)


def _hidden(image: Any, channel_axis: int | None, what: str) -> Array | None:
    """Which values (height, width, channels) of a masked array are masked; None if none are."""
    if not np.ma.is_masked(image):
        return None
    hidden = _channels_last(np.ma.getmaskarray(image), channel_axis)
    if hidden.any(axis=-1).all():
        message = f"all of the {hidden[..., 0].size} pixels of {what} are masked"
        raise ValueError(message)
    return hidden


def _channels_last(values: Array, channel_axis: int | None) -> Array:
    if channel_axis is None:
        return values[..., None]
    return np.moveaxis(values, channel_axis, -1)
