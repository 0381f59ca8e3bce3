"""Progress on the terminal."""

from __future__ import annotations

import sys
from typing import Self

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
