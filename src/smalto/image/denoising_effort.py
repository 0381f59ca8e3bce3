"""Levels of quality against time in denoising."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """What a level does."""

    max_steps: int  # of learning, from natural atoms
    stride: int  # between patches that are coded one by one
    spacing: int  # between the patches around which groups are formed
    groups: tuple[tuple[int, int], ...]  # sides, relative to the usual one, and numbers of patches
    rounds: int = 0  # in which similar patches are combined in the end

    @property
    def joint(self) -> bool:
        """Whether similar patches are coded together."""
        return len(self.groups) > 0


LEVELS = (  # the first one also for volumes and series
    Effort(max_steps=0, stride=1, spacing=4, groups=()),
    Effort(max_steps=40, stride=3, spacing=4, groups=((0, 32),)),
    Effort(max_steps=300, stride=2, spacing=3, groups=((-2, 24), (0, 32), (2, 48)), rounds=12),
)
