"""Input files: pictures and tables of samples."""

from __future__ import annotations

import csv
import io
import math
import re
import sys
import warnings
from dataclasses import dataclass
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
_ERRORS = re.compile(r"#(N/A|NULL!|DIV/0!|VALUE!|REF!|NAME\?|NUM!)")  # in cells of spreadsheets


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
    return _layout(path).names


def _from_stream() -> Array:
    data = sys.stdin.buffer.read()
    if not data:
        fail("the standard input is empty: expected a .npy file")
    try:
        return np.asarray(np.load(io.BytesIO(data), allow_pickle=False))
    except (ValueError, EOFError, OSError) as error:
        fail(f"the standard input is not a .npy file: {error}")


@dataclass(frozen=True)
class _Layout:
    """How a table is written as text."""

    separator: str | None  # None: spaces
    cells: list[str]  # of the first line
    is_header: bool
    has_index: bool  # a first column that numbers or names the samples

    @property
    def names(self) -> list[str] | None:
        """The names of the columns, if there is a header."""
        return self.cells[self.has_index :] if self.is_header else None


def _layout(path: Path) -> _Layout:
    """Look for a header, which has names only; fail if the first line could also be a sample.

    A number in quotes is a name. Pandas and R begin a header by an empty cell, over the numbers or
    names of the samples.
    """
    first, *others = _first_lines(path, 3)
    separator = _separator(first)
    cells = _cells(first, separator)
    if not first.startswith("#") or _ERRORS.match(first):  # a comment is no sample
        plain = {cell: _number(cell) for cell in cells if f'"{cell}"' not in first}
        values = [
            cell for cell, number in plain.items() if number is not None and not math.isnan(number)
        ]
        names = [cell for cell in cells if cell and plain.get(cell) is None]
        if names and values:
            column = cells.index(names[0])
            fail(
                f"{_no_number(path, str(column), 0, names[0])}; if the first line is a header, "
                f'write the numbers in it in quotes, as in "{values[0]}"'
            )
        below = [_cells(line, separator)[:1] for line in others]
        if not names and not _is_numbered_header(cells, below):
            return _Layout(separator, cells, is_header=False, has_index=False)
    has_index = cells[0] in ("", "Unnamed: 0") and len(cells) > 1 and all(cells[1:])
    return _Layout(separator, cells, is_header=True, has_index=has_index)


def _is_numbered_header(cells: list[str], below: list[list[str]]) -> bool:
    """Whether the first line names columns by numbers, as pandas does beside an index."""
    if len(cells) < 2 or cells[0] or not all(cells[1:]):
        return False
    return below == [["0"], ["1"]] or (len(cells) > 2 and _count_up(cells[1:]))


def _count_up(cells: list[str]) -> bool:
    """Whether cells are 0, 1, 2, ..."""
    return cells == [str(number) for number in range(len(cells))]


def _read_text(path: Path) -> Array:
    """Read numbers separated by commas, tabs, semicolons or spaces; skip a header and an index."""
    layout = _layout(path)
    try:
        table = _read_cells(path, layout, np.float64)
    except UnicodeDecodeError:
        _refuse_encoding(path)
    except ValueError as error:
        fail(f"{path} is not a table of numbers: {_reason(error)}")
    if table.size == 0:
        fail(f"{path} has no rows")
    if np.isnan(table).any():
        _refuse_text(path, layout, table)
    if layout.has_index:
        warn(
            f"the first column of {path} has no name, as the index that pandas writes, and is left "
            "out: to keep it, give it a name"
        )
    if not layout.is_header:
        _warn_of_numbered_columns(path, layout.cells)
    return table


def _read_cells(path: Path, layout: _Layout, dtype: Any) -> Array:
    """Read the cells of all samples; what is no number is read as NaN."""
    with path.open(encoding=_ENCODING) as file:
        has_errors = any(_ERRORS.search(line) for line in file)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "genfromtxt: Empty input file")
        table = np.genfromtxt(
            path,
            delimiter=layout.separator,
            skip_header=layout.is_header,
            dtype=dtype,
            ndmin=2,
            missing_values=("", "NA"),
            encoding=_ENCODING,
            comments="\n" if has_errors else "#",  # "\n" begins no comment
        )
    return np.asarray(table[:, layout.has_index :])


def _first_lines(path: Path, count: int) -> list[str]:
    try:
        with path.open(encoding=_ENCODING) as file:
            return [file.readline() for _ in range(count)]
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
    if count > 1 and _count_up(cells):
        warn(
            f"the first row of {path}, 0 to {count - 1}, is taken for a sample: if it is a header, "
            "remove it"
        )


def _refuse_text(path: Path, layout: _Layout, table: Array) -> None:
    """Fail, with the name of the column, if something other than a number was read as NaN."""
    texts = _read_cells(path, layout, str)
    if texts.shape != table.shape:
        return
    names = layout.names
    for row, column in np.argwhere(np.isnan(table)):
        if not _is_number(texts[row, column]):
            name = str(column) if names is None else names[column]
            fail(_no_number(path, name, row, str(texts[row, column])))


def _no_number(path: Path, column: str, row: int, text: str) -> str:
    """Return what to say of a cell that is no number."""
    return (
        f"{path}: column {column} must hold numbers, but row {row} has {text!r}: drop the column, "
        "or turn it into numbers"
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
    return _number(text) is not None


def _number(text: str) -> float | None:
    """Return the number in a cell, NaN if it is missing, None if something else is there."""
    if text.strip() in ("", "NA"):
        return math.nan
    try:
        return float(text)
    except ValueError:
        return None
