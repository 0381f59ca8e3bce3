"""Open a file as a source, by its suffix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from smalto.sources.base import Source
from smalto.sources.in_memory import ArraySource
from smalto.sources.sliceable import from_memmap, from_sliceable
from smalto.sources.tables import from_parquet, from_table


def open_path(name: str | Path, buffer_rows: int | None = None) -> Source:
    """Open a .npy, .npz, .zarr, .h5, .hdf5, .parquet, .arrow or .feather file as a source.

    If the file holds several arrays, ``"file.h5::group/name"`` chooses one.
    """
    path, _, member = str(name).partition("::")
    file = Path(path)
    opener = _OPENERS.get(file.suffix.lower())
    if opener is None:
        known = ", ".join(_OPENERS)
        wrong = "is a folder, and a file must" if file.is_dir() else "must"
        message = f"{path!r} {wrong} end in one of {known}"
        raise ValueError(message)
    if not file.exists():
        message = f"there is no file {file}"
        raise FileNotFoundError(message)
    try:
        return opener(file, member, buffer_rows)
    except ImportError as error:
        message = f"{file.suffix} files need {error.name}: pip install 'smalto[data]'"
        raise ImportError(message, name=error.name) from error


def _npy(path: Path, member: str, buffer_rows: int | None) -> Source:
    try:
        X = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        reason = "it holds Python objects, or something else" if "ickle" in str(error) else error
        message = f"{path} is not a readable .npy file: {reason}"
        raise ValueError(message) from error
    return from_memmap(X, buffer_rows)


def _npz(path: Path, member: str, buffer_rows: int | None) -> Source:
    try:
        arrays = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        message = f"{path} is not a readable .npz file: {error}"
        raise ValueError(message) from error
    with arrays:
        if {"format", "shape", "data"} <= set(arrays) and not member:  # of scipy.sparse.save_npz
            return ArraySource.of(scipy.sparse.load_npz(path))
        return ArraySource.of(arrays[_choose(path, member, list(arrays))])


def _zarr(path: Path, member: str, buffer_rows: int | None) -> Source:
    import zarr

    try:
        store: Any = zarr.open(str(path), mode="r")
    except (OSError, ValueError, KeyError) as error:
        message = f"{path} is not a readable zarr store: {error}"
        raise ValueError(message) from error
    if isinstance(store, zarr.Group):
        store = store[_choose(path, member, [key for key, _ in store.arrays()])]
    return from_sliceable(store, buffer_rows)


def _hdf5(path: Path, member: str, buffer_rows: int | None) -> Source:
    import h5py

    try:
        file = h5py.File(path, "r")
    except OSError as error:
        message = f"{path} is not a readable HDF5 file: {error}"
        raise ValueError(message) from error
    found: list[str] = []

    def note(key: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.ndim == 2:
            found.append(key)

    file.visititems(note)
    return from_sliceable(file[_choose(path, member, found)], buffer_rows, (path,))


def _parquet(path: Path, member: str, buffer_rows: int | None) -> Source:
    return from_parquet(path, buffer_rows)


def _arrow(path: Path, member: str, buffer_rows: int | None) -> Source:
    from pyarrow import ArrowInvalid, feather

    try:
        return from_table(feather.read_table(path, memory_map=True), buffer_rows)
    except ArrowInvalid as error:
        message = f"{path} is not a readable Arrow file: {error}"
        raise ValueError(message) from error


_Opener = Callable[[Path, str, "int | None"], Source]
_OPENERS: dict[str, _Opener] = {
    ".npy": _npy,
    ".npz": _npz,
    ".zarr": _zarr,
    ".h5": _hdf5,
    ".hdf5": _hdf5,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
}


def _choose(path: Path, member: str, names: list[str]) -> str:
    """Return the name of the array to read; raise ValueError unless there is just one choice."""
    if member in names:
        return member
    if not member and len(names) == 1:
        return names[0]
    listed = ", ".join(names) or "none"
    found = f"no array {member!r}" if member else "several arrays" if names else "no array"
    message = f"{path} has {found}; available: {listed} (choose one with {path.name}::NAME)"
    raise ValueError(message)
