"""Files of named arrays and settings: whole or not there at all, and refused when altered.

The format is safetensors, which holds no code: eight bytes with the length of a header, a JSON
header, and the numbers. Any program that reads safetensors reads these files. They are written
here, not by the safetensors library, because it would copy every array first.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
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

FORMAT_VERSION = 1
_NAMES = {"float64": "F64", "float32": "F32", "int64": "I64", "int32": "I32", "bool": "BOOL",
          "uint8": "U8", "uint64": "U64"}  # fmt: skip


def write_file(
    path: Path, kind: str, settings: Any, arrays: dict[str, Array], keep: int = 1
) -> None:
    """Write a file in place of what is there, in one go: never half of it.

    So many versions of it are kept, the new one included, as path, path.1, path.2, ...

    Where that fails, of a full disk say, what was there stays, and nothing else is left.
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
    with _replacing(path, keep) as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        for tensor in tensors.values():
            file.write(as_bytes(tensor))


@contextlib.contextmanager
def _replacing(path: Path, keep: int) -> Iterator[Any]:
    """A file beside the path that takes its place once it is on the disk, or vanishes."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)  # what a file opened the usual way would have
        _keep_older(path, keep)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def as_bytes(tensor: Array) -> Any:
    """The bytes of an array, not copied."""
    return np.ascontiguousarray(tensor).reshape(-1).view(np.uint8)


def clear_leftovers(path: Path) -> None:
    """Remove what a process that was killed while it wrote this file has left beside it."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        part.unlink(missing_ok=True)


def _keep_older(path: Path, keep: int) -> None:
    """Give what is there a second name, so that it outlives being replaced."""
    if keep == 1 or not path.exists():
        return
    names = [path.with_name(f"{path.name}.{i}") for i in range(1, keep)]
    for newer, older in reversed(list(itertools.pairwise(names))):
        if newer.exists():
            newer.replace(older)
    spare = path.with_name(f".{path.name}.older.part")
    spare.unlink(missing_ok=True)
    try:
        os.link(path, spare)
    except OSError:  # a file system without links
        shutil.copyfile(path, spare)
    spare.replace(names[0])


def _sync_folder(folder: Path) -> None:
    """See to it that the new name is on the disk too, where folders can be synced."""
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
    """The kind, the settings and the arrays of a file, if it is whole and of one of the kinds."""
    if not path.exists():
        message = f"there is no file {path}"
        raise FileNotFoundError(message)
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = dict(file.metadata() or {})
            _check_format(path, metadata, kinds)
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
    except (SafetensorError, OSError, KeyError, TypeError) as error:
        message = f"{path} is no whole safetensors file (truncated, altered or foreign): {error}"
        raise ValueError(message) from error
    wanted = metadata.pop("sha256", "")
    if _digest(metadata, tensors) != wanted:
        message = f"{path} has been altered since it was written: its checksum does not match"
        raise ValueError(message)
    return metadata["format"].removeprefix("smalto."), json.loads(metadata["settings"]), tensors


def _check_format(path: Path, metadata: dict[str, str], kinds: tuple[str, ...]) -> None:
    found = metadata.get("format", "")
    if not found.startswith("smalto."):
        message = f"{path} is a safetensors file, but none that smalto has written"
        raise ValueError(message)
    version = metadata.get("format_version", "")
    if version != str(FORMAT_VERSION):
        message = (
            f"{path} has format version {version} (of smalto {metadata.get('smalto_version')}), "
            f"this smalto reads version {FORMAT_VERSION}"
        )
        raise ValueError(message)
    if found.removeprefix("smalto.") not in kinds:
        wanted = " or ".join(f"smalto.{kind}" for kind in kinds)
        message = f"{path} holds a {found}, wanted is a {wanted}"
        raise ValueError(message)


def _digest(metadata: dict[str, str], tensors: dict[str, Array]) -> str:
    """A checksum of everything that a file says."""
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, tensor in tensors.items():
        digest.update(json.dumps([name, tensor.dtype.name, tensor.shape]).encode())
        digest.update(as_bytes(tensor))
    return digest.hexdigest()
