"""Data frames of pandas as arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame of pandas, without importing it."""
    return hasattr(X, "columns") and hasattr(X, "iloc") and hasattr(X, "dtypes")


def frame_to_array(name: str, X: Any) -> npt.NDArray[Any]:
    """Return a data frame as an array of numbers; missing values become NaN.

    Raise TypeError for a column that does not hold numbers, with its name.
    """
    table = np.asarray(X)
    if table.dtype.kind in "fiub":
        return table
    columns = [_numbers(name, label, X.iloc[:, i]) for i, label in enumerate(X.columns)]
    return np.stack(columns, axis=1) if columns else np.empty(X.shape)


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a data frame or Arrow table; None if it has none."""
    for attribute in ("columns", "column_names"):  # of pandas and polars; of pyarrow
        names = list(getattr(X, attribute, ()))
        if names and all(isinstance(name, str) for name in names):
            return names
    return None


def check_columns(name: str, X: Any, known: Sequence[str] | None, owner: str = "the model") -> None:
    """Raise ValueError if X is a data frame whose columns are not those that its owner knows."""
    check_names(name, column_names(X), known, owner)


def check_names(
    name: str,
    given: Sequence[str] | None,
    known: Sequence[str] | None,
    owner: str = "the model",
) -> None:
    """Raise ValueError if columns have other names than those known, or another order."""
    if known is None or given is None or len(given) != len(known):
        return
    for column, (found, wanted) in enumerate(zip(given, known, strict=True)):
        if found != wanted:
            message = (
                f"column {column} of {name} is {found!r:.80}, that of {owner} is "
                f"{wanted!r:.80}: give the columns of {owner} in their order"
            )
            raise ValueError(message)


def check_frame(name: str, X: Any) -> None:
    """Raise for a data frame with text or with duplicate column names; do nothing for others."""
    if not is_frame(X):
        return
    repeated = {label: count for label, count in Counter(X.columns).items() if count > 1}
    if repeated:
        label, count = next(iter(repeated.items()))
        message = (
            f"{name} has {count} columns named {label!r}: names must be unique "
            f"(or give {name} as an array, without names)"
        )
        raise ValueError(message)
    for number, dtype in enumerate(X.dtypes):
        if dtype.kind not in "fiubc":
            _numbers(name, X.columns[number], X.iloc[:, number])


def _numbers(name: str, label: Any, column: Any) -> npt.NDArray[Any]:
    """Return a column as float64, or float32 if it is; None and NA become NaN."""
    single = str(column.dtype) in ("float32", "Float32")
    missing = np.asarray(column.isna())
    values = np.full(len(column), np.nan, np.float32 if single else np.float64)
    known = np.asarray(column, dtype=object)[~missing]
    text = next((value for value in known if isinstance(value, str | bytes)), None)
    try:
        if text is None:
            values[~missing] = known.astype(np.float64)
            return values
    except (TypeError, ValueError):
        text = known[0]
    message = (
        f"{name} must hold real numbers, but its column {label!r} has {text!r}: "
        "drop the column, or turn it into numbers"
    )
    raise TypeError(message)
