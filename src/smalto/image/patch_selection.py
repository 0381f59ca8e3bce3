"""Which patches of pictures are worth learning from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from smalto.checks import Array
from smalto.image.patch_grid import PatchGrid, flat_mask
from smalto.kernels.image.patch_gathering import contrasts, count_missing, extremes
from smalto.threads import run_tasks

FLAT = 1e-6  # a patch is constant if its range is below this share of its largest magnitude
_ROWS = 64  # rows of positions per task


@dataclass(frozen=True)
class Selection:
    """Which patches are left out."""

    skip_constant: bool
    center: bool
    min_contrast: float
    min_known: float

    def describe(self, masked: bool) -> str:
        """The properties for which patches are left out, for an error message."""
        words = [] if not masked else ["damaged" if self.min_known == 1.0 else "too damaged"]
        if self.skip_constant:
            words.append("constant" if self.center else "zero")
        if self.min_contrast > 0:
            words.append(f"of a contrast below {self.min_contrast:g}")
        return " or ".join(words)


def usable_positions(
    grid: PatchGrid, mask: Array | None, selection: Selection, n_threads: int
) -> Array | None:
    """Positions of the patches that are not left out, or None if all of them are usable."""
    if mask is None and not selection.skip_constant and selection.min_contrast == 0:
        return None
    *outer, columns = grid.shape
    rows = math.prod(outer)
    usable = np.empty((grid.n_pictures, rows, columns), np.bool_)
    bands = -(-rows // _ROWS)
    marks = None if mask is None else flat_mask(mask)

    def task(number: int) -> None:
        picture, band = divmod(number, bands)
        for row in range(band * _ROWS, min((band + 1) * _ROWS, rows)):
            usable[picture, row] = ~_left_out(grid, marks, selection, picture, row)

    run_tasks(task, grid.n_pictures * bands, n_threads)
    if usable.all():
        return None
    positions = np.flatnonzero(usable)
    return positions.astype(np.uint32) if usable.size <= 1 << 32 else positions


def is_flat(low: Array, high: Array, center: bool) -> Array:
    """Whether patches with these minima and maxima are constant, or zero without centering."""
    largest = np.maximum(np.abs(low), np.abs(high))
    if not center:
        return np.asarray(largest == 0)
    return np.asarray(high - low <= FLAT * largest)


def count_missing_in_row(grid: PatchGrid, marks: Array, picture: int, row: int) -> Array:
    """The number of missing pixels in each patch of one row of positions."""
    count, columns = np.empty(grid.shape[-1], np.int32), np.empty(grid.pixels.shape[-2], np.int32)
    begin = grid.begin_of_row(picture, row) // grid.channels
    count_missing(marks, begin, grid.lines.starts // grid.channels, grid.size[-1], columns, count)
    return count


def _left_out(
    grid: PatchGrid, marks: Array | None, selection: Selection, picture: int, row: int
) -> Array:
    """Whether each patch of one row of positions is left out."""
    width, columns = grid.pixels.shape[-2], grid.shape[-1]
    begin = grid.begin_of_row(picture, row)
    out = np.zeros(columns, np.bool_)
    if selection.skip_constant:
        lows, highs = np.empty((2, width), grid.pixels.dtype)
        low, high = np.empty((2, columns), grid.pixels.dtype)
        extremes(grid.flat, begin, grid.lines, lows, highs, low, high)
        out |= is_flat(grid.scale * low, grid.scale * high, selection.center)
    if selection.min_contrast > 0:
        sums, squares = np.empty((2, width))
        contrast = np.empty(columns)
        contrasts(grid.flat, begin, grid.lines, sums, squares, contrast)
        out |= grid.scale**2 * contrast < selection.min_contrast**2
    if marks is not None:
        count = count_missing_in_row(grid, marks, picture, row)
        if selection.min_known == 1.0:
            out |= count > 0
        else:
            # Damaged patches are not left out for their constancy or contrast.
            area = math.prod(grid.size)
            known = area - count
            out[count > 0] = False
            out |= (known < selection.min_known * area) | (known == 0)
    return out
