"""Pictures as they come: arrays of several kinds, files, folders of files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from smalto.checks import Array, check_finite, check_integer
from smalto.coders.signals import clean_bools

_LUMA = np.array([0.299, 0.587, 0.114])  # Rec. 601, as Pillow has it
_WIDE = ("I;16", "I;16B", "I;16L", "I;16N")  # what Pillow calls 16-bit grey
SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".ppm", ".pgm")


def read_picture(path: str | os.PathLike[str]) -> Array:
    """Read a picture file as (height, width) or (height, width, 3), uint8 or (grey) uint16.

    Palettes are resolved, transparency is dropped.

    Parameters
    ----------
    path : path
        A file that Pillow can read.

    Returns
    -------
    ndarray
        The pixels; the caller may write to them.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as picture:
            if picture.mode in _WIDE:
                return np.array(picture).astype(np.uint16)
            grey = picture.mode in ("1", "L", "LA")
            return np.array(picture.convert("L" if grey else "RGB"))
    except UnidentifiedImageError as error:
        message = f"{path} is not a picture that can be read"
        raise ValueError(message) from error
    except Image.DecompressionBombError as error:
        message = f"{path} is refused: it would unpack to too many pixels ({error})"
        raise ValueError(message) from error
    except (OSError, SyntaxError, EOFError) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        message = f"{path} is damaged or cut short: {error}"
        raise ValueError(message) from error


def pictures_in(folder: str | os.PathLike[str]) -> list[Path]:
    """The picture files of a folder, by their endings, in the order of their names."""
    found = sorted(p for p in Path(folder).iterdir() if p.suffix.lower() in SUFFIXES)
    if not found:
        message = f"no pictures ({', '.join(SUFFIXES)}) in {folder}"
        raise FileNotFoundError(message)
    return found


def as_pixels(image: Any, what: str) -> Array:
    """Return a picture as (height, width, channels), not copied; a path is read."""
    if isinstance(image, str | os.PathLike):
        image = read_picture(image)
    pixels = image if isinstance(image, np.ndarray) else np.asarray(image)
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] != 3) or not pixels.size:
        hint = "; a stack of grey pictures is list(images)" if pixels.ndim == 3 else ""
        message = (
            f"{what} must be (height, width) or (height, width, 3), got shape {pixels.shape}{hint}"
        )
        raise ValueError(message)
    check_values(pixels, what)
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def check_values(pixels: Array, what: str) -> None:
    """Refuse what does not hold unsigned integers or floats."""
    if pixels.dtype.kind not in "uf":
        message = f"{what} must hold unsigned integers or floats, got {pixels.dtype}"
        raise ValueError(message)


def as_pictures(images: Any) -> list[Array]:
    """One picture, a stack, a sequence of them, a path or a folder: a list of (h, w, channels)."""
    if isinstance(images, str | os.PathLike):
        paths: list[Any] = pictures_in(images) if Path(images).is_dir() else [images]
        return [as_pixels(path, str(path)) for path in paths]
    if isinstance(images, np.ndarray) and images.ndim != 4:
        return [as_pixels(images, "images")]
    if not isinstance(images, Sequence | np.ndarray) or len(images) == 0:
        message = f"images must be a picture or a sequence of pictures, got {images!r}"
        raise ValueError(message)
    return [as_pixels(image, f"images[{i}]") for i, image in enumerate(images)]


def check_colour(pictures: list[Array], colour: bool | None) -> bool:
    """Whether patches have three channels: what is asked for, or what all pictures have."""
    channels = [picture.shape[2] for picture in pictures]
    if colour is None and len(set(channels)) > 1:
        message = "some images are grey and some are RGB: say colour=True or colour=False"
        raise ValueError(message)
    if colour and 1 in channels:
        message = f"colour=True needs RGB pictures, but images[{channels.index(1)}] is grey"
        raise ValueError(message)
    return channels[0] == 3 if colour is None else bool(colour)


def check_size(patch_size: int | tuple[int, int]) -> tuple[int, int]:
    """Height and width of a patch."""
    sizes = np.atleast_1d(np.asarray(patch_size))
    if sizes.shape not in ((1,), (2,)) or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        message = f"patch_size must be one integer >= 1, or two, got {patch_size!r}"
        raise ValueError(message)
    return int(sizes[0]), int(sizes[-1])


def check_fits(size: tuple[int, int], shape: Sequence[int], what: str) -> None:
    """Refuse a patch larger than the picture."""
    if shape[0] < size[0] or shape[1] < size[1]:
        message = (
            f"patch_size {size[0]} x {size[1]} does not fit into {what}, "
            f"which is {shape[0]} x {shape[1]}"
        )
        raise ValueError(message)


def check_stride(stride: int, size: tuple[int, int]) -> int:
    """Refuse steps between patches that leave pixels out."""
    stride = check_integer("stride", stride)
    if stride > min(size):
        message = f"stride must be at most the side of a patch, {min(size)}, got {stride}"
        raise ValueError(message)
    return stride


def as_mask(mask: Any, shape: Sequence[int], what: str = "mask") -> Array:
    """Return a mask (True = missing) as booleans (height, width); of three channels, any one."""
    marks = np.asarray(mask)
    if marks.dtype != bool:
        message = f"{what} must hold booleans (True = missing), got {marks.dtype}"
        raise TypeError(message)
    if marks.ndim == 3 and marks.shape == tuple(shape):
        marks = np.asarray(marks.any(axis=2))
    if marks.shape != tuple(shape[:2]):
        message = (
            f"{what} must have the shape of its picture, {tuple(shape[:2])}, got {marks.shape}"
        )
        raise ValueError(message)
    return clean_bools(marks)


def check_pixels_finite(pixels: Array, what: str, mask: Array | None = None) -> None:
    """Refuse NaN and infinity, except where pixels are masked."""
    if pixels.dtype.kind != "f":
        return
    if mask is not None and not np.isfinite(np.sum(pixels)):
        pixels = np.where(mask.reshape(*mask.shape, *[1] * (pixels.ndim - mask.ndim)), 0, pixels)
    check_finite(what, pixels)


def scale_of(dtype: np.dtype[Any]) -> float:
    """What values are multiplied by: unsigned integers come to lie in [0, 1]."""
    return 1.0 / float(np.iinfo(dtype).max) if dtype.kind == "u" else 1.0


def luminance(image: ArrayLike) -> Array:
    """Return the luminance of an RGB picture: 0.299 R + 0.587 G + 0.114 B.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, 3)
        Unsigned integers are divided by the largest value of their type; floats are kept as they
        are, and are taken to lie in [0, 1].

    Returns
    -------
    ndarray of shape (height, width)
        In [0, 1]; float32 if ``image`` is, else float64. A grey picture is only scaled.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.image import luminance
    >>> luminance(np.array([[[255, 0, 0], [255, 255, 255]]], np.uint8))
    array([[0.299, 1.   ]])
    """
    pixels = as_pixels(image, "image")
    grey = grey_of(pixels)
    return grey.astype(np.float32) if pixels.dtype == np.float32 else grey


def grey_of(pixels: Array) -> Array:
    """Luminance in float64 of pixels whose last axis is that of the channels, one or three."""
    if pixels.dtype.kind == "u":
        values = np.divide(pixels, float(np.iinfo(pixels.dtype).max))
    else:
        values = pixels.astype(np.float64)
    return np.asarray(values[..., 0] if values.shape[-1] == 1 else np.matmul(values, _LUMA))
