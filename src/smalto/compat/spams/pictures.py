"""SPAMS's helpers for pictures: patches as columns, and atoms side by side."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from smalto.checks import Array, check_integer

_DEVIATIONS = 4.5  # values farther from the mean, in standard deviations, are clipped


def im2col_sliding(A: Any, m: int, n: int, RGB: bool = False) -> Array:
    """Return all overlapping patches of a picture as columns.

    Parameters
    ----------
    A : array (height, width)
        The picture.
    m, n : int
        Height and width of a patch.
    RGB : bool, default False
        A is a color picture, reshaped to (height, 3·width). As in SPAMS, its channels are put side
        by side, and a patch has m·n values of one channel, or of two at their border. (Patches with
        all channels: `smalto.image.PatchSource`.)

    Returns
    -------
    array (m·n, number of patches)
        The patches, each column by column, from top to bottom and then from left to right, in
        Fortran order and with the dtype of A.
    """
    picture = np.asarray(A)
    if picture.ndim != 2:
        message = (
            f"A must be two-dimensional, got shape {picture.shape}; reshape a color picture to "
            "(height, 3 * width) and give RGB=True"
        )
        raise ValueError(message)
    height, width = picture.shape
    m, n = check_integer("m", m, high=height), check_integer("n", n, high=width)
    if RGB:
        if width % 3:
            message = f"with RGB=True the width of A must be a multiple of 3, got {width}"
            raise ValueError(message)
        picture = picture.reshape(height, -1, 3).transpose(0, 2, 1).reshape(height, width)
    windows = np.lib.stride_tricks.sliding_window_view(picture, (m, n))
    patches = windows.transpose(1, 0, 3, 2).reshape(-1, m * n)  # a copy, one patch per row
    return patches.T


def displayPatches(D: Any) -> Array:
    """Return one picture of all atoms, in a square grid with black lines.

    Parameters
    ----------
    D : array (m, k)
        Atoms, as columns: squares of side √m, or √(m/3) in three channels, one after the other.

    Returns
    -------
    array (side, side, channels)
        The picture, in Fortran order, with values from 0 to 1: one scale for all atoms, with
        outliers clipped.
    """
    atoms = np.asarray(D)
    if atoms.ndim != 2 or 0 in atoms.shape:
        message = f"D must be a dictionary (m, k) with atoms as columns, got shape {atoms.shape}"
        raise ValueError(message)
    m, k = atoms.shape
    channels = 1 if math.isqrt(m) ** 2 == m else 3
    side = math.isqrt(m // channels)
    if channels * side * side != m:
        message = f"atoms of {m} values are neither p x p nor p x p x 3"
        raise ValueError(message)
    center = 0.0 if atoms.min() >= 0 else float(np.mean(atoms))
    shifted = atoms - center
    limit = _DEVIATIONS * float(np.sqrt(np.mean(shifted * shifted)))
    shifted = np.clip(shifted, -limit, limit)
    span = float(np.ptp(shifted))
    shown = (shifted - shifted.min()) / (span or 1.0)
    count = math.ceil(math.sqrt(k))
    step = side + 1
    picture = np.zeros((step * count + 1, step * count + 1, channels), order="F")
    for j in range(k):
        top, left = (1 + step * place for place in divmod(j, count))
        tile = shown[:, j].reshape((side, side, channels), order="F")
        picture[top : top + side, left : left + side] = tile
    return picture
