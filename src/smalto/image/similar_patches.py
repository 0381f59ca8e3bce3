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
from smalto.kernels.image.patch_matching import nearest_alike
from smalto.kernels.image.whitening import whiten
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
    members = min(most, min(shape[0], reach + 1) * min(shape[1], reach + 1))
    found = np.empty((len(positions), members), np.int64)
    row_of, column_of = np.divmod(positions, shape[1])
    rows, begins = np.unique(row_of, return_index=True)
    ends = np.append(begins[1:], len(positions))

    def task(number: int) -> None:
        some = slice(begins[number], ends[number])
        distances = np.empty(members)
        scratch = np.empty((2 * reach + 1) * guide.channels, guide.pixels.dtype)
        row, columns = int(rows[number]), column_of[some]
        nearest_alike(
            guide.flat, guide.layout, shape, row, columns, reach, distances, scratch, found[some]
        )

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
            average.add(X, rows, columns, means=means)
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
    n, channels = groups.shape[1], grid.channels
    ridge = n * sigma**2 * np.eye(n)
    with single_threaded_blas():
        for begin in follow(range(0, len(groups), _AT_ONCE), "filtering groups"):
            members = groups[begin : begin + _AT_ONCE]
            _, rows, columns = grid.corners(members.reshape(-1))
            offsets = grid.offsets(0, rows, columns)
            Y, X = (_cut_groups(picture, offsets, n, n_threads) for picture in (grid, guide))
            weights = np.empty(members.shape)

            def task(number: int, Y: Array = Y, X: Array = X, weights: Array = weights) -> None:
                some = slice(number * _TASK, (number + 1) * _TASK)
                weights[some] = _filter(Y[some], X[some], ridge, channels)[:, None]

            run_tasks(task, -(-len(members) // _TASK), n_threads)
            patches = Y.reshape(members.size, -1)
            average.add(patches, rows, columns, patch_weights=weights.reshape(-1))
    return average


def _cut_groups(grid: PatchGrid, offsets: Array, n: int, n_threads: int) -> Array:
    """The patches at these offsets in groups of n (groups, n, m), float64."""
    X, _ = cut(grid, offsets, np.dtype(np.float64), n_threads, center=False)
    return X.reshape(-1, n, X.shape[1])


def _filter(Y: Array, X: Array, ridge: Array, channels: int) -> Array:
    """Filter Y in place, with X as scratch; return the weight of each group."""
    colors = Y.reshape(len(Y), -1, channels).mean(axis=1, keepdims=True)
    for part in (Y, X):
        by_color = part.reshape(len(part), -1, channels)
        by_color -= by_color.mean(axis=1, keepdims=True)
    covariance = X @ X.transpose(0, 2, 1)
    covariance += ridge
    whiten(covariance, X)  # X becomes Z with ZᵀZ = Xᵀ(XXᵀ + ridge)⁻¹X
    degrees_of_freedom = np.einsum("gnm,gnm->g", X, X)
    np.matmul(Y @ X.transpose(0, 2, 1), X, out=Y)
    Y.reshape(len(Y), -1, channels)[...] += colors
    return np.asarray(1.0 / (1.0 + degrees_of_freedom))
