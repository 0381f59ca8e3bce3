"""Denoising: sparse codes of noisy patches, no more exact than the noise allows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from smalto.checks import Array, as_dictionary, check_finite_number, check_integer
from smalto.coders import OMP, ErrorBound
from smalto.image.averaging import PatchAverage
from smalto.image.checks import axes_told, check_patch_size, check_stride
from smalto.image.joint_denoising import color_axes, denoise_jointly
from smalto.image.noise import estimate_noise, question_noise, rms_of_noise
from smalto.image.patch_coding import average_of_codes
from smalto.image.patch_grid import PatchGrid
from smalto.image.patch_source import NoPatchError, PatchSource
from smalto.image.picture import as_picture
from smalto.image.poisson_noise import PoissonNoise
from smalto.image.varying_noise import denoise_varying, varies
from smalto.kernels.ahead import expecting
from smalto.learners import Online
from smalto.learning import learn
from smalto.learning.callbacks.base import CallbackLike
from smalto.threads import resolve_threads

_BATCH = 1024  # patches per learning step
_EPOCHS = 16  # passes over the patches, at most: small pictures have few
_SLACK = 1.1  # standard deviations by which the energy of a residual may exceed that of noise


def denoise(
    image: Any,
    sigma: float | Array | PoissonNoise | None = None,
    *,
    channel_axis: int | None = None,
    D: Any = None,
    patch_size: int | tuple[int, ...] | None = None,
    n_atoms: int = 512,
    max_steps: int = 300,
    gain: float | None = None,
    blend: float = 0.01,
    stride: int = 1,
    joint: bool = False,
    callbacks: Iterable[CallbackLike] = (),
    n_threads: int | None = None,
    random_state: Any = None,
) -> Array:
    """Remove noise from a picture.

    Every patch x of the picture is centered and coded greedily (`OMP`) as ``min_α ‖α‖₀ s.t.
    ‖x − αD‖² ≤ m (gain σ)²``. The dictionary D is learned from the noisy patches themselves, with
    the ℓ1 form of the problem (`ErrorBound`). Each pixel of the result is the mean of the patches
    αD that cover it and, with a small weight, of the noisy pixel.

    Parameters
    ----------
    image : array (height, width), or with a channel axis
        Unsigned integers or floats; or a volume (depth, height, width), or a series (length,). Masked values of a NumPy masked array do not count, and stay as
        they are. A picture smaller than a patch is continued by its mirror image.
    sigma : float, array or PoissonNoise, optional
        Standard deviation of the noise in the units of the picture (0 to 255 for uint8, 0 to 65535
        for uint16, those of its values for floats). Estimated by `estimate_noise` by default. An
        array has one for each pixel (height, width), for each value (the shape of ``image``) or for
        each channel. `PoissonNoise` is that of a camera, stronger where there is more light.
    channel_axis : int, optional
        The axis of the channels; None for a gray picture.
    D : array (k, m), optional
        Dictionary to use. By default it is learned from the picture. Its atoms have a value for
        each pixel of a patch and each channel; with ``joint=True`` for each pixel only.
    patch_size : int or tuple of int, optional
        Height and width of a patch. By default 8 to 16 for gray and 6 to 10 for color pictures, 4 to
        6 for volumes, and 32 to 96 for series, larger the more noise there is. A series with channels
        needs one number, as ``(32,)``, and a volume of three slices three: they look like pictures.
    n_atoms : int, default 512
        Number of atoms to learn.
    max_steps : int, default 300
        Maximum number of learning steps, of 1024 patches each. Small pictures take fewer: each
        patch is learned from at most 16 times.
    gain : float, optional
        Root mean square of the residuals, in units of σ. By default the energy of a residual is
        1.1 standard deviations above the mean energy of noise: ``gain² = 1 + 1.1 sqrt(2/m)``.
    blend : float, default 0.01
        Weight of the noisy pixel relative to that of all the patches that cover it.
    stride : int, default 1
        Code only every ``stride``-th patch in both directions: faster, but less accurate.
    joint : bool, default False
        Refine the result by coding similar patches together: first each group over common atoms
        (`JointOMP`), then each noisy patch over the cleaned patches of its group with a ridge
        penalty, a Wiener filter. The dictionary is then one of gray patches: the differences of the
        colors are coded over one another only, in the groups of the gray picture. Gains some tenths
        of a decibel, in color more unless edges are of color alone, and is slower.
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
            denoise, channel_axis=channel_axis, D=D, patch_size=patch_size, n_atoms=n_atoms,
            max_steps=max_steps, gain=gain, blend=blend, stride=stride, joint=joint,
            callbacks=callbacks, n_threads=threads, random_state=random_state,
        )  # fmt: skip
        return denoise_varying(image, sigma, channel_axis, again)
    given = as_picture(image, channel_axis, axes=axes_told(patch_size))
    if joint and given.axes != 2:
        message = (
            f"joint=True is for pictures, with two axes, but image has {given.axes}: leave it out"
        )
        raise ValueError(message)
    n_atoms = check_integer("n_atoms", n_atoms)
    max_steps = check_integer("max_steps", max_steps, low=0)
    blend = check_finite_number("blend", blend, low=0.0)
    if sigma is None:
        sigma = estimate_noise(image, channel_axis=channel_axis)
    sigma = check_finite_number("sigma", sigma, low=0.0)
    picture = given
    if joint:
        axes = color_axes(given.pixels).astype(given.pixels.dtype)
        picture = replace(given, pixels=given.pixels @ axes.T)
    coded = slice(1) if joint else slice(None)  # channels that are coded over the dictionary
    if patch_size is None:
        size = _default_patch_size(picture.pixels[..., coded], sigma)
    else:
        size = check_patch_size(patch_size, given.axes)
    stride = check_stride(stride, size)
    picture = picture.mirrored(size)
    grid = PatchGrid(np.ascontiguousarray(picture.pixels[None, ..., coded]), size)
    m = grid.n_features
    gain = default_gain(m) if gain is None else check_finite_number("gain", gain, low=0.0)
    if D is not None:
        D = as_dictionary(D, m, picture.pixels.dtype)
    if sigma == 0.0:
        return given.convert_back(given.pixels)
    question_noise(sigma, image, channel_axis)
    later = ("pursuit", "joint_pursuit") if joint else ("pursuit",)
    with expecting(*later, "L2Ball", dtype=picture.pixels.dtype):
        if D is None:
            D = _learn_dictionary(
                grid, gain * sigma, n_atoms, max_steps, callbacks, threads, random_state
            )
        average = average_over(D, grid, gain * sigma, stride, threads)
        clean = average.image(grid.pixels[0], blend * average.weight)
        if joint:
            clean = denoise_jointly(D, grid.size, clean, picture.pixels, sigma, threads)
            clean += blend / (1.0 + blend) * (picture.pixels - clean)
            clean = clean @ axes
    return picture.convert_back(clean)


