"""Joint inpainting: similar patches tell what is missing in each other, in rounds."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy import ndimage

from smalto.checks import Array
from smalto.image.averaging import PatchAverage
from smalto.image.damaged_picture import damaged_positions
from smalto.image.patch_grid import PatchGrid
from smalto.image.similar_patches import similar_to
from smalto.image.stages import follow
from smalto.kernels.image.group_filling import fill_groups
from smalto.threads import run_tasks

_TRUST = 0.1  # weight of an estimated pixel in the mean of a group, relative to a known one
RELAXATION = 1.7  # how far pixels move, relative to the way to their new estimates
_FILLED = 8  # patches of a group that are filled: those most similar to its first one
_REACH = 16  # rows or columns between the first patch of a group and any other, at most
_LEAST = 1e-5  # penalty relative to the energy of a group, at least, for float32 to suffice
_WIDTH = 2.0  # standard deviation, in pixels, of the window of the means that are not details
_AT_ONCE = 2048  # groups in memory at a time
_TASK = 64  # groups filled as one task


class Round(NamedTuple):
    """How groups are formed and filled once."""

    side: int  # of the patches
    stride: int  # between the patches around which groups are formed
    members: int
    ridge: float  # variance that is added to that of the groups, relative to that of details


def fill_jointly(start: Array, mask: Array, rounds: tuple[Round, ...], n_threads: int) -> Array:
    """Improve the missing pixels of a picture (height, width, channels) that has been filled.

    In each round, groups of similar patches are formed around those with missing pixels. The
    missing pixels of a patch are predicted from its known ones by the mean and the covariance of
    its group, and become the mean of all predictions.
    """
    out = start.copy()
    center, size = start[~mask].mean(dtype=np.float64), size_of_details(start, mask)
    if size == 0.0:
        return out
    pixels = np.ascontiguousarray((start - center) / size, start.dtype)  # details have size 1
    trust = trust_in(mask, pixels)
    grids = [
        PatchGrid(pixels[None], (min(one.side, *mask.shape),) * 2) for one in rounds
    ]  # of the same pixels, as they improve
    plan = [
        parts_of(damaged_positions(grid, mask, 0, min(one.stride, *grid.size)))
        for grid, one in zip(grids, rounds, strict=True)
    ]
    steps = follow([part for parts in plan for part in parts], "filling groups")
    for grid, one, parts in zip(grids, rounds, plan, strict=True):
        average = PatchAverage(pixels.shape, grid.size)
        for positions in islice(steps, len(parts)):
            groups = similar_to(grid, positions, one.members, _REACH, n_threads)
            fill_groups_of(grid, trust, groups, one.ridge, average, n_threads)
        now = pixels[mask]
        pixels[mask] = now + RELAXATION * (average.at(mask) - now)
    next(steps, None)  # tells that all is done
    out[mask] = center + size * pixels[mask].astype(np.float64)
    return out


def parts_of(positions: Array) -> list[Array]:
    """Positions of as many groups as are in memory at a time."""
    return [positions[i : i + _AT_ONCE] for i in range(0, len(positions), _AT_ONCE)]


def trust_in(mask: Array, pixels: Array) -> Array:
    """Weights of the values of a filled picture in means, flat."""
    weights = np.where(mask[..., None], _TRUST, np.ones(pixels.shape, pixels.dtype))
    return weights.astype(pixels.dtype).reshape(-1)


def size_of_details(pixels: Array, mask: Array) -> float:
    """Root mean square of the known pixels around local means."""
    channels = np.moveaxis(pixels, -1, 0).astype(np.float64)
    details = np.array(
        [(channel - ndimage.gaussian_filter(channel, _WIDTH))[~mask] for channel in channels]
    )
    largest = float(np.abs(details).max())  # squares relative to it neither overflow nor vanish
    return largest * float(np.sqrt(np.mean((details / largest) ** 2))) if largest else 0.0


def fill_groups_of(
    grid: PatchGrid,
    trust: Array,
    groups: Array,
    ridge: float,
    average: PatchAverage,
    n_threads: int,
) -> None:
    """Add the predictions of the first patches of groups to an average."""
    n, m, dtype = groups.shape[1], grid.n_features, grid.pixels.dtype
    _, *places = grid.corners(groups)
    corners = grid.offsets(0, *places)
    some = min(_FILLED, n)
    out = np.empty((len(groups), some, m), dtype)
    filled = np.empty((len(groups), some), np.bool_)

    def task(number: int) -> None:
        own = slice(number * _TASK, (number + 1) * _TASK)
        scratch = (
            np.empty((n, m), dtype), np.empty((n, m), dtype), np.empty((n, n), dtype),
            np.empty(m, dtype), np.empty(m, dtype), np.empty(m, dtype), np.empty(n, dtype),
            np.empty(m, np.int64),
        )  # fmt: skip
        fill_groups(
            grid.flat,
            trust,
            corners[own],
            grid.lines,
            ridge,
            _LEAST,
            scratch,
            out[own],
            filled[own],
        )

    run_tasks(task, -(-len(groups) // _TASK), n_threads)
    corners_of_filled = (place[:, :some][filled] for place in places)
    average.add(out[filled], *corners_of_filled, n_threads=n_threads)
