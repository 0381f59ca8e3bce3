"""Denoising: sparse codes of noisy patches, no more exact than the noise allows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from smalto.checks import Array, as_dictionary, check_integer, check_number
from smalto.coders import OMP, ErrorBound, JointOMP
from smalto.image.coding import average_of_codes
from smalto.image.frames import as_frame
from smalto.image.joint import code_over_each_other, groups_alike, share_atoms
from smalto.image.noise import estimate_noise
from smalto.image.overlap import PatchAverage
from smalto.image.patches import NoPatchError, PatchSource
from smalto.image.pictures import check_fits, check_size, check_stride
from smalto.image.stack import Stack
from smalto.learners import Online
from smalto.learning import learn
from smalto.learning.callbacks.base import CallbackLike
from smalto.threads import resolve_threads

N_ATOMS = 512
N_STEPS = 300
BATCH = 1024
BLEND = 0.01
SLACK = 1.1  # standard deviations by which the energy of a residual may exceed that of noise
JOINT_SLACK = 0.2  # the same for the mean of a group, which varies less
SHARING = 16  # patches that share their atoms
JOINT_SIDE = 8  # of the patches that are coded over one another
JOINT_GROUP = 32  # how many of them
JOINT_PASSES = 2


def denoise(
    image: Any,
    sigma: float | None = None,
    *,
    channel_axis: int | None = None,
    dictionary: Any = None,
    patch_size: int | tuple[int, int] | None = None,
    n_atoms: int = N_ATOMS,
    n_steps: int = N_STEPS,
    gain: float | None = None,
    blend: float = BLEND,
    stride: int = 1,
    joint: bool = False,
    callbacks: Iterable[CallbackLike] = (),
    n_threads: int | None = None,
    random_state: Any = 0,
) -> Array:
    """Remove white Gaussian noise from a picture.

    Every patch x of the picture, its mean taken away, is coded as ``min_α ‖α‖₀ s.t.
    ‖x − αD‖² ≤ m (gain σ)²`` (greedily, by `OMP`) over a dictionary D learned from the noisy
    patches themselves (with `ErrorBound`, the ℓ1 form of the problem). A pixel of the result is
    the mean of all patches αD that cover it, and of the noisy pixel with a small weight.

    Parameters
    ----------
    image : array (height, width), or with an axis of channels
        Unsigned integers or floats.
    sigma : float, optional
        The standard deviation of the noise, in the units of the picture (of 0 to 255 where it is
        of uint8). By default what `estimate_noise` says.
    channel_axis : int, optional
        The axis of the channels; None for a grey picture.
    dictionary : array (k, m), optional
        Atoms to use as they are, nothing is learned.
    patch_size : int or (int, int), optional
        Height and width of a patch. By default 8 to 16, more where there is more noise; in
        colour 6 to 8.
    n_atoms : int, default 512
        How many atoms are learned.
    n_steps : int, default 300
        How many steps of 1 024 patches learning takes.
    gain : float, optional
        How much larger than the noise a residual may be. The energy of noise in a patch of m
        values varies, with standard deviation sqrt(2/m); by default it may be 1.1 of those
        above its mean.
    blend : float, default 0.01
        The weight of the noisy pixel, as a share of that of all the patches that cover it.
    stride : int, default 1
        Code only every so many patches in both directions: faster, somewhat worse.
    joint : bool, default False
        Afterwards, code patches that look alike in the result together: those of a group with
        the same atoms (`JointOMP`), then over one another, each noisy patch as a combination of
        the cleaned ones of its group, with a ridge penalty that makes it Wiener's filter. Some
        tenths of a decibel better, and slower.
    callbacks : iterable of callables
        Called after every step of learning, see `learn`.
    n_threads : int, optional
        Threads to use; every available core by default. The result does not depend on it.
    random_state : int, Generator or RandomState, default 0
        Decides which patches are learned from.

    Returns
    -------
    array
        The picture without noise, in the shape and dtype of ``image``; integers are rounded.

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
    >>> restored = denoise(noisy, 0.1, n_atoms=32, n_steps=30)
    >>> bool(np.std(restored - clean) < 0.06)
    True
    """
    threads = resolve_threads(n_threads)
    frame = as_frame(image, channel_axis)
    blend = check_number("blend", blend, low=0.0)
    if sigma is None:
        sigma = estimate_noise(image, channel_axis=channel_axis)
    sigma = check_number("sigma", sigma, low=0.0)
    size = _default_size(frame.pixels, sigma) if patch_size is None else check_size(patch_size)
    check_fits(size, frame.pixels.shape, "image")
    stride = check_stride(stride, size)
    stack = Stack(frame.pixels[None], size)
    m = size[0] * size[1] * stack.channels
    gain = default_gain(m) if gain is None else check_number("gain", gain, low=0.0)
    D = None
    if dictionary is not None:
        D = as_dictionary(dictionary, m, frame.pixels.dtype, name="dictionary")
    if sigma == 0.0:
        return frame.like(frame.pixels)
    if D is None:
        D = learn_atoms(
            stack, gain * sigma, check_integer("n_atoms", n_atoms),
            check_integer("n_steps", n_steps, low=0), callbacks, threads, random_state,
        )  # fmt: skip
    clean = clean_frame(stack, D, gain * sigma, blend, stride, threads)
    if joint:
        clean = clean_jointly(stack, D, sigma, blend, clean, threads)
    return frame.like(clean)


def default_gain(m: int) -> float:
    """How much larger than the noise the residual of a patch of m values may be."""
    return _allowed(m, SLACK)


def _allowed(m: int, slack: float) -> float:
    """The root mean square, in units of σ, of noise of energy ``slack`` deviations above its mean."""
    return float(np.sqrt(1.0 + slack * np.sqrt(2.0 / m)))


def learn_atoms(
    stack: Stack,
    error: float,
    n_atoms: int,
    n_steps: int,
    callbacks: Iterable[CallbackLike],
    n_threads: int,
    random_state: Any,
) -> Array:
    """A dictionary in which patches have sparse codes with this error (root mean square)."""
    m = stack.size[0] * stack.size[1] * stack.channels
    try:
        # Patches with a smaller contrast have the zero code whatever the dictionary.
        source = PatchSource.of_stack(stack, error, by_channel=True, n_threads=n_threads)
    except NoPatchError:
        return np.zeros((1, m), stack.pixels.dtype)
    result = learn(
        source, min(n_atoms, source.n_rows), ErrorBound(m * error**2),
        learner=Online(batch_size=BATCH), max_steps=n_steps, callbacks=callbacks,
        n_threads=n_threads, random_state=random_state,
    )  # fmt: skip
    return result.D


def clean_frame(
    stack: Stack, D: Array, error: float, blend: float, stride: int, n_threads: int
) -> Array:
    """The pixels that codes with this error (root mean square) say, a little blended with noise."""
    average = clean_average(stack, D, error, stride, n_threads)
    return average.image(stack.pixels[0], blend * average.weight)


def clean_average(
    stack: Stack, D: Array, error: float, stride: int, n_threads: int
) -> PatchAverage:
    """The mean of the patches that codes with this error (root mean square) make."""
    k, m = D.shape
    coder = OMP(max_nonzeros=min(k, max(m // 2, 1)), eps=m * error**2)
    return average_of_codes(stack, D, coder, stride=stride, n_threads=n_threads)


def clean_jointly(
    stack: Stack, D: Array, sigma: float, blend: float, guide: Array, n_threads: int
) -> Array:
    """The pixels that joint codes of patches say which look alike in the guide."""
    k, m = D.shape
    error = m * _allowed(m, JOINT_SLACK) ** 2 * sigma**2
    coder = JointOMP(max_nonzeros=min(k, max(m // 2, 1)), eps=error)
    groups = groups_alike(_like(stack, guide, stack.size), SHARING, n_threads)
    average = share_atoms(stack, groups, D, coder, n_threads)
    size = min(JOINT_SIDE, stack.pixels.shape[1]), min(JOINT_SIDE, stack.pixels.shape[2])
    noisy = Stack(stack.pixels, size)
    for _ in range(JOINT_PASSES):
        picture = _like(stack, average.image(), size)
        groups = groups_alike(picture, JOINT_GROUP, n_threads)
        average = code_over_each_other(noisy, picture, groups, sigma, n_threads)
    return average.image(stack.pixels[0], blend * average.weight)


def _like(stack: Stack, pixels: Array, size: tuple[int, int]) -> Stack:
    return Stack(np.ascontiguousarray(pixels, stack.pixels.dtype)[None], size)


def _default_size(pixels: Array, sigma: float) -> tuple[int, int]:
    """The larger the noise is against the content of a picture, the larger patches."""
    content = np.sqrt(max(float(np.var(pixels, axis=(0, 1)).mean()) - sigma**2, 0.0))
    ratio = sigma / content if content > 0 else np.inf
    sides = (8, 10, 12, 16) if pixels.shape[2] == 1 else (6, 7, 8, 10)
    side = sides[int(np.searchsorted((0.2, 0.4, 0.75), ratio))]
    return min(side, pixels.shape[0]), min(side, pixels.shape[1])
