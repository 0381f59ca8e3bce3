"""Choosing a model: how many atoms, which penalty, how stable, how good."""

from smalto.choosing._select import select
from smalto.choosing.held_out import Blocks, Entries, HeldOut
from smalto.choosing.selection import Selection

__all__ = ["Blocks", "Entries", "HeldOut", "Selection", "select"]
