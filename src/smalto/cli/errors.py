"""Errors and warnings, one line each on the standard error."""

from __future__ import annotations

import errno
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer

from smalto.checks import SAY_MISSING
from smalto.cli.ctrl_c import INTERRUPTED, comes_from_ctrl_c


def fail(message: str) -> NoReturn:
    """Print one line that says what is wrong, and exit."""
    typer.echo(f"smalto: {one_line(message)}", err=True)
    raise typer.Exit(1)


@contextmanager
def plain_errors(when_stopped: str = "stopped") -> Iterator[None]:
    """Turn errors that users can fix into one line each; other exceptions keep their traceback.

    After Ctrl-C, ``when_stopped`` is said.
    """
    try:
        yield
    except BaseException as error:
        if comes_from_ctrl_c(error):
            typer.echo(f"smalto: {when_stopped}", err=True)
            raise typer.Exit(INTERRUPTED) from None
        known = explain(error)
        if known is None:
            raise
        fail(known)


def explain(error: BaseException) -> str | None:
    """Return what to say of an error that users can fix, None of any other."""
    if isinstance(error, OSError):
        return _describe(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory for this"
    if isinstance(error, ValueError | TypeError | ImportError | ArithmeticError):
        return str(error).replace(SAY_MISSING, "give --missing") or type(error).__name__
    return None


def one_line(text: str) -> str:
    """Return a text without line breaks."""
    return " ".join(text.split())


def _describe(error: OSError) -> str:
    if error.strerror is None:
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    full = " (nothing was written)" if error.errno == errno.ENOSPC else ""
    return f"{where}{error.strerror}{full}"


def show_warnings() -> None:
    """Print warnings as one line each on the standard error."""

    def show(message: Any, *_: Any, **__: Any) -> None:
        typer.echo(f"smalto: warning: {one_line(str(message))}", err=True)

    warnings.showwarning = show
    # Photographs may be large; what is far too large is an error.
    warnings.filterwarnings("ignore", "Image size .* could be decompression bomb")
