"""Inpainting: the known pixels of patches predict the missing ones."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import ndimage

from smalto.checks import Array, as_dictionary, as_marks, check_finite_number, check_integer
from smalto.image.checks import as_mask, axes_told, check_patch_size
from smalto.image.coded_filling import Codes
from smalto.image.effort import chosen_level
from smalto.image.filling_effort import LEVELS
from smalto.image.joint_filling import fill_jointly
from smalto.image.picture import as_picture, mirror
from smalto.image.smooth_part import smooth_filling
from smalto.learning.callbacks.base import CallbackLike
from smalto.threads import resolve_threads
from smalto.warn import warn

_LARGE = 1 << 17  # pixels above which the default stride is 2
_DEEP = 16  # pixels between a missing one and all known ones, above which this is warned of


def inpaint(
    image: Any,
    mask: Any = None,
    *,
    channel_axis: int | None = None,
    effort: int = 1,
    D: Any = None,
    patch_size: int | tuple[int, ...] | None = None,
    n_atoms: int | None = None,
    max_steps: int | None = None,
    n_rounds: int | None = None,
    lam: float | None = None,
    stride: int | None = None,
    callbacks: Iterable[CallbackLike] = (),
    n_threads: int | None = None,
    random_state: Any = None,
) -> Array:
    """Fill in the missing pixels of a picture.

    The missing pixels are first filled with least curvature. Then, in a few rounds, groups of similar
    patches are formed; the missing pixels of a patch are predicted from its known ones by the mean
    and the covariance of its group (a ridge regression on the patches of the group), and become the
    mean of the predictions of all patches that cover them. Known pixels do not change.

    With ``effort=0`` sparse codes predict them, and with ``effort=2`` the rounds begin with these.
    The picture is split into a smooth part (local means of the filling with least curvature) and
    details. Every patch x of the details that has missing pixels is centered and coded as
    ``min_α ½‖M(x − αD)‖² + lam ‖α‖₁``, where M selects the known pixels; a missing pixel becomes the
    mean of the patches αD that cover it plus the smooth part. The dictionary D is learned from the
    undamaged patches. If there are too few, the picture is filled with cosines for atoms first.
    Then, in each round, learning goes on with all patches of the filled picture, and the missing
    pixels are filled again from the known ones.

    Both are for pixels that are missing here and there, under text or scratches. Far inside of
    large holes nothing can be predicted, and colors are only continued, which is warned of.

    Parameters
    ----------
    image : array (height, width), or with a channel axis
        Integers or floats; or a volume (depth, height, width), or a series (length,).
        Values of missing pixels do not matter and may be NaN. A picture smaller than a patch is
        continued by its mirror image.
    mask : array of bool (height, width), or of the shape of the picture, optional
        True where a pixel is missing; integers, such as 0 and 255, count as booleans. A pixel is
        missing if any of its channels is. Pixels that are masked in a NumPy masked array are
        missing, too. By default those that are NaN.
    channel_axis : int, optional
        The axis of the channels; None for a gray picture.
    effort : int, default 1
        Quality against time:

        - 0: sparse codes of single patches, over learned atoms: slower than 1, and seldom better;
        - 1: groups of similar patches, and no learning, unless one of the parameters of codes below
          is given: then the rounds begin with them;
        - 2: sparse codes, then more and larger groups.

        It is for pictures: volumes and series are filled by sparse codes.
    D : array (k, m), optional
        Dictionary to use for codes; constant atoms are added to it. By default it is learned from
        the picture.
    patch_size : int or tuple of int, optional
        Height and width of a patch that is coded, 12 by default; 5 for volumes, and 64 for series.
    n_atoms : int, optional
        Number of atoms to learn, 256 by default.
    max_steps : int, optional
        Maximum number of learning steps, of 1024 patches each, in all rounds together, 300 by
        default; half as many if undamaged patches are enough to learn from. Small pictures take
        fewer: a round learns from each patch at most 8 times.
    n_rounds : int, optional
        Number of rounds of learning, if there are too few undamaged patches; 4 by default.
    lam : float, optional
        Penalty of the codes. By default 0.16 times the standard deviation of the known details
        (averaged over channels), divided by the share of known pixels: small, so that codes fit
        the known pixels, but larger where few pixels must determine many coefficients.
    stride : int, optional
        Code only every ``stride``-th patch in both directions: faster, but less accurate. By
        default 1, and 2 for pictures of more than 2¹⁷ pixels, such as 512 × 512.
    callbacks : iterable of callables
        Called after every learning step, see `learn`; never where nothing is learned.
    n_threads : int, optional
        Number of threads; all available cores by default. It does not affect the result.
    random_state : int, Generator, RandomState or None, default None
        Seed for the choice of training patches. Pass an integer for reproducible results. Without
        learning, as by default, nothing is random.

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

    Yu, Sapiro, Mallat: Solving inverse problems with piecewise linear estimators: from Gaussian
    mixture models to structured sparsity. IEEE Transactions on Image Processing 21, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.image import inpaint
    >>> clean = np.sin(np.arange(40) / 3)[:, None] * np.cos(np.arange(50) / 5)
    >>> mask = np.random.default_rng(0).random(clean.shape) < 0.3
    >>> damaged = np.where(mask, np.nan, clean)
    >>> restored = inpaint(damaged, mask)
    >>> bool(np.abs(restored - clean).max() < 0.2)
    True
    """
    threads = resolve_threads(n_threads)
    missing = as_missing(mask, image, channel_axis)
    picture = as_picture(image, channel_axis, mask=missing, axes=axes_told(patch_size))
    level = chosen_level(LEVELS, effort, picture.axes)
    chosen = [D, patch_size, n_atoms, max_steps, n_rounds, lam, stride]
    if patch_size is None:
        patch_size = {1: 64, 2: 12}.get(picture.axes, 5)
    size = check_patch_size(patch_size, picture.axes)
    if stride is None:
        stride = 2 if missing.size > _LARGE else 1
    codes = Codes(
        n_atoms=check_integer("n_atoms", 256 if n_atoms is None else n_atoms),
        max_steps=check_integer("max_steps", 300 if max_steps is None else max_steps, low=0),
        n_rounds=check_integer("n_rounds", 4 if n_rounds is None else n_rounds),
        lam=None if lam is None else check_finite_number("lam", lam, low=0.0),
        stride=check_integer("stride", stride),
        callbacks=callbacks,
        n_threads=threads,
        random_state=random_state,
    )
    if D is not None:
        m = math.prod(size) * picture.pixels.shape[-1]
        D = as_dictionary(D, m, picture.pixels.dtype)
    if missing.all():
        message = f"all of the {missing.size} pixels are masked: nothing of the picture is known"
        raise ValueError(message)
    if not missing.any():
        return np.array(np.ma.getdata(image))
    if picture.axes == 2:
        _warn_of_holes(missing)
    if level.codes or any(value is not None for value in chosen):
        picture, missing = picture.mirrored(size), mirror(missing, size)
        whole = codes.fill(picture.pixels, missing, size, D)
    else:
        whole = smooth_filling(picture.pixels, missing, threads)
    if level.rounds:
        whole = fill_jointly(whole, missing, level.rounds, threads)
    return picture.convert_back(whole)


def _warn_of_holes(missing: Array) -> None:
    """Warn if pixels are far from all known ones."""
    depth = int(ndimage.distance_transform_cdt(missing, "chessboard").max())
    if depth > _DEEP:
        warn(
            f"a missing pixel is {depth} pixels away from all known ones: holes as large as that "
            "are filled, but only continue the colors around them"
        )


def as_missing(mask: Any, image: Any, channel_axis: int | None) -> Array:
    """Return the mask (height, width) of a picture with these axes."""
    own = np.ma.getmaskarray(image) if np.ma.isMaskedArray(image) else None
    if mask is None and own is None:
        mask = np.isnan(image) if np.asarray(image).dtype.kind == "f" else np.False_
        if not mask.any():
            message = "pass mask, True where a pixel is missing, or a masked array, or one with NaN"
            raise TypeError(message)
    if own is not None:
        parts = [part for part in (own, mask) if part is not None]
        missing = [as_missing(part, np.ma.getdata(image), channel_axis) for part in parts]
        return np.asarray(np.logical_or.reduce(missing))
    mask, shape = as_marks(mask), np.shape(image)
    if channel_axis is None or not -len(shape) <= channel_axis < len(shape):
        _check_channels(np.shape(mask), shape)
        return as_mask(mask, shape, 1)
    if np.shape(mask) == shape:
        mask = np.moveaxis(mask, channel_axis, -1)
    *sides, channels = np.moveaxis(np.asarray(image), channel_axis, -1).shape
    return as_mask(mask, sides, channels)


def _check_channels(marks: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Raise ValueError if a mask fits its picture but for an axis of channels that was not given."""
    axis = {shape[:-1]: -1, shape[1:]: 0}.get(marks)
    if len(shape) == 3 and axis is not None:
        message = (
            f"mask must have the shape of its picture, {shape}, got {marks}; for a color picture pass "
            f"channel_axis={axis}"
        )
        raise ValueError(message)
