"""Levels of quality against time in denoising."""

from __future__ import annotations

from dataclasses import dataclass

from smalto.checks import check_integer


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


LEVELS = (
    Effort(max_steps=0, stride=1, spacing=4, groups=()),
    Effort(max_steps=40, stride=3, spacing=4, groups=((0, 32),)),
    Effort(max_steps=300, stride=2, spacing=3, groups=((-2, 24), (0, 32), (2, 48)), rounds=12),
)
_USUAL = 1


def check_effort(effort: int, axes: int = 2) -> Effort:
    """Return the level of this number, for pictures with two axes."""
    number = check_integer("effort", effort, low=0)
    if number >= len(LEVELS):
        message = f"effort must be at most {len(LEVELS) - 1}, got {number}"
        raise ValueError(message)
    if axes == 2:
        return LEVELS[number]
    if number != _USUAL:
        message = (
            f"effort={number} is for pictures, with two axes, but image has {axes}: leave it out"
        )
        raise ValueError(message)
    return LEVELS[0]  # volumes and series: patches one by one
