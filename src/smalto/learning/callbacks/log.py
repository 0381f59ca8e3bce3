"""A callback that writes the records of a run to a file."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TextIO

from smalto.learning.callbacks.base import Callback, Share
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State

_TOGETHER = 0.2  # seconds between two times that records are written


class Log(Callback):
    """Write each `Record` of a run to a file, as it comes: JSON lines (.jsonl), or CSV (.csv).

    The file always has the whole run: one that is resumed begins with the records of its first
    part. A file that is there is replaced when a run begins. Steps that follow each other quickly
    are written together, a fifth of a second later at most. Unknown values are null in JSON, and
    empty in CSV.

    Parameters
    ----------
    path : path
        The file to write.

    See Also
    --------
    Progress : Shows how far a run is.
    smalto.plot.cost_curve : Plots the costs of a run.

    Examples
    --------
    >>> from smalto.learning import Log
    >>> callbacks = [Log("run.jsonl")]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.suffix not in _LINES:
            message = f"a log must be a file *{' or *'.join(_LINES)}, got {self.path.name}"
            raise ValueError(message)
        self._as_line = _LINES[self.path.suffix]
        self._begun = False
        self._clear()

    def _clear(self) -> None:
        self._file: TextIO | None = None  # open during a run that has a beginning
        self._waiting: list[Record] = []  # records that are not in the file yet
        self._written = 0.0  # when some were written last
        self._last: Record | None = None  # the last record in the file

    def begin(self, state: State, share: Share) -> None:
        """Write what has happened so far."""
        self._rewrite(state.history)
        self._file = self._open()

    def __call__(self, state: State, record: Record) -> None:
        """Append a line."""
        if not self._begun:  # `partial_fit`
            self._rewrite(state.history)
        elif self._file is None:
            with self._open() as file:
                file.write(self._as_line(record))
        else:
            self._waiting.append(record)
            if time.monotonic() - self._written >= _TOGETHER:
                self._write()

    def _write(self) -> None:
        """Write the records that wait."""
        if self._file is not None and self._waiting:
            self._file.writelines(map(self._as_line, self._waiting))
            self._file.flush()
            self._last = self._waiting[-1]
            self._waiting.clear()
            self._written = time.monotonic()

    def finish(self, state: State) -> None:
        """Write what is left; the last record may have a cost of held-out samples now."""
        if self._waiting:
            self._waiting[-1] = state.history[-1]
            self._write()
        elif not state.history or self._last is not state.history[-1]:
            self._rewrite(state.history)

    def _rewrite(self, history: Sequence[Record]) -> None:
        """Put a complete file in the place of the old one."""
        self.close()
        new = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        if not new.parent.is_dir():
            message = f"there is no folder {new.parent} for {self.path.name}: create it first"
            raise FileNotFoundError(message)
        with new.open("w", encoding="utf-8", newline="") as file:
            file.write(self._as_line(None))
            file.writelines(map(self._as_line, history))
        new.replace(self.path)
        self._begun = True

    def _open(self) -> TextIO:
        return self.path.open("a", encoding="utf-8", newline="")

    def close(self) -> None:
        """End the log of this run."""
        try:
            self._write()
        finally:
            if self._file is not None:
                self._file.close()
            self._clear()
            self._begun = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes to copy: all but what belongs to a run."""
        return {**vars(self), "_file": None, "_waiting": [], "_last": None, "_begun": False}


def _as_json(record: Record | None) -> str:
    """Return a record as a line; None is what comes before all records."""
    if record is None:
        return ""
    found = [f'"{name}": {_text(value) or "null"}' for name, value in vars(record).items()]
    return f"{{{', '.join(found)}}}\n"


def _as_csv(record: Record | None) -> str:
    """Return a record as a line; None stands for the names, which come before all records."""
    if record is None:
        return ",".join([field.name for field in fields(Record)]) + "\n"
    return ",".join([_text(value) for value in vars(record).values()]) + "\n"


def _text(value: float | None) -> str:
    """Return a number with all of its digits; nothing for None, NaN and infinity."""
    return "" if value is None or not math.isfinite(value) else str(value)


_LINES: dict[str, Callable[[Record | None], str]] = {".jsonl": _as_json, ".csv": _as_csv}
LOG_SUFFIXES = tuple(_LINES)
