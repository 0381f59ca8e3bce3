"""A callback that shows how far a run is."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from smalto.checks import check_number
from smalto.learning.callbacks.base import Callback, Share
from smalto.learning.callbacks.time_left import TimeLeft
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State


class Progress(Callback):
    """How far a run is, with the time left, the cost, the nonzeros per sample and the speed.

    In a terminal or a notebook it is a bar. Elsewhere, as in a file or a pipe, it is a line now and
    then, and one at the end. Both go to the standard error.

    Parameters
    ----------
    every_seconds : float, default 10
        Seconds between two lines where there is no bar.
    label : str, default "learning"
        What is being done.

    See Also
    --------
    Log : Keeps all records of a run in a file.
    Callback : For callbacks of your own.
    """

    def __init__(self, every_seconds: float = 10.0, label: str = "learning") -> None:
        self.every_seconds = check_number("every_seconds", every_seconds, low=0)
        self.label = label
        self._share: Share | None = None
        self._clear()

    def _clear(self) -> None:
        self._bar: Any = None
        self._cost: float | None = None
        self._held_out = ""  # cost, as it was measured last
        self._line = ""  # that is not on the screen yet
        self._last: tuple[float | None, str] = None, ""  # share and text, as shown last
        self._told = time.monotonic()
        self._left = TimeLeft()

    def begin(self, state: State, share: Share) -> None:
        """Start anew."""
        self.close()
        self._share = share

    def __call__(self, state: State, record: Record) -> None:
        """Show a step."""
        # The costs of single batches fluctuate: show their running mean.
        cost = record.batch_cost
        self._cost = cost if self._cost is None else 0.9 * self._cost + 0.1 * cost
        self.show(None if self._share is None else self._share(record), self._about(record))

    def show(self, share: float | None, about: str) -> None:
        """Show how much is done, if that is known, and a text, in a bar or a line."""
        left = None if share is None else self._left.after(share)
        self._last = share, about
        self._put(
            share, "" if left is None else f"{int(left) // 60}:{int(left) % 60:02} left", about
        )

    def end(self, stopped: str, error: BaseException | None) -> None:
        """Say that a run has ended before its limits: no time is left then."""
        share, about = self._last
        if share is not None and share < 1.0:
            self._put(share, "ended", about)

    def _put(self, share: float | None, left: str, about: str) -> None:
        if _has_bar():
            self._show_bar(share, left, about)
        else:
            self._show_line(share, left, about)

    def _about(self, record: Record) -> str:
        if record.test_cost is not None:
            self._held_out = f", held-out {record.test_cost:.5g}"
        speed = record.samples / max(record.seconds, 1e-9)
        return (
            f"{record.samples:,} samples, cost {self._cost:.5g}{self._held_out}, "
            f"{record.mean_nonzeros:.1f} nonzeros, {speed:,.0f} samples/s"
        )

    def _show_bar(self, share: float | None, left: str, about: str) -> None:
        if self._bar is None:
            from tqdm.auto import tqdm  # on first use: it takes longer to import than to run

            known = _knows_its_size()
            # tqdm puts a comma before what is set as "postfix".
            rest = "" if share is None else " {percentage:3.0f}%|{bar}| {unit}"
            self._bar = tqdm(
                total=None if share is None else 1.0,
                desc=self.label,
                bar_format=f"{{desc}}{rest}{{postfix}}",
                dynamic_ncols=known,
                ncols=None if known else 100,
                nrows=None if known else 24,
            )
        self._bar.unit = left or "? left"
        self._bar.set_postfix_str(about, refresh=False)
        self._bar.update(1 if share is None else share - self._bar.n)

    def _show_line(self, share: float | None, left: str, about: str) -> None:
        now = time.monotonic()
        done = "" if share is None else f"{100 * share:.0f} %"
        self._line = f"{self.label}: {', '.join(filter(None, (done, left, about)))}\n"
        if now - self._told >= self.every_seconds:
            self._told = now
            self._write()

    def _write(self) -> None:
        if self._line and sys.stderr is not None:
            sys.stderr.write(self._line)
            sys.stderr.flush()
        self._line = ""

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes to copy: all but what belongs to a run."""
        return {**vars(self), "_bar": None, "_share": None, "_line": ""}

    def close(self) -> None:
        """End the bar, which stays on the screen, or write the last line."""
        if self._bar is not None:
            self._bar.close()
        self._write()
        self._clear()


def _has_bar() -> bool:
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


def _knows_its_size() -> bool:
    """Return whether the standard error is not a terminal that says it has no columns or rows."""
    try:
        return min(os.get_terminal_size(sys.stderr.fileno())) > 0
    except (OSError, ValueError, AttributeError):  # of a notebook, or replaced by something else
        return True
