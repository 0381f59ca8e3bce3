"""Levels of quality against time in inpainting."""

from __future__ import annotations

from dataclasses import dataclass

from smalto.checks import check_integer
from smalto.image.joint_filling import Round


@dataclass(frozen=True)
class Effort:
    """What a level does."""

    codes: bool  # whether sparse codes come first
    rounds: tuple[Round, ...]  # of groups of similar patches


LEVELS = (
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
    return LEVELS[0]  # volumes and series: codes alone
