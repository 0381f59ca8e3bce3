"""Compiled kernels on disk.

Numba's own cache asks for the exact CPU, notices changes of the file that a kernel is in but not
of the kernels that it calls, and numbers its files by an index that two processes may get wrong.
Here the name of a file is a digest of everything that its code depends on: the source of the
kernel and of all kernels below it, the types of the arguments, the versions of Python, Numba and
llvmlite, and the processor. Whoever finds a file can use it, and whoever writes one writes the same.

They are looked for among the files that came with the package (see `prebuilt_files`), then in a
folder of the user (see `cache_folder`). Only the latter is written to.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import config
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from smalto.kernels import prebuilt_files
from smalto.kernels.compiler import compiling_for_a_kernel
from smalto.kernels.interrupts import interrupts_wait
from smalto.warn import warn

HERE = Path(__file__).parent
# Settings of Numba that change the code.
_FLAGS = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE")
# Modules that `jit` imports but that change nothing in the code of kernels.
_AROUND = {
    f"smalto.kernels.{name}"
    for name in (
        "ahead",
        "compiled_files",
        "compiling",
        "file_lock",
        "interrupts",
        "prebuilt_files",
    )
}


class KernelCache(_Cache):  # type: ignore[misc]
    """The files of one kernel."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._enabled = True
        module = function.__module__.removeprefix("smalto.kernels.")
        self._name = f"{module}.{function.__qualname__}"
        self._source = source_digest(function.__module__)

    @property
    def cache_path(self) -> str:
        """The user's folder."""
        return str(cache_folder())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled kernel for these types of arguments; None if there is none."""
        if not self._enabled or compiling_for_a_kernel():
            return None
        _prepare(target_context)
        for path in self._places(sig, target_context.codegen()):
            data = _read(path)
            if data is not None:
                _record.read.add(path.name)
                with interrupts_wait():
                    return CompileResult._rebuild(target_context, *data)
        return None

    def lacking(self, sig: Any, target_context: Any) -> Path | None:
        """Return the file that will have the kernel for these types; None if there is no need."""
        if not self._enabled:
            return None
        _prepare(target_context)
        path = None
        for path in self._places(sig, target_context.codegen()):
            if path.exists():
                return None
        return None if cache_folder() is None else path

    def _places(self, sig: Any, codegen: Any) -> Iterator[Path]:
        """Yield the files that may have the compiled kernel for these types of arguments."""
        level = prebuilt_files.prebuilt().level
        if level is not None:
            yield prebuilt_files.FOLDER / self._file(sig, level)
        folder = cache_folder()
        if folder is not None:
            yield folder / self._file(sig, _processor(codegen))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel for these types of arguments."""
        if not self._enabled or compiling_for_a_kernel():
            return
        name, folder = self._file(sig, _processor(data.codegen)), cache_folder()
        _record.made.add(name)
        if folder is not None:
            with contextlib.suppress(OSError):  # a full disk: it is compiled again next time
                _write(folder / name, data._reduce())

    def enable(self) -> None:
        """Read and write files."""
        self._enabled = True

    def disable(self) -> None:
        """Neither read nor write files."""
        self._enabled = False

    def flush(self) -> None:
        """Delete the files of this kernel in the user's folder."""
        folder = cache_folder()
        if folder is not None:
            for path in folder.glob(f"{self._name}.*.nbc"):
                path.unlink(missing_ok=True)

    def _file(self, sig: Any, processor: Any) -> str:
        """Return the name of the file for these types on this processor."""
        versions = (sys.implementation.cache_tag, numba.__version__, llvmlite.__version__)
        flags = [getattr(config, name) for name in _FLAGS]
        key = (repr(sig), processor, versions, sys.platform, flags, self._source)
        return f"{self._name}.{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}.nbc"


def _processor(codegen: Any) -> Any:
    """Return what Numba compiles for: this processor, or a level that is named instead."""
    return prebuilt_files.level_compiled_for() or codegen.magic_tuple()


@dataclass
class Record:
    """Names of files that this process has read, and of those that it has compiled."""

    read: set[str] = field(default_factory=set)
    made: set[str] = field(default_factory=set)


_record = Record()


@contextlib.contextmanager
def recorded() -> Iterator[Record]:
    """Note which files are read and compiled inside; not for several threads."""
    global _record
    outer, _record = _record, Record()
    try:
        yield _record
    finally:
        outer.read |= _record.read
        outer.made |= _record.made
        _record = outer


def _prepare(target_context: Any) -> None:
    """Let Numba load what it has not loaded yet, which calls LLVM."""
    with interrupts_wait():
        target_context.refresh()


def _read(path: Path) -> Any:
    try:
        return pickle.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except Exception:  # noqa: BLE001 (a damaged file: compiling makes a new one)
        return None


def _write(path: Path, data: Any) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(dumps(data))
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@functools.cache
def cache_folder() -> Path | None:
    """Return the folder in which compiled kernels are kept; None where nothing can be written.

    It is ``NUMBA_CACHE_DIR`` if that is set, else the user's folder for caches.
    """
    home = config.CACHE_DIR or AppDirs("smalto", appauthor=False).user_cache_dir
    folder = Path(home) / "smalto-kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        message = (
            f"compiled kernels cannot be kept in {folder} ({error.strerror}): each process "
            f"compiles them anew. Set NUMBA_CACHE_DIR to a folder that can be written to"
        )
        warn(message, RuntimeWarning)
        return None
    return folder


@functools.cache
def source_digest(module: str) -> str:
    """Return a digest of the source of a module of kernels and of all kernels that it imports."""
    seen: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if name not in seen and name not in _AROUND:
            seen.add(name)
            todo += _source(name)[1]
    total = hashlib.sha256()
    for name in sorted(seen):
        total.update(f"{name}\0{_source(name)[0]}\0".encode())
    return total.hexdigest()


@functools.cache
def _source(module: str) -> tuple[str, list[str]]:
    """Return the source of a module of kernels, and the modules of kernels that it imports."""
    path = HERE.joinpath(*module.split(".")[2:]).with_suffix(".py")
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return text, list(_imported(text))


def _imported(source: str) -> Iterator[str]:
    """Yield the modules of kernels that a source imports, or imports something from."""
    pattern = r"^from (smalto\.kernels[\w.]*) import (?:\(([^)]*)\)|(.*))$"
    for package, several, one in re.findall(pattern, source, re.MULTILINE):
        yield package
        for name in re.findall(r"\w+", several or one):
            yield f"{package}.{name}"
