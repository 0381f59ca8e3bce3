"""Smooth fillings of a damaged picture; codes and groups of patches then restore the details."""

from __future__ import annotations

import math

import numpy as np
from scipy import ndimage, sparse
from scipy.sparse.linalg import cg

from smalto.checks import Array
from smalto.threads import run_tasks, single_threaded_blas

_WIDTH = 2.0  # standard deviation of the Gaussian window, in pixels
_BAND = 256  # rows of a picture filled at a time
_OVERLAP = 16  # rows of the neighboring bands that are filled with them
_MAX_ITER = 200  # of conjugate gradients


def smooth_part(pixels: Array, mask: Array, n_threads: int = 1) -> Array:
    """Local means of a picture (height, width, channels) after `smooth_filling`."""
    out = smooth_filling(pixels, mask, n_threads)
    origin = out[(0,) * mask.ndim].copy()  # a picture of a single color keeps it exactly
    out -= origin

    def task(channel: int) -> None:
        out[..., channel] = ndimage.gaussian_filter(out[..., channel], _WIDTH)

    run_tasks(task, pixels.shape[-1], n_threads)
    out += origin
    return out


def smooth_filling(pixels: Array, mask: Array, n_threads: int = 1) -> Array:
    """Fill the missing pixels of a picture (height, width, channels) with least curvature.

    They minimize ``Σ (Δu)²``, approximately and band by band, on several threads. At least one
    pixel must be known.
    """
    nearest = ndimage.distance_transform_edt(mask, return_distances=False, return_indices=True)
    filled = pixels.copy()
    filled[mask] = filled[tuple(index[mask] for index in nearest)]
    del nearest
    origin = filled[(0,) * mask.ndim].copy()  # a picture of a single color keeps it exactly
    filled -= origin
    out = np.empty_like(pixels)

    def task(number: int) -> None:
        top = number * _BAND
        first, bottom = max(top - _OVERLAP, 0), min(top + _BAND, len(pixels))
        some = slice(first, min(bottom + _OVERLAP, len(pixels)))
        band = fill_smoothly(filled[some], mask[some])
        out[top:bottom] = band[top - first : bottom - first]

    with single_threaded_blas():
        run_tasks(task, -(-len(pixels) // _BAND), n_threads)
    out += origin
    out[~mask] = pixels[~mask]
    return out


def fill_smoothly(pixels: Array, mask: Array) -> Array:
    """Replace the masked pixels to minimize ``Σ (Δu)²`` approximately; return float64."""
    out = pixels.astype(np.float64)
    if mask.all() or not mask.any():
        return out
    laplacian = _laplacian(mask)
    curvature = laplacian[:, mask.reshape(-1)]
    square = (curvature.T @ curvature).tocsr()
    precision = sparse.diags_array(1.0 / square.diagonal())
    for channel in np.moveaxis(out, -1, 0):
        # Solve for the change of the present values.
        gradient = -(curvature.T @ (laplacian @ channel.reshape(-1)))
        channel[mask] += cg(square, gradient, rtol=1e-4, maxiter=_MAX_ITER, M=precision)[0]
    return out


def _laplacian(mask: Array) -> sparse.csc_array:
    """Sum of the differences to the neighbors, for pixels in the mask or next to it."""
    rows = ndimage.binary_dilation(mask).reshape(-1).nonzero()[0]
    places = np.unravel_index(rows, mask.shape)
    numbers = np.arange(len(rows))
    parts: list[tuple[Array, Array, Array]] = []
    degree = np.zeros(len(rows))
    for axis, place in enumerate(places):
        step = math.prod(mask.shape[axis + 1 :])
        for way in (-1, 1):
            inside = (place + way >= 0) & (place + way < mask.shape[axis])
            neighbors = rows[inside] + way * step
            parts.append((numbers[inside], neighbors, np.full(inside.sum(), -1.0)))
            degree += inside
    parts.append((numbers, rows, degree))
    i, j, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sparse.csc_array((values, (i, j)), shape=(len(rows), mask.size))
