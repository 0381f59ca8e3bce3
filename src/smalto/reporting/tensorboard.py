"""A callback that writes a run for TensorBoard."""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from smalto.checks import check_integer
from smalto.learning.callbacks.base import Callback, Share
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State
from smalto.plot.mosaics import check_shape, mosaic

_SCALARS = {
    "cost/batch": "batch_cost",
    "cost/surrogate": "surrogate",
    "cost/held-out": "test_cost",
    "codes/nonzeros": "mean_nonzeros",
    "codes/lam": "lam",
    "atoms/used": "used",
    "atoms/replaced": "replaced",
    "atoms/density": "density",
    "time/seconds": "seconds",
    "time/samples": "samples",
}
_WRITERS = ("tensorboardX", "torch.utils.tensorboard")


class TensorBoard(Callback):
    """Write a run for TensorBoard: the numbers of each step, the use of atoms and their pictures.

    It needs ``tensorboardX`` (``pip install "smalto[tensorboard]"``) or PyTorch with TensorBoard.

    Parameters
    ----------
    folder : path
        Where to write; each run has a folder of its own. ``tensorboard --logdir`` shows it.
    every_steps : int, default 50
        Number of steps between two histograms of the use of atoms, and between two mosaics.
    patch_shape : (height, width) or (height, width, 3), optional
        The shape of atoms that are pictures, to draw them in a mosaic.
    writer : object, optional
        A writer to use, with the methods of ``SummaryWriter``, instead of a new one. It is not
        closed.

    See Also
    --------
    Report : A page that needs neither TensorBoard nor a server.

    Examples
    --------
    >>> from smalto.reporting import TensorBoard
    >>> callbacks = [TensorBoard("runs/first", patch_shape=(8, 8))]  # doctest: +SKIP
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        every_steps: int = 50,
        *,
        patch_shape: Sequence[int] | None = None,
        writer: Any = None,
    ) -> None:
        self.folder = os.fspath(folder)
        self.every_steps = check_integer("every_steps", every_steps)
        self.patch_shape = None if patch_shape is None else tuple(patch_shape)
        self.writer = writer
        self._kind = None if writer is not None else _find_writer()
        self._opened: Any = None
        self._drawn = -1  # the step of the last histogram

    def begin(self, state: State, share: Share) -> None:
        """Check the shape of atoms, and write the costs of held-out samples before the first step."""
        if self.patch_shape is not None:
            check_shape(self.patch_shape, state.D.shape[1])
        self._drawn = -1
        writer = self._writer()
        for record in state.history if state.step == 0 else []:
            _write_scalars(writer, record)

    def __call__(self, state: State, record: Record) -> None:
        """Write a step."""
        _write_scalars(self._writer(), record)
        if record.step % self.every_steps == 0:
            self._draw(state)

    def finish(self, state: State) -> None:
        """Write the last use of atoms, and the cost of held-out samples that was measured last."""
        if state.history and state.history[-1].test_cost is not None:
            _write_scalars(self._writer(), state.history[-1], ["cost/held-out"])
        if state.step and self._drawn != state.step:
            self._draw(state)

    def close(self) -> None:
        """Write what is left; close the writer, unless it was given."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None
        elif self.writer is not None:
            self.writer.flush()

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes to copy: all but the open writer."""
        return {**vars(self), "_opened": None}

    def _writer(self) -> Any:
        if self.writer is not None:
            return self.writer
        if self._opened is None:
            module = importlib.import_module(str(self._kind))
            self._opened = module.SummaryWriter(self.folder)
        return self._opened

    def _draw(self, state: State) -> None:
        """Write the histogram of the use of atoms, and the mosaic."""
        writer, self._drawn = self._writer(), state.step
        energy = state.energy()
        shares = energy / (energy.sum() or 1.0)
        writer.add_histogram("atoms/use", shares, state.step)
        if self.patch_shape is not None:
            order = np.argsort(-energy, kind="stable")
            zoom = max(1, round(24 / self.patch_shape[0]))
            picture = mosaic(state.D, self.patch_shape, order=order, zoom=zoom)
            pixels = np.round(255 * picture).astype(np.uint8)
            writer.add_image("atoms/mosaic", pixels, state.step, dataformats="HWC")


def _write_scalars(writer: Any, record: Record, tags: Sequence[str] = tuple(_SCALARS)) -> None:
    for tag in tags:
        value = getattr(record, _SCALARS[tag])
        if value is not None and math.isfinite(value):
            writer.add_scalar(tag, value, record.step)


def _find_writer() -> str:
    """Return the module that has a writer; raise ImportError, with the way out, if there is none."""
    for name in _WRITERS:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        return name
    message = (
        'TensorBoard needs tensorboardX: pip install "smalto[tensorboard]" '
        "(or PyTorch with tensorboard)"
    )
    raise ImportError(message)
