"""A picture file in memory: its pixels as they are stored, and all that belongs to them."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image, UnidentifiedImageError

from smalto.checks import Array
from smalto.image.files.deep_png import is_deep_png, read_deep_png
from smalto.image.files.metadata import (
    NO_METADATA,
    ORIENTATION,
    Metadata,
    metadata_of,
    metadata_of_tiff,
)
from smalto.image.files.tiff import (
    UnreadableError,
    is_deep,
    is_preview,
    read_deep_tiff,
    tiff_pages,
)

_PRINT = {"CMYK": "CMYK", "LAB": "Lab", "YCbCr": "YCbCr", "HSV": "HSV"}  # modes, and their names
# For each orientation of EXIF: whether axes are exchanged, then rows reversed, then columns.
_TURNS = {
    1: (False, False, False), 2: (False, False, True), 3: (False, True, True),
    4: (False, True, False), 5: (True, False, False), 6: (True, False, True),
    7: (True, True, True), 8: (True, True, False),
}  # fmt: skip


# Noisy floats were made for 0 to 1 if so many are inside, almost all are at most this far outside,
# none is farther away than 1, and they are not all dark.
_INSIDE, _ALMOST_ALL, _NEAR, _BRIGHT = 0.9, 0.99, 1 / 3, 0.5

# What Pillow raises for damaged files.
_OF_DAMAGED_FILES = (
    OSError, SyntaxError, EOFError, ValueError, LookupError, TypeError, AttributeError,
    ArithmeticError, AssertionError, struct.error, zlib.error,
)  # fmt: skip


class RefusedError(ValueError):
    """A picture that can be read, but not be written back as it was."""


@dataclass(frozen=True)
class PictureFile:
    """A picture with everything that its file says about it.

    ``pixels`` is (height, width) or (height, width, 3), unsigned integers or floats as in the file,
    and ``alpha`` (height, width) its opacity. ``notes`` says what is not as in the file.
    """

    pixels: Array
    alpha: Array | None = None
    metadata: Metadata = NO_METADATA
    kind: str = ""  # the format: "PNG", "TIFF", "NPY", ...
    is_lossy: bool = False
    alpha_is_multiplied: bool = False
    notes: tuple[str, ...] = ()
    given_range: tuple[float, float] | None = None  # the values of black and white, if one knows

    @property
    def channel_axis(self) -> int | None:
        """The axis of the channels, None for a gray picture."""
        return 2 if self.pixels.ndim == 3 else None

    @property
    def range(self) -> tuple[float, float]:
        """The values of black and white.

        Unless given, those of the type for integers; for floats 0 and 1 if they are there but for
        some noise, and otherwise the smallest and the largest value.
        """
        if self.given_range is not None:
            return self.given_range
        if self.pixels.dtype.kind == "u":
            return 0.0, float(np.iinfo(self.pixels.dtype).max)
        known = self.pixels[np.isfinite(self.pixels)]
        if not known.size or _is_unit(known):
            return 0.0, 1.0
        return float(known.min()), float(known.max())

    @property
    def limits(self) -> tuple[float, float]:
        """The range, and all values that are outside: no restored value should be farther away."""
        known = self.pixels[np.isfinite(self.pixels)]
        low, high = self.range
        if not known.size:
            return low, high
        return min(low, float(known.min())), max(high, float(known.max()))

    def describe(self) -> str:
        """Say what values there are, as "16-bit RGB with alpha, 0 to 65535"."""
        dtype = self.pixels.dtype
        bits = f"{8 * dtype.itemsize}-bit" + (" float" if dtype.kind == "f" else "")
        color = "gray" if self.pixels.ndim == 2 else "RGB"
        alpha = "" if self.alpha is None else " with alpha"
        low, high = self.range
        return f"{bits} {color}{alpha}, {low:.6g} to {high:.6g}"

    def upright(self) -> PictureFile:
        """Return the picture with its pixels turned as they are to be shown."""
        turn = self.metadata.orientation
        return replace(
            self,
            pixels=turned(self.pixels, turn),
            alpha=None if self.alpha is None else turned(self.alpha, turn),
            metadata=self.metadata.upright(),
        )


def _is_unit(values: Array) -> bool:
    """Whether floats were made for 0 to 1, though noise may have driven some out."""
    low, high = float(values.min()), float(values.max())
    if low >= 0.0 and high <= 1.0:
        return True
    if low < -1.0 or high > 2.0 or high < _BRIGHT:
        return False
    inside = np.mean((values >= 0.0) & (values <= 1.0))
    near = np.mean((values >= -_NEAR) & (values <= 1.0 + _NEAR))
    return bool(inside >= _INSIDE and near >= _ALMOST_ALL)


def turned(pixels: Array, orientation: int) -> Array:
    """Turn stored pixels as they are to be shown."""
    swap, down, right = _TURNS[orientation]
    out = pixels.swapaxes(0, 1) if swap else pixels
    return np.ascontiguousarray(out[:: -1 if down else 1, :: -1 if right else 1])


def turned_back(pixels: Array, orientation: int) -> Array:
    """Turn pixels as they are shown to how they are stored."""
    swap, down, right = _TURNS[orientation]
    out = pixels[:: -1 if down else 1, :: -1 if right else 1]
    return np.ascontiguousarray(out.swapaxes(0, 1) if swap else out)


def read_colors(path: str | os.PathLike[str]) -> Array:
    """Return the pixels of a file, gray (height, width) or RGB.

    Colors for print become RGB, and of several pictures in a file the first one is taken.
    """
    try:
        return open_picture_file(path).pixels
    except RefusedError as refused:
        with _readable_errors(str(path)):
            try:
                # Of an open file: by its name, Pillow maps it into memory, and turns it wrongly.
                with _opened(path) as file, Image.open(file) as picture:
                    turn = _load(picture)
                    is_gray = picture.mode in ("1", "L", "LA")
                    return turned_back(np.array(picture.convert("L" if is_gray else "RGB")), turn)
            except UnidentifiedImageError:
                raise refused from None


def open_picture_file(
    source: str | os.PathLike[str] | bytes, name: str | None = None
) -> PictureFile:
    """Read a picture file, or its bytes, as it is.

    Pictures for print (CMYK), moving ones and those of several pages are refused, since they could
    not be written back as they were.
    """
    name = name or ("the picture" if isinstance(source, bytes) else str(source))
    with _readable_errors(name), _opened(source) as file:
        if file.read(6) == b"\x93NUMPY":
            return _read_numpy(file)
        pages = tiff_pages(file)
        notes = _check_pages(pages)
        if pages and is_deep(pages[0]):
            deep = read_deep_tiff(file, pages[0])
            metadata = metadata_of_tiff(file, pages[0])
            found = _from_channels(deep.pixels, deep.has_alpha, metadata, "TIFF")
            return replace(found, alpha_is_multiplied=deep.alpha_is_multiplied, notes=notes)
        if is_deep_png(file):
            return _read_deep_png(file)
        file.seek(0)
        found = _read_with_pillow(file, is_tiff=bool(pages))
        return replace(found, notes=notes + found.notes)


@contextmanager
def _opened(source: Any) -> Iterator[BinaryIO]:
    if isinstance(source, bytes):
        yield io.BytesIO(source)
        return
    with Path(source).open("rb") as file:
        yield file


@contextmanager
def _readable_errors(name: str) -> Iterator[None]:
    """Say in one sentence why a file cannot be read."""
    try:
        yield
    except UnidentifiedImageError as error:
        message = f"{name} is not a picture that can be read"
        raise ValueError(message) from error
    except Image.DecompressionBombError as error:
        message = f"{name} was not read: it would unpack to too many pixels ({error})"
        raise ValueError(message) from error
    except RefusedError as error:
        message = f"{name} {error}"
        raise RefusedError(message) from None
    except UnreadableError as error:
        message = f"{name} cannot be read: {error}"
        raise ValueError(message) from None
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except _OF_DAMAGED_FILES as error:
        message = f"{name} is damaged or truncated, or of a kind that cannot be read: {error}"
        raise ValueError(message) from error


def _check_pages(pages: list[Any]) -> tuple[str, ...]:
    """Refuse several pictures in one TIFF file; previews of the first one are left out."""
    if not pages:
        return ()
    if is_preview(pages[0]) or pages[0].get(262) == 32803:
        message = "is a raw file of a camera: develop it to a picture first"
        raise RefusedError(message)
    whole = sum(not is_preview(page) for page in pages)
    if whole > 1:
        message = f"has {whole} pages: save each as a picture of its own first"
        raise RefusedError(message)
    return () if len(pages) == 1 else ("a preview in the file is left out",)


def _read_numpy(file: BinaryIO) -> PictureFile:
    file.seek(0)
    pixels = np.load(file, allow_pickle=False)
    if pixels.dtype == np.bool_:
        pixels = pixels * np.uint8(255)
    if pixels.dtype.kind not in "uf":
        message = (
            f"holds {pixels.dtype}, but pixels must be unsigned integers or floats: convert them by "
            "astype before saving them"
        )
        raise RefusedError(message)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if pixels.ndim not in (2, 3) or pixels.shape[2:] not in ((), (3,)) or not pixels.size:
        message = (
            f"has the shape {pixels.shape}, but a picture is (height, width) or (height, width, 3); "
            "in Python, smalto.image.denoise and smalto.image.inpaint take volumes and series"
        )
        raise RefusedError(message)
    return PictureFile(pixels, kind="NPY")


def _read_deep_png(file: BinaryIO) -> PictureFile:
    pixels = read_deep_png(file)
    file.seek(0)
    with Image.open(file) as picture:
        metadata, key = metadata_of(picture), picture.info.get("transparency")
    if key is not None and pixels.shape[2] in (1, 3):  # the color that is transparent
        opaque = (pixels != np.asarray(key, np.uint16)).any(axis=2, keepdims=True)
        pixels = np.concatenate([pixels, opaque * np.uint16(65535)], axis=2)
    return _from_channels(pixels, pixels.shape[2] in (2, 4), metadata, "PNG")


def _from_channels(pixels: Array, has_alpha: bool, metadata: Metadata, kind: str) -> PictureFile:
    """Split pixels (height, width, channels) into colors and alpha."""
    alpha = np.ascontiguousarray(pixels[:, :, -1]) if has_alpha else None
    colors = pixels[:, :, :-1] if has_alpha else pixels
    colors = np.ascontiguousarray(colors if colors.shape[2] == 3 else colors[:, :, 0])
    return PictureFile(colors, alpha, metadata, kind)


def _read_with_pillow(file: BinaryIO, is_tiff: bool) -> PictureFile:
    with Image.open(file) as picture:
        kind = str(picture.format)
        frames = 1 if is_tiff else getattr(picture, "n_frames", 1)
        notes: list[str] = []
        if kind == "MPO":
            kind = "JPEG"
            notes.append("further pictures in the file are left out")
        elif frames > 1:
            message = f"moves ({frames} frames): save each frame as a picture of its own first"
            raise RefusedError(message)
        if picture.mode in _PRINT:
            message = f"is a {_PRINT[picture.mode]} picture: convert it to RGB first"
            raise RefusedError(message)
        turn = _load(picture)
        metadata = metadata_of(picture)
        is_lossy = kind == "JPEG" or (kind == "WEBP" and not _is_lossless_webp(file))
        pixels = turned_back(_pixels(picture, notes), turn)
    found = _from_channels(pixels, pixels.shape[2] in (2, 4), metadata, kind)
    return replace(found, is_lossy=is_lossy, notes=tuple(notes))


def _load(picture: Image.Image) -> int:
    """Read the pixels; return the orientation by which Pillow has turned them, as it does in TIFF.

    Its tag, which Pillow removes then, is put back.
    """
    before = picture.getexif().get(ORIENTATION, 1) if picture.format == "TIFF" else 1
    picture.load()
    if before not in _TURNS or picture.getexif().get(ORIENTATION, 1) == before:
        return 1
    picture.getexif()[ORIENTATION] = before
    return int(before)


def _pixels(picture: Image.Image, notes: list[str]) -> Array:
    """Pixels (height, width, channels) of a picture; the last channel of 2 or 4 is alpha."""
    mode = picture.mode
    if mode.startswith("I;16"):
        return np.array(picture).astype(np.uint16)[:, :, None]
    if mode == "F":
        return np.array(picture)[:, :, None]
    if mode == "I":
        values = np.array(picture)
        if values.min() < 0:
            message = "has negative values: convert it to 8 or 16 bits or floats first"
            raise RefusedError(message)
        return values.astype(np.uint16 if values.max() < 1 << 16 else np.uint32)[:, :, None]
    clear = "transparency" in picture.info or mode in ("LA", "La", "PA", "RGBA", "RGBa")
    is_gray = mode in ("1", "L", "LA", "La")
    if mode == "1":
        notes.append("black and white (1 bit) becomes gray (8 bits)")
    elif mode in ("P", "PA"):
        notes.append("a palette becomes RGB")
    wanted = ("LA" if clear else "L") if is_gray else ("RGBA" if clear else "RGB")
    if mode == "1" and clear:
        picture = picture.convert("L")
    out = np.array(picture if mode == wanted else picture.convert(wanted))
    return out if out.ndim == 3 else out[:, :, None]


def _is_lossless_webp(file: BinaryIO) -> bool:
    place = 12
    while True:
        file.seek(place)
        head = file.read(8)
        if len(head) < 8 or head[:4] in (b"VP8 ", b"VP8L"):
            return head[:4] == b"VP8L"
        (size,) = struct.unpack("<I", head[4:])
        place += 8 + size + size % 2
