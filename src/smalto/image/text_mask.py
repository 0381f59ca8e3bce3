"""Masks of text, as damage for demonstrations."""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.checks import Array, check_integer

WORDS = (
    "A picture is composed of patches, and a patch of a few atoms that are learned from all the "
    "others. What is missing here is guessed from what is known around it. "
)


def text_mask(shape: tuple[int, int], *, size: int = 18, words: str = WORDS) -> Array:
    """Return a mask of lines of text that cover a picture: True in the letters.

    Parameters
    ----------
    shape : (height, width)
        The shape of the picture.
    size : int, default 18
        The height of the letters, in pixels.
    words : str
        The text, repeated to fill the picture.

    Returns
    -------
    array of bool (height, width)

    See Also
    --------
    inpaint : Fills in what a mask covers.

    Examples
    --------
    >>> from smalto.image import text_mask
    >>> mask = text_mask((100, 200))
    >>> mask.shape, bool(0.02 < mask.mean() < 0.3)
    ((100, 200), True)
    """
    from PIL import Image, ImageDraw, ImageFont

    height, width = (check_integer("shape", side) for side in shape)
    size = check_integer("size", size)
    if not words.strip():
        message = f"words must hold some text, got {words!r}"
        raise ValueError(message)
    canvas = Image.new("1", (width, height))
    draw: Any = ImageDraw.Draw(canvas)
    font = ImageFont.load_default(size)
    needed = int(width / draw.textlength(words, font=font) * len(words)) + 2
    text = words * (2 + needed // len(words))
    for line, top in enumerate(range(size // 2, max(height - size, 1), 2 * size)):
        first = (line * 37) % len(words)
        draw.text((size // 4, top), text[first : first + needed], fill=1, font=font)
    return np.asarray(canvas.convert("L")) > 0
