"""Weights of variables as a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.checks import Array


def weight_table(weights: Array, names: Array | None) -> Any:
    """Return the nonzero weights (columns, pairs) as a data frame, by pair, the largest first."""
    import pandas as pd  # type: ignore[import-untyped]

    columns, pairs = np.nonzero(weights)
    values = weights[columns, pairs]
    order = np.lexsort((-np.abs(values), pairs))
    table = {"pair": pairs[order], "column": columns[order]}
    if names is not None:
        table["name"] = names[columns[order]]
    return pd.DataFrame({**table, "weight": values[order]})
