"""TIFF files with more than 8 bits per value, most of which Pillow does not read or write."""

from __future__ import annotations

import io
import zlib
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from PIL import Image, UnidentifiedImageError
from PIL.TiffImagePlugin import ImageFileDirectory_v2 as Directory

from smalto.checks import Array

_MAGICS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_DEFLATE = (8, 32946)
_LSB_TO_MSB = 2  # bits in reverse order
_STRIP = 1 << 18  # bytes of a strip that is written, about
_MAX_PAGES = 1000


class UnreadableError(ValueError):
    """A file that is sound, but of a kind that cannot be read."""


class DeepTiff(NamedTuple):
    """The pixels of a TIFF file (height, width, channels), and what the last channel is."""

    pixels: Array
    has_alpha: bool
    alpha_is_multiplied: bool  # colors have been multiplied by alpha


def tiff_pages(file: BinaryIO) -> list[Directory]:
    """Return the directories of all pages of a TIFF file; none if it is no TIFF file."""
    file.seek(0)
    head = file.read(16)
    if head[:4] not in _MAGICS:
        return []
    head = head if head[:4] in _MAGICS[2:] else head[:8]
    pages: list[Directory] = []
    place = Directory(head).next
    seen: set[int] = set()
    while place and place not in seen and len(pages) < _MAX_PAGES:
        seen.add(place)
        page = Directory(head)
        file.seek(place)
        page.load(file)
        pages.append(page)
        place = page.next
    return pages


def is_deep(page: Directory) -> bool:
    """Whether a page has more than 8 bits per value."""
    return max(_numbers(page.get(258, 1))) > 8


def is_preview(page: Directory) -> bool:
    """Whether a page is a smaller version of another one."""
    return bool(page.get(254, 0) & 1)


def read_deep_tiff(file: BinaryIO, page: Directory) -> DeepTiff:
    """Return the pixels of a page."""
    width, height, channels = page[256], page[257], page.get(277, 1)
    _check_size(width, height)
    dtype = _dtype(page)
    meaning = page.get(262, 1)
    n_colors = {0: 1, 1: 1, 2: 3}.get(meaning)
    if n_colors is None or not n_colors <= channels <= n_colors + 1:
        message = (
            f"TIFF pictures of {dtype.itemsize * 8} bits must be gray or RGB, this one has "
            f"{channels} channels of photometric interpretation {meaning}: convert it first"
        )
        raise UnreadableError(message)
    pixels = np.empty((height, width, channels), dtype.newbyteorder("="))
    for block, top, left, plane in _blocks(file, page, dtype, (height, width, channels)):
        block = block[: height - top, : width - left]
        chosen = slice(None) if plane is None else slice(plane, plane + 1)
        pixels[top : top + block.shape[0], left : left + block.shape[1], chosen] = block
    if meaning == 0 and dtype.kind == "u":  # 0 is white
        np.subtract(np.iinfo(pixels.dtype).max, pixels[:, :, 0], out=pixels[:, :, 0])
    extra = _numbers(page.get(338, 0))[0]
    return DeepTiff(pixels, channels > n_colors, extra == 1)


def _check_size(width: int, height: int) -> None:
    limit = Image.MAX_IMAGE_PIXELS
    if limit is not None and width * height > 2 * limit:
        message = f"Image size ({width * height} pixels) exceeds limit of {2 * limit} pixels"
        raise Image.DecompressionBombError(message)
    if width < 1 or height < 1:
        message = f"its size is {width} x {height}"
        raise ValueError(message)


def _dtype(page: Directory) -> np.dtype[Any]:
    bits, formats = set(_numbers(page.get(258, 1))), set(_numbers(page.get(339, 1)))
    kind = {1: "u", 3: "f"}.get(next(iter(formats)))
    size = next(iter(bits))
    if len(bits) > 1 or len(formats) > 1 or kind is None or size not in (16, 32, 64):
        names = {1: "unsigned", 2: "signed", 3: "float", 5: "complex", 6: "complex"}
        said = " and ".join(sorted({names.get(f, "unknown") for f in formats}))
        message = (
            f"its values have {' and '.join(map(str, sorted(bits)))} bits ({said}): convert them to 8 "
            "or 16 bits or floats first"
        )
        raise UnreadableError(message)
    order = "<" if page.prefix == b"II" else ">"
    return np.dtype(f"{order}{kind}{size // 8}")


