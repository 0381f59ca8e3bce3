"""Denoising in rounds: similar patches are combined linearly, and each round keeps less noise."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from smalto.checks import Array
from smalto.image.averaging import PatchAverage
from smalto.image.patch_grid import PatchGrid
from smalto.image.similar_patches import similar_groups
from smalto.image.stages import follow
from smalto.kernels.image.patch_combining import combine_groups, combining_scratch
from smalto.threads import run_tasks

_MEMBERS = 40  # patches per group
_SPACING = 3  # between the patches around which groups are formed
_MATCHED = 3  # rounds with the same groups
_KEPT = 0.85  # share of the noise that a round before the first would keep
_LEAST = 0.03  # noise that is always taken to be left
_AT_ONCE = 512  # groups in memory at a time
_TASK = 16  # groups combined as one task


def denoise_in_rounds(
    noisy: Array,
    clean: Array,
    sigma: float,
    sides: tuple[int, ...],
    n_rounds: int,
    n_threads: int,
) -> Array:
    """Denoise a picture (height, width, channels), of which ``clean`` is a good estimate.

    A round combines the patches of a picture ``left``, at first the noisy one, with the weights
    that would suit the present estimate. This gives the next estimate, towards which ``left`` moves:
    it has less noise from round to round. Groups of square patches, whose sides take turns, are
    formed in ``left``, at first in the estimate.
    """
    size = (0, 0)
    dtype = noisy.dtype
    noisy, clean = ((part / sigma).astype(dtype) for part in (noisy, clean))
    left = noisy
    groups = np.empty((0, 0), np.int64)
    for number in follow(range(n_rounds), "denoising in rounds"):
        if number % _MATCHED == 0:
            side = sides[number // _MATCHED % len(sides)]
            size = (min(side, noisy.shape[0]), min(side, noisy.shape[1]))
            guide = PatchGrid((left if number else clean)[None], size)
            groups = similar_groups(guide, _MEMBERS, n_threads, stride=_SPACING)
        kept = _KEPT * (1.0 - (number + 1) / n_rounds)
        removed = noisy - left
        parts = []
        for channel in range(noisy.shape[2]):
            own, guide = (
                PatchGrid(np.ascontiguousarray(part[None, :, :, [channel]]), size)
                for part in (left, clean)
            )
            noise = _noise_left(_deviations(removed[:, :, channel], groups, size), kept)
            parts.append(_average_of_combinations(own, guide, groups, noise, n_threads))
        clean = np.concatenate(parts, axis=2).astype(dtype)
        share = kept / _noise_left(removed.std(axis=(0, 1)), kept)
        left = clean + share.astype(dtype) * (left - clean)
    return np.asarray(sigma * clean)


def _noise_left(removed: Array, kept: float) -> Array:
    """The noise that is left where noise of this deviation was removed, of 1 in the beginning."""
    return np.asarray(np.maximum(1.0 - removed, max(kept, _LEAST)))


def _deviations(pixels: Array, groups: Array, size: tuple[int, int]) -> Array:
    """The standard deviation of the pixels (height, width) of the patches of each group."""
    values = pixels.astype(np.float64)
    rows, columns = (length - side + 1 for length, side in zip(pixels.shape, size, strict=True))
    begin = [-(side // 2) for side in size]  # means of patches, where these begin

    def mean_of(part: Array) -> Array:
        means = ndimage.uniform_filter(part, size, origin=begin)[:rows, :columns]
        return np.asarray(means.reshape(-1)[groups].mean(axis=1))

    mean, square = mean_of(values), mean_of(values * values)
    return np.asarray(np.sqrt(np.maximum(square - mean * mean, 0.0)))


def _average_of_combinations(
    left: PatchGrid, guide: PatchGrid, groups: Array, noise: Array, n_threads: int
) -> Array:
    """Average the combined patches of all groups, which have this noise left."""
    average = PatchAverage(left.pixels.shape[1:], left.size)
    n, m = groups.shape[1], left.n_features
    for begin in range(0, len(groups), _AT_ONCE):
        members = groups[begin : begin + _AT_ONCE]
        _, rows, columns = left.corners(members.reshape(-1))
        corners = left.offsets(0, rows, columns).reshape(members.shape)
        own = noise[begin : begin + _AT_ONCE]
        patches = np.empty((*members.shape, m), left.pixels.dtype)
        weights = np.empty(members.shape)

        def task(
            number: int,
            corners: Array = corners,
            own: Array = own,
            out: tuple[Array, Array] = (patches, weights),
        ) -> None:
            some = slice(number * _TASK, (number + 1) * _TASK)
            scratch = combining_scratch(n, m, left.pixels.dtype)
            combine_groups(
                left.flat, guide.flat, corners[some], left.lines, own[some], scratch,
                *(part[some] for part in out),
            )  # fmt: skip

        run_tasks(task, -(-len(members) // _TASK), n_threads)
        flat = patches.reshape(members.size, m)
        average.add(flat, rows, columns, patch_weights=weights.reshape(-1), n_threads=n_threads)
    return average.image()
