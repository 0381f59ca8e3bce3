"""Groups of similar patches, and their codes: over shared atoms, and over one another."""

from __future__ import annotations

import numpy as np

from smalto.checks import Array
from smalto.coders import JointOMP
from smalto.coders.coding import code_rows
from smalto.coders.preparing import prepare
from smalto.coders.signals import Signals
from smalto.image.averaging import PatchAverage
from smalto.image.patch_coding import compose, cut
from smalto.image.patch_grid import PatchGrid
from smalto.image.stages import follow
from smalto.kernels.image.group_filtering import filter_groups, filtering_scratch
from smalto.kernels.image.patch_matching import AT_ONCE, Planes, nearest_alike
from smalto.threads import run_tasks, single_threaded_blas

STRIDE = 4  # between the patches around which groups are formed
REACH = 24  # rows or columns between the first patch of a group and any other, at most
_AT_ONCE = 256  # groups in memory at a time
_TASK = 16  # groups filtered as one task


def similar_groups(
    guide: PatchGrid, most: int, n_threads: int, *, stride: int = STRIDE, reach: int = REACH
) -> Array:
    """Groups of similar patches of a picture, as positions (groups, members).

    A group is formed around every ``stride``-th patch: that patch and its nearest neighbors, by
    squared distance. All groups have the same number of members, at most ``most``.
    """
    rows, columns = guide.strided(stride)
    positions = (rows[:, None] * guide.shape[1] + columns).reshape(-1)
    return similar_to(guide, positions, most, reach, n_threads)


def similar_to(guide: PatchGrid, positions: Array, most: int, reach: int, n_threads: int) -> Array:
    """Groups of patches similar to those at these positions, which increase (positions, members)."""
    shape = guide.shape
    pixels = guide.pixels[0]
    # Channel by channel: what is compared with one patch is then contiguous.
    flat = np.zeros(pixels.size + AT_ONCE, pixels.dtype)
    flat[: pixels.size] = np.moveaxis(pixels, -1, 0).reshape(-1)
    planes = Planes(pixels.shape[1], pixels[..., 0].size, guide.channels, *guide.size)
    members = min(most, min(shape[0], reach + 1) * min(shape[1], reach + 1))
    found = np.empty((len(positions), members), np.int64)
    row_of, column_of = np.divmod(positions, shape[1])
    rows, begins = np.unique(row_of, return_index=True)
    ends = np.append(begins[1:], len(positions))

    def task(number: int) -> None:
        some = slice(begins[number], ends[number])
        distances = np.empty(members)
        scratch = np.empty(AT_ONCE, flat.dtype)
        row, columns = int(rows[number]), column_of[some]
        nearest_alike(flat, planes, shape, row, columns, reach, distances, scratch, found[some])

    run_tasks(task, len(rows), n_threads)
    return found


def code_over_shared_atoms(
    grid: PatchGrid, groups: Array, D: Array, coder: JointOMP, n_threads: int
) -> PatchAverage:
    """Code the centered patches of each group over common atoms and average the patches αD."""
    average = PatchAverage(grid.pixels.shape[1:], grid.size)
    with single_threaded_blas():
        prepared = prepare(D, coder, n_threads)
        for begin in follow(range(0, len(groups), _AT_ONCE), "coding groups"):
            some = groups[begin : begin + _AT_ONCE]
            _, rows, columns = grid.corners(some.reshape(-1))
            X, means = cut(grid, grid.offsets(0, rows, columns), D.dtype, n_threads)
            ends = np.arange(0, some.size + 1, some.shape[1])
            signals = Signals(X, groups=ends)
            codes = code_rows(signals, prepared, None, n_threads, measured=False).codes
            compose(codes, D, X, n_threads)
            average.add(X, rows, columns, means=means, n_threads=n_threads)
    return average


def code_over_each_other(
    grid: PatchGrid, guide: PatchGrid, groups: Array, sigma: float, n_threads: int
) -> PatchAverage:
    """Average the noisy patches Y of each group, coded over its patches X in the guide.

    After subtracting the mean color of the group, solve ``min_A ‖Y − AX‖² + n σ²‖A‖²`` for the n
    patches of a group: the Wiener filter for patches with the covariance of the group in the
    guide. Groups weigh more in the average the fewer degrees of freedom they have.
    """
    average = PatchAverage(grid.pixels.shape[1:], grid.size)
    for begin in follow(range(0, len(groups), _AT_ONCE), "filtering groups"):
        add_filtered(average, grid, guide, groups[begin : begin + _AT_ONCE], sigma, n_threads)
    return average


def add_filtered(
    average: PatchAverage,
    grid: PatchGrid,
    guide: PatchGrid,
    groups: Array,
    sigma: float,
    n_threads: int,
) -> None:
    """Add the patches of some groups, coded over one another, to an average."""
    _, *places = grid.corners(groups.reshape(-1))
    corners = grid.offsets(0, *places).reshape(groups.shape)
    n, m = groups.shape[1], grid.n_features
    patches, weights = np.empty((*groups.shape, m)), np.empty(groups.shape)

    def task(number: int) -> None:
        some = slice(number * _TASK, (number + 1) * _TASK)
        scratch = filtering_scratch(n, m, grid.channels)
        filter_groups(
            grid.flat, guide.flat, corners[some], grid.lines, n * sigma**2, scratch,
            patches[some], weights[some],
        )  # fmt: skip

    run_tasks(task, -(-len(groups) // _TASK), n_threads)
    average.add(
        patches.reshape(-1, m), *places, patch_weights=weights.reshape(-1), n_threads=n_threads
    )
