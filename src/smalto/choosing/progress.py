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
    label : str
        What is being done.
    """

    def __init__(self, total: int, label: str) -> None:
        super().__init__(label=label)
        self._total, self._done, self._lock = total, 0, threading.Lock()

    def skip(self, count: int) -> None:
        """Count fits that were done before; they say nothing about the time left."""
        self._done += count
        self._from = self._done / self._total

    def tell(self, about: str) -> None:
        """Count a fit."""
        with self._lock:
            self._done += 1
            share = self._done / self._total
            text = f"{self._done} of {self._total} fits, {about}"
            if self._from is None:
                self._from = 0.0
            self.show(share, text)
