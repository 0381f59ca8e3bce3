"""A callback that writes the records of a run to a file."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TextIO

from smalto.learning.callbacks.base import Callback, Share
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State


class Log(Callback):
    """Write each `Record` of a run to a file, as it comes: JSON lines (.jsonl), or CSV (.csv).

    The file always has the whole run: one that is resumed begins with the records of its first
    part. A file that is there is replaced when a run begins. Unknown values are null in JSON, and
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
        self._file: TextIO | None = None  # open during a run that has a beginning

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
            self._file.write(self._as_line(record))
            self._file.flush()

    def finish(self, state: State) -> None:
        """Write all records again: the last one may have a cost of held-out samples now."""
        self._rewrite(state.history)

    def _rewrite(self, history: Sequence[Record]) -> None:
        """Put a complete file in the place of the old one."""
        self.close()
        new = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with new.open("w", encoding="utf-8", newline="") as file:
            file.write(self._as_line(None))
            file.writelines(map(self._as_line, history))
        new.replace(self.path)
        self._begun = True

    def _open(self) -> TextIO:
        return self.path.open("a", encoding="utf-8", newline="")

    def close(self) -> None:
        """End the log of this run."""
        if self._file is not None:
            self._file.close()
        self._file, self._begun = None, False

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes to copy: all but the open file."""
        return {**vars(self), "_file": None}


def _as_json(record: Record | None) -> str:
    """Return a record as a line; None is what comes before all records."""
    return "" if record is None else json.dumps(_known(record)) + "\n"


def _as_csv(record: Record | None) -> str:
    line = io.StringIO()
    names = [field.name for field in fields(Record)]
    csv.writer(line, lineterminator="\n").writerow(
        names if record is None else _known(record).values()
    )
    return line.getvalue()


def _known(record: Record) -> dict[str, Any]:
    """Return the fields of a record, None in place of NaN and infinity, which JSON has not."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in vars(record).items()
    }


_LINES: dict[str, Callable[[Record | None], str]] = {".jsonl": _as_json, ".csv": _as_csv}
