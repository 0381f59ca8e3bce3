"""A picture that is to be restored: floats to work on, and the way back to what it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from smalto.checks import Array, check_integer, float_dtype
from smalto.image.pictures import check_pixels_finite, check_values


@dataclass(frozen=True)
class Frame:
    """A picture as floats (height, width, channels) in its own units, and what it was."""

    pixels: Array
    dtype: np.dtype[Any]
    channel_axis: int | None

    def like(self, pixels: Array) -> Array:
        """Pixels (height, width, channels) in the dtype and with the axes of the picture.

        Integers are rounded, and clipped to what their type can hold.
        """
        if self.dtype.kind == "u":
            most = np.iinfo(self.dtype).max
            # The largest uint64 is no float64: the largest float64 below it will do.
            top = np.nextafter(float(most), 0.0) if int(float(most)) > most else float(most)
            pixels = np.rint(np.clip(pixels, 0.0, top))
        out = pixels[:, :, 0] if self.channel_axis is None else pixels
        if self.channel_axis is not None:
            out = np.moveaxis(out, 2, self.channel_axis)
        return np.ascontiguousarray(out).astype(self.dtype)


def as_frame(
    image: Any, channel_axis: int | None, *, what: str = "image", mask: Array | None = None
) -> Frame:
    """Check a picture, and make floats of it: a copy, channels last.

    Where ``mask`` (height, width) is True anything goes, NaN too.
    """
    given = np.asarray(image)
    check_values(given, what)
    wanted = 2 if channel_axis is None else 3
    if given.ndim != wanted or not given.size:
        hint = ""
        if given.ndim == 3 and channel_axis is None and 3 in (given.shape[0], given.shape[2]):
            hint = f"; for a colour picture say channel_axis={0 if given.shape[0] == 3 else -1}"
        shape = "(height, width)" if channel_axis is None else "two axes and one of channels"
        message = f"{what} must have {shape}, got shape {given.shape}{hint}"
        raise ValueError(message)
    if channel_axis is None:
        pixels = given[:, :, None]
    else:
        axis = check_integer("channel_axis", channel_axis, low=-3)
        if axis > 2:
            message = (
                f"channel_axis must be an axis of a picture of shape {given.shape}, got {axis}"
            )
            raise ValueError(message)
        pixels = np.moveaxis(given, axis, 2)
    check_pixels_finite(pixels, what, mask)
    kind = np.float32 if given.dtype.itemsize <= 2 else float_dtype(given.dtype)
    copy = np.array(pixels, dtype=kind, order="C")
    return Frame(copy, given.dtype, channel_axis)
