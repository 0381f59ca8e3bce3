"""Tables of samples by the name of a file, as commands take them."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.cli.common import STREAM, fail


def is_picture(path: Path) -> bool:
    """Whether it is a picture, or a folder (of pictures), by its name."""
    from smalto.image.pictures import SUFFIXES

    return path.suffix.lower() in SUFFIXES or (path.is_dir() and path.suffix != ".zarr")


def open_table(path: Path, *, missing: bool = False) -> Any:
    """The rows of a table as a source."""
    from smalto.sources import as_source

    if path == STREAM:
        return as_source(_from_stream(), nan=missing)
    file = Path(str(path).partition("::")[0])
    if not file.exists():
        fail(f"there is no file {file}")
    if file.suffix.lower() in (".csv", ".tsv", ".txt"):
        return as_source(_read_text(file), nan=missing)
    return as_source(path, nan=missing)


def _from_stream() -> Array:
    held = sys.stdin.buffer.read()
    if not held:
        fail("nothing came from the standard input: a .npy file is expected there")
    try:
        return np.asarray(np.load(io.BytesIO(held), allow_pickle=False))
    except (ValueError, EOFError, OSError) as error:
        fail(f"what came from the standard input is no .npy file: {error}")


def _read_text(path: Path) -> Array:
    """Numbers separated by commas, tabs, semicolons or blanks; a first line of names is skipped."""
    with path.open() as file:
        first = file.readline()
    separator = next((mark for mark in (",", "\t", ";") if mark in first), None)
    names = 0 if all(_is_number(part) for part in first.split(separator)) else 1
    try:
        table = np.genfromtxt(
            path, delimiter=separator, skip_header=names, dtype=np.float64, ndmin=2,
            missing_values=("", "NA"),
        )  # fmt: skip
    except ValueError as error:
        fail(f"{path} is not a table of numbers: {str(error).splitlines()[0]}")
    if table.size == 0:
        fail(f"{path} has no rows")
    return np.asarray(table)


def _is_number(text: str) -> bool:
    text = text.strip()
    if text in ("", "NA"):
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True
