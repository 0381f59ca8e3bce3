"""Inpainting of video: similar patches of several frames tell what is missing in each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np
import scipy
from scipy import ndimage

from smalto.checks import Array, as_marks
from smalto.image.averaging import PatchAverage
from smalto.image.damaged_picture import damaged_positions
from smalto.image.inpaint import as_missing
from smalto.image.joint_filling import (
    RELAXATION,
    Round,
    fill_groups_of,
    fill_jointly,
    parts_of,
    size_of_details,
    trust_in,
)
from smalto.image.moving_patches import similar_along_motion
from smalto.image.patch_grid import PatchGrid
from smalto.image.picture import Picture, as_picture
from smalto.image.smooth_part import smooth_filling
from smalto.threads import resolve_threads

FRAMES = 3  # before and after a frame that its groups reach into
REACHES = (8, 4)  # rows or columns: within a frame, and from where the motion leads in the others
ALONE = (Round(8, 6, 48, 0.6), Round(7, 5, 32, 0.15))  # rounds in single frames, at first
TOGETHER = (
    Round(9, 5, 24, 0.4),
    Round(9, 5, 24, 0.15),
    Round(9, 5, 24, 0.05),
    Round(9, 5, 24, 0.02),
)


def inpaint_video(
    frames: Iterable[Any],
    masks: Any = None,
    *,
    channel_axis: int | None = None,
    n_threads: int | None = None,
) -> Iterator[Array]:
    """Fill in the missing pixels of a stream of frames as they arrive.

    Every frame is first filled alone, as by `inpaint`; inside of holes, by what the nearest frames have
    at the same place. Then, in four rounds, groups of similar patches are formed that follow the
    motion over three frames before and after; the missing pixels of a patch are predicted from its
    known ones by the mean and the covariance of its group. Known pixels do not change.

    Frame t is ready when frame ``t + 12`` has arrived. Memory holds about as many frames, regardless
    of the length of the stream.

    Parameters
    ----------
    frames : iterable of arrays (height, width), or with a channel axis
        All of the same shape: integers or floats. Values of missing pixels do not matter
        and may be NaN.
    masks : iterable of arrays of bool (height, width), or one such array, optional
        True where a pixel is missing: a mask for each frame, or one for all of them. Masks may also
        have the shape of the frames: a pixel is missing if any of its channels is. Pixels that are
        masked in NumPy masked arrays are missing, too.
    channel_axis : int, optional
        The axis of the channels of a frame; None for gray frames.
    n_threads : int, optional
        Number of threads; all available cores by default. It does not affect the result.

    Yields
    ------
    array
        The whole frames, in order, with their shape and dtype; integers are rounded.

    See Also
    --------
    inpaint : For single pictures, and volumes.
    denoise_video : For noise.

    Notes
    -----
    All pixels of up to six consecutive frames may be missing. They then become a transition from the
    frame before to the one after, or one of these where there is no other.

    Inside of holes that are larger than a patch (9 × 9), a patch of which nothing is known becomes the
    mean of its group. If such holes move, `inpaint` of the frames as a volume may be better.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.image import inpaint_video
    >>> scene = np.sin(np.arange(40) / 2)[:, None] * np.cos(np.arange(60) / 3)
    >>> clean = [scene[:, t : t + 50] for t in range(4)]
    >>> rng = np.random.default_rng(0)
    >>> masks = [rng.random((40, 50)) < 0.5 for _ in clean]
    >>> damaged = (np.where(mask, np.nan, frame) for mask, frame in zip(masks, clean))
    >>> restored = list(inpaint_video(damaged, masks))
    >>> bool(np.abs(np.array(restored) - clean).max() < 0.2)
    True
    """
    threads = resolve_threads(n_threads)
    results = _with_transitions(_damaged(frames, masks, channel_axis, threads))
    for number, one in enumerate(TOGETHER):
        results = _improved(results, one, threads, first=number == 0)
    for frame in _with_transitions(results):
        yield frame.picture.convert_back(frame.filled)


@dataclass(frozen=True)
class _Frame:
    """A frame, which of its pixels (height, width) are missing, and all of them as estimated."""

    picture: Picture
    missing: Array
    filled: Array
    size: float  # of the known details


def _damaged(
    frames: Iterable[Any], masks: Any, channel_axis: int | None, n_threads: int
) -> Iterator[_Frame]:
    """Yield frames, each filled alone; as they are where nothing is known."""
    shape, marks = None, None
    for number, frame in enumerate(frames):
        what = f"frame {number}"
        if marks is None:
            marks = _one_per_frame(masks, np.shape(frame))
        try:
            missing = as_missing(next(marks), frame, channel_axis)
        except StopIteration:
            message = f"masks ended after {number}, but frames go on: pass one for each frame"
            raise ValueError(message) from None
        except (TypeError, ValueError) as error:
            message = f"{what}: {error}"
            raise type(error)(message) from None
        picture = as_picture(frame, channel_axis, what=what, mask=missing)
        pixels = picture.pixels
        if shape not in (None, pixels.shape):
            message = (
                f"{what} has shape {pixels.shape}, those before it {shape}: "
                "all frames must have the same shape"
            )
            raise ValueError(message)
        shape = pixels.shape
        if missing.all():
            yield _Frame(picture, missing, pixels, 0.0)
            continue
        if missing.any():
            pixels = smooth_filling(pixels, missing, n_threads)
            pixels = fill_jointly(pixels, missing, ALONE, n_threads)
        yield _Frame(picture, missing, pixels, size_of_details(pixels, missing))
    is_list = isinstance(masks, Sized) and not isinstance(marks, repeat)  # others may be endless
    if marks is not None and is_list and next(marks, None) is not None:
        message = f"there are more masks than frames, of which there are {number + 1}"
        raise ValueError(message)


def _one_per_frame(masks: Any, shape: tuple[int, ...]) -> Iterator[Any]:
    """An iterator over masks for frames of this shape."""
    if scipy.sparse.issparse(masks):
        masks = as_marks(masks)
    if masks is None or (
        isinstance(masks, np.ndarray) and (masks.ndim == 2 or masks.shape == shape)
    ):
        return repeat(masks)
    return iter(masks)


def _windows(frames: Iterable[_Frame]) -> Iterator[tuple[deque[_Frame], int]]:
    """Yield each frame as a place in a window: it and the frames before and after it."""
    window: deque[_Frame] = deque()
    place = 0

    def move_on() -> int:
        if place == FRAMES:
            window.popleft()
        return min(place + 1, FRAMES)

    for frame in frames:
        window.append(frame)
        if len(window) > place + FRAMES:
            yield window, place
            place = move_on()
    while place < len(window):
        yield window, place
        place = move_on()


def _with_transitions(frames: Iterable[_Frame]) -> Iterator[_Frame]:
    """Where nothing of a frame is known, go over from the frame before to the one after."""
    before: _Frame | None = None
    unknown: list[_Frame] = []
    for number, frame in enumerate(frames):
        if frame.missing.all():
            unknown.append(frame)
            if len(unknown) > 2 * FRAMES:
                message = (
                    f"nothing is known of frames {number - 2 * FRAMES} to {number}: at most "
                    f"{2 * FRAMES} such frames may follow each other"
                )
                raise ValueError(message)
            continue
        yield from _between(before, unknown, frame)
        yield frame
        before, unknown = frame, []
    if unknown and before is None:
        message = f"nothing is known of any of the {len(unknown)} frames"
        raise ValueError(message)
    yield from _between(before, unknown, before)


def _between(
    before: _Frame | None, unknown: list[_Frame], after: _Frame | None
) -> Iterator[_Frame]:
    """Yield unknown frames as means of those before and after them, of which one may be missing."""
    ends = [one.filled for one in (before or after, after or before) if one is not None]
    for i, frame in enumerate(unknown):
        share = (i + 1) / (len(unknown) + 1)
        filled = ends[0] + share * (ends[1] - ends[0])
        yield replace(frame, filled=filled.astype(frame.filled.dtype))


def _improved(
    frames: Iterable[_Frame], one: Round, n_threads: int, *, first: bool
) -> Iterator[_Frame]:
    """Yield the frames after one more round, each when `FRAMES` others have followed it."""
    for window, place in _windows(frames):
        missing = window[place].missing
        if missing.any() and not missing.all():
            if first:
                window[place] = _with_known_neighbors(window, place)
            window[place] = _fill(window, place, one, n_threads)  # the next frames see it
        yield window[place]


def _with_known_neighbors(window: deque[_Frame], place: int) -> _Frame:
    """Take pixels from the nearest frames in which they are known, unless next to a known one."""
    own = window[place]
    filled = own.filled.copy()
    wanted = ~ndimage.binary_dilation(~own.missing, np.ones((3, 3)))
    for distance in range(1, FRAMES + 1):
        total, count = np.zeros(filled.shape), np.zeros(wanted.shape)
        for other in (place - distance, place + distance):
            if 0 <= other < len(window):
                known = wanted & ~window[other].missing
                total[known] += window[other].filled[known]
                count += known
        found = count > 0
        filled[found] = total[found] / count[found][:, None]
        wanted &= ~found
    return replace(own, filled=filled)


def _fill(window: Iterable[_Frame], place: int, one: Round, n_threads: int) -> _Frame:
    """Predict the missing pixels of one frame of a window from groups in all of them."""
    frames = list(window)
    own = frames[place]
    size = max(frame.size for frame in frames)
    if size == 0.0:
        return own
    center = own.filled.mean(dtype=np.float64)
    stack = np.stack([frame.filled for frame in frames])
    missing = np.stack([frame.missing for frame in frames])
    pixels = np.ascontiguousarray((stack - center) / size, stack.dtype)  # details have size 1
    side = min(one.side, *own.missing.shape)
    grid = PatchGrid(pixels[None], (1, side, side))
    trust = trust_in(missing, pixels)
    average = PatchAverage(pixels.shape, grid.size)
    here = PatchGrid(pixels[place][None], (side, side))
    for positions in parts_of(damaged_positions(here, own.missing, 0, min(one.stride, side))):
        groups = similar_along_motion(grid, place, positions, one.members, REACHES, n_threads)
        fill_groups_of(grid, trust, groups, one.ridge, average, n_threads)
    missing[np.arange(len(frames)) != place] = False
    now = pixels[missing]
    now = now + RELAXATION * (average.at(missing) - now)
    filled = own.filled.copy()
    filled[own.missing] = center + size * now.astype(np.float64)
    return replace(own, filled=filled)
