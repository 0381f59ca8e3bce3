"""Checks of the arguments that functions of pictures and patches share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from smalto.checks import Array, check_finite, check_integer
from smalto.coders.signals import clean_bools


def check_pixel_type(pixels: Array, what: str) -> None:
    """Raise ValueError unless pixels are unsigned integers or floats."""
    if pixels.dtype.kind not in "uf":
        message = f"{what} must hold unsigned integers or floats, got {pixels.dtype}"
        if pixels.dtype.kind == "U":
            message = (
                f"{what} must be an array of pixels, got {str(pixels.flat[0])!r}: "
                "smalto.image.read_picture reads a file"
            )
        elif pixels.dtype.kind == "i":
            message += ": convert it, such as with .astype(float)"
        raise ValueError(message)


def check_pixels_finite(pixels: Array, what: str, mask: Array | None = None) -> None:
    """Raise ValueError for NaN or infinity outside the mask."""
    if pixels.dtype.kind != "f":
        return
    if mask is not None and not np.isfinite(np.sum(pixels)):
        pixels = np.where(mask.reshape(*mask.shape, *[1] * (pixels.ndim - mask.ndim)), 0, pixels)
    check_finite(what, pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels)


def check_shape(shape: Any) -> tuple[int, ...]:
    """Return the shape of a picture: height, width and, optionally, channels."""
    sides = tuple(check_integer("shape", side) for side in shape)
    if len(sides) not in (2, 3):
        message = f"shape must be (height, width) or (height, width, channels), got {sides}"
        raise ValueError(message)
    return sides


def check_patch_size(patch_size: int | tuple[int, int]) -> tuple[int, int]:
    """Return height and width of a patch."""
    sizes = np.atleast_1d(np.asarray(patch_size))
    if sizes.shape not in ((1,), (2,)) or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        message = f"patch_size must be one integer >= 1, or two, got {patch_size!r}"
        raise ValueError(message)
    return int(sizes[0]), int(sizes[-1])


def check_fits(size: tuple[int, int], shape: Sequence[int], what: str) -> None:
    """Raise ValueError if a patch is larger than the picture."""
    if shape[0] < size[0] or shape[1] < size[1]:
        message = (
            f"patch_size {size[0]} x {size[1]} does not fit into {what}, "
            f"which is {shape[0]} x {shape[1]}"
        )
        raise ValueError(message)


def check_stride(stride: int, size: tuple[int, int]) -> int:
    """Raise ValueError if patches at this stride leave pixels uncovered."""
    stride = check_integer("stride", stride)
    if stride > min(size):
        message = f"stride must be at most the side of a patch, {min(size)}, got {stride}"
        raise ValueError(message)
    return stride


def as_mask(mask: Any, shape: Sequence[int]) -> Array:
    """Return a mask (True = missing) as booleans (height, width).

    A pixel is missing if any of its channels is.
    """
    marks = np.asarray(mask)
    if marks.dtype != bool:
        message = f"mask must hold booleans (True = missing), got {marks.dtype}"
        raise TypeError(message)
    if marks.ndim == 3 and marks.shape == tuple(shape):
        marks = np.asarray(marks.any(axis=2))
    if marks.shape != tuple(shape[:2]):
        message = f"mask must have the shape of its picture, {tuple(shape[:2])}, got {marks.shape}"
        raise ValueError(message)
    return clean_bools(marks)


def check_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Raise ValueError unless ``dtype`` is float32 or float64."""
    out = np.dtype(dtype)
    if out not in (np.float32, np.float64):
        message = f"dtype must be float32 or float64, got {out}"
        raise ValueError(message)
    return out
