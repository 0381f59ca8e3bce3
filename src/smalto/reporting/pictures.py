"""Atoms and samples as small pictures: PNG inside the page."""

from __future__ import annotations

import base64
import io
import math

import numpy as np
from PIL import Image

from smalto.checks import Array
from smalto.plot.mosaics import own_range, signed_colors

_PIXELS = 1_200_000  # of all atoms together, at most; larger atoms are reduced
_COLUMNS = 32  # atoms side by side in the picture of all of them
_SPARSE = 0.9  # atoms with fewer nonzeros than this are shown in red and blue


def tiles(D: Array, shape: tuple[int, ...]) -> Array:
    """Return the atoms as pictures (k, height, width, 3) of bytes.

    Each is scaled to its own range, in gray or in its colors. Sparse atoms of one channel that
    have negative values are red where they are positive, blue where negative, white where zero.
    """
    D = np.nan_to_num(np.asarray(D, np.float64))
    height, width = shape[:2]
    sparse = np.count_nonzero(D) < _SPARSE * D.size and (D < 0).any() and len(shape) == 2
    colors = signed_colors(D) if sparse else own_range(D)
    pixels = colors.reshape(len(D), height, width, -1)
    pixels = np.broadcast_to(pixels, (len(D), height, width, 3))
    return np.asarray(np.round(255 * pixels), np.uint8)


def in_one_range(rows: Array, shape: tuple[int, ...]) -> Array:
    """Return vectors as pictures whose colors can be compared, in the range of the first."""
    rows = np.nan_to_num(np.asarray(rows, np.float64))
    low, high = rows[0].min(), rows[0].max()
    share = np.clip((rows - low) / ((high - low) or 1.0), 0.0, 1.0)
    pixels = share.reshape(len(rows), *shape[:2], -1)
    return np.asarray(np.round(255 * np.broadcast_to(pixels, (len(rows), *shape[:2], 3))), np.uint8)


def sprite(pictures: Array) -> tuple[str, int, int]:
    """Return all pictures in one, as the address of a PNG, and the size of each in it.

    They stand in rows of 32, without gaps.
    """
    count, height, width = pictures.shape[:3]
    by = math.sqrt(min(1.0, _PIXELS / (count * height * width)))
    if by < 1.0:
        size = (max(int(width * by), 4), max(int(height * by), 4))
        reduced = [np.asarray(Image.fromarray(one).resize(size, Image.Resampling.BOX))
                   for one in pictures]  # fmt: skip
        pictures = np.stack(reduced)
        height, width = pictures.shape[1:3]
    n_rows = -(-count // _COLUMNS)
    sheet = np.zeros((n_rows * height, _COLUMNS * width, 3), np.uint8)
    for number, picture in enumerate(pictures):
        top, left = number // _COLUMNS * height, number % _COLUMNS * width
        sheet[top : top + height, left : left + width] = picture
    return address(sheet), height, width


def place(number: int, height: int, width: int) -> tuple[int, int]:
    """Return where a picture begins in the picture of all of them: from the left, from the top."""
    return number % _COLUMNS * width, number // _COLUMNS * height


def sheet_width(width: int) -> int:
    """Return the width of the picture of all pictures of a width."""
    return _COLUMNS * width


def address(pixels: Array) -> str:
    """Return pixels (height, width, 3) as the address of a PNG, which contains all of it."""
    picture = Image.fromarray(pixels)
    if (pixels[..., :1] == pixels).all():
        picture = picture.convert("L")
    held = io.BytesIO()
    picture.save(held, "PNG", optimize=pixels.size < 200_000)
    return f"data:image/png;base64,{base64.b64encode(held.getvalue()).decode()}"
