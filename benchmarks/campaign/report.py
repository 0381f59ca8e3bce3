"""What a problem reports: how often each promise was tried, how often it held, what failed."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_SHOWN = 3  # failures of one promise that a problem describes


@dataclass
class Report:
    """Counts of one problem, or the sum of many."""

    signals: int = 0
    cases: int = 0
    tried: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)

    def check(self, promise: str, held: Any, what: str = "", values: Any = None) -> None:
        """Count one try per entry of ``held``; describe the first that did not hold.

        ``values``, one per entry, are shown with the failures: how far something is off.
        """
        held = np.atleast_1d(np.asarray(held, bool))
        self.tried[promise] += held.size
        self.held[promise] += int(held.sum())
        bad = np.flatnonzero(~held)
        if bad.size:
            message = f"{promise}: {what}" if what else promise
            if held.size > 1:
                message += f", in {bad.size} of {held.size}, first {bad[:_SHOWN].tolist()}"
            if values is not None:
                found = np.broadcast_to(np.asarray(values), held.shape)[bad[:_SHOWN]]
                message += f", values {', '.join(f'{value:.3g}' for value in found)}"
            self.failures.append(message)

    def refuses(self, promise: str, call: Any, kinds: Any, words: str = "", what: str = "") -> None:
        """Check that a call raises one of these exceptions, with one of the words in it."""
        try:
            call()
        except kinds as error:
            found = [word for word in words.split("|") if word in str(error)]
            self.check(promise, bool(found), f"{what}: {words!r} not in {str(error)[:200]!r}")
        except Exception as error:  # noqa: BLE001 (whatever it is, it is a failure)
            self.check(promise, False, f"{what}: {type(error).__name__}: {str(error)[:200]}")
        else:
            self.check(promise, False, f"{what}: accepted")

    def add(self, other: Report) -> None:
        """Add the counts of another report."""
        self.signals += other.signals
        self.cases += other.cases
        self.tried.update(other.tried)
        self.held.update(other.held)
        self.notes.update(other.notes)
        self.failures += other.failures


def describe(error: BaseException) -> str:
    """Return the type, message and innermost place of an exception, in one line."""
    place, trace = "", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename.rsplit("/", 1)[-1]
        place = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__} at {place}: {text}"


def say(message: str) -> None:
    """Print a line at once, also into a pipe."""
    print(message, file=sys.stdout, flush=True)