def _blocks(
    file: BinaryIO, page: Directory, dtype: np.dtype[Any], shape: tuple[int, int, int]
) -> Any:
    """Yield the strips or tiles of a page, with the row and column and, if separate, the channel."""
    height, width, channels = shape
    tiled = 322 in page
    across, down = (page[322], page[323]) if tiled else (width, min(page.get(278, height), height))
    if across < 1 or down < 1 or page.get(266, 1) == _LSB_TO_MSB:
        message = "its strips or tiles cannot be read"
        raise ValueError(message)
    _check_size(across, down)
    separate = page.get(284, 1) == 2 and channels > 1
    places, sizes = _numbers(page[324 if tiled else 273]), _numbers(page[325 if tiled else 279])
    per_row = -(-width // across)
    per_plane = per_row * -(-height // down)
    wanted = per_plane * (channels if separate else 1)
    if len(places) < wanted or len(sizes) < wanted:
        message = f"it has {len(places)} strips or tiles of {wanted}"
        raise ValueError(message)
    for number in range(wanted):
        plane, place = divmod(number, per_plane)
        top, left = place // per_row * down, place % per_row * across
        rows = down if tiled else min(down, height - top)
        file.seek(places[number])
        data = file.read(sizes[number])
        depth = 1 if separate else channels
        n_bytes = across * depth * dtype.itemsize
        raw = _unpacked(data, page.get(259, 1), n_bytes, rows)
        if len(raw) < n_bytes * rows:
            message = f"it ends after {len(raw)} of {n_bytes * rows} bytes of a strip or tile"
            raise ValueError(message)
        values = np.frombuffer(raw, np.uint8, n_bytes * rows).reshape(rows, n_bytes)
        block = _summed(values, dtype, depth, page.get(317, 1))
        yield block.reshape(rows, across, depth), top, left, plane if separate else None


def _unpacked(data: bytes, compression: int, n_bytes: int, rows: int) -> bytes:
    """Return the bytes of a strip or tile of ``rows`` rows with ``n_bytes`` each."""
    if compression == 1:
        return data
    if compression in _DEFLATE:
        try:
            return zlib.decompressobj().decompress(data, n_bytes * rows)
        except zlib.error as error:
            raise ValueError(str(error)) from error
    # To libtiff, bytes are bytes: it unpacks them as a gray picture with 8 bits.
    page = Directory(prefix=b"II")
    page[256], page[257], page[258], page[259], page[262] = n_bytes, rows, 8, compression, 1
    page[273], page[277], page[278], page[279] = 0, 1, rows, len(data)
    held = io.BytesIO()
    page.save(held)
    held.write(data)
    held.seek(0)
    try:
        with Image.open(held) as picture:
            return picture.tobytes()
    except UnidentifiedImageError as error:
        message = f"it is compressed by method {compression}, which cannot be read"
        raise UnreadableError(message) from error


def _summed(values: Array, dtype: np.dtype[Any], depth: int, predictor: int) -> Array:
    """Return the values of rows of bytes; differences along the rows are summed up."""
    rows, n_bytes = values.shape
    if predictor == 3:  # of floats: bytes by significance, and differences of bytes
        sums = np.cumsum(values.reshape(rows, -1, depth), axis=1, dtype=np.uint8)
        parts = sums.reshape(rows, dtype.itemsize, -1).transpose(0, 2, 1)
        return np.ascontiguousarray(parts).view(dtype.newbyteorder(">"))
    if predictor == 2:
        whole = values.view(dtype.str.replace("f", "u")).reshape(rows, -1, depth)
        sums = np.cumsum(whole, axis=1, dtype=f"=u{dtype.itemsize}")
        return sums.view(dtype.newbyteorder("="))
    if predictor != 1:
        message = f"its predictor {predictor} is unknown"
        raise ValueError(message)
    return values.view(dtype).reshape(rows, n_bytes // dtype.itemsize)


def write_tiff(
    file: BinaryIO,
    pixels: Array,
    tags: dict[int, Any],
    *,
    has_alpha: bool = False,
    alpha_is_multiplied: bool = False,
) -> None:
    """Write pixels (height, width, channels), unsigned integers or floats, packed by zlib."""
    height, width, channels = pixels.shape
    values = np.ascontiguousarray(pixels, pixels.dtype.newbyteorder("<"))
    size = values.dtype.itemsize
    per_strip = max(1, _STRIP // (width * channels * size))
    strips = [zlib.compress(_differences(values[top : top + per_strip]).tobytes(), 6)
              for top in range(0, height, per_strip)]  # fmt: skip
    page = Directory(prefix=b"II")
    for tag, value in tags.items():
        page[tag] = value
        if isinstance(value, bytes):
            page.tagtype[tag] = 7
    page[256], page[257], page[259], page[277], page[284] = width, height, 8, channels, 1
    page[258] = (8 * size,) * channels
    page[262] = 2 if channels - has_alpha == 3 else 1
    page[278] = per_strip
    page[317] = 2 if values.dtype.kind == "u" else 1
    page[339] = (3 if values.dtype.kind == "f" else 1,) * channels
    if has_alpha:
        page[338] = 1 if alpha_is_multiplied else 2
    sizes = [len(strip) for strip in strips]
    page.tagtype[279] = page.tagtype[273] = 4
    page[279] = tuple(sizes)
    page[273] = tuple(int(start) for start in np.cumsum([0, *sizes[:-1]]))  # moved by ``save``
    page.save(file)
    file.writelines(strips)


def _differences(values: Array) -> Array:
    """Differences along rows of unsigned integers; floats as they are."""
    if values.dtype.kind == "f":
        return values
    out = values.copy()
    out[:, 1:] -= values[:, :-1]
    return out


def _numbers(value: Any) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,)
