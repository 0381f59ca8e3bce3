"""The time that a run still needs."""

from __future__ import annotations

import time


class TimeLeft:
    """Estimates the time left from the pace since it was first asked: compiling comes before."""

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None  # share that was done, and when

    def after(self, share: float) -> float | None:
        """Return the seconds left when this share of a run is done; None if that is unknown."""
        now = time.monotonic()
        if self._first is None:
            self._first = share, now
        done, since = share - self._first[0], now - self._first[1]
        return since * (1.0 - share) / done if done > 0 else None
