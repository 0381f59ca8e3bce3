"""The smooth part of a damaged picture: what is left for sparse codes is the detail."""

from __future__ import annotations

import numpy as np
from scipy import ndimage, sparse
from scipy.sparse.linalg import cg

from smalto.checks import Array

_WIDTH = 2.0  # of the Gaussian window, in pixels
_BAND = 256  # lines of a picture filled at a time
_AROUND = 16  # lines above and below that are looked at too
_STEPS = 200  # of conjugate gradients, at most


def smooth_part(pixels: Array, mask: Array) -> Array:
    """Local means of a picture (height, width, channels), missing pixels filled smoothly before.

    Those are filled so that the picture's curvature ``Σ (Δu)²`` becomes smallest, nearly, band
    by band of the picture. Something of the picture must be known.
    """
    nearest = ndimage.distance_transform_edt(mask, return_distances=False, return_indices=True)
    filled = pixels.copy()
    filled[mask] = filled[tuple(index[mask] for index in nearest)]
    del nearest
    origin = filled[0, 0].copy()  # so that nothing but zeros is left of a single colour
    filled -= origin
    out = np.empty_like(pixels)
    for top in range(0, len(pixels), _BAND):
        first, bottom = max(top - _AROUND, 0), min(top + _BAND, len(pixels))
        some = slice(first, min(bottom + _AROUND, len(pixels)))
        band = smoothed(filled[some], mask[some])
        for channel in range(pixels.shape[2]):
            means = ndimage.gaussian_filter(band[:, :, channel], _WIDTH)
            out[top:bottom, :, channel] = means[top - first : bottom - first]
    out += origin
    return out


def smoothed(pixels: Array, mask: Array) -> Array:
    """The picture with new values in the mask that make ``Σ (Δu)²`` small, float64."""
    out = pixels.astype(np.float64)
    if mask.all() or not mask.any():
        return out
    laplacian = _laplacian(mask)
    curvature = laplacian[:, mask.reshape(-1)]
    square = (curvature.T @ curvature).tocsr()
    precision = sparse.diags_array(1.0 / square.diagonal())
    for channel in np.moveaxis(out, 2, 0):
        # What to add to the values that stand there.
        wanted = -(curvature.T @ (laplacian @ channel.reshape(-1)))
        channel[mask] += cg(square, wanted, rtol=1e-4, maxiter=_STEPS, M=precision)[0]
    return out


def _laplacian(mask: Array) -> sparse.csc_array:
    """The sum of the differences of each pixel from its neighbours, where one is in the mask."""
    height, width = mask.shape
    rows = ndimage.binary_dilation(mask).reshape(-1).nonzero()[0]
    row, column = np.divmod(rows, width)
    numbers = np.arange(len(rows))
    parts: list[tuple[Array, Array, Array]] = []
    degree = np.zeros(len(rows))
    for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        inside = (
            (row + down >= 0) & (row + down < height)
            & (column + right >= 0) & (column + right < width)
        )  # fmt: skip
        parts.append(
            (numbers[inside], rows[inside] + down * width + right, np.full(inside.sum(), -1.0))
        )
        degree += inside
    parts.append((numbers, rows, degree))
    i, j, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sparse.csc_array((values, (i, j)), shape=(len(rows), mask.size))
