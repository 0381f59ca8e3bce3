"""Output files: checked before any work, and written completely or not at all."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from smalto.checks import Array
from smalto.cli.errors import fail

STREAM = Path("-")  # stands for the standard input or output
PLOT_SUFFIXES = (".png", ".svg", ".pdf", ".jpg", ".jpeg")


def check_output(path: Path, force: bool, suffixes: tuple[str, ...] = ()) -> None:
    """Fail, before any work is done, if a file cannot or should not be written."""
    if path == STREAM:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        fail(f"{path} must end in {' or '.join(suffixes)}")
    folder = path.parent
    if not folder.is_dir():
        fail(f"there is no folder {folder} for {path.name}")
    if path.is_dir():
        fail(f"{path} is a folder")
    if path.exists() and not force:
        fail(f"{path} already exists: use --force to overwrite it, or another name")
    if not os.access(folder, os.W_OK):
        fail(f"{folder} is read-only")


def need_matplotlib() -> None:
    """Fail, before any work is done, if matplotlib is not installed."""
    import importlib.util

    if importlib.util.find_spec("matplotlib") is None:
        fail('plots need matplotlib: pip install "smalto[plot]"')


def write_whole(path: Path, write: Callable[[Any], None]) -> None:
    """Write a file with ``write(file)``; it appears under its name only when it is complete."""
    if path == STREAM:
        held = io.BytesIO()
        write(held)
        sys.stdout.buffer.write(held.getvalue())
        sys.stdout.buffer.flush()
        return
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def check_picture_output(path: Path, force: bool) -> None:
    """Fail, before any work is done, if a picture cannot or should not be written."""
    from smalto.image.files.writing import kind_of

    if path != STREAM:
        try:
            kind_of(path)
        except ValueError as error:
            fail(str(error))
    check_output(path, force)


def write_picture(path: Path, pixels: Array) -> None:
    """Write pixels in the format given by the suffix."""
    from smalto.image.files.picture_file import PictureFile
    from smalto.image.files.writing import fit_to, kind_of, write_picture_file

    fitted = fit_to(PictureFile(pixels), kind_of(path))
    write_whole(path, lambda file: write_picture_file(file, fitted))


def write_figure(path: Path, axes_or_figure: Any) -> None:
    """Write a matplotlib figure."""
    figure = getattr(axes_or_figure, "figure", axes_or_figure)
    kind = path.suffix.lower().lstrip(".") or "png"
    write_whole(path, lambda file: figure.savefig(file, format=kind))
