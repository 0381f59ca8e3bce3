"""A callback that shows a progress bar."""

from __future__ import annotations

from typing import Any

from smalto.learning.callbacks.base import Callback
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State


class Progress(Callback):
    """A progress bar with the cost, the nonzeros per sample and the speed.

    Parameters
    ----------
    total : int, optional
        Number of samples in the whole run. If it is given, the bar shows the time left.
    unit : str, default "samples"
        The word for samples in the bar.

    See Also
    --------
    Callback : For callbacks of your own.
    """

    def __init__(self, total: int | None = None, unit: str = "samples") -> None:
        self.total = total
        self.unit = unit
        self._bar: Any = None
        self._cost: float | None = None

    def __call__(self, state: State, record: Record) -> None:
        """Update the bar."""
        if self._bar is not None and record.samples < self._bar.n:
            self.close()  # a new run has begun
        if self._bar is None:
            self._cost = None
            from tqdm.auto import tqdm  # on first use: it takes longer to import than to run

            self._bar = tqdm(total=self.total, unit=f" {self.unit}", unit_scale=True)
        # The costs of single batches fluctuate: show their running mean.
        cost = record.batch_cost
        self._cost = cost if self._cost is None else 0.9 * self._cost + 0.1 * cost
        shown = {"cost": f"{self._cost:.4f}", "nonzeros": f"{record.mean_nonzeros:.1f}"}
        if record.test_cost is not None:
            shown["test"] = f"{record.test_cost:.4f}"
        self._bar.set_postfix(shown, refresh=False)
        self._bar.update(record.samples - self._bar.n)
        if self.total is not None and record.samples >= self.total:
            self.close()

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes to copy: all but the bar on the screen."""
        return {**vars(self), "_bar": None}

    def close(self) -> None:
        """Close the bar; it stays on the screen."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
