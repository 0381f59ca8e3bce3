"""Levels of quality against time in inpainting."""

from __future__ import annotations

from dataclasses import dataclass

from smalto.image.joint_filling import Round


@dataclass(frozen=True)
class Effort:
    """What a level does."""

    codes: bool  # whether sparse codes come first
    rounds: tuple[Round, ...]  # of groups of similar patches


LEVELS = (  # the first one also for volumes and series
    Effort(codes=True, rounds=()),
    Effort(
        codes=False,
        rounds=(
            Round(8, 6, 48, 1.2),
            Round(8, 6, 48, 0.6),
            Round(8, 6, 48, 0.3),
            Round(7, 5, 32, 0.15),
            Round(6, 4, 32, 0.075),
        ),
    ),
    Effort(
        codes=True,
        rounds=(
            Round(8, 4, 48, 0.3),
            Round(8, 4, 48, 0.15),
            Round(7, 4, 48, 0.15),
            Round(6, 3, 32, 0.075),
        ),
    ),
)
