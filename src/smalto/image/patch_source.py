"""All overlapping patches of pictures as a source of samples, cut out on demand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from smalto.checks import Array, check_finite_number, check_number
from smalto.image.checks import check_dtype, check_patch_size, check_pixels_finite
from smalto.image.patch_grid import PatchGrid, as_grids, as_masks, flat_mask
from smalto.image.patch_selection import Selection, is_flat, usable_positions
from smalto.kernels.image.patch_gathering import CONTRAST, HIGH, LOW
from smalto.sources import Source
from smalto.threads import resolve_threads


class NoPatchError(ValueError):
    """Raised for pictures without a single usable patch."""

    def __init__(self, total: int, why: str) -> None:
        super().__init__(f"images have no usable patch: all {total} of them are {why}")


class PatchSource(Source):
    """All overlapping patches of pictures as a source of samples, cut out on demand.

    A row is a patch x: its pixels row by row, the channels of a pixel side by side. It is centered
    to ``x − mean(x)`` and scaled to ``x / ‖x‖``. Memory holds only the pictures (8-bit ones take a
    byte per value) and, if some patches are left out, one integer per usable patch.

    Parameters
    ----------
    images : array, sequence of arrays, path or folder
        One or several pictures of any size, (height, width) or (height, width, 3); a stack of RGB
        pictures with four axes; picture files. Unsigned integers are divided by the largest value
        of their type; floats are used as they are. Memory maps are read as patches are drawn.
    patch_size : int or tuple of int
        Height and width of a patch. With three numbers, ``images`` are volumes (depth, height, width),
        with one number, as in ``(32,)``, series (length,); both may have a last axis of channels.
    mask : array of bool, or sequence of them (or of None), optional
        True where a pixel is missing or damaged, one array per picture. Patches with such a pixel
        are left out, and its value does not matter (it may be NaN).
    min_known : float, default 1
        Keep patches with at least this share of known pixels (and at least one), with NaN for
        missing pixels, for ``learn(..., missing="nan")``. Means and norms are then those of the
        known pixels, and no damaged patch is left out for being constant.
    as_gray : bool, default False
        Convert color pictures to their luminance. By default pictures keep their channels, and all
        of them must be gray or all RGB.
    center : bool, default True
        Subtract the mean of the patch.
    by_channel : bool, default False
        Subtract the mean of each channel separately.
    normalize : bool, default True
        Divide by the norm.
    skip_constant : bool, default True
        Leave out constant patches; without centering, leave out only those that are zero.
    min_contrast : float, default 0
        Leave out patches whose pixels differ from the patch's mean color by less than this (root
        mean square).
    dtype : dtype, default float32
        float32 or float64.
    n_threads : int, optional
        Number of threads that search for patches to leave out; all available cores by default.

    Attributes
    ----------
    n_rows, n_features, dtype
        Number of patches, values per patch, and their type.
    patch_shape : tuple of int
        (height, width) or (height, width, 3), the shape of an atom learned from the patches.

    See Also
    --------
    reconstruct : From patches back to the picture.
    smalto.datasets.random_patches : Some patches as an array.

    Examples
    --------
    >>> from smalto import learn
    >>> from smalto.coders import Lasso
    >>> from smalto.datasets import sample_photo
    >>> from smalto.image import PatchSource
    >>> source = PatchSource(sample_photo("flower"), 8)
    >>> source.n_rows, source.n_features
    (265860, 192)
    >>> result = learn(source, 64, Lasso(0.15), max_steps=5, random_state=0)
    >>> result.D.shape
    (64, 192)
    """

    def __init__(
        self,
        images: Any,
        patch_size: int | tuple[int, ...],
        *,
        mask: Any = None,
        min_known: float = 1.0,
        as_gray: bool = False,
        center: bool = True,
        by_channel: bool = False,
        normalize: bool = True,
        skip_constant: bool = True,
        min_contrast: float = 0.0,
        dtype: DTypeLike = np.float32,
        n_threads: int | None = None,
    ) -> None:
        self.dtype = check_dtype(dtype)
        grids = as_grids(images, check_patch_size(patch_size, None), bool(as_gray), self.dtype)
        masks = as_masks(mask, grids)
        for number, (grid, marks) in enumerate(zip(grids, masks, strict=True)):
            check_pixels_finite(grid.pixels, f"images[{number}]", marks)
        min_contrast = check_finite_number("min_contrast", min_contrast, low=0.0)
        min_known = check_number("min_known", min_known, low=0.0, high=1.0)
        selection = Selection(bool(skip_constant), bool(center), min_contrast, min_known)
        self._groups = (grids[0].channels if by_channel else 1) if center else 0
        self._normalize = bool(normalize)
        self._select(grids, masks, selection, resolve_threads(n_threads))

    @classmethod
    def of_grid(
        cls,
        grid: PatchGrid,
        *,
        mask: Array | None = None,
        skip_constant: bool = False,
        min_contrast: float = 0.0,
        n_threads: int,
    ) -> PatchSource:
        """The patches of one picture of checked floats, centered by channel and not scaled."""
        source = cls.__new__(cls)
        source.dtype = grid.pixels.dtype
        source._groups, source._normalize = grid.channels, False
        masks = [None if mask is None or not mask.any() else mask[None]]
        source._select([grid], masks, Selection(skip_constant, True, min_contrast, 1.0), n_threads)
        return source

    def _select(
        self,
        grids: list[PatchGrid],
        masks: list[Array | None],
        selection: Selection,
        n_threads: int,
    ) -> None:
        """Find the usable patches; raise NoPatchError if there are none."""
        self._grids = grids
        keeps_damaged = selection.min_known < 1.0
        self._masks = [
            flat_mask(marks) if keeps_damaged and marks is not None else None for marks in masks
        ]
        size, channels = grids[0].size, grids[0].channels
        self.patch_shape: tuple[int, ...] = (*size, channels) if channels > 1 else size
        self.n_features = grids[0].n_features
        self._usable: list[Array | None] = [
            usable_positions(grid, marks, selection, n_threads)
            for grid, marks in zip(grids, masks, strict=True)
        ]
        counts = [
            grid.n_positions if usable is None else len(usable)
            for grid, usable in zip(grids, self._usable, strict=True)
        ]
        self._ends = np.cumsum(counts)
        self.n_rows = int(self._ends[-1])
        if self.n_rows == 0:
            total = sum(grid.n_positions for grid in grids)
            masked = any(marks is not None for marks in masks)
            raise NoPatchError(total, selection.describe(masked))

    def rows(self, numbers: Array) -> Array:
        """The patches with these numbers, centered and scaled as requested, one per row."""
        return self.rows_and_means(numbers)[0]

    def rows_and_means(self, numbers: Array) -> tuple[Array, Array]:
        """The patches with these numbers, and the means subtracted from them (n, 1 or 3)."""
        numbers = self._check_numbers(numbers)
        out = np.empty((len(numbers), self.n_features), self.dtype)
        means = np.zeros((len(numbers), max(self._groups, 1)))
        if len(self._grids) == 1:
            self._cut(0, numbers, out, means)
            return out, means
        owners = np.searchsorted(self._ends, numbers, side="right")
        by_owner = np.argsort(owners, kind="stable")
        ends = np.searchsorted(owners[by_owner], np.arange(len(self._grids)), side="right")
        begin = 0
        for owner, end in enumerate(ends):
            if end > begin:
                rows = by_owner[begin:end]
                some = np.empty((len(rows), self.n_features), self.dtype)
                some_means = np.zeros((len(rows), means.shape[1]))
                first = self._ends[owner - 1] if owner else 0
                self._cut(owner, numbers[rows] - first, some, some_means)
                out[rows], means[rows] = some, some_means
            begin = int(end)
        return out, means

    def positions(self, numbers: Array) -> Array:
        """Picture number, row and column of the upper left corners of patches (n, 3).

        For volumes and series there are as many columns as axes, and the number.
        """
        numbers = self._check_numbers(numbers)
        owners = np.searchsorted(self._ends, numbers, side="right")
        out = np.empty((len(numbers), 1 + len(self._grids[0].size)), np.int64)
        pictures = np.cumsum([0] + [grid.n_pictures for grid in self._grids])
        for owner in np.unique(owners):
            mine = np.flatnonzero(owners == owner)
            first = self._ends[owner - 1] if owner else 0
            positions = self._positions_in(owner, numbers[mine] - first)
            picture, *corner = self._grids[owner].corners(positions)
            out[mine] = np.stack([pictures[owner] + picture, *corner], axis=1)
        return out

    def is_dull(self, numbers: Array, min_contrast: float = 0.0) -> Array:
        """Whether patches are constant (zero, without centering) or below ``min_contrast``."""
        numbers = self._check_numbers(numbers)
        owners = np.searchsorted(self._ends, numbers, side="right")
        out = np.empty(len(numbers), np.bool_)
        for owner in np.unique(owners):
            mine = np.flatnonzero(owners == owner)
            first = self._ends[owner - 1] if owner else 0
            positions = self._positions_in(owner, numbers[mine] - first)
            measures = self._grids[owner].measures(positions)
            flat = is_flat(measures[:, LOW], measures[:, HIGH], self._groups > 0)
            out[mine] = flat | (measures[:, CONTRAST] < min_contrast**2)
        return out

    def _positions_in(self, owner: int, numbers: Array) -> Array:
        """The positions in one grid of its usable patches with these numbers."""
        usable = self._usable[owner]
        return numbers if usable is None else np.asarray(usable[numbers], np.int64)

    def _cut(self, owner: int, numbers: Array, out: Array, means: Array) -> None:
        """Write the patches of one grid with these numbers, and their means."""
        grid, marks = self._grids[owner], self._masks[owner]
        offsets = grid.offsets(*grid.corners(self._positions_in(owner, numbers)))
        kind: dict[str, Any] = {"groups": self._groups, "normalize": self._normalize}
        if marks is None:
            grid.gather(offsets, out, means, **kind)
        else:
            missing = np.empty(out.shape, np.bool_)
            grid.gather_known(offsets, marks, (out, means, missing), fill=np.nan, **kind)

    def _check_numbers(self, numbers: Any) -> Array:
        numbers = np.asarray(numbers)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            message = f"numbers must be one-dimensional integers, got {numbers!r}"
            raise TypeError(message)
        if numbers.size and not (numbers.min() >= 0 and numbers.max() < self.n_rows):
            bad = numbers[(numbers < 0) | (numbers >= self.n_rows)][0]
            message = f"numbers of patches must be from 0 to {self.n_rows - 1}, got {bad}"
            raise IndexError(message)
        return np.asarray(numbers, np.int64)
