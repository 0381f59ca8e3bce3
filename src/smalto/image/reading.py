"""Pictures from arrays, files and folders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.image.checks import check_pixel_type

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".ppm", ".pgm")
_GRAY_16_BIT = ("I;16", "I;16B", "I;16L", "I;16N")  # Pillow's modes


def read_picture(path: str | os.PathLike[str]) -> Array:
    """Read a picture file as (height, width) or (height, width, 3), uint8 or (gray only) uint16.

    Palettes are resolved, transparency is dropped.

    Parameters
    ----------
    path : path
        A file that Pillow can read.

    Returns
    -------
    ndarray
        The pixels, writable.

    See Also
    --------
    luminance : From color to gray.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as picture:
            if picture.mode in _GRAY_16_BIT:
                return np.array(picture).astype(np.uint16)
            is_gray = picture.mode in ("1", "L", "LA")
            return np.array(picture.convert("L" if is_gray else "RGB"))
    except UnidentifiedImageError as error:
        message = f"{path} is not a picture that can be read"
        raise ValueError(message) from error
    except Image.DecompressionBombError as error:
        message = f"{path} was not read: it would unpack to too many pixels ({error})"
        raise ValueError(message) from error
    except (OSError, SyntaxError, EOFError) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        message = f"{path} is damaged or truncated: {error}"
        raise ValueError(message) from error


def picture_files(folder: str | os.PathLike[str]) -> list[Path]:
    """The picture files in a folder, recognized by suffix, sorted by name."""
    found = sorted(p for p in Path(folder).iterdir() if p.suffix.lower() in SUFFIXES)
    if not found:
        message = f"no pictures ({', '.join(SUFFIXES)}) in {folder}"
        raise FileNotFoundError(message)
    return found


def as_pixels(image: Any, what: str) -> Array:
    """Return a picture as (height, width, channels) without copying; read it if it is a path."""
    if isinstance(image, str | os.PathLike):
        image = read_picture(image)
    pixels = image if isinstance(image, np.ndarray) else np.asarray(image)
    if (
        pixels.ndim not in (2, 3)
        or (pixels.ndim == 3 and pixels.shape[2] not in (1, 3))
        or not pixels.size
    ):
        hint = "; pass a stack of gray pictures as list(images)" if pixels.ndim == 3 else ""
        message = (
            f"{what} must be (height, width) or (height, width, 3), got shape {pixels.shape}{hint}"
        )
        raise ValueError(message)
    check_pixel_type(pixels, what)
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def as_pictures(images: Any) -> list[Array]:
    """Return a picture, stack, sequence, path or folder as a list of (height, width, channels)."""
    if isinstance(images, str | os.PathLike):
        paths: list[Any] = picture_files(images) if Path(images).is_dir() else [images]
        return [as_pixels(path, str(path)) for path in paths]
    if isinstance(images, np.ndarray) and images.ndim != 4:
        return [as_pixels(images, "images")]
    if not isinstance(images, Sequence | np.ndarray) or len(images) == 0:
        message = f"images must be a picture or a sequence of pictures, got {images!r}"
        raise ValueError(message)
    return [as_pixels(image, f"images[{i}]") for i, image in enumerate(images)]
