"""Inpainting by sparse codes of the known pixels of patches, over atoms learned from the picture."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.coders import Lasso
from smalto.image.damaged_picture import DamagedPicture
from smalto.image.fixed_atoms import cosine_atoms
from smalto.image.patch_source import PatchSource
from smalto.image.smooth_part import smooth_part
from smalto.kernels.ahead import expecting
from smalto.learners import Online
from smalto.learning import learn
from smalto.learning.callbacks.base import CallbackLike
from smalto.warn import without_warnings

_BATCH = 1024  # patches per learning step
_EPOCHS = 8  # passes over the patches, at most: small pictures have few
_ENOUGH = 20  # undamaged patches per atom, to learn from these alone
_ROUGH = 4  # stride, at least, of fillings that only serve to learn atoms
_PENALTY = 0.16  # lam for details of standard deviation 1 if all of them are known
_LEARNING_PENALTY = 4.0  # lam in learning, relative to that in filling ...
_UNDAMAGED_PENALTY = 8.0  # ... and if undamaged patches are enough to learn from


@dataclass(frozen=True)
class Codes:
    """How atoms are learned, and patches coded over them."""

    n_atoms: int
    max_steps: int
    n_rounds: int
    lam: float | None
    stride: int
    callbacks: Iterable[CallbackLike]
    n_threads: int
    random_state: Any

    def fill(self, pixels: Array, missing: Array, size: tuple[int, ...], D: Array | None) -> Array:
        """Fill the missing pixels of a picture (height, width, channels)."""
        smooth = smooth_part(pixels, missing, self.n_threads)
        details = np.where(missing[..., None], 0, pixels - smooth).astype(smooth.dtype)
        smooth = smooth[missing]
        lam = _default_lam(details, missing) if self.lam is None else self.lam
        damaged = DamagedPicture(details, missing, size, Lasso(lam), self.n_threads)
        with expecting("lasso", "L2Ball", dtype=pixels.dtype):
            undamaged = damaged.undamaged_patches() if D is None else None
            if undamaged is not None and undamaged.n_rows >= _ENOUGH * self.n_atoms:
                D = self._learn(undamaged, None, 2, _UNDAMAGED_PENALTY * lam)
            if D is not None:
                filled = damaged.fill(D, self.stride)
            else:
                filled = self._fill_in_rounds(damaged, _LEARNING_PENALTY * lam)
        whole = pixels.copy()
        whole[missing] = smooth + filled[missing]
        return whole

    def _learn(self, source: PatchSource, first: Array | None, shares: int, lam: float) -> Array:
        """Learn atoms in this share of all steps, beginning with others."""
        count = min(self.n_atoms, source.n_rows)
        quiet = self.lam is None  # no lam to change
        with without_warnings("every code is zero") if quiet else nullcontext():
            return learn(
                source,
                count,
                Lasso(lam),
                learner=Online(batch_size=_BATCH),
                init=first if first is not None and len(first) == count else None,
                max_steps=-(-self.max_steps // shares),
                max_epochs=_EPOCHS,
                callbacks=self.callbacks,
                n_threads=self.n_threads,
                random_state=self.random_state,
            ).D

    def _fill_in_rounds(self, damaged: DamagedPicture, lam: float) -> Array:
        """Fill with cosines, then repeatedly with atoms learned from the filled picture."""
        rough = max(self.stride, min(_ROUGH, *damaged.size))
        channels, dtype = damaged.pixels.shape[-1], damaged.pixels.dtype
        filled = damaged.fill(cosine_atoms(damaged.size, channels, dtype=dtype), rough)
        D = None
        for i in range(self.n_rounds):
            source = damaged.patches_of(filled)
            if source is None:  # a picture of a single color
                break
            D = self._learn(source, D, self.n_rounds, lam)
            filled = damaged.fill(D, self.stride if i == self.n_rounds - 1 else rough)
        return filled


def _default_lam(details: Array, missing: Array) -> float:
    """The penalty for details of this size, of which this many are known."""
    channels = np.moveaxis(details, -1, 0)
    deviation = float(np.mean([channel[~missing].std() for channel in channels]))
    return _PENALTY * deviation / (1.0 - float(missing.mean()))
