"""A picture under restoration: floats to work on, and the conversion back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from smalto.checks import Array, check_integer, float_dtype
from smalto.image.checks import check_pixel_type, check_pixels_finite


@dataclass(frozen=True)
class Picture:
    """A picture as floats (height, width, channels) in its own units, and its original form."""

    pixels: Array
    dtype: np.dtype[Any]
    channel_axis: int | None

    def convert_back(self, pixels: Array) -> Array:
        """Return pixels (height, width, channels) with the original dtype and axes.

        Integers are rounded and clipped to the range of their type.
        """
        if self.dtype.kind == "u":
            most = np.iinfo(self.dtype).max
            # float64 rounds the largest uint64 up: clip to the largest float64 below it.
            top = np.nextafter(float(most), 0.0) if int(float(most)) > most else float(most)
            pixels = np.rint(np.clip(pixels, 0.0, top))
        out = pixels[:, :, 0] if self.channel_axis is None else pixels
        if self.channel_axis is not None:
            out = np.moveaxis(out, 2, self.channel_axis)
        return np.ascontiguousarray(out).astype(self.dtype)


def as_picture(
    image: Any, channel_axis: int | None, *, what: str = "image", mask: Array | None = None
) -> Picture:
    """Check a picture and copy it to floats with the channels last.

    Values where ``mask`` (height, width) is True are not checked and may be NaN.
    """
    given = np.asarray(image)
    check_pixel_type(given, what)
    wanted = 2 if channel_axis is None else 3
    if given.ndim != wanted or not given.size:
        hint = ""
        if given.ndim == 3 and channel_axis is None and 3 in (given.shape[0], given.shape[2]):
            hint = f"; for a color picture pass channel_axis={0 if given.shape[0] == 3 else -1}"
        shape = "shape (height, width)" if channel_axis is None else "two axes and one of channels"
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
    dtype = np.float32 if given.dtype.itemsize <= 2 else float_dtype(given.dtype)
    return Picture(np.array(pixels, dtype=dtype, order="C"), given.dtype, channel_axis)
