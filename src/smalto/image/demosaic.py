"""Demosaicking: colors from the one value that each pixel of a camera's sensor has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import ndimage

from smalto.checks import Array, check_integer
from smalto.coders import Lasso
from smalto.coders.coding import code_rows
from smalto.coders.preparing import prepare
from smalto.coders.signals import Signals
from smalto.image.averaging import PatchAverage
from smalto.image.checks import check_fits, check_patch_size, check_stride
from smalto.image.fixed_atoms import constant_atoms
from smalto.image.patch_coding import blocks, compose, cut
from smalto.image.patch_grid import PatchGrid
from smalto.image.patch_source import NoPatchError, PatchSource
from smalto.image.picture import as_picture
from smalto.learners import Online
from smalto.learning import learn
from smalto.learning.callbacks.base import CallbackLike
from smalto.threads import resolve_threads, single_threaded_blas

PATTERNS = ("RGGB", "BGGR", "GRBG", "GBRG")
_PENALTY = 0.005  # λ of the codes, as a share of the range of values
_LEARNING_PENALTY = 8.0  # times that for learning
_BATCH = 1024  # patches per learning step
_EPOCHS = 8  # passes over the patches in a round, at most
_WINDOW = 5  # pixels in which the direction of edges is looked for
_BORDER = 4  # pixels by which the values are continued, even: the pattern goes on


def demosaic(
    raw: Any,
    pattern: str = "RGGB",
    *,
    patch_size: int | tuple[int, int] = 8,
    n_atoms: int = 256,
    max_steps: int = 120,
    n_rounds: int = 2,
    stride: int = 2,
    callbacks: Iterable[CallbackLike] = (),
    n_threads: int | None = None,
    random_state: Any = None,
) -> Array:
    """Find all colors of a picture from a sensor under a Bayer mask.

    Each pixel has the value of one color; the other two are filled in as missing values of color
    patches. A first estimate goes along the edges. A dictionary D is learned from it, the known
    values of each patch are coded as ``min_α ½‖M(x − αD)‖² + λ‖α‖₁``, and each missing value is the
    mean of the patches αD that cover it; then once more, from the better estimate.

    Parameters
    ----------
    raw : array (height, width)
        Integers or floats, the values of the sensor.
    pattern : {"RGGB", "BGGR", "GRBG", "GBRG"}, default "RGGB"
        Colors of the upper left 2 x 2 pixels, row by row; in lower case, too.
    patch_size : int or (int, int), default 8
        Height and width of a patch.
    n_atoms : int, default 256
        Number of atoms to learn.
    max_steps : int, default 120
        Maximum number of learning steps of all rounds together, of 1024 patches each.
    n_rounds : int, default 2
        Number of times that atoms are learned and all patches coded.
    stride : int, default 2
        Code only every ``stride``-th patch in both directions.
    callbacks : iterable of callables
        Called after every learning step, see `learn`.
    n_threads : int, optional
        Number of threads; all available cores by default. It does not affect the result.
    random_state : int, Generator, RandomState or None, default None
        Seed for the choice of training patches. Pass an integer for reproducible results.

    Returns
    -------
    array (height, width, 3)
        Red, green and blue, with the dtype of ``raw``; the values that were known are as they were.

    See Also
    --------
    inpaint : For missing pixels.

    References
    ----------
    Mairal, Elad, Sapiro: Sparse representation for color image restoration. IEEE Transactions
    on Image Processing 17, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.image import demosaic
    >>> raw = np.tile(np.linspace(0.0, 1.0, 24), (20, 1))
    >>> color = demosaic(raw, "GRBG", n_atoms=8, max_steps=4, random_state=0)
    >>> color.shape, bool((color[::2, 1::2, 0] == raw[::2, 1::2]).all())
    ((20, 24, 3), True)
    """
    threads = resolve_threads(n_threads)
    colors_of_pixels = str(pattern).upper()
    if colors_of_pixels not in PATTERNS:
        message = f"pattern must be one of {', '.join(PATTERNS)}, got {pattern!r}"
        raise ValueError(message)
    _check_single(raw)
    picture = as_picture(raw, None, what="raw")
    values = picture.pixels[:, :, 0]
    size = check_patch_size(patch_size)
    check_fits((max(size[0], 8), max(size[1], 8)), values.shape, "raw")
    n_atoms, n_rounds = check_integer("n_atoms", n_atoms), check_integer("n_rounds", n_rounds)
    max_steps = check_integer("max_steps", max_steps, low=0)
    stride = check_stride(stride, size)
    known = bayer_mask(values.shape, colors_of_pixels)
    colors = np.where(known, values[:, :, None], 0).astype(values.dtype)
    estimate = along_edges(values, known)
    lam = _PENALTY * float(np.ptp(values))
    for _ in range(n_rounds if lam > 0.0 else 0):
        grid = PatchGrid(np.ascontiguousarray(estimate, values.dtype)[None], size)
        try:
            source = PatchSource.of_grid(grid, skip_constant=True, n_threads=threads)
        except NoPatchError:  # a picture of a single color
            break
        D = learn(
            source,
            min(n_atoms, source.n_rows),
            Lasso(_LEARNING_PENALTY * lam),
            learner=Online(batch_size=_BATCH),
            max_steps=-(-max_steps // n_rounds),
            max_epochs=_EPOCHS,
            callbacks=callbacks,
            n_threads=threads,
            random_state=random_state,
        ).D
        D = np.vstack([D, constant_atoms(size, 3, D.dtype)])
        estimate = np.where(
            known, colors, fill_colors(grid, colors, known, D, lam, stride, threads)
        )
    out = replace(picture, channel_axis=2, masked=None)
    return out.convert_back(estimate)


def _check_single(raw: Any) -> None:
    """Raise ValueError if pixels have several values already."""
    shape = np.shape(raw)
    if len(shape) == 3:
        message = (
            f"raw must have shape (height, width), one value for each pixel, got shape {shape}: "
            "there is nothing to find where pixels have all colors"
        )
        raise ValueError(message)


def bayer_mask(shape: tuple[int, ...], pattern: str) -> Array:
    """Which of the values (height, width, 3) of red, green and blue the sensor has."""
    known = np.zeros((*shape, 3), np.bool_)
    for place, color in enumerate(pattern):
        known[place // 2 :: 2, place % 2 :: 2, "RGB".index(color)] = True
    return known


def along_edges(values: Array, known: Array) -> Array:
    """A first estimate: green along the weaker gradient, then smooth differences from green.

    At red and blue pixels green is the mean of its two neighbors in a row or column, corrected by
    the curvature of the red or blue values; rows and columns weigh by how little they vary.
    """
    whole = np.pad(values.astype(np.float64), _BORDER, mode="reflect")
    greens, changes = [], []
    for axis in (1, 0):
        near = np.roll(whole, 1, axis), np.roll(whole, -1, axis)
        curvature = 2 * whole - np.roll(whole, 2, axis) - np.roll(whole, -2, axis)
        greens.append((near[0] + near[1]) / 2 + curvature / 4)
        change = np.abs(near[0] - near[1]) + np.abs(curvature)
        changes.append(ndimage.uniform_filter(change, _WINDOW) ** 2)
    total = changes[0] + changes[1]
    share = np.divide(changes[1], total, out=np.full(total.shape, 0.5), where=total > 0)
    inside = (slice(_BORDER, -_BORDER),) * 2
    mixed = (share * greens[0] + (1 - share) * greens[1])[inside]
    green = np.where(known[:, :, 1], values, mixed)
    out = np.repeat(green[:, :, None], 3, axis=2)
    for color in (0, 2):
        has = known[:, :, color]
        out[:, :, color] += _interpolate(np.where(has, values - green, 0.0), has)
        out[:, :, color][has] = values[has]
    return out


def _interpolate(values: Array, known: Array) -> Array:
    """Means of the known values among the neighbors of each pixel (bilinear)."""
    weights = np.outer([1.0, 2.0, 1.0], [1.0, 2.0, 1.0])
    total = ndimage.convolve(values, weights, mode="mirror")
    return np.asarray(total / ndimage.convolve(known.astype(np.float64), weights, mode="mirror"))


def fill_colors(
    guide: PatchGrid, colors: Array, known: Array, D: Array, lam: float, stride: int, n_threads: int
) -> Array:
    """Code the known values of each patch, without the means of the guide; average patches αD."""
    values, marks = (
        PatchGrid(np.ascontiguousarray(part, guide.pixels.dtype)[None], guide.size)
        for part in (colors, known)
    )
    average = PatchAverage(colors.shape, guide.size)
    with single_threaded_blas():
        prepared = prepare(D, Lasso(lam), n_threads)
        for corners in blocks(guide.strided(stride)):
            offsets = guide.offsets(0, *corners)
            _, means = cut(guide, offsets, D.dtype, n_threads)
            X, given = (
                cut(grid, offsets, D.dtype, n_threads, center=False)[0] for grid in (values, marks)
            )
            missing = given == 0.0
            X -= np.tile(means, (1, X.shape[1] // 3)).astype(D.dtype)
            X[missing] = 0.0
            codes = code_rows(Signals(X, missing), prepared, None, n_threads, measured=False).codes
            compose(codes, D, X, n_threads)
            average.add(X, *corners, means=means, n_threads=n_threads)
    return average.image()
