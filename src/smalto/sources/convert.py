"""``as_source``: turn whatever a user passes as data into a source."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from smalto.sources.base import Source
from smalto.sources.chunked import ChunkedSource
from smalto.sources.file_formats import open_path
from smalto.sources.in_memory import ArraySource
from smalto.sources.sliceable import Sliceable, from_memmap, from_sliceable
from smalto.sources.stream import Stream
from smalto.sources.tables import from_table


def as_source(X: Any, *, nan: bool = False, buffer_rows: int | None = None) -> Source | Stream:
    """Return a source for arrays, files, lazy arrays or iterables; return a source unchanged.

    NaN and infinity raise ValueError: at once for data in memory, on reading for everything else.

    Parameters
    ----------
    X : array, CSR array, memory map, path, zarr, HDF5, Dask or Arrow data, or iterable of batches
        A path names a .npy, .npz, .zarr, .h5, .hdf5, .parquet, .arrow or .feather file. An
        iterable of arrays, or a function of the epoch that returns one, becomes a `Stream`.
    nan : bool, default False
        Allow NaN and infinity: the caller checks the rows.
    buffer_rows : int, optional
        Number of rows to shuffle together, for data that is read chunk by chunk; 64 MB of them
        by default.

    Returns
    -------
    Source or Stream

    See Also
    --------
    smalto.learn : Takes everything that this function takes.

    Examples
    --------
    >>> import numpy as np
    >>> from smalto.sources import as_source
    >>> source = as_source(np.eye(3))
    >>> source.n_rows, source.n_features
    (3, 3)
    """
    source = _converted(X, nan, buffer_rows)
    if nan and isinstance(source, ChunkedSource | Stream):
        source.nan = True
    return source


def _converted(X: Any, nan: bool, buffer_rows: int | None) -> Source | Stream:
    if isinstance(X, Source | Stream):
        return X
    if isinstance(X, str | Path):
        return open_path(X, buffer_rows)
    if isinstance(X, np.memmap):
        return from_memmap(X, buffer_rows)
    if isinstance(X, np.ndarray) or scipy.sparse.issparse(X):
        return ArraySource.of(X, nan=nan)
    if isinstance(X, Sliceable):
        return from_sliceable(X, buffer_rows)
    if type(X).__module__.partition(".")[0] == "pyarrow":
        return from_table(X, buffer_rows)
    if _yields_batches(X):
        return Stream(X)
    return ArraySource.of(X, nan=nan)


def as_set(X: Any, *, nan: bool = False) -> Source:
    """Return a source of rows that can be read by number; raise TypeError for a stream.

    Parameters
    ----------
    X : array, CSR array, memory map, path, zarr, HDF5, Dask or Arrow data
        The data.
    nan : bool, default False
        Allow NaN and infinity: the caller checks the rows.

    Returns
    -------
    Source
        The rows of X.

    See Also
    --------
    as_source : Takes streams as well.
    """
    source = as_source(X, nan=nan)
    if isinstance(source, Stream):
        message = "a stream has no random access: an array or a file is needed here"
        raise TypeError(message)
    return source


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask collection, without importing Dask.

    Parameters
    ----------
    X : object
        Any data.

    Returns
    -------
    bool
        True for Dask arrays, bags and data frames.

    See Also
    --------
    lies_elsewhere : Asks about all kinds of data that are read as needed.
    """
    return callable(getattr(X, "__dask_graph__", None))


def lies_elsewhere(X: Any) -> bool:
    """Return whether X is read as needed: a path, source, stream or lazy array, not a table.

    Parameters
    ----------
    X : object
        Any data.

    Returns
    -------
    bool
        False for what is in memory.

    See Also
    --------
    as_source : Makes a source of either.
    """
    if isinstance(X, np.ndarray | list | tuple) or scipy.sparse.issparse(X):
        return not isinstance(X, np.memmap) and _yields_batches(X)
    return isinstance(X, str | Path | Source | Stream | Sliceable) or _yields_batches(X)


def _yields_batches(X: Any) -> bool:
    """Return whether X is an iterable of batches, not a table such as nested lists."""
    if isinstance(X, list | tuple):
        return len(X) > 0 and getattr(X[0], "ndim", 0) == 2
    if isinstance(X, type | np.ndarray) or scipy.sparse.issparse(X):
        return False
    return callable(X) or (isinstance(X, Iterable) and not _is_table(X))


def _is_table(X: Any) -> bool:
    return any(getattr(X, name, None) is not None for name in ("__array__", "shape", "iloc"))
