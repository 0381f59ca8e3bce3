"""Joint denoising: groups of similar patches, of a gray picture and of its color differences."""

from __future__ import annotations

import numpy as np

from smalto.checks import Array
from smalto.coders import JointOMP
from smalto.image.noise import rms_of_noise
from smalto.image.patch_grid import PatchGrid
from smalto.image.similar_patches import (
    code_over_each_other,
    code_over_shared_atoms,
    mean_of_groups,
    similar_groups,
)

_SLACK = 0.2  # standard deviations by which the mean energy of a group may exceed that of noise
_SHARING = 16  # patches per group that share their atoms
_SIDE = 8  # of the patches that are coded over one another
_GROUP = 32  # of them per group
_AVERAGED = 12  # of them in the first estimate of color differences
_DIFFERENCES = 64  # of them per group of color differences, which have less detail
_PASSES = 2


def color_axes(pixels: Array) -> Array:
    """Orthonormal axes (channels, channels) of colors, by decreasing detail along them.

    The principal axes of the differences between neighboring pixels (height, width, channels): the
    first one has most of the edges and is near to gray in most pictures. White noise stays white,
    and does not turn the axes.
    """
    c = pixels.shape[2]
    steps = [np.diff(pixels, axis=axis).reshape(-1, c).astype(np.float64) for axis in (0, 1)]
    _, vectors = np.linalg.eigh(sum(step.T @ step for step in steps))  # increasing
    axes = vectors[:, ::-1].T
    return np.asarray(axes * np.where(axes.sum(axis=1, keepdims=True) < 0, -1.0, 1.0))


def denoise_jointly(
    D: Array, size: tuple[int, ...], guide: Array, noisy: Array, sigma: float, n_threads: int
) -> Array:
    """Denoise pixels along the axes of their colors, the first of them gray.

    ``D`` and ``guide`` are a dictionary and a first estimate of the gray channel. The others, the
    differences of colors, have so little contrast that similar patches are found in the gray one.
    """
    grids = [PatchGrid(np.ascontiguousarray(noisy[None, :, :, [i]]), size)
             for i in range(noisy.shape[2])]  # fmt: skip
    gray = _denoise_gray(D, grids[0], guide, sigma, n_threads)
    if len(grids) == 1:
        return gray
    guide_of_all = _grid_of(gray, grids[0], _small(grids[0]).size)
    groups = similar_groups(guide_of_all, _DIFFERENCES, n_threads)
    rest = [_denoise_difference(grid, groups, sigma, n_threads) for grid in grids[1:]]
    return np.concatenate([gray, *rest], axis=2)


def _denoise_gray(D: Array, grid: PatchGrid, guide: Array, sigma: float, n_threads: int) -> Array:
    """Code groups that are similar in the guide over common atoms, then twice over one another."""
    k, m = D.shape
    error = m * rms_of_noise(m, _SLACK) ** 2 * sigma**2
    coder = JointOMP(max_nonzeros=min(k, max(m // 2, 1)), eps=error)
    groups = similar_groups(_grid_of(guide, grid, grid.size), _SHARING, n_threads)
    clean = code_over_shared_atoms(grid, groups, D, coder, n_threads).image()
    noisy = _small(grid)
    for _ in range(_PASSES):
        cleaned = _grid_of(clean, grid, noisy.size)
        groups = similar_groups(cleaned, _GROUP, n_threads)
        clean = code_over_each_other(noisy, cleaned, groups, sigma, n_threads).image()
    return clean


def _denoise_difference(grid: PatchGrid, groups: Array, sigma: float, n_threads: int) -> Array:
    """Start with means of groups, then code them twice over one another."""
    noisy = _small(grid)
    clean = mean_of_groups(noisy, groups[:, :_AVERAGED], n_threads).image()
    for _ in range(_PASSES):
        cleaned = _grid_of(clean, grid, noisy.size)
        clean = code_over_each_other(noisy, cleaned, groups, sigma, n_threads).image()
    return clean


def _small(grid: PatchGrid) -> PatchGrid:
    """The same picture, with patches of the size that is coded over one another."""
    height, width = grid.pixels.shape[1:3]
    return PatchGrid(grid.pixels, (min(_SIDE, height), min(_SIDE, width)))


def _grid_of(pixels: Array, like: PatchGrid, size: tuple[int, ...]) -> PatchGrid:
    """A grid of these pixels, in the dtype of another one."""
    return PatchGrid(np.ascontiguousarray(pixels, like.pixels.dtype)[None], size)
