"""Progress on the terminal: a bar, and a notice before compiling."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import typer

from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State


class ProgressBar:
    """A callback that shows the cost, the speed and the remaining time.

    The bar measures seconds if their number is given, otherwise samples.
    """

    def __init__(self, *, seconds: float | None = None, samples: int | None = None) -> None:
        from tqdm import tqdm

        self.seconds = seconds
        rest = "" if seconds is None and samples is None else " {bar}"
        clock = "{n:.0f}/{total:.0f} s" if seconds is not None else "{n_fmt}"
        if seconds is None and samples is not None:
            clock = "{n_fmt}/{total_fmt}, {remaining} left"
        self.bar = tqdm(
            total=samples if seconds is None else seconds,
            desc="learning",
            unit_scale=seconds is None,
            bar_format=f"{{desc}}{rest} {clock}{{postfix}}",
            dynamic_ncols=True,
            file=sys.stderr,
        )
        self.cost: float | None = None

    def __call__(self, state: State, record: Record) -> None:
        """Advance the bar."""
        old = record.batch_cost if self.cost is None else self.cost
        self.cost = 0.9 * old + 0.1 * record.batch_cost  # the cost of single batches varies
        shown = self.cost if record.test_cost is None else record.test_cost
        speed = record.samples / max(record.seconds, 1e-9)
        self.bar.set_postfix_str(f"cost {shown:.4f}, {speed:,.0f} samples/s", refresh=False)
        if self.seconds is None:
            self.bar.update(record.samples - self.bar.n)
        else:
            self.bar.update(min(record.seconds, self.seconds) - self.bar.n)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()


@contextmanager
def say_if_compiling() -> Iterator[None]:
    """Print a notice once if a kernel is not in the cache and has to be compiled."""
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        said = False

        def on_start(self, event: Any) -> None:
            if not self.said:
                self.said = True
                typer.echo("compiling kernels (first run only)", err=True)

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        yield
