"""The features of largest weight in each atom, as numbers, as a table and as words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from smalto.checks import Array, check_integer


def largest_features(D: Array, n: int) -> tuple[Array, Array]:
    """Return the numbers (k, n) and weights of the largest features of each atom, largest first."""
    n = min(check_integer("n", n), D.shape[1])
    sizes = -np.abs(D)
    some = np.argpartition(sizes, n - 1, axis=1)[:, :n] if n < D.shape[1] else None
    if some is None:
        order = np.argsort(sizes, axis=1, kind="stable")
    else:
        some.sort(axis=1)  # of equal weights the first feature comes first
        inner = np.argsort(np.take_along_axis(sizes, some, axis=1), axis=1, kind="stable")
        order = np.take_along_axis(some, inner, axis=1)
    return order, np.take_along_axis(D, order, axis=1)


def check_names(names: Any, n_features: int) -> Array | None:
    """Return the names as an array of strings; raise ValueError unless there is one per feature."""
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable):
        hint = f": for the number of features give n={names}" if _is_count(names) else ""
        message = f"names must be a sequence of strings, got {names!r:.40}{hint}"
        raise TypeError(message)
    found = np.array([str(name) for name in names], dtype=object)
    if len(found) != n_features:
        message = f"names must be one for each of {n_features} features, got {len(found)}"
        raise ValueError(message)
    return found


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def table_of_features(D: Array, names: Sequence[str] | None, n: int) -> Any:
    """Return a data frame with the largest features of each atom."""
    labels = check_names(names, D.shape[1])
    try:
        import pandas as pd  # type: ignore[import-untyped]
    except ImportError as error:
        message = "tables need pandas: pip install pandas (or use topics, which returns strings)"
        raise ImportError(message) from error
    features, weights = largest_features(D, n)
    atoms, ranks = np.nonzero(weights)
    found = features[atoms, ranks]
    return pd.DataFrame(
        {
            "atom": atoms,
            "rank": ranks,
            "feature": found if labels is None else labels[found],
            "weight": weights[atoms, ranks],
        }
    )


def words_of_atoms(D: Array, names: Sequence[str] | None, n: int) -> list[str]:
    """Return the names of the largest features of each atom, in one string per atom."""
    labels = check_names(names, D.shape[1])
    features, weights = largest_features(D, n)
    return [
        " ".join(
            str(number if labels is None else labels[number])
            for number, weight in zip(row, values, strict=True)
            if weight != 0
        )
        for row, values in zip(features, weights, strict=True)
    ]
