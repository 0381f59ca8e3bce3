"""Picture files are written as they were, as far as their format allows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image

from smalto.checks import Array
from smalto.image.files.deep_png import write_deep_png
from smalto.image.files.metadata import save_settings, tiff_tags
from smalto.image.files.picture_file import PictureFile
from smalto.image.files.tiff import write_tiff

KINDS = {
    ".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF",
    ".webp": "WEBP", ".bmp": "BMP", ".ppm": "PPM", ".pgm": "PPM", ".npy": "NPY",
}  # fmt: skip
_WITH_ALPHA = ("PNG", "TIFF", "WEBP")
_WITH_EXIF = ("PNG", "JPEG", "TIFF", "WEBP")
_QUALITY = 95  # of JPEG and WebP


def kind_of(path: Path) -> str:
    """Return the format that a name asks for; raise ValueError if it cannot be written."""
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        ending = f"{path.suffix!r}" if path.suffix else f"{path.name!r} without an ending"
        message = (
            f"{ending} is not a format in which pictures can be written: use one of "
            f"{', '.join(KINDS)}"
        )
        raise ValueError(message)
    return kind


def fit_to(
    picture: PictureFile, kind: str, range_: tuple[float, float] | None = None
) -> PictureFile:
    """Return a picture as a format can hold it, with notes on what that changes.

    Where values must become integers, ``range_`` (of the picture by default) becomes all of theirs.
    """
    notes = []
    if picture.metadata.orientation != 1 and kind not in _WITH_EXIF:
        picture = picture.upright()
        notes.append(f"the picture is turned upright, since {kind} cannot say that it is not")
    dtype = picture.pixels.dtype
    wanted = _dtype_for(dtype, kind, picture.pixels.ndim == 2)
    if wanted != dtype:
        low, high = range_ or picture.range
        most = np.iinfo(wanted).max
        note = f"values from {low:.6g} to {high:.6g} become 0 to {most} in {kind}"
        outside = np.mean((picture.pixels < low) | (picture.pixels > high))
        notes.append(f"{note}; {100 * outside:.2g} % are outside, and clipped" if outside else note)
        alpha = picture.alpha
        if alpha is not None:
            alpha = scaled(alpha, PictureFile(alpha).range, wanted)
        picture = replace(picture, pixels=scaled(picture.pixels, (low, high), wanted), alpha=alpha)
    if picture.alpha is not None and kind not in _WITH_ALPHA:
        notes.append(f"alpha is left out, since {kind} has none")
        picture = replace(picture, alpha=None)
    lost = save_settings(picture.metadata, kind)[1]
    if lost and kind != "NPY":
        notes.append(f"{kind} does not keep {' and '.join(lost)}")
    return replace(picture, kind=kind, notes=picture.notes + tuple(notes))


def scaled(pixels: Array, range_: tuple[float, float], dtype: Any) -> Array:
    """Return pixels as integers, so that ``range_`` becomes the whole range of their type."""
    low, high = range_
    most = float(np.iinfo(dtype).max)
    share = (pixels.astype(np.float64) - low) / ((high - low) or 1.0)
    return np.rint(most * np.clip(np.nan_to_num(share), 0.0, 1.0)).astype(dtype)


def as_shown(picture: PictureFile, range_: tuple[float, float] | None = None) -> Array:
    """Return the pixels as they are shown: upright, uint8, black to white in ``range_``."""
    pixels = picture.upright().pixels
    return pixels if pixels.dtype == np.uint8 else scaled(pixels, range_ or picture.range, np.uint8)


def _dtype_for(dtype: np.dtype[Any], kind: str, is_gray: bool) -> np.dtype[Any]:
    """The type in which a format can hold values of a type."""
    if kind in ("NPY", "TIFF") or dtype == np.uint8:
        return dtype
    deep = kind == "PNG" or (kind == "PPM" and is_gray)
    return np.dtype(np.uint16 if deep else np.uint8)


def write_picture_file(file: BinaryIO, picture: PictureFile) -> None:
    """Write a picture that has been fitted to its format."""
    pixels, alpha, kind = picture.pixels, picture.alpha, picture.kind
    if kind == "NPY":
        np.save(file, pixels, allow_pickle=False)
        return
    channels = pixels if pixels.ndim == 3 else pixels[:, :, None]
    if alpha is not None:
        channels = np.concatenate([channels, alpha[:, :, None]], axis=2)
    if kind == "TIFF":
        write_tiff(
            file,
            channels,
            tiff_tags(picture.metadata),
            has_alpha=alpha is not None,
            alpha_is_multiplied=picture.alpha_is_multiplied,
        )
        return
    settings, _ = save_settings(picture.metadata, kind)
    if kind == "PNG" and channels.dtype == np.uint16:
        write_deep_png(file, channels, settings)
        return
    if kind == "JPEG":
        settings |= {"quality": _QUALITY, "subsampling": 0}
    elif kind == "WEBP":
        settings |= {"quality": _QUALITY, "lossless": not picture.is_lossy, "exact": True}
    shown = channels[:, :, 0] if channels.shape[2] == 1 else channels
    Image.fromarray(np.ascontiguousarray(shown)).save(file, kind, **settings)
