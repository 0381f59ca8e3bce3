"""PNG files with 16 bits per channel, of which Pillow keeps 8 except in gray."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any, BinaryIO

import numpy as np
from PIL import Image

from smalto.checks import Array

_MAGIC = b"\x89PNG\r\n\x1a\n"
_GRAY, _RGB, _GRAY_ALPHA, _RGBA = 0, 2, 4, 6  # types of color in the header


def is_deep_png(file: BinaryIO) -> bool:
    """Whether a file is a PNG with 16 bits per channel."""
    file.seek(0)
    head = file.read(26)
    file.seek(0)
    return head[:8] == _MAGIC and head[24:25] == b"\x10"


def read_deep_png(file: BinaryIO) -> Array:
    """Return the pixels (height, width, channels) of a PNG with 16 bits per channel."""
    file.seek(25)
    color = file.read(1)[0]
    if color == _GRAY:
        file.seek(0)
        with Image.open(file) as picture:
            return np.array(picture).astype(np.uint16)[:, :, None]
    if color == _GRAY_ALPHA:  # its four bytes, as if they were red, green, blue and alpha
        return np.ascontiguousarray(_decoded(file, "RGBA")).view(">u2").astype(np.uint16)
    mode = "RGB" if color == _RGB else "RGBA"
    high, low = (_decoded(file, f"{mode};16{order}") for order in "BL")
    return np.asarray(high.astype(np.uint16) << 8 | low)


def _decoded(file: BinaryIO, raw: str) -> Array:
    """Return one byte of each pair of bytes, or all of them, by what Pillow takes the file for."""
    file.seek(0)
    with Image.open(file) as picture:
        (tile,) = picture.tile
        picture.tile = [(*tile[:3], raw)]  # type: ignore[list-item]
        return np.array(picture)


def write_deep_png(file: BinaryIO, pixels: Array, settings: dict[str, Any]) -> None:
    """Write uint16 pixels (height, width, channels), with the settings of Pillow's ``save``."""
    height, width, channels = pixels.shape
    color = {1: _GRAY, 2: _GRAY_ALPHA, 3: _RGB, 4: _RGBA}[channels]
    rows = pixels.astype(">u2").reshape(height, -1).view(np.uint8)
    step = 2 * channels
    lines = np.ones((height, 1 + rows.shape[1]), np.uint8)  # filter 1: differences along a row
    lines[:, 1:] = rows
    lines[:, 1 + step :] -= rows[:, :-step]
    header = struct.pack(">IIBBBBB", width, height, 16, color, 0, 0, 0)
    file.write(_MAGIC)
    _write_chunk(file, b"IHDR", header)
    # What is not about pixels is taken from a picture of one pixel that Pillow has written.
    held = io.BytesIO()
    Image.new({1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[channels], (1, 1)).save(
        held, "PNG", **settings
    )
    for name, data in _read_chunks(held.getvalue()):
        if name == b"IDAT":
            _write_chunk(file, name, zlib.compress(lines.tobytes(), 6))
        elif name != b"IHDR":
            _write_chunk(file, name, data)


def _write_chunk(file: BinaryIO, name: bytes, data: bytes) -> None:
    file.write(struct.pack(">I", len(data)) + name + data)
    file.write(struct.pack(">I", zlib.crc32(name + data)))


def _read_chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    place, found = len(_MAGIC), []
    while place < len(data):
        (size,) = struct.unpack_from(">I", data, place)
        found.append((data[place + 4 : place + 8], data[place + 8 : place + 8 + size]))
        place += size + 12
    return found
