"""All overlapping patches of pictures as a source of samples, never held all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from smalto.checks import Array, check_number
from smalto.image.pictures import check_pixels_finite, check_size
from smalto.image.stack import Stack, as_masks, as_stacks
from smalto.kernels.image.patch_gathering import (
    CONTRAST,
    HIGH,
    LOW,
    contrasts,
    count_missing,
    extremes,
    gather,
    gather_known,
)
from smalto.threads import resolve_threads, run_tasks

FLAT = 1e-6  # a patch is constant when its values differ by less than this part of the largest
_LINES = 64  # lines of places surveyed as one task


class NoPatchError(ValueError):
    """Pictures out of which no patch can be used."""

    def __init__(self, total: int, words: str) -> None:
        super().__init__(f"images have no usable patch: all {total} of them are {words}")


class PatchSource:
    """All overlapping patches of pictures, as rows to learn from, cut out as they are asked for.

    Row x is a patch, its pixels row by row, the channels of a pixel side by side; it becomes
    ``x − mean(x)`` and then ``x / ‖x‖``. Only the pictures are held (as they are: 8-bit ones take
    a byte per value), and one integer per patch where some patches are left out.

    Parameters
    ----------
    images : array, sequence of arrays, path or folder
        One picture or several of any sizes, (height, width) or (height, width, 3); a stack of
        four axes; picture files. Unsigned integers are divided by the largest value of their
        type; floats are kept as they are. Memory maps are read as patches are drawn.
    patch_size : int or (int, int)
        Height and width of a patch.
    mask : array of bool, or sequence of them (or of None), optional
        True where a pixel is missing or damaged, one array for each picture: patches that
        hold such a pixel are left out. What the pixels hold there (NaN, say) does not matter.
    min_known : float, default 1
        Keep patches with at least this share of known pixels (and at least one), with NaN where
        pixels are missing, for ``learn(..., missing="nan")``. Means and norms are then those of
        the known pixels; of the patches with holes none is left out for being constant.
    colour : bool, optional
        True keeps three channels, False takes the luminance; by default, whatever the pictures
        have (all the same).
    center : bool, default True
        Subtract the mean of the patch.
    by_channel : bool, default False
        Subtract the mean of each channel by itself.
    normalize : bool, default True
        Divide by the norm.
    skip_constant : bool, default True
        Leave out patches that have no direction: constant ones, or (without centring) zero.
    min_contrast : float, default 0
        Leave out patches whose pixels differ from the patch's mean colour by less than this,
        root mean square.
    dtype : dtype, default float32
        float32 or float64.
    n_threads : int, optional
        Threads that look for patches to leave out; every available core by default.

    Attributes
    ----------
    n_rows, n_features, dtype
        How many patches, how many numbers in each, of which type.
    patch_shape : tuple of int
        (height, width) or (height, width, 3), the shape of an atom learned from them.

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
        patch_size: int | tuple[int, int],
        *,
        mask: Any = None,
        min_known: float = 1.0,
        colour: bool | None = None,
        center: bool = True,
        by_channel: bool = False,
        normalize: bool = True,
        skip_constant: bool = True,
        min_contrast: float = 0.0,
        dtype: DTypeLike = np.float32,
        n_threads: int | None = None,
    ) -> None:
        stacks = as_stacks(images, colour, check_size(patch_size), check_dtype(dtype))
        masks = as_masks(mask, stacks)
        for number, (stack, marks) in enumerate(zip(stacks, masks, strict=True)):
            check_pixels_finite(stack.pixels, f"images[{number}]", marks)
        min_contrast = check_number("min_contrast", min_contrast, low=0.0)
        min_known = check_number("min_known", min_known, low=0.0, high=1.0)
        rule = _Rule(bool(skip_constant), bool(center), min_contrast, min_known)
        self._take(stacks, masks, rule, by_channel, normalize, check_dtype(dtype), n_threads)

    @classmethod
    def of_stack(
        cls,
        stack: Stack,
        min_contrast: float,
        *,
        mask: Array | None = None,
        skip_constant: bool = False,
        by_channel: bool,
        n_threads: int,
    ) -> PatchSource:
        """The centred patches of one picture of checked floats, with any number of channels."""
        source = cls.__new__(cls)
        rule = _Rule(skip_constant, True, min_contrast, 1.0)
        masks = [None if mask is None or not mask.any() else mask[None]]
        source._take([stack], masks, rule, by_channel, False, stack.pixels.dtype, n_threads)
        return source

    def _take(
        self,
        stacks: list[Stack],
        masks: list[Array | None],
        rule: _Rule,
        by_channel: bool,
        normalize: bool,
        dtype: np.dtype[Any],
        n_threads: int | None,
    ) -> None:
        self._stacks = stacks
        # Where patches with holes are kept, the masks are needed to cut them out.
        keep = rule.min_known < 1.0
        self._masks = [_flat_mask(marks) if keep else None for marks in masks]
        size, channels = stacks[0].size, stacks[0].channels
        self.dtype = dtype
        self.patch_shape: tuple[int, ...] = (*size, channels) if channels > 1 else size
        self.n_features = size[0] * size[1] * channels
        self._groups = (channels if by_channel else 1) if rule.center else 0
        self._normalize = bool(normalize)
        self._places: list[Array | None] = [
            _survey(stack, marks, rule, resolve_threads(n_threads))
            for stack, marks in zip(stacks, masks, strict=True)
        ]
        counts = [
            stack.n_places if places is None else len(places)
            for stack, places in zip(stacks, self._places, strict=True)
        ]
        self._ends = np.cumsum(counts)
        self.n_rows = int(self._ends[-1])
        if self.n_rows == 0:
            total = sum(stack.n_places for stack in stacks)
            masked = any(marks is not None for marks in masks)
            raise NoPatchError(total, rule.words(masked))

    def rows(self, numbers: Array) -> Array:
        """The patches with these numbers, centred and scaled as asked for, one per row."""
        return self.rows_and_means(numbers)[0]

    def rows_and_means(self, numbers: Array) -> tuple[Array, Array]:
        """The patches with these numbers, and what was subtracted from each (n, 1 or 3)."""
        numbers = self._check_numbers(numbers)
        out = np.empty((len(numbers), self.n_features), self.dtype)
        means = np.zeros((len(numbers), max(self._groups, 1)))
        if len(self._stacks) == 1:
            self._cut(0, numbers, out, means)
            return out, means
        owners = np.searchsorted(self._ends, numbers, side="right")
        by_owner = np.argsort(owners, kind="stable")
        ends = np.searchsorted(owners[by_owner], np.arange(len(self._stacks)), side="right")
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

    def places(self, numbers: Array) -> Array:
        """Where patches lie: (n, 3) integers, the picture's number and the upper left corner."""
        numbers = self._check_numbers(numbers)
        owners = np.searchsorted(self._ends, numbers, side="right")
        out = np.empty((len(numbers), 3), np.int64)
        pictures = np.cumsum([0] + [stack.frames for stack in self._stacks])
        for owner in np.unique(owners):
            mine = np.flatnonzero(owners == owner)
            first = self._ends[owner - 1] if owner else 0
            frame, row, column = self._stacks[owner].corner(self._of(owner, numbers[mine] - first))
            out[mine] = np.stack([pictures[owner] + frame, row, column], axis=1)
        return out

    def is_dull(self, numbers: Array, min_contrast: float = 0.0) -> Array:
        """Which patches with these numbers have no direction, or a contrast below this."""
        numbers = self._check_numbers(numbers)
        owners = np.searchsorted(self._ends, numbers, side="right")
        out = np.empty(len(numbers), np.bool_)
        for owner in np.unique(owners):
            mine = np.flatnonzero(owners == owner)
            first = self._ends[owner - 1] if owner else 0
            measures = self._stacks[owner].measures(self._of(owner, numbers[mine] - first))
            flat = is_flat(measures[:, LOW], measures[:, HIGH], self._groups > 0)
            out[mine] = flat | (measures[:, CONTRAST] < min_contrast**2)
        return out

    def _of(self, owner: int, numbers: Array) -> Array:
        """The places among all of a stack's that its usable patches with these numbers have."""
        places = self._places[owner]
        return numbers if places is None else np.asarray(places[numbers], np.int64)

    def _cut(self, owner: int, numbers: Array, out: Array, means: Array) -> None:
        stack = self._stacks[owner]
        corners = stack.offsets(*stack.corner(self._of(owner, numbers)))
        height, span = stack.size[0], stack.size[1] * stack.channels
        marks = self._masks[owner]
        if marks is None:
            gather(
                stack.flat, corners, stack.line, height, span, stack.scale, self._groups,
                self._normalize, out, means,
            )  # fmt: skip
        else:
            gather_known(
                stack.flat, marks, corners, stack.line, height, span, stack.channels, stack.scale,
                self._groups, self._normalize, np.nan, out, means, np.empty(out.shape, np.bool_),
            )  # fmt: skip

    def _check_numbers(self, numbers: Any) -> Array:
        numbers = np.asarray(numbers)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            message = f"numbers must be one-dimensional integers, got {numbers!r}"
            raise TypeError(message)
        if numbers.size and not (numbers.min() >= 0 and numbers.max() < self.n_rows):
            bad = numbers[(numbers < 0) | (numbers >= self.n_rows)][0]
            message = f"patches are numbered from 0 to {self.n_rows - 1}, asked for was {bad}"
            raise IndexError(message)
        return np.asarray(numbers, np.int64)


