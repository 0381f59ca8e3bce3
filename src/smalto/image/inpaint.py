"""Inpainting: sparse codes of what is known of a patch say what is missing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from smalto.checks import Array, as_dictionary, check_integer, check_number
from smalto.coders import Lasso
from smalto.coders.base import Coder
from smalto.coders.coding import code_rows, prepare
from smalto.coders.signals import Signals
from smalto.image.atoms import constant_atoms, cosine_atoms
from smalto.image.coding import compose
from smalto.image.frames import as_frame
from smalto.image.overlap import PatchAverage
from smalto.image.patches import NoPatchError, PatchSource
from smalto.image.pictures import as_mask, check_fits, check_size
from smalto.image.smooth import smooth_part
from smalto.image.stack import Stack
from smalto.kernels.image.patch_gathering import count_missing, gather_known
from smalto.learners import Online
from smalto.learning import learn
from smalto.learning.callbacks.base import CallbackLike
from smalto.threads import resolve_threads, run_tasks, single_threaded_blas

_AT_ONCE = 1 << 13  # patches held at a time
_TASK = 512  # patches cut as one task
_BATCH = 1024  # patches in a step of learning
_PLENTY = 20  # undamaged patches per atom are enough to learn from
_LEAST = 0.4  # the least share of known pixels, of the share in the whole picture, to code a patch
_LARGE = 2 << 20  # pixels in a picture of which not every patch is coded
_ROUGH = 3  # the stride of fillings that only atoms are learned from, at least
_PRICE = 0.16  # of codes, for details of standard deviation 1 of which all are known
_COARSE = 4.0  # how much sparser codes are in learning than in filling


def inpaint(
    image: Any,
    mask: Any,
    *,
    channel_axis: int | None = None,
    dictionary: Any = None,
    patch_size: int | tuple[int, int] = 12,
    n_atoms: int = 256,
    n_steps: int = 300,
    n_rounds: int = 3,
    lam: float | None = None,
    stride: int | None = None,
    callbacks: Iterable[CallbackLike] = (),
    n_threads: int | None = None,
    random_state: Any = 0,
) -> Array:
    """Fill in the missing pixels of a picture.

    First they are filled smoothly (with the least curvature), and local means of the result are
    taken away from the picture: what is left is its detail. Every patch x of it that holds missing
    pixels, its mean taken away, is coded as ``min_α ½‖M(x − αD)‖² + lam ‖α‖₁``, where M leaves the
    known pixels. A missing pixel becomes the mean of what all the patches αD that cover it say, and
    the local mean; known pixels stay as they are. The dictionary D is learned from the undamaged
    patches. Where there are too few, the picture is first filled with cosines for atoms; then
    atoms are learned from all patches of the filled picture and it is filled anew from what is
    known, in turns. Holes larger than a patch are filled from the border inwards.

    Parameters
    ----------
    image : array (height, width), or with an axis of channels
        Unsigned integers or floats. What missing pixels hold (NaN, say) does not matter.
    mask : array of bool (height, width), or of the shape of the picture
        True where a pixel is missing; of three channels, one is enough.
    channel_axis : int, optional
        The axis of the channels; None for a grey picture.
    dictionary : array (k, m), optional
        Atoms to use as they are (constant ones are added), nothing is learned.
    patch_size : int or (int, int), default 12
        Height and width of a patch.
    n_atoms : int, default 256
        How many atoms are learned.
    n_steps : int, default 300
        How many steps of 1 024 patches learning takes, in each round.
    n_rounds : int, default 3
        How often atoms are learned from the filled picture, where undamaged patches are few.
    lam : float, optional
        The price of the codes. By default 0.16 times the standard deviation of the known details
        (of each channel): small, so that known pixels are met; divided by the share of pixels that
        are known, for few of them cannot tell many coefficients.
    stride : int, optional
        Code only every so many patches in both directions: faster, somewhat worse. By default 1,
        and 2 in pictures of more than two megapixels.
    callbacks : iterable of callables
        Called after every step of learning, see `learn`.
    n_threads : int, optional
        Threads to use; every available core by default. The result does not depend on it.
    random_state : int, Generator or RandomState, default 0
        Decides which patches are learned from.

    Returns
    -------
    array
        The whole picture, in the shape and dtype of ``image``; integers are rounded.

    References
    ----------
    Mairal, Elad, Sapiro: Sparse representation for color image restoration. IEEE Transactions
    on Image Processing 17, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.image import inpaint
    >>> clean = np.sin(np.arange(40) / 3)[:, None] * np.cos(np.arange(50) / 5)
    >>> mask = np.random.default_rng(0).random(clean.shape) < 0.3
    >>> restored = inpaint(np.where(mask, np.nan, clean), mask, patch_size=8, n_atoms=32, n_steps=20)
    >>> bool(np.abs(restored - clean).max() < 0.2)
    True
    """
    threads = resolve_threads(n_threads)
    given = np.asarray(image)
    axes = given.shape
    if channel_axis is not None and given.ndim == 3:
        axes = np.moveaxis(given, channel_axis, 2).shape
        if np.shape(mask) == given.shape and given.ndim == 3:
            mask = np.moveaxis(np.asarray(mask), channel_axis, 2)
    missing = as_mask(mask, axes)
    frame = as_frame(image, channel_axis, mask=missing)
    size = check_size(patch_size)
    check_fits(size, frame.pixels.shape, "image")
    stride = (2 if missing.size > _LARGE else 1) if stride is None else stride
    stride = check_integer("stride", stride)
    n_atoms = check_integer("n_atoms", n_atoms)
    n_steps = check_integer("n_steps", n_steps, low=0)
    n_rounds = check_integer("n_rounds", n_rounds)
    if missing.all():
        message = f"all of the {missing.size} pixels are masked: nothing is known of the picture"
        raise ValueError(message)
    if lam is not None:
        lam = check_number("lam", lam, low=0.0)
    m = size[0] * size[1] * frame.pixels.shape[2]
    D = None
    if dictionary is not None:
        D = as_dictionary(dictionary, m, frame.pixels.dtype, name="dictionary")
    if not missing.any():
        return given.copy()
    details, smooth = _split(frame.pixels, missing)
    if lam is None:
        channels = np.moveaxis(details, 2, 0)
        deviation = float(np.mean([channel[~missing].std() for channel in channels]))
        lam = _PRICE * deviation / (1.0 - float(missing.mean()))
    job = _Job(details, missing, size, lam, threads)

    def learned(source: PatchSource) -> Array:
        return learn(
            source, min(n_atoms, source.n_rows), Lasso(_COARSE * lam),
            learner=Online(batch_size=_BATCH), max_steps=n_steps, callbacks=callbacks,
            n_threads=threads, random_state=random_state,
        ).D  # fmt: skip

    if D is None:
        source = job.undamaged()
        if source is not None and source.n_rows >= _PLENTY * n_atoms:
            D = learned(source)
    if D is not None:
        filled = job.filled(D, stride)
    else:
        rough = max(stride, min(_ROUGH, *size))
        filled = job.filled(cosine_atoms(size, frame.pixels.shape[2], frame.pixels.dtype), rough)
        for i in range(n_rounds):
            source = job.all_of(filled)
            if source is None:  # nothing but one colour
                break
            filled = job.filled(learned(source), stride if i == n_rounds - 1 else rough)
    whole = frame.pixels.copy()
    whole[missing] = smooth + filled[missing]
    return frame.like(whole)


def _split(pixels: Array, missing: Array) -> tuple[Array, Array]:
    """The details of a picture, zero where it is missing, and its smooth part there (n, channels)."""
    smooth = smooth_part(pixels, missing)
    details = np.where(missing[:, :, None], 0, pixels - smooth).astype(pixels.dtype)
    return details, smooth[missing]


class _Job:
    """A damaged picture, and how it is filled."""

    def __init__(
        self,
        pixels: Array,
        mask: Array,
        size: tuple[int, int],
        lam: float,
        n_threads: int,
    ) -> None:
        self.mask, self.size, self.threads = mask, size, n_threads
        self.coder = Lasso(lam)
        self.pixels = pixels

    def undamaged(self) -> PatchSource | None:
        """All whole patches, if there are any that are not constant."""
        return self._source(self.pixels, self.mask)

    def all_of(self, pixels: Array) -> PatchSource | None:
        """All patches of a picture, if there are any that are not constant."""
        return self._source(pixels, None)

    def _source(self, pixels: Array, mask: Array | None) -> PatchSource | None:
        stack = Stack(np.ascontiguousarray(pixels)[None], self.size)
        try:
            return PatchSource.of_stack(
                stack, 0.0, mask=mask, skip_constant=True, by_channel=True, n_threads=self.threads
            )
        except NoPatchError:
            return None

    def filled(self, D: Array, stride: int) -> Array:
        """The picture with its missing pixels filled, from the border of large holes inwards."""
        D = np.vstack([D, constant_atoms(self.size, self.pixels.shape[2], D.dtype)])
        mask, pixels = self.mask.copy(), self.pixels.copy()
        share = _LEAST * (1.0 - mask.mean())
        area = self.size[0] * self.size[1]
        while mask.any():
            stack = Stack(pixels[None], self.size)
            least = max(1, int(share * area))
            places = damaged_places(stack, mask, least, stride)
            if not len(places) and least > 1:
                share *= 0.5
                continue
            if not len(places):
                places = damaged_places(stack, mask, 1, 1)
            if not len(places):  # a missing line, say, and patches of a single line
                message = (
                    f"{np.count_nonzero(mask)} missing pixels share no patch of {self.size[0]} x "
                    f"{self.size[1]} with a known one: take larger patches"
                )
                raise ValueError(message)
            average = average_of_known(stack, mask, D, self.coder, places, self.threads)
            done = mask & (average.weight[:, :, 0] > 0)
            pixels[done] = average.at(done)
            mask &= ~done
        return pixels


def damaged_places(stack: Stack, mask: Array, least: int, stride: int) -> Array:
    """Places of patches that hold a missing pixel and at least ``least`` known ones.

    With a stride, of those in every so many rows and columns of places, and the last ones.
    """
    width = stack.pixels.shape[2]
    lines, columns = stack.grid
    area = stack.size[0] * stack.size[1]
    marks = np.ascontiguousarray(mask).view(np.uint8).reshape(-1)
    found = []
    count, sums = np.empty(columns, np.int32), np.empty(width, np.int32)
    chosen = np.arange(columns) % stride == 0
    chosen[-1] = True
    for row in range(lines):
        if row % stride and row != lines - 1:
            continue
        count_missing(marks, row * width, width, *stack.size, sums, count)
        here = np.flatnonzero((count > 0) & (area - count >= least) & chosen)
        found.append(row * columns + here)
    return np.concatenate(found)


def average_of_known(
    stack: Stack, mask: Array, D: Array, coder: Coder, places: Array, n_threads: int
) -> PatchAverage:
    """The mean of what the codes of the damaged patches at these places say of every pixel."""
    average = PatchAverage(stack.pixels.shape[1:], stack.size)
    with single_threaded_blas():
        prepared = prepare(D, coder, n_threads)
        for begin in range(0, len(places), _AT_ONCE):
            _, rows, columns = stack.corner(places[begin : begin + _AT_ONCE])
            corners = stack.offsets(0, rows, columns)
            X, means, missing = _cut_known(stack, mask, corners, D.dtype, n_threads)
            codes = code_rows(Signals(X, missing), prepared, None, n_threads, measured=False).codes
            compose(codes, D, X, n_threads)
            average.add(X, rows, columns, means=means)
    return average


def _cut_known(
    stack: Stack, mask: Array, corners: Array, dtype: np.dtype[Any], n_threads: int
) -> tuple[Array, Array, Array]:
    """Centred patches with zeros where pixels are missing, their means, and what is missing."""
    span = stack.size[1] * stack.channels
    X = np.empty((len(corners), stack.size[0] * span), dtype)
    means, missing = np.empty((len(corners), stack.channels)), np.empty(X.shape, np.bool_)
    marks = np.ascontiguousarray(mask).view(np.uint8).reshape(-1)

    def task(number: int) -> None:
        some = slice(number * _TASK, (number + 1) * _TASK)
        gather_known(
            stack.flat, marks, corners[some], stack.line, stack.size[0], span, stack.channels, 1.0,
            stack.channels, False, 0.0, X[some], means[some], missing[some],
        )  # fmt: skip

    run_tasks(task, -(-len(corners) // _TASK), n_threads)
    return X, means, missing
