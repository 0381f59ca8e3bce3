"""Random orders of rows, computed instead of stored: a position is an epoch and a place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from smalto.checks import Array
from smalto.kernels.permutation import permute

# Draws that belong to no epoch of learning use the orders of epoch numbers that no run reaches.
FIRST_SAMPLES = 1 << 40  # samples from which the first dictionary and λ are chosen
FEATURE_CYCLES = 1 << 41  # features that a step reads: one order per pass over all features
SKETCHES = 1 << 41  # samples and features that the first stages of alternating descent read


class RowOrder(Protocol):
    """An order of the rows of a source, a new one for each epoch.

    See Also
    --------
    Order : All rows in random order.
    ChunkOrder : Chunks in random order.
    """

    def take(self, epoch: int, begin: int, end: int) -> Array:
        """Return the row numbers at places ``begin`` to ``end`` of this epoch's order."""


@dataclass(frozen=True)
class Order:
    """A pseudo-random order of the numbers below n, a new one for each epoch.

    It is a keyed permutation, not a shuffled list: memory is constant, however large n is.

    Parameters
    ----------
    n : int
        How many numbers there are.
    seed : int
        The order is derived from it.

    See Also
    --------
    ChunkOrder : For rows that lie in chunks.
    """

    n: int
    seed: int

    def take(self, epoch: int, begin: int, end: int) -> Array:
        """Return the numbers at places ``begin`` to ``end`` of this epoch's order."""
        bits = max(self.n - 1, 1).bit_length()
        out = np.empty(max(min(end, self.n) - begin, 0), np.int64)
        with np.errstate(over="ignore"):  # intended; NumPy warns only if kernels are not compiled
            permute(begin, self.n, -(-bits // 2), _keys(self.seed, epoch), out)
        return out


@lru_cache(maxsize=16)
def _keys(seed: int, epoch: int) -> Array:
    """Return the keys of an epoch's permutation, which every batch of the epoch uses."""
    keys: Array = np.random.SeedSequence([seed, epoch]).generate_state(4, np.uint64)
    return keys


class ChunkOrder:
    """A random order of rows that reads each chunk once per epoch.

    The chunks come in random order. A few consecutive ones make a buffer, and the rows of a
    buffer come in random order. Only the chunks of one buffer are needed at a time.

    Parameters
    ----------
    starts : array (c + 1,)
        The first row of each chunk, followed by the number of rows.
    per_buffer : int
        Number of chunks in a buffer.
    seed : int
        The order is derived from it.

    See Also
    --------
    Order : For rows that can be read in any order.
    """

    def __init__(self, starts: Array, per_buffer: int, seed: int) -> None:
        self.starts, self.per_buffer, self.seed = starts, per_buffer, seed
        self._layout_of: tuple[int, Array, Array] | None = None

    def take(self, epoch: int, begin: int, end: int) -> Array:
        """Return the row numbers at places ``begin`` to ``end`` of this epoch's order."""
        chunks, ends = self._layout(epoch)
        end = min(end, int(ends[-1]))
        parts = [np.zeros(0, np.int64)]
        while begin < end:
            buffer = int(np.searchsorted(ends, begin, side="right"))
            first = int(ends[buffer - 1]) if buffer else 0
            last = min(end, int(ends[buffer]))
            members = chunks[buffer * self.per_buffer : (buffer + 1) * self.per_buffer]
            parts.append(self._within(epoch, buffer, members, begin - first, last - first))
            begin = last
        return np.concatenate(parts)

    def around(self, epoch: int, place: int) -> tuple[Array, Array, float]:
        """Return the chunks of the buffer at this place, those of the next, and the share used."""
        chunks, ends = self._layout(epoch)
        buffer = min(int(np.searchsorted(ends, place, side="right")), len(ends) - 1)
        first = int(ends[buffer - 1]) if buffer else 0
        share = (place - first) / (int(ends[buffer]) - first)
        size = self.per_buffer
        now = chunks[buffer * size : (buffer + 1) * size]
        if buffer + 1 < len(ends):
            return now, chunks[(buffer + 1) * size : (buffer + 2) * size], share
        return now, self._chunks(epoch + 1)[:size], share

    def _within(self, epoch: int, buffer: int, members: Array, begin: int, end: int) -> Array:
        """Return the row numbers at places ``begin`` to ``end`` of a buffer of these chunks."""
        ends = np.cumsum(self.starts[members + 1] - self.starts[members])
        key = np.random.SeedSequence([self.seed, epoch, buffer]).generate_state(1, np.uint64)
        places = Order(int(ends[-1]), int(key[0])).take(0, begin, end)
        which = np.searchsorted(ends, places, side="right")
        # From a place in the buffer to a row of the source.
        numbers: Array = places + (self.starts[members + 1] - ends)[which]
        return numbers

    def _chunks(self, epoch: int) -> Array:
        count = len(self.starts) - 1
        return Order(count, self.seed).take(epoch, 0, count)

    def _layout(self, epoch: int) -> tuple[Array, Array]:
        """Return the chunks in this epoch's order, and the place at which each buffer ends."""
        known = self._layout_of
        if known is None or known[0] != epoch:
            chunks = self._chunks(epoch)
            ends = np.cumsum(self.starts[chunks + 1] - self.starts[chunks])
            last = np.arange(
                self.per_buffer - 1, len(chunks) + self.per_buffer - 1, self.per_buffer
            )
            known = (epoch, chunks, ends[np.minimum(last, len(chunks) - 1)])
            self._layout_of = known
        return known[1], known[2]
