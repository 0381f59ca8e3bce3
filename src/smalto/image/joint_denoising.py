"""Joint denoising: groups of similar patches, along each axis of the colors of a picture."""

from __future__ import annotations

import numpy as np

from smalto.checks import Array
from smalto.coders import JointOMP
from smalto.image.denoising_effort import Effort
from smalto.image.denoising_rounds import denoise_in_rounds
from smalto.image.natural_filters import combine
from smalto.image.noise import rms_of_noise
from smalto.image.patch_grid import PatchGrid
from smalto.image.similar_patches import (
    code_over_each_other,
    code_over_shared_atoms,
    similar_groups,
)

_SLACK = 0.2  # standard deviations by which the mean energy of a group may exceed that of noise
_SHARING = 16  # patches per group that share their atoms
_SIDES = 8, 10  # of the patches that are coded over one another, if those over atoms are ...
_LARGE, _VERY_LARGE = 12, 16  # ... smaller than the first of these, or not
_ROUND_SIDES = (6, 5), (7, 5), (7,)  # in turn, of those combined in rounds, likewise for both
_SHARE = 0.57  # of the result of the rounds, in the mean of it and what was before


def denoise_jointly(
    D: Array,
    coded: list[PatchGrid],
    noisy: list[PatchGrid],
    guide: Array,
    sigma: float,
    level: Effort,
    n_threads: int,
) -> Array:
    """Denoise the channels of a picture, one grid each, along the axes of its colors.

    ``coded`` are the same grids, or a single one of whole color patches, if D has such atoms.
    ``guide`` (height, width, channels) is a first estimate. What groups of similar patches make of
    it is put together by filters that have been learned from photographs. With the most effort,
    this is the start of rounds of another method, whose errors are different, and the result is a
    mean of both.
    """
    groups = _groups(guide, noisy[0], noisy[0].size, _SHARING, level, n_threads)
    coder = _coder(D, sigma)
    parts = [code_over_shared_atoms(grid, groups, D, coder, n_threads) for grid in coded]
    shared = np.concatenate([part.image() for part in parts], axis=2)
    clean = _code_over_each_other(noisy, shared, sigma, level, n_threads)
    # The filters, learned from gray photographs, suit the first axis alone.
    estimates = [clean[:, :, 0], noisy[0].pixels[0, :, :, 0], shared[:, :, 0], guide[:, :, 0]]
    clean[:, :, 0] = combine(estimates, sigma, n_threads)
    if level.rounds:
        pixels = np.concatenate([grid.pixels[0] for grid in noisy], axis=2)
        longest = max(noisy[0].size)
        sides = _ROUND_SIDES[(longest >= _LARGE) + (longest >= _VERY_LARGE)]
        other = denoise_in_rounds(pixels, clean, sigma, sides, level.rounds, n_threads)
        clean += _SHARE * (other - clean)
    return clean


def _code_over_each_other(
    noisy: list[PatchGrid], clean: Array, sigma: float, level: Effort, n_threads: int
) -> Array:
    """Code groups that are similar in all channels over one another, each channel alone.

    Groups along the axes of colors but the first, which have less detail, are twice as large.
    Return the mean over several sizes of patches.
    """
    usual = _SIDES[max(noisy[0].size) >= _LARGE]
    total = np.zeros(clean.shape)
    for difference, most in level.groups:
        side = min(usual + difference, *clean.shape[:2])
        grids = [PatchGrid(grid.pixels, (side, side)) for grid in noisy]
        count = most if len(grids) == 1 else 2 * most
        groups = _groups(clean, noisy[0], (side, side), count, level, n_threads)
        for i, grid in enumerate(grids):
            own = np.ascontiguousarray(clean[None, :, :, [i]], grid.pixels.dtype)
            some = groups[:, :most] if i == 0 else groups
            cleaned = PatchGrid(own, grid.size)
            average = code_over_each_other(grid, cleaned, some, sigma, n_threads)
            total[:, :, [i]] += average.image()
    return np.asarray(total / len(level.groups))


def _coder(D: Array, sigma: float) -> JointOMP:
    """Codes of groups whose errors are those of noise."""
    k, m = D.shape
    return JointOMP(
        max_nonzeros=min(k, max(m // 2, 1)), eps=m * (rms_of_noise(m, _SLACK) * sigma) ** 2
    )


def _groups(
    guide: Array,
    like: PatchGrid,
    size: tuple[int, ...],
    most: int,
    level: Effort,
    n_threads: int,
) -> Array:
    """Groups of patches of this size that are similar in the guide."""
    pixels = np.ascontiguousarray(guide, like.pixels.dtype)
    return similar_groups(PatchGrid(pixels[None], size), most, n_threads, stride=level.spacing)
