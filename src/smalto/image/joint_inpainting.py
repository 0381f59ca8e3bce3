"""Joint inpainting: damaged patches from similar ones, in a picture that has been filled before."""

from __future__ import annotations

import numpy as np

from smalto.checks import Array
from smalto.image.averaging import PatchAverage
from smalto.image.damaged_picture import damaged_positions
from smalto.image.patch_grid import PatchGrid, flat_mask
from smalto.image.similar_patches import similar_to
from smalto.kernels.image.hole_filling import Scratch, fill_from_alike
from smalto.threads import run_tasks

_AT_ONCE = 1 << 13  # patches in memory at a time
_TASK = 64  # patches filled as one task


def refill(
    filled: Array,
    mask: Array,
    *,
    side: int,
    alike: int,
    stride: int,
    ridge: float,
    reach: int,
    n_threads: int,
) -> Array:
    """Fill the missing pixels (height, width, channels) again, by codes over similar patches.

    Around every damaged patch ``alike`` similar ones are found in the filled picture. Its known
    pixels are coded over theirs; the code predicts the missing ones.
    """
    size = (min(side, len(filled)), min(side, filled.shape[1]))
    grid = PatchGrid(np.ascontiguousarray(filled)[None], size)
    marks = flat_mask(mask)
    average = PatchAverage(filled.shape, size)
    positions = damaged_positions(grid, mask, 1, stride)
    for begin in range(0, len(positions), _AT_ONCE):
        some = positions[begin : begin + _AT_ONCE]
        groups = similar_to(grid, some, alike + 1, reach, n_threads)
        _, rows, columns = grid.corners(some)
        corners = grid.offsets(0, *grid.corners(groups)[1:])
        corners = _own_first(corners, grid.offsets(0, rows, columns))
        patches = np.empty((len(some), grid.n_features))
        _fill(grid, marks, corners, ridge, patches, n_threads)
        area = size[0] * size[1]
        known = (
            1.0
            - _missing_share(marks, corners[:, 0] // grid.channels, filled.shape[1], size) / area
        )
        average.add(patches, rows, columns, patch_weights=known * known)
    out = filled.copy()
    done = mask & (average.weight[:, :, 0] > 0)
    out[done] = average.at(done)
    return out


def _own_first(corners: Array, own: Array) -> Array:
    """Groups with the patch around which they were formed in front, once."""
    at = np.argmax(corners == own[:, None], axis=1)
    out = corners.copy()
    out[np.arange(len(out)), at] = out[:, 0]
    out[:, 0] = own
    return out


def _missing_share(marks: Array, corners: Array, width: int, size: tuple[int, int]) -> Array:
    """Number of missing pixels of the patches at these pixels."""
    down, across = np.mgrid[: size[0], : size[1]]
    places = corners[:, None] + (down * width + across).reshape(-1)
    return np.asarray(marks[places].sum(axis=1, dtype=np.int64))


def _fill(
    grid: PatchGrid, marks: Array, corners: Array, ridge: float, out: Array, n_threads: int
) -> None:
    n, m = corners.shape[1] - 1, grid.n_features

    def task(number: int) -> None:
        some = slice(number * _TASK, (number + 1) * _TASK)
        X, known = np.empty((2, n + 1, m))
        means = np.empty((n + 1, grid.channels))
        scratch = Scratch(X, known, np.empty(m), means, np.empty((n, n)), np.empty(n))
        fill_from_alike(grid.flat, marks, corners[some], grid.layout, ridge, scratch, out[some])

    run_tasks(task, -(-len(corners) // _TASK), n_threads)
