"""Input files: pictures and tables of samples."""

from __future__ import annotations

import csv
import io
import re
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from smalto.checks import Array
from smalto.cli.errors import fail
from smalto.cli.outputs import STREAM
from smalto.data_frames import check_names
from smalto.warn import warn

if TYPE_CHECKING:
    from smalto.image.files.picture_file import PictureFile

_ENCODING = "utf-8-sig"  # of tables; Excel begins its "CSV UTF-8" with a mark that is no text


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
        samples = open_table(data, missing=missing)
        check_names(str(data), names_of_columns(data), learned.info.get("names"))
        return samples
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
    first = _first_line(path)
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
    first = _first_line(path)
    separator = _separator(first)
    cells = _cells(first, separator)
    header = 0 if all(_is_number(part) for part in cells) else 1
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "genfromtxt: Empty input file")
            table = np.genfromtxt(
                path,
                delimiter=separator,
                skip_header=header,
                dtype=np.float64,
                ndmin=2,
                missing_values=("", "NA"),
                encoding=_ENCODING,
            )
    except UnicodeDecodeError:
        _refuse_encoding(path)
    except ValueError as error:
        fail(f"{path} is not a table of numbers: {_reason(error)}")
    if table.size == 0:
        fail(f"{path} has no rows")
    if np.isnan(table).any():
        _refuse_text(path, separator, header, table, first)
    _warn_of_numbered_columns(path, cells)
    return np.asarray(table)


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding=_ENCODING) as file:
            return file.readline()
    except UnicodeDecodeError:
        _refuse_encoding(path)


def _refuse_encoding(path: Path) -> NoReturn:
    fail(f"{path} is not text in UTF-8: save it as CSV in UTF-8")


def _reason(error: ValueError) -> str:
    """Return why NumPy could not read a table: the first of its lines that is unlike the others."""
    found = re.search(r"Line #(\d+) \(got (\d+) columns instead of (\d+)\)", str(error))
    if found is None:
        return str(error).splitlines()[0]
    line, count, wanted = found.groups()
    return f"line {line} has {count} columns, but the first row has {wanted}"


def _warn_of_numbered_columns(path: Path, cells: list[str]) -> None:
    """Warn if the first row is 0, 1, 2, ...: pandas numbers columns without names like this."""
    count = len(cells)
    if count > 1 and cells == [str(number) for number in range(count)]:
        warn(
            f"the first row of {path}, 0 to {count - 1}, is taken for a sample: if it is a header, "
            "remove it"
        )


def _refuse_text(path: Path, separator: str | None, header: int, table: Array, first: str) -> None:
    """Fail, with the name of the column, if something other than a number was read as NaN."""
    texts = np.genfromtxt(
        path, delimiter=separator, skip_header=header, dtype=str, ndmin=2, encoding=_ENCODING
    )
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
