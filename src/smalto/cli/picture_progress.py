"""How far the restoration of pictures is: one picture, or many."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from smalto.learning import Callback, Progress
from smalto.learning.callbacks.base import Share
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State

_LEARNING = 0.5  # share of the time for a picture that learning takes, roughly
_CODED = 0.99  # share when all is coded: files are still to be written
_LABEL = "learning atoms"


class PictureProgress:
    """A bar, or lines, over pictures; of a single one it shows how its atoms are learned."""

    def __init__(self, label: str, n_pictures: int) -> None:
        self.n_pictures = n_pictures
        self._bar = Progress(label=label if n_pictures > 1 else _LABEL)
        self._shares: dict[Path, float] = {}
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()

    def watch(self, source: Path, is_stopped: Callable[[], bool] = lambda: False) -> Watch:
        """Return the callback for one picture."""
        return Watch(self, source, is_stopped)

    def learned(self, source: Path, share: float | None, about: str) -> None:
        """Show how much of the atoms of a picture has been learned."""
        with self._lock:
            if self.n_pictures == 1:
                if self._bar.label != _LABEL:  # another round
                    self._bar.close()
                    self._bar.label = _LABEL
                self._bar.show(share, about)
            elif share is not None:
                self._shares[source] = _LEARNING * share
                self._show(source)

    def coded(self, source: Path, what: str, share: float) -> None:
        """Show which share of the patches of a picture has been coded."""
        with self._lock:
            if self.n_pictures == 1:
                if self._bar.label != what:
                    self._bar.close()
                    self._bar.label = what
                self._bar.show(share, "")
            else:
                before = self._shares.get(source, 0.0)
                self._shares[source] = max(before, _LEARNING + (_CODED - _LEARNING) * share)
                self._show(source)

    def advance(self, source: Path) -> None:
        """Show that a picture is done."""
        with self._lock:
            self._shares[source] = 1.0
            self._show(source)

    def _show(self, source: Path) -> None:
        shares = self._shares.values()
        n_done = sum(share == 1.0 for share in shares)
        about = f"{n_done} of {self.n_pictures} pictures, {source.name}"
        self._bar.show(min(sum(shares) / self.n_pictures, 1.0), about)

    def say(self, text: str) -> None:
        """Write a line to the standard error, above the bar."""
        from tqdm.auto import tqdm

        with self._lock:
            tqdm.write(text, file=sys.stderr)


class Watch(Callback):
    """Shows the learning of one picture; Ctrl-C ends all of it, not only the learning."""

    def __init__(
        self, progress: PictureProgress, source: Path, is_stopped: Callable[[], bool]
    ) -> None:
        self._progress, self._source, self._is_stopped = progress, source, is_stopped
        self._share: Share | None = None

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed while other pictures were restored."""
        if self._is_stopped():
            raise KeyboardInterrupt

    def begin(self, state: State, share: Share) -> None:
        """Start anew."""
        self._share = share

    def __call__(self, state: State, record: Record) -> None:
        """Show a step."""
        self.check()
        share = None if self._share is None else self._share(record)
        self._progress.learned(self._source, share, f"{record.mean_nonzeros:.1f} atoms per patch")

    def end(self, stopped: str, error: BaseException | None) -> None:
        """End the restoration if the learning was stopped."""
        if stopped == "interrupt":
            raise KeyboardInterrupt

    def tell(self, what: str, share: float) -> None:
        """Show how much of the patches has been coded."""
        self.check()
        self._progress.coded(self._source, what, share)
