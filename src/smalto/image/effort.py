"""The choice among levels of quality against time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from smalto.checks import check_integer

Level = TypeVar("Level")
_USUAL = 1


def chosen_level(levels: Sequence[Level], effort: int, axes: int = 2) -> Level:
    """Return the level of this number, for pictures with two axes, and the first one for others."""
    number = check_integer("effort", effort, low=0, high=len(levels) - 1)
    if axes == 2:
        return levels[number]
    if number != _USUAL:
        message = (
            f"effort={number} is for pictures, with two axes, but image has {axes}: leave it out"
        )
        raise ValueError(message)
    return levels[0]
