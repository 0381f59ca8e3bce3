"""Groups of similar patches over several frames, which follow the motion, and their filters."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from smalto.checks import Array
from smalto.image.averaging import PatchAverage
from smalto.image.patch_grid import PatchGrid
from smalto.image.similar_patches import add_filtered
from smalto.kernels.image.motion_matching import nearest_along_motion
from smalto.threads import run_tasks

FRAMES = 3  # before and after a frame that its groups reach into
REACHES = (10, 4)  # rows or columns: within a frame, and from where the motion leads in the others
_SIDE = 8  # of patches
_STRIDE = 4  # between the patches around which groups are formed
_GROUP = 32  # patches
_AT_ONCE = 256  # groups in memory at a time


@dataclass(frozen=True)
class Frame:
    """A noisy frame (height, width, channels), an estimate of the clean one, and σ of the noise."""

    noisy: Array
    guide: Array
    sigma: float


@dataclass
class _Pending:
    """A frame that groups still reach into, and sums over their patches so far."""

    frame: Frame
    total: Array
    weight: Array


def filter_along_motion(frames: Iterable[Frame], n_threads: int) -> Iterator[Frame]:
    """Yield the frames with better guides, each when `FRAMES` others have followed it.

    Around every fourth patch of a frame, similar patches of this frame and of its neighbors form a
    group, in which each noisy patch is filtered by the covariance of the group in the guides.
    """
    window: deque[_Pending] = deque()
    begin = newest = -1  # numbers of the first frame of the window, and of the last one
    for frame in frames:
        newest += 1
        begin = max(begin, 0)
        window.append(_Pending(frame, *np.zeros((2, *frame.noisy.shape))))
        if newest >= FRAMES:
            _add_groups(window, newest - FRAMES - begin, n_threads)
        if newest >= 2 * FRAMES:  # no later group reaches into the first frame
            yield _finished(window.popleft())
            begin += 1
    for number in range(max(newest - FRAMES + 1, 0), newest + 1):
        _add_groups(window, number - begin, n_threads)
    while window:
        yield _finished(window.popleft())


def _finished(pending: _Pending) -> Frame:
    return Frame(pending.frame.noisy, pending.total / pending.weight, pending.frame.sigma)


def similar_in_frames(guide: PatchGrid, frame: int, most: int, n_threads: int) -> Array:
    """Groups around patches of one frame, as positions (groups, members) in a grid of frames."""
    _, rows, columns = guide.strided(_STRIDE)
    positions = (rows[:, None] * guide.shape[2] + columns).reshape(-1)
    return similar_along_motion(guide, frame, positions, most, REACHES, n_threads)


def similar_along_motion(
    guide: PatchGrid,
    frame: int,
    positions: Array,
    most: int,
    reaches: tuple[int, int],
    n_threads: int,
) -> Array:
    """Groups around the patches at these positions in one frame, which increase."""
    shape = guide.shape
    members = min(most, math.prod(min(own, reaches[0] + 1) for own in shape[1:]))
    found = np.empty((len(positions), members), np.int64)
    layout = PatchGrid(guide.pixels[0], (guide.size[1], guide.size[2])).layout
    row_of, column_of = np.divmod(positions, shape[2])
    rows, begins = np.unique(row_of, return_index=True)
    ends = np.append(begins[1:], len(positions))

    def task(number: int) -> None:
        some = slice(begins[number], ends[number])
        row, columns, distances = int(rows[number]), column_of[some], np.empty(members)
        nearest_along_motion(
            guide.flat, layout, shape, reaches, frame, row, columns, distances, found[some]
        )

    run_tasks(task, len(rows), n_threads)
    return found


def _add_groups(window: Iterable[_Pending], number: int, n_threads: int) -> None:
    """Add the patches of the groups of one frame to the sums of all frames of the window."""
    own = list(window)[number]
    if own.frame.sigma == 0.0:  # nothing to filter
        own.total += own.frame.noisy
        own.weight += 1.0
        return
    first = max(number - FRAMES, 0)
    some = list(window)[first : number + FRAMES + 1]
    dtype = some[0].frame.noisy.dtype
    height, width, _ = some[0].frame.noisy.shape
    size = (1, min(_SIDE, height), min(_SIDE, width))
    noisy, guide = (
        PatchGrid(np.stack(pixels, dtype=dtype)[None], size)
        for pixels in zip(*((one.frame.noisy, one.frame.guide) for one in some), strict=True)
    )
    groups = similar_in_frames(guide, number - first, _GROUP, n_threads)
    average = filter_groups(noisy, guide, groups, own.frame.sigma, n_threads)
    for pending, mean, weight in zip(some, average.image(), average.weight, strict=True):
        pending.total += weight * mean
        pending.weight += weight


def filter_groups(
    noisy: PatchGrid, guide: PatchGrid, groups: Array, sigma: float, n_threads: int
) -> PatchAverage:
    """Average the patches of groups, each filtered by the covariance of its group in the guide.

    ``min_A ‖Y − AX‖² + n σ²‖A‖²`` for the n noisy patches Y of a group and those of the guide, X,
    without their mean color. Groups weigh more the fewer degrees of freedom they have.
    """
    average = PatchAverage(noisy.pixels.shape[1:], noisy.size)
    for begin in range(0, len(groups), _AT_ONCE):
        add_filtered(average, noisy, guide, groups[begin : begin + _AT_ONCE], sigma, n_threads)
    return average
