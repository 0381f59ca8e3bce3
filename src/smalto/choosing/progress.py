"""How far a number of fits is."""

from __future__ import annotations

import threading

from smalto.learning.callbacks.progress import Progress


class FitProgress(Progress):
    """A bar, or lines now and then, that counts fits; it may be told of them by several threads.

    Parameters
    ----------
    total : int
        Number of fits.
    work : float
        How much all of them are to do, in any unit, for the time left.
    label : str
        What is being done.
    """

    def __init__(self, total: int, work: float, label: str) -> None:
        super().__init__(label=label)
        self._total, self._work, self._lock = total, work, threading.Lock()
        self._done, self._worked = 0, 0.0

    def skip(self, count: int, work: float) -> None:
        """Count fits that were done before; they say nothing about the time left."""
        self._done, self._worked = count, work
        self._left.after(work / self._work)

    def tell(self, work: float, about: str) -> None:
        """Count a fit."""
        with self._lock:
            self._done += 1
            self._worked += work
            share = 1.0 if self._done == self._total else min(self._worked / self._work, 1.0)
            self.show(share, f"{self._done} of {self._total} fits, {about}")
