"""Choosing a model: how many atoms, which penalty, how stable, how good."""

from smalto.choosing._consensus import consensus
from smalto.choosing._quality import Quality, quality
from smalto.choosing._select import select
from smalto.choosing.agreement import Agreement, Consensus
from smalto.choosing.held_out import Blocks, Entries, HeldOut
from smalto.choosing.measures import (
    coherence,
    dead_atoms,
    duplicate_atoms,
    effective_rank,
    matched_similarity,
    r2,
)
from smalto.choosing.selection import Selection

__all__ = [
    "Agreement",
    "Blocks",
    "Consensus",
    "Entries",
    "HeldOut",
    "Quality",
    "Selection",
    "coherence",
    "consensus",
    "dead_atoms",
    "duplicate_atoms",
    "effective_rank",
    "matched_similarity",
    "quality",
    "r2",
    "select",
]
