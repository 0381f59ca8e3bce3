"""Inpainting: sparse codes of the known pixels of patches predict the missing ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import numpy as np

from smalto.checks import Array, as_dictionary, check_finite_number, check_integer
from smalto.coders import Lasso
from smalto.image.checks import as_mask, axes_told, check_patch_size
from smalto.image.damaged_picture import DamagedPicture
from smalto.image.fixed_atoms import cosine_atoms
from smalto.image.patch_source import PatchSource
from smalto.image.picture import as_picture, mirror
from smalto.image.smooth_part import smooth_part
from smalto.kernels.ahead import expecting
from smalto.learners import Online
from smalto.learning import learn
from smalto.learning.callbacks.base import CallbackLike
from smalto.threads import resolve_threads
from smalto.warn import without_warnings

_BATCH = 1024  # patches per learning step
_EPOCHS = 8  # passes over the patches, at most: small pictures have few
_ENOUGH = 20  # undamaged patches per atom, to learn from these alone
_LARGE = 1 << 17  # pixels above which the default stride is 2
_ROUGH = 4  # stride, at least, of fillings that only serve to learn atoms
_PENALTY = 0.16  # lam for details of standard deviation 1 if all of them are known
_LEARNING_PENALTY = 4.0  # lam in learning, relative to that in filling ...
_UNDAMAGED_PENALTY = 8.0  # ... and if undamaged patches are enough to learn from


def inpaint(
    image: Any,
    mask: Any = None,
    *,
    channel_axis: int | None = None,
    D: Any = None,
    patch_size: int | tuple[int, ...] | None = None,
    n_atoms: int = 256,
    max_steps: int = 300,
    n_rounds: int = 4,
    lam: float | None = None,
    stride: int | None = None,
    callbacks: Iterable[CallbackLike] = (),
    n_threads: int | None = None,
    random_state: Any = None,
) -> Array:
    """Fill in the missing pixels of a picture.

    The picture is split into a smooth part (local means, after filling the missing pixels with
    least curvature) and details. Every patch x of the details that has missing pixels is centered
    and coded as ``min_α ½‖M(x − αD)‖² + lam ‖α‖₁``, where M selects the known pixels. A missing
    pixel becomes the mean of the patches αD that cover it plus the smooth part; known pixels do
    not change. Holes larger than a patch are filled from the border inwards.

    The dictionary D is learned from the undamaged patches. If there are too few, the picture is
    filled with cosines for atoms first. Then, in each round, learning goes on with all patches of
    the filled picture, and the missing pixels are filled again from the known ones.

    Parameters
    ----------
    image : array (height, width), or with a channel axis
        Unsigned integers or floats; or a volume (depth, height, width), or a series (length,). Values of missing pixels do not matter and may be NaN. A
        picture smaller than a patch is continued by its mirror image.
    mask : array of bool (height, width), or of the shape of the picture, optional
        True where a pixel is missing. A pixel is missing if any of its channels is. Pixels that are
        masked in a NumPy masked array are missing, too.
    channel_axis : int, optional
        The axis of the channels; None for a gray picture.
    D : array (k, m), optional
        Dictionary to use; constant atoms are added to it. By default it is learned from the
        picture.
    patch_size : int or tuple of int, optional
        Height and width of a patch, 12 by default; 5 for volumes, and 64 for series.
    n_atoms : int, default 256
        Number of atoms to learn.
    max_steps : int, default 300
        Maximum number of learning steps, of 1024 patches each, in all rounds together; half as many
        if undamaged patches are enough to learn from. Small pictures take fewer: a round learns
        from each patch at most 8 times.
    n_rounds : int, default 4
        Number of rounds, if there are too few undamaged patches.
    lam : float, optional
        Penalty of the codes. By default 0.16 times the standard deviation of the known details
        (averaged over channels), divided by the share of known pixels: small, so that codes fit
        the known pixels, but larger where few pixels must determine many coefficients.
    stride : int, optional
        Code only every ``stride``-th patch in both directions: faster, but less accurate. By
        default 1, and 2 for pictures of more than 2¹⁷ pixels, such as 512 × 512.
    callbacks : iterable of callables
        Called after every learning step, see `learn`.
    n_threads : int, optional
        Number of threads; all available cores by default. It does not affect the result.
    random_state : int, Generator, RandomState or None, default None
        Seed for the choice of training patches. Pass an integer for reproducible results.

    Returns
    -------
    array
        The whole picture, with the shape and dtype of ``image``; integers are rounded.

    See Also
    --------
    denoise : For noise.
    text_mask : A mask to try it with.

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
    >>> damaged = np.where(mask, np.nan, clean)
    >>> restored = inpaint(damaged, mask, patch_size=8, n_atoms=32, max_steps=20, random_state=0)
    >>> bool(np.abs(restored - clean).max() < 0.2)
    True
    """
    threads = resolve_threads(n_threads)
    missing = _as_missing(mask, image, channel_axis)
    picture = as_picture(image, channel_axis, mask=missing, axes=axes_told(patch_size))
    if patch_size is None:
        patch_size = {1: 64, 2: 12}.get(picture.axes, 5)
    size = check_patch_size(patch_size, picture.axes)
    n_atoms = check_integer("n_atoms", n_atoms)
    max_steps = check_integer("max_steps", max_steps, low=0)
    n_rounds = check_integer("n_rounds", n_rounds)
    if stride is None:
        stride = 2 if missing.size > _LARGE else 1
    stride = check_integer("stride", stride)
    if lam is not None:
        lam = check_finite_number("lam", lam, low=0.0)
    if D is not None:
        m = math.prod(size) * picture.pixels.shape[-1]
        D = as_dictionary(D, m, picture.pixels.dtype)
    if missing.all():
        message = f"all of the {missing.size} pixels are masked: nothing of the picture is known"
        raise ValueError(message)
    if not missing.any():
        return np.array(np.ma.getdata(image))
    picture, missing = picture.mirrored(size), mirror(missing, size)

    smooth = smooth_part(picture.pixels, missing, threads)
    details = np.where(missing[..., None], 0, picture.pixels - smooth).astype(smooth.dtype)
    smooth = smooth[missing]
    chosen = lam is not None
    lam = _default_lam(details, missing) if lam is None else lam
    damaged = DamagedPicture(details, missing, size, Lasso(lam), threads)

    def learn_dictionary(
        source: PatchSource, first: Array | None, shares: int, penalty: float = _LEARNING_PENALTY
    ) -> Array:
        count = min(n_atoms, source.n_rows)
        with (
            nullcontext() if chosen else without_warnings("every code is zero")
        ):  # no lam to change
            return learn(
                source,
                count,
                Lasso(penalty * lam),
                learner=Online(batch_size=_BATCH),
                init=first if first is not None and len(first) == count else None,
                max_steps=-(-max_steps // shares),
                max_epochs=_EPOCHS,
                callbacks=callbacks,
                n_threads=threads,
                random_state=random_state,
            ).D

    with expecting("lasso", "L2Ball", dtype=picture.pixels.dtype):
        undamaged = damaged.undamaged_patches() if D is None else None
        if undamaged is not None and undamaged.n_rows >= _ENOUGH * n_atoms:
            D = learn_dictionary(undamaged, None, 2, _UNDAMAGED_PENALTY)
        if D is not None:
            filled = damaged.fill(D, stride)
        else:
            filled = _fill_in_rounds(damaged, learn_dictionary, n_rounds, stride)
    whole = picture.pixels.copy()
    whole[missing] = smooth + filled[missing]
    return picture.convert_back(whole)


def _as_missing(mask: Any, image: Any, channel_axis: int | None) -> Array:
    """Return the mask (height, width) of a picture with these axes."""
    own = np.ma.getmaskarray(image) if np.ma.isMaskedArray(image) else None
    if mask is None and own is None:
        message = "pass mask, True where a pixel is missing, or a masked array"
        raise TypeError(message)
    if own is not None:
        parts = [part for part in (own, mask) if part is not None]
        missing = [_as_missing(part, np.ma.getdata(image), channel_axis) for part in parts]
        return np.asarray(np.logical_or.reduce(missing))
    shape = np.shape(image)
    if channel_axis is None or not -len(shape) <= channel_axis < len(shape):
        return as_mask(mask, shape, 1)
    if np.shape(mask) == shape:
        mask = np.moveaxis(np.asarray(mask), channel_axis, -1)
    *sides, channels = np.moveaxis(np.asarray(image), channel_axis, -1).shape
    return as_mask(mask, sides, channels)


def _default_lam(details: Array, missing: Array) -> float:
    """The penalty for details of this size, of which this many are known."""
    channels = np.moveaxis(details, -1, 0)
    deviation = float(np.mean([channel[~missing].std() for channel in channels]))
    return _PENALTY * deviation / (1.0 - float(missing.mean()))


def _fill_in_rounds(
    damaged: DamagedPicture,
    learn_dictionary: Callable[[PatchSource, Array | None, int], Array],
    n_rounds: int,
    stride: int,
) -> Array:
    """Fill with cosines, then repeatedly with atoms learned from the filled picture."""
    rough = max(stride, min(_ROUGH, *damaged.size))
    channels, dtype = damaged.pixels.shape[-1], damaged.pixels.dtype
    filled = damaged.fill(cosine_atoms(damaged.size, channels, dtype=dtype), rough)
    D = None
    for i in range(n_rounds):
        source = damaged.patches_of(filled)
        if source is None:  # a picture of a single color
            break
        D = learn_dictionary(source, D, n_rounds)
        filled = damaged.fill(D, stride if i == n_rounds - 1 else rough)
    return filled
