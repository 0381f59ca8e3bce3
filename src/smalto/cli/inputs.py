"""Input files: pictures and tables of samples."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from smalto.checks import Array
from smalto.cli.errors import fail
from smalto.cli.outputs import STREAM

if TYPE_CHECKING:
    from smalto.image.files.picture_file import PictureFile


def is_picture(path: Path) -> bool:
    """Whether a path is a picture or a folder of pictures, by its name."""
    from smalto.image.reading import SUFFIXES

    return path.suffix.lower() in SUFFIXES or (path.is_dir() and path.suffix != ".zarr")


def open_picture(path: Path) -> PictureFile:
    """Read a picture from a file or from the standard input."""
    from smalto.image.files.picture_file import open_picture_file

    if path == STREAM:
        return open_picture_file(sys.stdin.buffer.read(), "the standard input")
    if not path.exists():
        message = f"there is no file {path}"
        raise ValueError(message)
    return open_picture_file(path)


def open_table(path: Path, *, missing: bool = False) -> Any:
    """Open a table as a source of samples."""
    from smalto.sources import as_source

    if path == STREAM:
        return as_source(_from_stream(), nan=missing)
    file = Path(str(path).partition("::")[0])
    if not file.exists():
        fail(f"there is no file {file}")
    if file.suffix.lower() in (".csv", ".tsv", ".txt"):
        return as_source(_read_text(file), nan=missing)
    return as_source(path, nan=missing)


def open_samples(data: Path, missing: bool, learned: Any) -> Any:
    """Open the samples for a model: the rows of a table, or the patches of pictures, row by row."""
    if data == STREAM or not is_picture(data):
        return open_table(data, missing=missing)
    from smalto.image import PatchSource

    patch = learned.info.get("patch")
    if patch is None:
        fail(f"{data} is a picture, but the model was not learned from pictures")
    if not data.exists():
        fail(f"there is no file {data}")
    return PatchSource(data, tuple(patch[:2]), as_gray=len(patch) == 2, skip_constant=False)


def names_of_columns(path: Path) -> list[str] | None:
    """Return the names in the first line of a text file with a table, if it has some."""
    if path.suffix.lower() not in (".csv", ".tsv", ".txt") or not path.is_file():
        return None
    with path.open() as file:
        first = file.readline()
    names = _cells(first, _separator(first))
    return None if all(_is_number(name) for name in names) else names


def _from_stream() -> Array:
    data = sys.stdin.buffer.read()
    if not data:
        fail("the standard input is empty: expected a .npy file")
    try:
        return np.asarray(np.load(io.BytesIO(data), allow_pickle=False))
    except (ValueError, EOFError, OSError) as error:
        fail(f"the standard input is not a .npy file: {error}")


def _read_text(path: Path) -> Array:
    """Read numbers separated by commas, tabs, semicolons or spaces; skip a header of names."""
    with path.open() as file:
        first = file.readline()
    separator = _separator(first)
    header = 0 if all(_is_number(part) for part in _cells(first, separator)) else 1
    try:
        table = np.genfromtxt(
            path,
            delimiter=separator,
            skip_header=header,
            dtype=np.float64,
            ndmin=2,
            missing_values=("", "NA"),
        )
    except ValueError as error:
        fail(f"{path} is not a table of numbers: {str(error).splitlines()[0]}")
    if table.size == 0:
        fail(f"{path} has no rows")
    if np.isnan(table).any():
        _refuse_text(path, separator, header, table, first)
    return np.asarray(table)


def _refuse_text(path: Path, separator: str | None, header: int, table: Array, first: str) -> None:
    """Fail, with the name of the column, if something other than a number was read as NaN."""
    texts = np.genfromtxt(path, delimiter=separator, skip_header=header, dtype=str, ndmin=2)
    if texts.shape != table.shape:
        return
    for row, column in np.argwhere(np.isnan(table)):
        if not _is_number(texts[row, column]):
            name = _cells(first, separator)[column] if header else str(column)
            fail(
                f"{path}: column {name} must hold numbers, but row {row} has "
                f"{str(texts[row, column])!r}: drop the column, or turn it into numbers"
            )


def _separator(line: str) -> str | None:
    """Return what separates the cells of a table; None if these are spaces."""
    return next((mark for mark in (",", "\t", ";") if mark in line), None)


def _cells(line: str, separator: str | None) -> list[str]:
    """Return the cells of a line; one in quotes may contain the separator, and quotes twice."""
    if separator is None:
        return [cell.strip('"') for cell in line.split()]
    reader = csv.reader([line], delimiter=separator, skipinitialspace=True)
    return [cell.strip() for cell in next(reader)]


def _is_number(text: str) -> bool:
    text = text.strip()
    if text in ("", "NA"):
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True