def default_gain(m: int) -> float:
    """Allowed root mean square, in units of σ, of the residual of a patch of m values."""
    return rms_of_noise(m, _SLACK)


def _default_patch_size(pixels: Array, sigma: float) -> tuple[int, ...]:
    """Larger patches for more noise relative to the content of the picture."""
    content = np.sqrt(
        max(float(np.var(pixels, axis=tuple(range(pixels.ndim - 1))).mean()) - sigma**2, 0.0)
    )
    ratio = sigma / content if content > 0 else np.inf
    axes, is_gray = pixels.ndim - 1, pixels.shape[-1] == 1
    if axes == 2:
        sides = (8, 10, 12, 16) if is_gray else (6, 7, 8, 10)
    else:  # about as many values as a patch of a picture has
        sides = (32, 48, 64, 96) if axes == 1 else (4, 4, 5, 6)
    return (sides[int(np.searchsorted((0.2, 0.4, 0.75), ratio))],) * axes


def _learn_dictionary(
    grid: PatchGrid,
    error: float,
    n_atoms: int,
    max_steps: int,
    callbacks: Iterable[CallbackLike],
    n_threads: int,
    random_state: Any,
) -> Array:
    """Learn a dictionary for codes with this root mean square error."""
    try:
        # Patches of a lower contrast have the code zero over any dictionary.
        source = PatchSource.of_grid(grid, min_contrast=error, n_threads=n_threads)
    except NoPatchError:
        return np.zeros((1, grid.n_features), grid.pixels.dtype)
    return learn(
        source,
        min(n_atoms, source.n_rows),
        ErrorBound(grid.n_features * error**2),
        learner=Online(batch_size=_BATCH),
        max_steps=max_steps,
        max_epochs=_EPOCHS,
        callbacks=callbacks,
        n_threads=n_threads,
        random_state=random_state,
    ).D


def average_over(
    D: Array, grid: PatchGrid, error: float, stride: int, n_threads: int
) -> PatchAverage:
    """Average of the patches αD for codes α with this root mean square error."""
    k, m = D.shape
    coder = OMP(max_nonzeros=min(k, max(m // 2, 1)), eps=m * error**2)
    return average_of_codes(grid, D, coder, stride=stride, n_threads=n_threads)
