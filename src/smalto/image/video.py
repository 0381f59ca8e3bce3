"""Video: dictionaries that adapt to a stream of frames, and denoising."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from smalto.checks import Array, check_finite_number, check_integer, check_number
from smalto.coders import ErrorBound
from smalto.coders.base import Coder, check_coder
from smalto.image.checks import check_fits, check_patch_size, check_stride
from smalto.image.color_axes import ColorAxes, color_axes, noise_along, with_hidden_noise
from smalto.image.denoise import average_over, default_gain
from smalto.image.moving_patches import Frame, filter_along_motion
from smalto.image.patch_grid import PatchGrid
from smalto.image.patch_source import NoPatchError, PatchSource
from smalto.image.picture import Picture, as_picture
from smalto.learners import Online
from smalto.learning import State
from smalto.learning.batches.dataset import DatasetBatches
from smalto.learning.initial_state import as_seed, initial_state
from smalto.learning.run import Run
from smalto.learning.run_settings import RunSettings
from smalto.sources import ArraySource, Order
from smalto.threads import resolve_threads

_BATCH = 1024  # patches per learning step
_HIDDEN = 0.8  # of the noise along the first axis of colors: so much is expected along others
_PASSES = 2  # of joint filters


class FrameLearner:
    """A dictionary that adapts to a stream of frames: it learns from each and forgets old ones.

    With each frame the weight of all earlier ones is multiplied by ``retain``: the dictionary
    minimizes the cost of the patches of about the last ``1 / (1 − retain)`` frames. Memory holds
    the statistics (k² + km numbers) and one frame.

    Parameters
    ----------
    patch_size : int or (int, int), default 8
        Height and width of a patch.
    n_atoms : int, default 256
        Number of atoms.
    coder : coder, optional
        The sparse coding problem; `Lasso` by default.
    channel_axis : int, optional
        The axis of the channels of a frame; None for gray frames.
    retain : float, default 0.9
        Factor, in [0, 1], for the weight of earlier frames when a new one arrives; 1 forgets
        nothing.
    steps_per_frame : int, default 4
        Number of learning steps per frame, of 1024 patches each.
    min_contrast : float, default 0
        Leave out patches whose pixels differ from their mean by less than this (root mean square).
    n_threads : int, optional
        Number of threads; all available cores by default. It does not affect the result.
    random_state : int, Generator, RandomState or None, default None
        Seed for the choice of training patches. Pass an integer for reproducible results.

    Attributes
    ----------
    D : array (k, m)
        The current dictionary.
    n_frames : int
        Number of frames so far.

    See Also
    --------
    denoise_video : Removes noise with such a dictionary.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.coders import Lasso
    >>> from smalto.image import FrameLearner
    >>> learner = FrameLearner(6, n_atoms=16, coder=Lasso(0.1), random_state=0)
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(3):
    ...     learner = learner.partial_fit(rng.random((40, 50)))
    >>> learner.D.shape, learner.n_frames
    ((16, 36), 3)
    """

    def __init__(
        self,
        patch_size: int | tuple[int, int] = 8,
        n_atoms: int = 256,
        coder: Coder | None = None,
        *,
        channel_axis: int | None = None,
        retain: float = 0.9,
        steps_per_frame: int = 4,
        min_contrast: float = 0.0,
        n_threads: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.patch_size = check_patch_size(patch_size)
        self.n_atoms = check_integer("n_atoms", n_atoms)
        self.coder = None if coder is None else check_coder(coder)
        self.channel_axis = channel_axis
        self.retain = check_number("retain", retain, low=0.0, high=1.0)
        self.steps_per_frame = check_integer("steps_per_frame", steps_per_frame)
        self.min_contrast = check_finite_number("min_contrast", min_contrast, low=0.0)
        self.n_threads = resolve_threads(n_threads)
        self.n_frames = 0
        self.state: State | None = None
        self._seed = as_seed(random_state)

    @property
    def D(self) -> Array:
        """The current dictionary (k, m)."""
        if self.state is None:
            message = "nothing has been learned yet: call partial_fit with a frame"
            raise ValueError(message)
        return self.state.D

    def partial_fit(self, frame: Any) -> FrameLearner:
        """Learn from the next frame.

        Parameters
        ----------
        frame : array (height, width), or with a channel axis
            Unsigned integers or floats. Frames may differ in size. A frame without a usable patch
            (a black one, for example) is skipped.

        Returns
        -------
        self
        """
        return self.learn_from(as_picture(frame, self.channel_axis, what="frame").pixels)

    def learn_from(self, pixels: Array) -> FrameLearner:
        """Learn from checked pixels (height, width, channels)."""
        check_fits(self.patch_size, pixels.shape, "frame")
        grid = PatchGrid(pixels[None], self.patch_size)
        if self.state is not None and self.state.D.shape[1] != grid.n_features:
            message = (
                f"atoms have {self.state.D.shape[1]} values, patches of this frame "
                f"{grid.n_features}: all frames must have the same channels"
            )
            raise ValueError(message)
        try:
            source = PatchSource.of_grid(
                grid,
                skip_constant=True,
                min_contrast=self.min_contrast,
                n_threads=self.n_threads,
            )
        except NoPatchError:
            self.n_frames += 1
            return self
        order = Order(source.n_rows, self._seed)
        for number in range(self.steps_per_frame):
            begin_at = number * _BATCH % max(source.n_rows - _BATCH + 1, 1)
            rows = source.rows(order.take(self.n_frames, begin_at, begin_at + _BATCH))
            self._step(rows, first=number == 0)
        self.n_frames += 1
        return self

    def _step(self, rows: Array, *, first: bool) -> None:
        """Learn from patches; those of earlier frames decay at the first step of a frame."""
        dtype = rows.dtype if self.state is None else self.state.D.dtype
        batches = DatasetBatches(ArraySource.of(rows.astype(dtype, copy=False)))
        with Run(self.n_threads) as run:
            if self.state is None:
                # The past decays once per frame, below; the learner itself forgets nothing.
                learner = Online(batch_size=_BATCH, rho=0.0, memory="all")
                settings = RunSettings.of(self.coder, None, learner)
                state = initial_state(
                    batches, self.n_atoms, settings, None, self._seed, self.n_threads, stream=True
                )
            else:
                state = self.state.copy()  # which stays as it is if the step fails
            if first and self.state is not None:
                for part in state.stats:
                    part.decay(self.retain)
                state.surrogate *= self.retain
                state.history.clear()  # a stream may have no end: one frame is kept
            run.single_step(state, batches.whole())
        self.state = state
        if run.interrupted():
            raise KeyboardInterrupt


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
        All of the same shape and dtype: unsigned integers or floats.
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


def _clean(
    window: deque[_Pending], grid: PatchGrid, learner: FrameLearner, error: float, stride: int
) -> None:
    """Learn from the frames of the window, and add the patches αD to the sums of each frame."""
    pixels = grid.pixels[0]
    if error > 0:
        learner.min_contrast = error
        learner.coder = ErrorBound(grid.n_features * error**2)
        if learner.state is not None:
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
