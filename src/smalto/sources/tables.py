"""Rows of Arrow tables and Parquet files: columns are features, row groups are chunks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.sources.chunked import ChunkedSource
from smalto.sources.in_memory import check_not_empty


def from_table(table: Any, buffer_rows: int | None = None) -> ChunkedSource:
    """Return a source that converts a pyarrow table or record batch piece by piece."""
    n_features, dtype = _layout(table.schema, lambda: table.slice(0, 1))
    check_not_empty((table.num_rows, n_features))

    def read(a: int, b: int) -> Array:
        return _as_array(table.slice(a, b - a), dtype)

    shape = (table.num_rows, n_features)
    return ChunkedSource(read, shape, dtype, buffer_rows=buffer_rows, remember=False)


def from_parquet(path: Path, buffer_rows: int | None = None) -> ChunkedSource:
    """Return a source that reads a Parquet file by its row groups."""
    from pyarrow import ArrowInvalid, parquet

    try:
        file = parquet.ParquetFile(path)
    except ArrowInvalid as error:
        message = f"{path} is not a readable Parquet file: {error}"
        raise ValueError(message) from error
    groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    group_ends = np.cumsum([size for size in groups if size], dtype=np.int64)
    filled = [i for i, size in enumerate(groups) if size]
    starts = np.concatenate([[0], group_ends])
    n_rows = int(starts[-1])
    check_not_empty((n_rows, len(file.schema_arrow.names)))
    n_features, dtype = _layout(file.schema_arrow, lambda: file.read_row_group(filled[0]))

    def read(a: int, b: int) -> Array:
        # Chunks begin and end at row groups.
        first, last = np.searchsorted(starts, [a, b])
        return _as_array(file.read_row_groups(filled[first:last]), dtype)

    return ChunkedSource(
        read, (n_rows, n_features), dtype, starts, buffer_rows=buffer_rows, files=(path,)
    )


def _layout(schema: Any, beginning: Any) -> tuple[int, np.dtype[Any]]:
    """Return the number of features and a dtype for all columns; raise if there is none."""
    from pyarrow import types

    kinds = [field.type for field in schema]
    vectors = len(kinds) == 1 and kinds[0].num_fields == 1  # a single column of lists
    if vectors:
        kinds = [kinds[0].value_type]
    for field, kind in zip(schema, kinds, strict=True):
        if not (types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)):
            message = f"column {field.name!r} must hold real numbers, got {field.type}"
            raise TypeError(message)
    dtype = np.result_type(*(kind.to_pandas_dtype() for kind in kinds)) if kinds else np.float64
    dtype = np.dtype(np.float32 if dtype == np.float32 else np.float64)
    if not kinds:
        message = "X has no features: the table has no columns"
        raise ValueError(message)
    return (len(beginning().column(0)[0].as_py() or ()) if vectors else len(kinds)), dtype


def _as_array(table: Any, dtype: np.dtype[Any]) -> Array:
    """Return the columns side by side; missing values become NaN."""
    columns = [table.column(i) for i in range(table.num_columns)]
    if len(columns) == 1 and columns[0].type.num_fields:
        rows = [np.asarray(row.as_py(), dtype) for row in columns[0]]
        widths = {row.shape for row in rows}
        if len(widths) > 1:
            message = f"the vectors in column {table.column_names[0]!r} must have one length"
            raise ValueError(message)
        return np.stack(rows)
    out = np.empty((table.num_rows, len(columns)), dtype)
    for i, column in enumerate(columns):
        out[:, i] = (
            column.to_numpy(zero_copy_only=False) if _is_array(column) else column.to_numpy()
        )
    return out


def _is_array(column: Any) -> bool:
    """Return whether this is a column of a record batch (one piece), not of a table."""
    return type(column).__name__ != "ChunkedArray"
