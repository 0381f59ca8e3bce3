"""Denoising: sparse codes of noisy patches, no more exact than the noise allows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from smalto.checks import Array, as_dictionary, check_finite_number, check_integer
from smalto.coders import OMP, ErrorBound
from smalto.image.averaging import PatchAverage
from smalto.image.checks import axes_told, by, check_patch_size, check_stride
from smalto.image.color_axes import ColorAxes, color_axes, noise_along, with_hidden_noise
from smalto.image.denoising_effort import LEVELS
from smalto.image.effort import chosen_level
from smalto.image.fixed_atoms import LARGEST, cosine_atoms, natural_atoms
from smalto.image.joint_denoising import denoise_jointly
from smalto.image.noise import question_noise, rms_of_noise
from smalto.image.patch_coding import average_of_codes
from smalto.image.patch_grid import PatchGrid
from smalto.image.patch_source import NoPatchError, PatchSource
from smalto.image.picture import as_picture
from smalto.image.poisson_noise import PoissonNoise
from smalto.image.stages import tell_noise
from smalto.image.varying_noise import denoise_varying, varies
from smalto.kernels.ahead import expecting
from smalto.learners import Online
from smalto.learning import learn
from smalto.learning.callbacks.base import CallbackLike
from smalto.threads import resolve_threads

_BATCH = 1024  # patches per learning step
_EPOCHS = 16  # passes over the patches, at most: small pictures have few
_ATOMS = 512  # to learn from volumes and series, at most ...
_PER_ATOM = 32  # ... one for so many values, ...
_FEWEST = 16  # ... but at least so many
_MOST_VALUES = 1024  # of a patch, with default atoms, of which there are about as many
_STEPS = 300  # of learning from nothing but the picture, at most
_HIDDEN = 0.5  # of the noise along the first axis of colors: so much is expected along others
_SLACK = 1.1  # standard deviations by which the energy of a residual may exceed that of noise


def denoise(
    image: Any,
    sigma: float | Array | PoissonNoise | None = None,
    *,
    channel_axis: int | None = None,
    effort: int = 1,
    D: Any = None,
    patch_size: int | tuple[int, ...] | None = None,
    n_atoms: int | None = None,
    max_steps: int | None = None,
    gain: float | None = None,
    blend: float = 0.01,
    stride: int | None = None,
    callbacks: Iterable[CallbackLike] = (),
    n_threads: int | None = None,
    random_state: Any = None,
) -> Array:
    """Remove noise from a picture.

    Every patch x of the picture is centered and coded greedily (`OMP`) as ``min_α ‖α‖₀ s.t.
    ‖x − αD‖² ≤ m (gain σ)²``. Each pixel of the result is the mean of the patches αD that cover it
    and, with a small weight, of the noisy pixel.

    By default this is only a first estimate, in which similar patches are found. Groups of them are
    coded again over common atoms (`JointOMP`), and then each noisy patch over the cleaned patches of
    its group with a ridge penalty, a Wiener filter. With the most effort, rounds follow in which
    similar patches are combined linearly, each with less noise, and the result is a mean of both.
    Color pictures are turned to the principal axes of their colors first, and white noise stays
    white; noise that is estimated may be stronger along one axis than along others.

    Parameters
    ----------
    image : array (height, width), or with a channel axis
        Integers or floats; or a volume (depth, height, width), or a series (length,).
        Masked values of a NumPy masked array do not count, and stay as they are. A picture smaller
        than a patch is continued by its mirror image.
    sigma : float, array or PoissonNoise, optional
        Standard deviation of the noise in the units of the picture (0 to 255 for uint8, 0 to 65535
        for uint16, those of its values for floats). Estimated as by `estimate_noise` by default,
        along each axis of the colors: much of it may be the same in all channels. An
        array has one for each pixel (height, width), for each value (the shape of ``image``) or for
        each channel. `PoissonNoise` is that of a camera, stronger where there is more light.
    channel_axis : int, optional
        The axis of the channels; None for a gray picture.
    effort : int, default 1
        Quality against time:

        - 0: patches are coded one by one, over `natural_atoms`;
        - 1: then similar patches together, over natural atoms that have been adapted to the picture
          in a few steps of learning;
        - 2: more steps of learning, more groups, and rounds of linear combinations.

        It is for pictures: patches of volumes and series are coded one by one, over learned atoms.
    D : array (k, m), optional
        Dictionary to use, of gray patches, or of color patches with a value for each channel of a
        pixel. By default it is learned from the noisy patches (in gray), with the ℓ1 form of the
        problem (`ErrorBound`), beginning with `natural_atoms`.
    patch_size : int or tuple of int, optional
        Height and width of a patch. By default 8 to 16 for pictures, 4 to 6 for volumes, and 32 to
        96 for series, larger the more noise there is; more than 1024 pixels need ``D`` or
        ``n_atoms``. A series with channels needs one number, as
        ``(32,)``, and a volume of three slices three: they look like pictures.
    n_atoms : int, optional
        Number of atoms to learn from nothing but the picture; for volumes and series one for 32
        values, but 16 to 512.
    max_steps : int, optional
        Maximum number of learning steps, of 1024 patches each. By default 0, 40 and 300 for the
        levels of effort, and 300 if ``n_atoms`` is given, or for volumes and series. Small pictures
        take fewer: each patch is learned from at most 16 times.
    gain : float, optional
        Root mean square of the residuals, in units of σ. By default the energy of a residual is
        1.1 standard deviations above the mean energy of noise: ``gain² = 1 + 1.1 sqrt(2/m)``.
    blend : float, default 0.01
        Weight of the noisy pixel relative to that of all the patches that cover it.
    stride : int, optional
        Code only every ``stride``-th patch one by one, in both directions. By default 1 with
        ``effort=0``, else 3.
    callbacks : iterable of callables
        Called after every learning step, see `learn`.
    n_threads : int, optional
        Number of threads; all available cores by default. It does not affect the result.
    random_state : int, Generator, RandomState or None, default None
        Seed for the choice of training patches. Pass an integer for reproducible results.

    Returns
    -------
    array
        The denoised picture, with the shape, dtype and mask of ``image``; integers are rounded.

    See Also
    --------
    estimate_noise : The default of ``sigma``.
    estimate_poisson_noise : For pictures with visible grain where it is bright.
    denoise_video : For frames that arrive one by one.
    inpaint : For missing pixels.

    References
    ----------
    Elad, Aharon: Image denoising via sparse and redundant representations over learned
    dictionaries. IEEE Transactions on Image Processing 15, 2006.

    Mairal, Bach, Ponce, Sapiro, Zisserman: Non-local sparse models for image restoration. ICCV
    2009.

    Lebrun, Buades, Morel: A nonlocal Bayesian image denoising algorithm. SIAM Journal on Imaging
    Sciences 6, 2013.

    Herbreteau, Kervrann: Linear combinations of patches are unreasonably effective for single-image
    denoising. IEEE Transactions on Image Processing 33, 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.image import denoise
    >>> clean = np.kron(np.eye(4), np.ones((16, 16)))
    >>> noisy = clean + np.random.default_rng(0).normal(0.0, 0.1, clean.shape)
    >>> restored = denoise(noisy, 0.1, n_atoms=32, max_steps=30, random_state=0)
    >>> bool(np.std(restored - clean) < 0.06)
    True
    """
    threads = resolve_threads(n_threads)
    if varies(sigma):
        again = partial(
            denoise, channel_axis=channel_axis, effort=effort, D=D, patch_size=patch_size,
            n_atoms=n_atoms, max_steps=max_steps, gain=gain, blend=blend, stride=stride,
            callbacks=callbacks, n_threads=threads, random_state=random_state,
        )  # fmt: skip
        return denoise_varying(image, sigma, channel_axis, again)
    given = as_picture(image, channel_axis, axes=axes_told(patch_size))
    level = chosen_level(LEVELS, effort, given.axes)
    if n_atoms is not None:
        n_atoms = check_integer("n_atoms", n_atoms)
    elif given.axes != 2:
        n_atoms = max(_FEWEST, min(_ATOMS, given.pixels[..., 0].size // _PER_ATOM))
    if max_steps is None:
        max_steps = level.max_steps if n_atoms is None else _STEPS
    max_steps = check_integer("max_steps", max_steps, low=0)
    blend = check_finite_number("blend", blend, low=0.0)
    if sigma is not None:
        sigma = check_finite_number("sigma", sigma, low=0.0)
    colors = color_axes(given.pixels)
    estimate, scales = None, np.ones(len(colors.axes), given.pixels.dtype)
    if sigma is None:
        levels = with_hidden_noise(noise_along(colors, given), _HIDDEN)
        sigma, estimate = float(levels[0]), float(np.sqrt(np.mean(levels**2)))
        tell_noise(float(np.sqrt(np.sum(levels**2) / given.pixels.shape[-1])))
        if sigma > 0.0:
            scales = (levels / sigma).astype(scales.dtype)
    picture = replace(given, pixels=colors.turn(given.pixels) / scales)
    if patch_size is None:
        size = _default_patch_size(picture.pixels[..., 0], sigma)
    else:
        size = check_patch_size(patch_size, given.axes)
    if D is None and n_atoms is None and math.prod(size) > _MOST_VALUES:
        message = (
            f"patch_size {by(size)} is too large for the default atoms: at most {_MOST_VALUES} pixels, "
            "8 x 8 to 16 x 16 are usual; or pass n_atoms, to learn fewer"
        )
        raise ValueError(message)
    stride = check_stride(min(level.stride, *size) if stride is None else stride, size)
    picture = picture.mirrored(size)
    planes = np.ascontiguousarray(np.moveaxis(picture.pixels, -1, 0))
    coded = noisy = [PatchGrid(plane[None, ..., None], size) for plane in planes]
    if D is not None:
        D, is_whole = _turned(D, size, colors, scales)
        if is_whole:
            coded = [PatchGrid(picture.pixels[None], size)]
    m = coded[0].n_features
    gain = default_gain(m) if gain is None else check_finite_number("gain", gain, low=0.0)
    if sigma == 0.0:
        return given.convert_back(given.pixels)
    question_noise(estimate or sigma, image, channel_axis, estimate, threads)
    later = ("pursuit", "joint_pursuit") if level.joint else ("pursuit",)
    if D is None and max_steps:
        later = (*later, "L2Ball")
    with expecting(*later, dtype=picture.pixels.dtype):
        if D is None:
            D = _learn_dictionary(
                coded[0], gain * sigma, n_atoms, max_steps, callbacks, threads, random_state
            )
        parts = [average_over(D, grid, gain * sigma, stride, threads).image() for grid in coded]
        clean = np.concatenate(parts, axis=-1)
        if level.joint:
            clean = denoise_jointly(D, coded, noisy, clean, sigma, level, threads)
    clean += blend / (1.0 + blend) * (picture.pixels - clean)
    return picture.convert_back(colors.turn_back(clean * scales))


def default_gain(m: int) -> float:
    """Allowed root mean square, in units of σ, of the residual of a patch of m values."""
    return rms_of_noise(m, _SLACK)


def _default_patch_size(pixels: Array, sigma: float) -> tuple[int, ...]:
    """Larger patches for more noise relative to the content of a picture, volume or series."""
    content = np.sqrt(max(float(np.var(pixels)) - sigma**2, 0.0))
    ratio = sigma / content if content > 0 else np.inf
    # About as many values as a patch of a picture has.
    sides = {1: (32, 48, 64, 96), 2: (8, 10, 12, 16)}.get(pixels.ndim, (4, 4, 5, 6))
    return (sides[int(np.searchsorted((0.2, 0.4, 0.75), ratio))],) * pixels.ndim


def _turned(D: Any, size: tuple[int, ...], colors: ColorAxes, scales: Array) -> tuple[Array, bool]:
    """Return a dictionary, and whether its atoms are of whole color patches, turned to the axes."""
    area, channels = math.prod(size), colors.axes.shape[1]
    is_whole = channels > 1 and np.ndim(D) == 2 and np.shape(D)[1] == area * channels
    D = as_dictionary(D, area * channels if is_whole else area, scales.dtype)
    if is_whole:
        turned = colors.turn(D.reshape(-1, channels)) / scales
        D = np.ascontiguousarray(turned.reshape(len(D), -1))
    return D, is_whole


def _learn_dictionary(
    grid: PatchGrid,
    error: float,
    n_atoms: int | None,
    max_steps: int,
    callbacks: Iterable[CallbackLike],
    n_threads: int,
    random_state: Any,
) -> Array:
    """Learn a dictionary for codes with this root mean square error, by default from fixed atoms."""
    first = _first_atoms(grid.size, grid.pixels.dtype)
    if n_atoms is None and max_steps == 0:
        return first
    try:
        # Patches of a lower contrast have the code zero over any dictionary.
        source = PatchSource.of_grid(grid, min_contrast=error, n_threads=n_threads)
    except NoPatchError:
        return np.zeros((1, grid.n_features), grid.pixels.dtype)
    if n_atoms is None and source.n_rows < len(first):
        return first
    count = len(first) if n_atoms is None else min(n_atoms, source.n_rows)
    return learn(
        source,
        count,
        ErrorBound(grid.n_features * error**2),
        learner=Online(batch_size=_BATCH),
        init=first if n_atoms is None else None,
        max_steps=max_steps,
        max_epochs=_EPOCHS,
        callbacks=callbacks,
        n_threads=n_threads,
        random_state=random_state,
    ).D


def _first_atoms(size: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Natural atoms, or cosines if patches are too large for them."""
    if len(size) == 2 and max(size) <= LARGEST:
        return natural_atoms((size[0], size[1]), dtype=dtype)
    return cosine_atoms(size, dtype=dtype)


def average_over(
    D: Array, grid: PatchGrid, error: float, stride: int, n_threads: int
) -> PatchAverage:
    """Average of the patches αD for codes α with this root mean square error."""
    k, m = D.shape
    coder = OMP(max_nonzeros=min(k, max(m // 2, 1)), eps=m * error**2)
    return average_of_codes(grid, D, coder, stride=stride, n_threads=n_threads)
