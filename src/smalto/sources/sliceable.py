"""Sources for memory maps and for chunked arrays of zarr, h5py and Dask."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from smalto.checks import Array
from smalto.sources.chunked import ChunkedSource, even_starts
from smalto.sources.in_memory import check_not_empty


@runtime_checkable
class Sliceable(Protocol):
    """What zarr, h5py and Dask arrays have in common, so that none of them is imported."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows and of features."""

    @property
    def dtype(self) -> Any:
        """The dtype of the entries."""

    @property
    def chunks(self) -> Any:
        """One chunk size per axis, or all chunk sizes of each axis, or None."""

    def __getitem__(self, key: Any) -> Any:
        """Return a slice of the array."""


def from_memmap(X: np.memmap[Any, Any], buffer_rows: int | None = None) -> ChunkedSource:
    """Return a source that reads a memory map piece by piece and releases pages after use."""
    _check_table(X.shape, X.dtype)
    read_only = X.mode == "r" and isinstance(X.filename, str | Path)
    pages: Any = getattr(X, "_mmap", None)
    # Not for copy-on-write maps (mode "c"): their changes would be lost.
    releases = X.mode != "c" and isinstance(pages, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED")

    def read(a: int, b: int) -> Array:
        if releases:  # the pages read before
            pages.madvise(mmap.MADV_DONTNEED)
        return np.asarray(X[a:b])

    return ChunkedSource(
        read,
        X.shape,
        X.dtype,
        buffer_rows=buffer_rows,
        files=(Path(X.filename),) if read_only and X.filename is not None else (),
    )


def from_sliceable(
    X: Sliceable, buffer_rows: int | None = None, files: tuple[Path, ...] = ()
) -> ChunkedSource:
    """Return a source that reads an array of zarr, h5py or Dask by its own chunks of rows."""
    _check_table(X.shape, X.dtype)
    n_rows, n_features = X.shape
    shards = getattr(X, "shards", None)  # zarr: objects of several chunks
    rows: Any = (shards or X.chunks or (None,))[0]
    is_lazy = isinstance(
        rows, tuple
    )  # Dask lists the sizes of all chunks; they are computed, not stored
    starts: Array | None
    if is_lazy:
        if not np.isfinite(rows).all():
            message = "the chunks of the Dask array have unknown sizes: call compute_chunk_sizes()"
            raise ValueError(message)
        starts = np.concatenate([[0], np.cumsum([size for size in rows if size])])
    elif rows is None:
        starts = None
    else:
        starts = even_starts(n_rows, int(rows))

    def read(a: int, b: int) -> Array:
        return np.asarray(X[a:b])

    return ChunkedSource(
        read,
        (n_rows, n_features),
        X.dtype,
        starts,
        buffer_rows=buffer_rows,
        files=files,
        remember=not is_lazy,
    )


def _check_table(shape: tuple[int, ...], dtype: Any) -> None:
    if len(shape) != 2:
        message = f"X must be two-dimensional (rows are samples), got shape {tuple(shape)}"
        raise ValueError(message)
    check_not_empty(shape)
    if shape[1] == 0:
        message = f"X has no features: its shape is {tuple(shape)}"
        raise ValueError(message)
    if np.dtype(dtype).kind not in "fiub":
        message = f"X must hold real numbers, got dtype {dtype}"
        raise TypeError(message)
