"""What users see of a run: scikit-learn's ``verbose`` and ``callback``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from smalto.checks import check_kind
from smalto.learning import Record, State
from smalto.learning.callbacks.base import CallbackLike


def report(verbose: Any, text: str) -> None:
    """Write a line to the standard output, if asked for."""
    if verbose:
        sys.stdout.write(f"{text}\n")


def observers(
    verbose: Any, callback: Any, steps: int, values: Callable[[State, Record], dict[str, Any]]
) -> list[CallbackLike]:
    """Return callbacks of `learn` that print a line and call the user's function.

    ``steps`` is the largest number of steps, for the line, and ``values`` gives what the user's
    function is called with.
    """
    check_kind("callback", callback, Callable | None, "None or callable")

    def show(state: State, record: Record) -> None:
        report(verbose, f"step {record.step} of at most {steps}: cost {record.batch_cost:.6g}")

    def tell(state: State, record: Record) -> None:
        callback(values(state, record))  # what it returns does not end the run

    shown: list[CallbackLike] = [show] if verbose else []
    return shown if callback is None else [*shown, tell]
