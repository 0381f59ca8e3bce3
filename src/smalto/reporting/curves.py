"""Charts of a run, from its records."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from smalto.checks import Array
from smalto.learning.memory.record import Record
from smalto.reporting.charts import Series, line_chart
from smalto.reporting.html import Html

_COLUMNS = ("step", "samples", "seconds", "batch_cost", "surrogate", "test_cost",
            "mean_nonzeros", "replaced", "density", "lam", "used")  # fmt: skip


def curves_of(history: Sequence[Record]) -> list[Html]:
    """Return the charts of a history: costs, nonzeros, use of atoms, speed and what changes."""
    steps = [record for record in history if record.step > 0]
    if not steps:
        return []
    table = np.array(list(map(attrgetter(*_COLUMNS), steps)), np.float64)  # None becomes NaN
    column = dict(zip(_COLUMNS, table.T, strict=True))
    seconds, samples, step = column["seconds"], column["samples"], column["step"]
    note = ", of a λ that changes," if _changes(column["lam"]) else ""
    charts = [
        line_chart(f"Cost{note} against time", _costs(column, seconds), "seconds", log_x=True),
        line_chart(
            f"Cost{note} against samples", _costs(column, samples), "samples seen", log_x=True
        ),
        line_chart(
            "Nonzeros per code",
            [Series("nonzeros", step, column["mean_nonzeros"])],
            "steps",
            zero=True,
        ),
        line_chart(
            "Atoms used and replaced",
            [
                Series("used in a step", step, column["used"]),
                Series("replaced so far", step, np.cumsum(column["replaced"]), "b"),
            ],
            "steps",
            zero=True,
        ),
        line_chart("Samples per second", [_speed(seconds, samples)], "seconds", zero=True),
    ]
    for name, title in (("lam", "λ"), ("density", "Density of the dictionary")):
        if _changes(column[name]):
            charts.append(
                line_chart(title, [Series(title, step, column[name])], "steps", zero=True)
            )
    return [chart for chart in charts if chart is not None]


def _changes(values: Array) -> bool:
    """Return whether what may change during a run has done so."""
    known = values[np.isfinite(values)]
    return bool(len(known) and np.ptp(known) > 1e-3 * np.abs(known).max())


def _costs(column: dict[str, Array], x: Array) -> list[Series]:
    return [
        Series("batches", x, column["batch_cost"], "c"),
        Series("surrogate", x, column["surrogate"], "a"),
        Series("held-out", x, column["test_cost"], "b", dots=True),
    ]


def _speed(seconds: Array, samples: Array) -> Series:
    """Return the speed over about 60 parts of the run."""
    at = np.unique(np.linspace(0, len(seconds), min(len(seconds), 60) + 1).astype(int))[1:] - 1
    spent = np.diff(seconds[at], prepend=0.0)
    seen = np.diff(samples[at], prepend=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = np.where(spent > 0, seen / spent, np.nan)
    return Series("samples per second", seconds[at], speed)
