"""Gray values of color pictures."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from smalto.checks import Array
from smalto.image.reading import as_pixels

_LUMA = np.array([0.299, 0.587, 0.114])  # Rec. 601, as in Pillow


def luminance(image: ArrayLike) -> Array:
    """Return the luminance of an RGB picture: 0.299 R + 0.587 G + 0.114 B.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, 3)
        Unsigned integers are divided by the largest value of their type. Floats are used as they
        are and are assumed to lie in [0, 1].

    Returns
    -------
    ndarray of shape (height, width)
        In [0, 1]; float32 if ``image`` is, else float64. A gray picture is only scaled.

    See Also
    --------
    read_picture : Pictures from files.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.image import luminance
    >>> luminance(np.array([[[255, 0, 0], [255, 255, 255]]], np.uint8))
    array([[0.299, 1.   ]])
    """
    pixels = as_pixels(image, "image")
    gray = gray_of(pixels)
    return gray.astype(np.float32) if pixels.dtype == np.float32 else gray


def gray_of(pixels: Array) -> Array:
    """Luminance, float64, of pixels whose last axis has one or three channels."""
    if pixels.dtype.kind == "u":
        values = np.divide(pixels, float(np.iinfo(pixels.dtype).max))
    else:
        values = pixels.astype(np.float64)
    return np.asarray(values[..., 0] if values.shape[-1] == 1 else np.matmul(values, _LUMA))
