"""Video: a dictionary that follows a stream of frames, and frames cleaned with it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from smalto.checks import Array, check_integer, check_number
from smalto.coders import ErrorBound
from smalto.coders.base import Coder, check_coder
from smalto.image.denoise import clean_average, default_gain
from smalto.image.frames import Frame, as_frame
from smalto.image.noise import estimate_noise
from smalto.image.overlap import PatchAverage
from smalto.image.patches import NoPatchError, PatchSource
from smalto.image.pictures import check_fits, check_size, check_stride
from smalto.image.stack import Stack
from smalto.learners import Online
from smalto.learning import State
from smalto.learning.batches.dataset import DatasetBatches
from smalto.learning.initial import as_seed, initial_state
from smalto.learning.run import Run
from smalto.learning.setup import Setup
from smalto.sources import ArraySource, Order
from smalto.threads import resolve_threads

_BATCH = 1024  # patches in a step of learning


class FrameLearner:
    """A dictionary that follows a stream of frames: learns from each, forgets old ones.

    After each frame what was learned before counts ``forget`` times as much as until then: the
    dictionary minimises the cost of the patches of about the last ``1 / (1 − forget)`` frames.
    Memory is that of the statistics (k² + km numbers) and of one frame.

    Parameters
    ----------
    patch_size : int or (int, int), default 8
        Height and width of a patch.
    n_atoms : int, default 256
        How many atoms.
    coder : coder, optional
        What a sparse code is; `Lasso` by default.
    channel_axis : int, optional
        The axis of the channels of a frame; None for grey frames.
    forget : float, default 0.9
        What is left of the weight of the past when a frame comes, at most 1.
    steps_per_frame : int, default 4
        How many steps of 1 024 patches are learned from each frame.
    min_contrast : float, default 0
        Patches whose pixels differ less than this from their mean are left out.
    n_threads : int, optional
        Threads to use; every available core by default. The result does not depend on it.
    random_state : int, Generator or RandomState, default 0
        Decides which patches are learned from.

    Attributes
    ----------
    D : array (k, m)
        The dictionary now.
    n_frames : int
        How many frames have been seen.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.coders import Lasso
    >>> from smalto.image import FrameLearner
    >>> follower = FrameLearner(6, n_atoms=16, coder=Lasso(0.1))
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(3):
    ...     follower = follower.partial_fit(rng.random((40, 50)))
    >>> follower.D.shape, follower.n_frames
    ((16, 36), 3)
    """

    def __init__(
        self,
        patch_size: int | tuple[int, int] = 8,
        n_atoms: int = 256,
        coder: Coder | None = None,
        *,
        channel_axis: int | None = None,
        forget: float = 0.9,
        steps_per_frame: int = 4,
        min_contrast: float = 0.0,
        n_threads: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.patch_size = check_size(patch_size)
        self.n_atoms = check_integer("n_atoms", n_atoms)
        self.coder = None if coder is None else check_coder(coder)
        self.channel_axis = channel_axis
        self.forget = check_number("forget", forget, low=0.0, high=1.0)
        self.steps_per_frame = check_integer("steps_per_frame", steps_per_frame)
        self.min_contrast = check_number("min_contrast", min_contrast, low=0.0)
        self.n_threads = resolve_threads(n_threads)
        self.n_frames = 0
        self.state: State | None = None
        self._seed = as_seed(random_state)

    @property
    def D(self) -> Array:
        """The dictionary now (k, m)."""
        if self.state is None:
            message = "nothing has been learned yet: call partial_fit with a frame"
            raise ValueError(message)
        return self.state.D

    def partial_fit(self, frame: Any) -> FrameLearner:
        """Learn from the next frame.

        Parameters
        ----------
        frame : array (height, width), or with an axis of channels
            Unsigned integers or floats. Frames may differ in size. One without a usable patch
            (black, say) is passed over.

        Returns
        -------
        self
        """
        return self.learn_from(as_frame(frame, self.channel_axis, what="frame").pixels)

    def learn_from(self, pixels: Array) -> FrameLearner:
        """Learn from checked pixels (height, width, channels)."""
        check_fits(self.patch_size, pixels.shape, "frame")
        stack = Stack(pixels[None], self.patch_size)
        m = self.patch_size[0] * self.patch_size[1] * stack.channels
        if self.state is not None and self.state.D.shape[1] != m:
            message = (
                f"atoms have {self.state.D.shape[1]} numbers, patches of this frame {m}: all "
                "frames must have the same channels"
            )
            raise ValueError(message)
        try:
            source = PatchSource.of_stack(
                stack, self.min_contrast, skip_constant=True, by_channel=True,
                n_threads=self.n_threads,
            )  # fmt: skip
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
        dtype = rows.dtype if self.state is None else self.state.D.dtype
        batches = DatasetBatches(ArraySource.of(rows.astype(dtype, copy=False)))
        with Run(self.n_threads) as run:
            if self.state is None:
                # Forgetting is by frames, here; the learner itself keeps what it has seen.
                setup = Setup.of(self.coder, None, Online(batch_size=_BATCH, rho=0.0, memory="all"))
                self.state = initial_state(
                    batches, self.n_atoms, setup, None, self._seed, self.n_threads, stream=True
                )
            elif first:
                for part in self.state.stats:
                    part.decay(self.forget)
                self.state.surrogate *= self.forget
                self.state.history.clear()  # a stream may have no end: one frame is kept
            run.single_step(self.state, batches.whole())
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
    forget: float = 0.9,
    steps_per_frame: int = 4,
    gain: float | None = None,
    blend: float = 0.01,
    stride: int = 1,
    n_threads: int | None = None,
    random_state: Any = 0,
) -> Iterator[Array]:
    """Remove white Gaussian noise from a stream of frames, as it comes.

    Patches reach over ``depth`` frames in a row; they are coded as in `denoise` over a dictionary
    that follows the stream (`FrameLearner`), and a pixel is the mean of all patches that cover it,
    in all the places and moments. Frame t can be given when frame ``t + depth − 1`` has come.
    Memory is that of ``depth`` frames, whatever the length of the stream.

    Parameters
    ----------
    frames : iterable of arrays (height, width), or with an axis of channels
        All of one shape and dtype: unsigned integers or floats.
    sigma : float, optional
        The standard deviation of the noise, in the units of the frames. By default what
        `estimate_noise` says, as a running mean over frames.
    channel_axis : int, optional
        The axis of the channels of a frame; None for grey frames.
    depth : int, default 3
        How many frames a patch reaches over; 1 cleans each frame by itself.
    patch_size : int or (int, int), default 8
        Height and width of a patch.
    n_atoms, forget, steps_per_frame, n_threads, random_state
        As for `FrameLearner`.
    gain, blend, stride
        As for `denoise`.

    Yields
    ------
    array
        The frames without noise, in order, in their shape and dtype.

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
    >>> clean = list(denoise_video(noisy, 5.0, n_atoms=16))
    >>> len(clean), bool(np.std(clean) < 1.0)
    (4, True)
    """
    size = check_size(patch_size)
    depth, stride = check_integer("depth", depth), check_stride(stride, size)
    blend = check_number("blend", blend, low=0.0)
    gain = None if gain is None else check_number("gain", gain, low=0.0)
    sigma = None if sigma is None else check_number("sigma", sigma, low=0.0)
    threads = resolve_threads(n_threads)
    check_number("forget", forget, low=0.0, high=1.0)
    window: deque[tuple[Frame, Array]] = deque()  # frames, and what is known of each so far
    learner: FrameLearner | None = None
    level = _Level(sigma, forget)
    settings: dict[str, Any] = {
        "forget": forget, "steps_per_frame": steps_per_frame, "n_threads": threads,
        "random_state": random_state,
    }  # fmt: skip
    for number, image in enumerate(frames):
        frame = as_frame(image, channel_axis, what=f"frame {number}")
        if window and frame.pixels.shape != window[0][0].pixels.shape:
            message = (
                f"frame {number} is {frame.pixels.shape}, those before it are "
                f"{window[0][0].pixels.shape}: all must have one shape"
            )
            raise ValueError(message)
        check_fits(size, frame.pixels.shape, f"frame {number}")
        noise = level.after(image, channel_axis)
        window.append((frame, np.zeros((2, *frame.pixels.shape))))
        if len(window) == depth:
            pixels = _side_by_side(window)
            m = size[0] * size[1] * pixels.shape[2]
            error = (default_gain(m) if gain is None else gain) * noise
            if learner is None:
                coder = ErrorBound(m * error**2)
                learner = FrameLearner(size, n_atoms, coder, **settings)
            _clean(window, pixels, learner, error, stride, threads)
            yield _result(*window.popleft(), blend)
    if window and learner is None:  # a stream shorter than a patch is deep
        yield from denoise_video(
            [frame.like(frame.pixels) for frame, _ in window], sigma, channel_axis=channel_axis,
            depth=len(window), patch_size=size, n_atoms=n_atoms, gain=gain, blend=blend,
            stride=stride, **settings,
        )  # fmt: skip
        return
    while window:
        yield _result(*window.popleft(), blend)


class _Level:
    """The level of the noise: given, or estimated frame by frame with a fading memory."""

    def __init__(self, sigma: float | None, forget: float) -> None:
        self.sigma, self.forget = sigma, forget
        self.total = self.weight = 0.0

    def after(self, image: Any, channel_axis: int | None) -> float:
        """The level after one more frame."""
        if self.sigma is not None:
            return self.sigma
        self.total = self.forget * self.total + estimate_noise(image, channel_axis=channel_axis)
        self.weight = self.forget * self.weight + 1.0
        return self.total / self.weight


def _side_by_side(window: Iterable[tuple[Frame, Array]]) -> Array:
    """Frames as the channels of one picture."""
    return np.ascontiguousarray(np.concatenate([frame.pixels for frame, _ in window], axis=2))


def _clean(
    window: deque[tuple[Frame, Array]],
    pixels: Array,
    learner: FrameLearner,
    error: float,
    stride: int,
    n_threads: int,
) -> None:
    """Learn from the frames of the window, and add what codes say to the sums of each."""
    stack = Stack(pixels[None], learner.patch_size)
    if error > 0:
        m = stack.size[0] * stack.size[1] * stack.channels
        learner.min_contrast, learner.coder = error, ErrorBound(m * error**2)
        if learner.state is not None:
            learner.state.coder = learner.coder
        learner.learn_from(pixels)
    D = np.zeros((1, stack.size[0] * stack.size[1] * stack.channels), pixels.dtype)
    if learner.state is not None:
        D = learner.D
    if error > 0:
        average: PatchAverage = clean_average(stack, D, error, stride, n_threads)
        clean, weight = average.image(), average.weight
    else:
        clean, weight = pixels, np.ones_like(pixels)
    channels = pixels.shape[2] // len(window)
    for i, (_, sums) in enumerate(window):
        part = np.s_[:, :, i * channels : (i + 1) * channels]
        sums[0] += weight[part] * clean[part]
        sums[1] += weight[part]


def _result(frame: Frame, sums: Array, blend: float) -> Array:
    clean = sums[0] / sums[1]
    return frame.like(clean + blend / (1.0 + blend) * (frame.pixels - clean))
