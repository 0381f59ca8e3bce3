"""Text files that are always whole: a reader never sees half of one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write a file under another name, and put it in the place of an existing one."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        umask = os.umask(0)
        os.umask(umask)
        part.chmod(0o666 & ~umask)  # the usual permissions of a new file
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def check_page(path: str | os.PathLike[str]) -> Path:
    """Return the path of a page; raise, before any work is done, if it cannot be written."""
    page = Path(path)
    if page.suffix.lower() not in (".html", ".htm"):
        message = f"a report must be a file *.html, got {page.name!r}"
        raise ValueError(message)
    if not page.parent.is_dir():
        message = f"there is no folder {page.parent} for {page.name}: create it first"
        raise FileNotFoundError(message)
    if page.is_dir():
        message = f"{page} is a folder, but a report is a file: add a file name"
        raise IsADirectoryError(message)
    return page
