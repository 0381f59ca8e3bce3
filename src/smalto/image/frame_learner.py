"""Dictionaries that adapt to a stream of frames."""

from __future__ import annotations

from typing import Any

from smalto.checks import Array, check_finite_number, check_integer, check_number
from smalto.coders.base import Coder, check_coder
from smalto.image.checks import check_fits, check_patch_size
from smalto.image.patch_grid import PatchGrid
from smalto.image.patch_source import NoPatchError, PatchSource
from smalto.image.picture import as_picture
from smalto.learners import Online
from smalto.learning import State
from smalto.learning.batches.dataset import DatasetBatches
from smalto.learning.initial_state import as_seed, initial_state
from smalto.learning.run import Run
from smalto.learning.run_settings import RunSettings
from smalto.sources import ArraySource, Order
from smalto.threads import resolve_threads

_BATCH = 1024  # patches per learning step


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
            Integers or floats. Frames may differ in size. A frame without a usable patch
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
