"""Denoising of video, frame by frame as they arrive."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from smalto.checks import Array, check_finite_number, check_integer, check_number
from smalto.coders import OMP, ErrorBound, encode
from smalto.image.checks import check_fits, check_patch_size, check_stride
from smalto.image.color_axes import ColorAxes, color_axes, noise_along, with_hidden_noise
from smalto.image.denoise import average_over, default_gain
from smalto.image.frame_learner import FrameLearner
from smalto.image.moving_patches import Frame, filter_along_motion
from smalto.image.patch_coding import cut
from smalto.image.patch_grid import PatchGrid
from smalto.image.picture import Picture, as_picture
from smalto.threads import resolve_threads

_HIDDEN = 0.8  # of the noise along the first axis of colors: so much is expected along others
_PASSES = 2  # of joint filters
_TRIED = 64  # patches by which the content of a frame is compared with the atoms
_SPARSE = 8  # features per atom that a code may have where content is new


def denoise_video(
    frames: Iterable[Any],
    sigma: float | None = None,
    *,
    channel_axis: int | None = None,
    depth: int = 3,
    patch_size: int | tuple[int, int] = 8,
    n_atoms: int = 256,
    retain: float = 0.9,
    steps_per_frame: int = 4,
    gain: float | None = None,
    blend: float = 0.01,
    stride: int = 1,
    effort: int = 0,
    n_threads: int | None = None,
    random_state: Any = None,
) -> Iterator[Array]:
    """Remove white Gaussian noise from a stream of frames as they arrive.

    Patches extend over ``depth`` consecutive frames and are coded as in `denoise`, over a
    dictionary that adapts to the stream (`FrameLearner`). A pixel of the result is the mean of all
    patches that cover it in space and time. Frame t is ready when frame ``t + depth − 1`` has
    arrived. Memory holds ``depth`` frames, regardless of the length of the stream.

    Parameters
    ----------
    frames : iterable of arrays (height, width), or with a channel axis
        All of the same shape and dtype: integers or floats.
    sigma : float, optional
        Standard deviation of the noise in the units of the frames. By default a running mean of
        `estimate_noise` over the frames.
    channel_axis : int, optional
        The axis of the channels of a frame; None for gray frames.
    depth : int, default 3
        Number of frames in a patch; 1 denoises each frame separately.
    patch_size : int or (int, int), default 8
        Height and width of a patch.
    n_atoms, retain, steps_per_frame, n_threads, random_state
        As for `FrameLearner`.
    gain, blend, stride
        As for `denoise`.
    effort : {0, 1}, default 0
        Quality against time. With 1 the result is refined in groups of similar patches, as in
        `denoise`, which follow the motion over three frames before and after: better by about a
        decibel, and slower. Frames are ready six frames later, and memory holds some more of them.

    Yields
    ------
    array
        The denoised frames, in order, with their shape and dtype.

    See Also
    --------
    denoise : For single pictures.
    FrameLearner : The dictionary alone.

    References
    ----------
    Protter, Elad: Image sequence denoising via sparse and redundant representations. IEEE
    Transactions on Image Processing 18, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.image import denoise_video
    >>> rng = np.random.default_rng(0)
    >>> noisy = (100 + rng.normal(0.0, 5.0, (32, 40)) for _ in range(4))
    >>> clean = list(denoise_video(noisy, 5.0, n_atoms=16, random_state=0))
    >>> len(clean), bool(np.std(clean) < 1.0)
    (4, True)
    """
    size, threads = check_patch_size(patch_size), resolve_threads(n_threads)
    blend = check_finite_number("blend", blend, low=0.0)
    learning: dict[str, Any] = {
        "n_atoms": n_atoms,
        "retain": check_number("retain", retain, low=0.0, high=1.0),
        "steps_per_frame": steps_per_frame,
        "n_threads": threads,
        "random_state": random_state,
    }
    gain = None if gain is None else check_finite_number("gain", gain, low=0.0)
    sigma = None if sigma is None else check_finite_number("sigma", sigma, low=0.0)
    patches = _Patches(check_integer("depth", depth), size, check_stride(stride, size), gain)
    colors = _Colors(sigma, channel_axis)
    results = _estimates(colors.turned(frames), patches, learning)
    for _ in range(_PASSES * check_integer("effort", effort, low=0, high=1)):
        results = filter_along_motion(results, threads)
    for frame in results:
        clean = frame.guide + blend / (1.0 + blend) * (frame.noisy - frame.guide)
        yield colors.turned_back(clean)


class _Colors:
    """Frames on their way through a stream, along axes of colors."""

    def __init__(self, sigma: float | None, channel_axis: int | None) -> None:
        self.sigma, self.channel_axis = sigma, channel_axis
        self.pictures: deque[Picture] = deque()
        self.axes: ColorAxes | None = None

    def turned(self, frames: Iterable[Any]) -> Iterator[tuple[Array, Array]]:
        """Yield the frames (height, width, number) along the axes of the first one, and σ."""
        for number, frame in enumerate(frames):
            picture = as_picture(frame, self.channel_axis, what=f"frame {number}")
            self.axes = self.axes or color_axes(picture.pixels)
            self.pictures.append(picture)
            if self.sigma is not None:
                levels = np.array([self.sigma])
            else:
                levels = noise_along(self.axes, picture)
            yield self.axes.turn(picture.pixels), levels

    def turned_back(self, clean: Array) -> Array:
        """Return a frame that has been denoised in its original form."""
        assert self.axes is not None
        return self.pictures.popleft().convert_back(self.axes.turn_back(clean))


@dataclass(frozen=True)
class _Patches:
    """How patches extend over frames, and how exactly they are coded."""

    depth: int
    size: tuple[int, ...]
    stride: int
    gain: float | None


def _estimates(
    frames: Iterable[tuple[Array, Array]], patches: _Patches, learning: dict[str, Any]
) -> Iterator[Frame]:
    """Yield frames with estimates of them without noise, from patches over consecutive frames.

    Their noise is a running mean of σ along the axes, which comes with the frames; ``learning`` has
    the arguments of `FrameLearner`.
    """
    size = patches.size
    window: deque[_Pending] = deque()
    learner: FrameLearner | None = None
    noise_level = _RunningMean(learning["retain"])
    for number, (pixels, levels) in enumerate(frames):
        if window and pixels.shape != window[0].pixels.shape:
            message = (
                f"frame {number} has shape {pixels.shape}, those before it "
                f"{window[0].pixels.shape}: all frames must have the same shape"
            )
            raise ValueError(message)
        check_fits(size, pixels.shape, f"frame {number}")
        noise = noise_level.update(levels)
        window.append(_Pending.of(pixels, noise))
        if len(window) == patches.depth:
            grid = PatchGrid(_as_channels(window)[None], size)
            m = grid.n_features
            error = (default_gain(m) if patches.gain is None else patches.gain) * _rms(noise)
            if learner is None:
                coder = ErrorBound(m * error**2)
                learner = FrameLearner((size[0], size[1]), coder=coder, **learning)
            _clean(window, grid, learner, error, patches.stride)
            yield window.popleft().result()
    if window and learner is None:  # fewer frames than a patch is deep
        fewer = replace(patches, depth=len(window))
        again = [(pending.pixels, pending.noise) for pending in window]
        yield from _estimates(again, fewer, learning)
        return
    while window:
        yield window.popleft().result()


@dataclass(frozen=True)
class _Pending:
    """A frame that patches still cover, and sums over the patches so far."""

    pixels: Array
    noise: Array  # σ along each axis of colors, or one for all
    total: Array
    weight: Array

    @classmethod
    def of(cls, pixels: Array, noise: Array) -> _Pending:
        """A frame that no patch has covered yet."""
        return cls(pixels, noise, *np.zeros((2, *pixels.shape)))

    def result(self) -> Frame:
        """The frame, and the mean of its patches."""
        sigma = _rms(with_hidden_noise(self.noise, _HIDDEN))
        return Frame(self.pixels, self.total / self.weight, sigma)


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


class _RunningMean:
    """The mean of arrays, of which the last ones count most."""

    def __init__(self, retain: float) -> None:
        self.retain = retain
        self.total, self.weight = np.zeros(1), 0.0

    def update(self, values: Array) -> Array:
        """Take in one more array and return the mean."""
        self.total = self.retain * self.total + values
        self.weight = self.retain * self.weight + 1.0
        return self.total / self.weight


def _as_channels(window: Iterable[_Pending]) -> Array:
    """Consecutive frames as the channels of one picture."""
    frames = [pending.pixels for pending in window]
    return np.ascontiguousarray(np.concatenate(frames, axis=2))


def _few_atoms(D: Array, eps: float) -> OMP:
    """Codes with this error, or with as many atoms as a sparse one has."""
    k, m = D.shape
    return OMP(max_nonzeros=min(k, max(m // _SPARSE, 1)), eps=eps)


def _is_new(grid: PatchGrid, D: Array, eps: float) -> bool:
    """Return whether most patches have no sparse codes with this error, as after a cut of the film.

    Without a limit they would have nearly as many atoms as a patch has pixels: this would take
    minutes for a frame.
    """
    places = np.linspace(0, grid.n_positions - 1, min(_TRIED, grid.n_positions)).astype(np.int64)
    X = cut(grid, grid.offsets(*grid.corners(places)), D.dtype, 1)[0]
    left = X - encode(X, D, _few_atoms(D, eps), n_threads=1) @ D
    return bool(np.mean(np.einsum("ij,ij->i", left, left) > 1.01 * eps) > 0.5)


def _clean(
    window: deque[_Pending], grid: PatchGrid, learner: FrameLearner, error: float, stride: int
) -> None:
    """Learn from the frames of the window, and add the patches αD to the sums of each frame."""
    pixels = grid.pixels[0]
    if error > 0:
        learner.min_contrast = error
        eps = grid.n_features * error**2
        learner.coder = ErrorBound(eps)
        if learner.state is not None:
            if _is_new(grid, learner.D, eps):
                learner.coder = _few_atoms(learner.D, eps)
            learner.state.coder = learner.coder
        learner.learn_from(pixels)
        no_atoms = np.zeros((1, grid.n_features), pixels.dtype)
        D = no_atoms if learner.state is None else learner.D
        average = average_over(D, grid, error, stride, learner.n_threads)
        clean, weight = average.image(), average.weight
    else:
        clean, weight = pixels, np.ones_like(pixels)
    channels = pixels.shape[2] // len(window)
    for i, pending in enumerate(window):
        part = np.s_[:, :, i * channels : (i + 1) * channels]
        pending.total[...] += weight[part] * clean[part]
        pending.weight[...] += weight[part]
