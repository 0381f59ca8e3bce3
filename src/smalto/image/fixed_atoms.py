"""Atoms that need no learning: of natural pictures, cosines and constants."""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from smalto.checks import Array, check_integer
from smalto.image.checks import check_dtype, check_patch_size

_SIDES = (8, 10, 12, 16)  # of the patches that natural atoms were learned for
LARGEST = _SIDES[-1]


def constant_atoms(size: tuple[int, ...], channels: int, dtype: np.dtype[Any]) -> Array:
    """One atom per channel, constant in it and zero in the others (channels, m)."""
    area = math.prod(size)
    return np.asarray(np.tile(np.eye(channels) / np.sqrt(area), (1, area)), dtype)


def natural_atoms(patch_size: int | tuple[int, int] = 8, *, dtype: DTypeLike = np.float32) -> Array:
    """Return atoms of gray patches that suit most photographs.

    They were learned from eighty photographs and ship with the library. A dictionary for a picture
    can begin with them (``learn(..., init=natural_atoms(8))``) or do with them, as in `denoise`.

    Parameters
    ----------
    patch_size : int or (int, int), default 8
        Height and width of a patch, each at most 16. Atoms of 8, 10, 12 and 16 squared pixels have
        been learned; others are cut out of the next larger ones.
    dtype : dtype, default float32
        float32 or float64.

    Returns
    -------
    array (k, height * width)
        256 atoms of norm 1 with mean zero; of a patch of one pixel, a single constant atom.

    See Also
    --------
    cosine_atoms : Atoms for patches of any size and number of channels.

    Examples
    --------
    >>> from smalto.image import natural_atoms
    >>> natural_atoms(8).shape
    (256, 64)
    """
    size = check_patch_size(patch_size)
    kind = check_dtype(dtype)
    if max(size) > LARGEST:
        message = (
            f"there are natural atoms of at most {LARGEST} x {LARGEST} pixels, got "
            f"patch_size={size}: use cosine_atoms, or learn a dictionary"
        )
        raise ValueError(message)
    side = next(side for side in _SIDES if side >= max(size))
    first = [(side - own) // 2 for own in size]
    squares = _natural(side).reshape(-1, side, side).astype(np.float64)
    cut = squares[:, first[0] : first[0] + size[0], first[1] : first[1] + size[1]]
    D = cut.reshape(len(cut), -1)
    D -= D.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(D, axis=1, keepdims=True)
    if D.shape[1] == 1:
        return constant_atoms(size, 1, kind)
    some = norms[:, 0] > 1.0  # in units of bytes: what is cut out of a byte or two is rounding
    return np.asarray(D[some] / norms[some], kind)


@cache
def _natural(side: int) -> Array:
    """The atoms as they are stored, signed bytes."""
    with (files("smalto.image") / "natural_atoms.npz").open("rb") as file, np.load(file) as arrays:
        return np.asarray(arrays[f"side{side}"])


def cosine_atoms(
    patch_size: int | tuple[int, ...] = 8, channels: int = 1, *, dtype: DTypeLike = np.float32
) -> Array:
    """Return products of cosines along all axes, except the constant one.

    The mean of the channels gets more frequencies than pixels, their differences get fewer.

    Parameters
    ----------
    patch_size : int or tuple of int, default 8
        Height and width of a patch, or its sides along any number of axes.
    channels : int, default 1
        Values per pixel.
    dtype : dtype, default float32
        float32 or float64.

    Returns
    -------
    array (k, m)
        Atoms of norm 1, the channels of a pixel side by side; all but those of patches of one pixel
        have mean zero.

    See Also
    --------
    natural_atoms : Atoms that have been learned from photographs.

    Examples
    --------
    >>> from smalto.image import cosine_atoms
    >>> cosine_atoms(8).shape
    (99, 64)
    """
    size = check_patch_size(patch_size, None)
    channels = check_integer("channels", channels)
    kind = check_dtype(dtype)
    parts = []
    for i, mixture in enumerate(_channel_mixtures(channels)):
        counts = [side + 2 if i == 0 else max(side * 2 // 3, 1) for side in size]
        waves = np.ones((1, 1))
        for side, n in zip(size, counts, strict=True):
            along = _cosines(side, n)
            both = np.einsum("ia,jb->ijab", waves, along)
            waves = both.reshape(len(waves) * len(along), waves.shape[1] * side)
        waves = waves[1:]
        atoms = waves[:, :, None] * mixture
        parts.append(atoms.reshape(len(waves), math.prod(size) * channels))
    D = np.concatenate(parts)
    if not len(D):  # patches of a single pixel
        return constant_atoms(size, channels, kind)
    return np.asarray(D / np.linalg.norm(D, axis=1, keepdims=True), kind)


def _cosines(side: int, count: int) -> Array:
    """Cosines of ``count`` frequencies at ``side`` points, all but the first with mean zero."""
    waves = np.cos(np.outer(np.arange(count), np.arange(side) + 0.5) * np.pi / count)
    waves[1:] -= waves[1:].mean(axis=1, keepdims=True)
    norms = np.linalg.norm(waves, axis=1, keepdims=True)
    return np.asarray(waves[norms[:, 0] > 1e-6] / norms[norms[:, 0] > 1e-6])


def _channel_mixtures(channels: int) -> Array:
    """Orthogonal mixtures of the channels; the first is their mean (channels, channels)."""
    first = np.ones((channels, 1))
    q, _ = np.linalg.qr(np.hstack([first, np.eye(channels)[:, 1:]]))
    return np.asarray(q.T * np.sign(q[0, 0]))
