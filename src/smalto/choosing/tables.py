"""Tables: a data frame of pandas where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def as_frame(rows: Sequence[dict[str, Any]]) -> Any:
    """Return rows with the same keys as a data frame of pandas; without it, as a dict of columns."""
    columns = {key: [row[key] for row in rows] for key in (rows[0] if rows else {})}
    try:
        import pandas as pd  # type: ignore[import-untyped]
    except ImportError:
        return columns
    return pd.DataFrame(columns)


def as_text(rows: Sequence[dict[str, Any]], marked: int | None = None) -> str:
    """Return rows as a table of plain text; one of them may be marked by an arrow."""
    if not rows:
        return "(nothing yet)"
    cells = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = []
    for number, row in enumerate(cells):
        mark = "→ " if marked is not None and number == marked + 1 else "  "
        lines.append(
            mark + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        )
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
