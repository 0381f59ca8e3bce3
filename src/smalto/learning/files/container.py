"""Files of named arrays and settings, written completely or not at all, with a checksum.

The format is safetensors, which contains no code: the length of the header in eight bytes, a JSON
header, and the arrays. Any program that reads safetensors can read these files. They are written
here and not by the safetensors library, which would copy every array first.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import importlib
import importlib.metadata
import itertools
import json
import os
import shutil
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from smalto.checks import Array

fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None

FORMAT_VERSION = 1
_NAMES = {"float64": "F64", "float32": "F32", "int64": "I64", "int32": "I32", "bool": "BOOL",
          "uint8": "U8", "uint64": "U64"}  # fmt: skip


def write_file(
    path: Path, kind: str, settings: Any, arrays: dict[str, Array], keep: int = 1
) -> None:
    """Write a file, or replace it, completely or not at all.

    ``keep`` versions are kept, including the new one, as path, path.1, path.2, ... If writing
    fails, for example because the disk is full, the existing file stays intact and nothing else
    is left behind.
    """
    tensors = {name: np.ascontiguousarray(arrays[name]) for name in sorted(arrays)}
    text = json.dumps(settings, allow_nan=False, sort_keys=True)
    metadata = {
        "format": f"smalto.{kind}",
        "format_version": str(FORMAT_VERSION),
        "smalto_version": importlib.metadata.version("smalto"),
        "settings": text,
    }
    metadata["sha256"] = _digest(metadata, tensors)
    header: dict[str, Any] = {"__metadata__": metadata}
    offset = 0
    for name, tensor in tensors.items():
        end = offset + tensor.nbytes
        header[name] = {
            "dtype": _NAMES[tensor.dtype.name],
            "shape": list(tensor.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with replacing(path, keep) as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        for tensor in tensors.values():
            file.write(as_bytes(tensor))


@contextlib.contextmanager
def replacing(path: Path, keep: int = 1) -> Iterator[Any]:
    """Yield a temporary file that replaces ``path`` when the body is done; delete it on errors.

    It is locked until then, so that no other process takes it for a leftover.
    """
    _check_place(path)
    try:
        handle, name = _locked_file(path)
    except OSError as error:  # which has the name of the temporary file
        raise type(error)(error.errno, error.strerror, str(path)) from error
    lock = os.dup(handle)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)  # the usual permissions of a new file
        if fcntl is None:
            os.close(lock)  # Windows cannot rename a file that is open
            lock = -1
        _keep_older(path, keep, Path(name))
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    finally:
        if lock >= 0:
            os.close(lock)
    _sync_folder(path.parent)


def _check_place(path: Path) -> None:
    """Raise OSError unless a file of this name can be in its folder."""
    if path.is_dir():
        message = f"{path} is a folder: give the name of a file"
        raise IsADirectoryError(message)
    if not path.parent.is_dir():
        message = f"there is no folder {path.parent} for {path.name}: create it first"
        raise FileNotFoundError(message)


def _locked_file(path: Path) -> tuple[int, str]:
    """Create a temporary file beside ``path`` and lock it; return its descriptor and name."""
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(handle, fcntl.LOCK_EX)
            if os.fstat(handle).st_nlink == 0:  # removed before it was locked
                os.close(handle)
                continue
        return handle, name


def as_bytes(tensor: Array) -> Any:
    """Return the bytes of an array, without copying if it is C-contiguous."""
    return np.ascontiguousarray(tensor).reshape(-1).view(np.uint8)


def clear_leftovers(path: Path) -> None:
    """Remove temporary files left by a process that was killed while it wrote this file.

    Those of processes that are still at it are locked, and stay.
    """
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with contextlib.suppress(OSError):  # locked, removed by another process, or open (Windows)
            handle = os.open(part, os.O_RDONLY)
            try:
                if fcntl is not None:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    part.unlink()
            finally:
                os.close(handle)
            if fcntl is None:
                part.unlink()


def _keep_older(path: Path, keep: int, new: Path) -> None:
    """Rotate the existing file to path.1, path.2, ..., and leave a link to it at path.

    Another process may do the same: what it has moved away is not moved again. ``new`` is the
    file that will replace the existing one, whose name nobody else has.
    """
    if keep == 1 or not path.exists():
        return
    names = [path.with_name(f"{path.name}.{i}") for i in range(1, keep)]
    for newer, older in reversed(list(itertools.pairwise(names))):
        with contextlib.suppress(FileNotFoundError):
            newer.replace(older)
    spare = new.with_suffix(".older.part")
    try:
        os.link(path, spare)
    except OSError:  # a file system without links
        shutil.copyfile(path, spare)
    with contextlib.suppress(FileNotFoundError):
        spare.replace(names[0])
    spare.unlink(missing_ok=True)  # it stays if both names are links to one file already


def _sync_folder(folder: Path) -> None:
    """Write a change of names in the folder to the disk, if the system allows it."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:  # some network file systems cannot
        pass
    finally:
        os.close(handle)


def read_file(path: Path, kinds: tuple[str, ...]) -> tuple[str, Any, dict[str, Array]]:
    """Return the kind, settings and arrays of a file; raise unless it is intact and allowed."""
    if not path.exists():
        message = f"there is no file {path}"
        raise FileNotFoundError(message)
    if path.is_dir():
        message = f"{path} is a folder, not a complete safetensors file"
        raise ValueError(message)
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = dict(file.metadata() or {})
            _check_format(path, metadata, kinds)
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
    except (SafetensorError, OSError, KeyError, TypeError) as error:
        message = (
            f"{path} is not a complete safetensors file (truncated, altered, or of another "
            f"format): {error}"
        )
        raise ValueError(message) from error
    wanted = metadata.pop("sha256", "")
    if _digest(metadata, tensors) != wanted:
        message = f"{path} has been altered since it was written: its checksum does not match"
        raise ValueError(message)
    return metadata["format"].removeprefix("smalto."), json.loads(metadata["settings"]), tensors


def _check_format(path: Path, metadata: dict[str, str], kinds: tuple[str, ...]) -> None:
    found = metadata.get("format", "")
    if not found.startswith("smalto."):
        message = f"{path} is a safetensors file that was not written by smalto"
        raise ValueError(message)
    version = metadata.get("format_version", "")
    if version != str(FORMAT_VERSION):
        message = (
            f"{path} has format version {version} (of smalto {metadata.get('smalto_version')}), "
            f"but this smalto reads version {FORMAT_VERSION}"
        )
        raise ValueError(message)
    if found.removeprefix("smalto.") not in kinds:
        wanted = " or ".join(f"smalto.{kind}" for kind in kinds)
        message = f"{path} holds a {found}, expected a {wanted}"
        raise ValueError(message)


def _digest(metadata: dict[str, str], tensors: dict[str, Array]) -> str:
    """Return a checksum of the metadata and arrays of a file."""
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, tensor in tensors.items():
        digest.update(json.dumps([name, tensor.dtype.name, tensor.shape]).encode())
        digest.update(as_bytes(tensor))
    return digest.hexdigest()
