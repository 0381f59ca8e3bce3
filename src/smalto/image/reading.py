"""Pictures from arrays, files and folders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.image.checks import check_fits, check_pixel_type

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".ppm", ".pgm", ".gif")


def read_picture(path: str | os.PathLike[str]) -> Array:
    """Read a picture file as (height, width) or (height, width, 3), with all of its bits.

    Files of 8 bits become uint8, those of 16 bits uint16, and floats stay floats. Palettes are
    resolved, transparency is dropped, and EXIF does not turn the pixels.

    Parameters
    ----------
    path : path
        A file that Pillow can read, a TIFF file of 16 bits or floats, or a ``.npy`` file.

    Returns
    -------
    ndarray
        The pixels, writable.

    See Also
    --------
    luminance : From color to gray.
    """
    from smalto.image.files.picture_file import read_colors  # Pillow takes a while to import

    return read_colors(path)


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


def as_volumes(images: Any, size: tuple[int, ...], as_gray: bool) -> list[Array]:
    """Return arrays with as many axes as a patch, or one more for channels, each with channels last."""
    axes = len(size)
    if as_gray:
        message = f"as_gray is for pictures, but patch_size {size} has {axes} axes"
        raise ValueError(message)
    given = [images] if isinstance(images, np.ndarray) else list(images)
    out = []
    for i, volume in enumerate(given):
        what = "images" if isinstance(images, np.ndarray) else f"images[{i}]"
        values = volume if isinstance(volume, np.ndarray) else np.asarray(volume)
        if values.ndim not in (axes, axes + 1) or not values.size:
            message = (
                f"{what} must have {axes} axes, as patch_size {size} has, and may have one more for "
                f"channels, got shape {values.shape}"
            )
            raise ValueError(message)
        check_pixel_type(values, what)
        values = values if values.ndim > axes else values[..., None]
        check_fits(size, values.shape, what)
        out.append(values)
    if not out or len({values.shape[-1] for values in out}) > 1:
        message = f"images must all have as many channels, got {[v.shape[-1] for v in out]}"
        raise ValueError(message)
    return out


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
