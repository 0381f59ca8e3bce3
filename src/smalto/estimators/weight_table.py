"""Weights of variables as a table."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from smalto.checks import Array

Block: TypeAlias = "tuple[Array, Array | None]"  # weights (columns, pairs), names of the columns


def weight_table(weights: Block | dict[str, Block]) -> Any:
    """Return the nonzero weights as a data frame, by pair, the largest first; several by block."""
    try:
        import pandas as pd  # type: ignore[import-untyped]
    except ImportError as error:
        message = "tables need pandas: pip install pandas"
        raise ImportError(message) from error
    if isinstance(weights, tuple):
        return pd.DataFrame(_columns(*weights))
    tables = []
    for name, block in weights.items():
        table = pd.DataFrame(_columns(*block))
        table.insert(0, "block", name)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _columns(weights: Array, names: Array | None) -> dict[str, Array]:
    columns, pairs = np.nonzero(weights)
    values = weights[columns, pairs]
    order = np.lexsort((-np.abs(values), pairs))
    table = {"pair": pairs[order], "column": columns[order]}
    if names is not None:
        table["name"] = names[columns[order]]
    return {**table, "weight": values[order]}