@dataclass(frozen=True)
class _Rule:
    """Which patches are left out."""

    skip_constant: bool
    center: bool
    min_contrast: float
    min_known: float

    def words(self, masked: bool) -> str:
        """What patches that are left out are."""
        words = [] if not masked else ["damaged" if self.min_known == 1.0 else "too damaged"]
        if self.skip_constant:
            words.append("constant" if self.center else "zero")
        if self.min_contrast > 0:
            words.append(f"of a contrast below {self.min_contrast:g}")
        return " or ".join(words)


def is_flat(low: Array, high: Array, center: bool) -> Array:
    """Which patches with these extremes have no direction."""
    largest = np.maximum(np.abs(low), np.abs(high))
    if not center:
        return np.asarray(largest == 0)
    return np.asarray(high - low <= FLAT * largest)


def check_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """float32 or float64."""
    out = np.dtype(dtype)
    if out not in (np.float32, np.float64):
        message = f"dtype must be float32 or float64, got {out}"
        raise ValueError(message)
    return out


def _survey(stack: Stack, mask: Array | None, rule: _Rule, n_threads: int) -> Array | None:
    """The places of a stack's usable patches, or None where all of them are."""
    if mask is None and not rule.skip_constant and rule.min_contrast == 0:
        return None
    lines, columns = stack.grid
    usable = np.empty((stack.frames, lines, columns), np.bool_)
    bands = -(-lines // _LINES)
    marks = _flat_mask(mask)

    def task(number: int) -> None:
        frame, band = divmod(number, bands)
        for row in range(band * _LINES, min((band + 1) * _LINES, lines)):
            usable[frame, row] = _usable_of_line(stack, marks, rule, frame, row)

    run_tasks(task, stack.frames * bands, n_threads)
    if usable.all():
        return None
    places = np.flatnonzero(usable)
    return places.astype(np.uint32) if usable.size <= 1 << 32 else places


def _flat_mask(mask: Array | None) -> Array | None:
    return None if mask is None else np.ascontiguousarray(mask).view(np.uint8).reshape(-1)


def _usable_of_line(stack: Stack, marks: Array | None, rule: _Rule, frame: int, row: int) -> Array:
    _, height, width, channels = stack.pixels.shape
    columns = stack.grid[1]
    begin = (frame * height + row) * stack.line
    out = np.zeros(columns, np.bool_)
    if rule.skip_constant:
        lows, highs = np.empty((2, width), stack.pixels.dtype)
        low, high = np.empty((2, columns), stack.pixels.dtype)
        extremes(stack.flat, begin, stack.line, *stack.size, channels, lows, highs, low, high)
        out |= is_flat(stack.scale * low, stack.scale * high, rule.center)
    if rule.min_contrast > 0:
        sums, squares = np.empty((2, width))
        contrast = np.empty(columns)
        contrasts(stack.flat, begin, stack.line, *stack.size, channels, sums, squares, contrast)
        out |= stack.scale**2 * contrast < rule.min_contrast**2
    if marks is not None:
        count = np.empty(columns, np.int32)
        begin = (frame * height + row) * width
        count_missing(marks, begin, width, *stack.size, np.empty(width, np.int32), count)
        if rule.min_known == 1.0:
            out |= count > 0
        else:
            # What a damaged patch holds besides its holes is looked at when it is drawn.
            pixels = stack.size[0] * stack.size[1]
            known = pixels - count
            out[count > 0] = False
            out |= (known < rule.min_known * pixels) | (known == 0)
    return ~out
