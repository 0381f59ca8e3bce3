"""Text files that are always whole: a reader never sees half of one."""

from __future__ import annotations

import os
from pathlib import Path

from smalto.learning.files.container import replacing


def write_text(path: Path, text: str) -> None:
    """Write a file, or replace it, completely or not at all."""
    with replacing(path) as file:
        file.write(text.encode())


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
