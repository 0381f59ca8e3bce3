"""Checks of the arguments that functions of pictures and patches share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from smalto.checks import Array, as_marks, check_finite, check_integer
from smalto.coders.signals import clean_bools


def check_pixel_type(pixels: Array, what: str, *, signed: bool = False) -> None:
    """Raise ValueError unless pixels are unsigned integers, or ``signed`` ones, or floats."""
    if pixels.dtype.kind not in ("uif" if signed else "uf"):
        kinds = "integers" if signed else "unsigned integers"
        message = f"{what} must hold {kinds} or floats, got {pixels.dtype}"
        if pixels.dtype.kind == "U":
            message = (
                f"{what} must be an array of pixels, got {str(pixels.flat[0])!r}: "
                "smalto.image.read_picture reads a file"
            )
        elif pixels.dtype.kind in "ib":
            message += ": convert it, such as with .astype(float)"
        raise ValueError(message)


def check_pixels_finite(pixels: Array, what: str, mask: Array | None = None) -> None:
    """Raise ValueError for NaN or infinity outside the mask."""
    if pixels.dtype.kind != "f":
        return
    if mask is not None and not np.isfinite(np.sum(pixels)):
        pixels = np.where(mask.reshape(*mask.shape, *[1] * (pixels.ndim - mask.ndim)), 0, pixels)
    check_finite(what, pixels[..., 0] if pixels.ndim > 1 and pixels.shape[-1] == 1 else pixels)


def check_shape(shape: Any, axes: int = 2) -> tuple[int, ...]:
    """Return the shape of a picture: height, width and, optionally, channels; or of other axes."""
    sides = tuple(check_integer("shape", side) for side in shape)
    if len(sides) not in (axes, axes + 1):
        message = (
            f"shape must be (height, width) or (height, width, channels), got {sides}"
            if axes == 2
            else f"shape must have {axes} axes, as patch_size, or one more for channels, got {sides}"
        )
        raise ValueError(message)
    return sides


def check_patch_size(patch_size: int | tuple[int, ...], axes: int | None = 2) -> tuple[int, ...]:
    """Return the sides of a patch: height and width, or as many as there are axes.

    A single integer is all of them. Without ``axes``, a tuple tells how many there are, and an
    integer is that of pictures, with two.
    """
    sizes = np.asarray(patch_size)
    wanted = axes or (2 if sizes.ndim == 0 else sizes.size)
    is_good = sizes.ndim == 0 or (sizes.ndim == 1 and sizes.size in (1, wanted))
    if not is_good or not sizes.size or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        number = {1: "", 2: ", or two", 3: ", or three"}.get(wanted, f", or {wanted}")
        message = f"patch_size must be one integer >= 1{number}, got {patch_size!r}"
        raise ValueError(message)
    return tuple(int(side) for side in np.broadcast_to(sizes, (wanted,)))


def axes_told(patch_size: Any) -> int | None:
    """Number of axes if patches have three sides or one: what looks like a picture is none then."""
    number = len(patch_size) if isinstance(patch_size, Sequence) else 0
    return number if number in (1, 3) else None


def by(sides: Sequence[int]) -> str:
    """Return sides as in "3 x 4"."""
    return " x ".join(map(str, sides))


def check_fits(size: tuple[int, ...], shape: Sequence[int], what: str) -> None:
    """Raise ValueError if a patch is larger than the picture."""
    own = shape[: len(size)]
    if any(has < side for has, side in zip(own, size, strict=True)):
        message = f"patch_size {by(size)} does not fit into {what}, which is {by(own)}"
        raise ValueError(message)


def check_stride(stride: int, size: tuple[int, ...]) -> int:
    """Raise ValueError if patches at this stride leave pixels uncovered."""
    stride = check_integer("stride", stride)
    if stride > min(size):
        message = f"stride must be at most the side of a patch, {min(size)}, got {stride}"
        raise ValueError(message)
    return stride


def as_mask(mask: Any, sides: Sequence[int], channels: int) -> Array:
    """Return a mask (True = missing) as booleans of a picture with these sides (height, width).

    A pixel is missing if any of its channels is. Integers stand for booleans if all but zeros are
    the same, as 255 in the masks of many programs.
    """
    marks = as_marks(mask)
    if marks.dtype.kind in "iu" and np.isin(marks, (0, marks.max(initial=1))).all():
        marks = marks != 0
    if marks.dtype != bool:
        message = (
            f"mask must hold booleans (True = missing), or zeros and one other integer, "
            f"got {marks.dtype}"
        )
        raise TypeError(message)
    if marks.shape == (*sides, channels):
        marks = np.asarray(marks.any(axis=-1))
    if marks.shape != tuple(sides):
        message = f"mask must have the shape of its picture, {tuple(sides)}, got {marks.shape}"
        raise ValueError(message)
    return clean_bools(marks)


def check_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Raise ValueError unless ``dtype`` is float32 or float64."""
    out = np.dtype(dtype)
    if out not in (np.float32, np.float64):
        message = f"dtype must be float32 or float64, got {out}"
        raise ValueError(message)
    return out
