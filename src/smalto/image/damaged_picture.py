"""A picture with missing pixels: the patches to learn from, and filling by sparse codes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from smalto.checks import Array
from smalto.coders.base import Coder
from smalto.image.checks import by
from smalto.image.fixed_atoms import constant_atoms
from smalto.image.patch_coding import average_of_known
from smalto.image.patch_grid import PatchGrid, flat_mask
from smalto.image.patch_selection import count_missing_in_row
from smalto.image.patch_source import NoPatchError, PatchSource

_MIN_KNOWN = 0.4  # share of known pixels to code a patch, relative to that in the whole picture


@dataclass(frozen=True)
class DamagedPicture:
    """Pixels (height, width, channels), which of them are missing, and how patches are coded."""

    pixels: Array
    mask: Array
    size: tuple[int, ...]
    coder: Coder
    n_threads: int

    def undamaged_patches(self) -> PatchSource | None:
        """All patches without missing pixels, or None if all of these are constant."""
        return self._patches(self.pixels, self.mask)

    def patches_of(self, filled: Array) -> PatchSource | None:
        """All patches of a filled picture, or None if all of them are constant."""
        return self._patches(filled, None)

    def _patches(self, pixels: Array, mask: Array | None) -> PatchSource | None:
        grid = PatchGrid(np.ascontiguousarray(pixels)[None], self.size)
        try:
            return PatchSource.of_grid(
                grid, mask=mask, skip_constant=True, n_threads=self.n_threads
            )
        except NoPatchError:
            return None

    def fill(self, D: Array, stride: int) -> Array:
        """Fill the missing pixels, large holes from the border inwards.

        Patches are coded only if enough of their pixels are known. Pixels that they cover are
        known in the next pass; if there are no such patches, fewer known pixels are enough.
        """
        D = np.vstack([D, constant_atoms(self.size, self.pixels.shape[-1], D.dtype)])
        mask, pixels = self.mask.copy(), self.pixels.copy()
        area = math.prod(self.size)
        share = _MIN_KNOWN * (1.0 - mask.mean())
        while mask.any():
            grid = PatchGrid(pixels[None], self.size)
            min_known = max(1, int(share * area))
            positions = damaged_positions(grid, mask, min_known, stride)
            if not len(positions) and min_known > 1:
                share *= 0.5
                continue
            if not len(positions):
                positions = damaged_positions(grid, mask, 1, 1)
            if not len(positions):  # e.g. a missing row, and patches of a single row
                message = (
                    f"{np.count_nonzero(mask)} missing pixels share no patch of {by(self.size)} "
                    "with a known one: use larger patches"
                )
                raise ValueError(message)
            average = average_of_known(grid, mask, D, self.coder, positions, self.n_threads)
            done = mask & (average.weight[..., 0] > 0)
            pixels[done] = average.at(done)
            mask &= ~done
        return pixels


def damaged_positions(grid: PatchGrid, mask: Array, min_known: int, stride: int) -> Array:
    """Positions of patches with a missing pixel and at least ``min_known`` known ones.

    Only those in every ``stride``-th row and column of positions, and in the last ones.
    """
    *outer, columns = grid.shape
    area = math.prod(grid.size)
    marks = flat_mask(mask)
    *places, chosen = grid.strided(stride)
    rows = (
        np.ravel_multi_index(np.ix_(*places), outer).reshape(-1) if outer else np.zeros(1, np.int64)
    )
    found = []
    for row in rows:
        count = count_missing_in_row(grid, marks, 0, int(row))[chosen]
        here = chosen[(count > 0) & (area - count >= min_known)]
        found.append(row * columns + here)
    return np.concatenate(found)
