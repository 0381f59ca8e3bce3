"""Errors and warnings, one line each on the standard error."""

from __future__ import annotations

import errno
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer

INTERRUPTED = 130  # exit code after Ctrl-C


def fail(message: str) -> NoReturn:
    """Print one line that says what is wrong, and exit."""
    typer.echo(f"smalto: {' '.join(message.split())}", err=True)
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
        if isinstance(error, OSError):
            fail(_describe(error))
        if isinstance(error, MemoryError):
            fail("there is not enough memory for this")
        if isinstance(error, ValueError | TypeError | ImportError | ArithmeticError):
            fail(str(error) or type(error).__name__)
        raise


def comes_from_ctrl_c(error: BaseException | None) -> bool:
    """Tell whether an exception is, or was raised because of, a KeyboardInterrupt.

    Python raises others in its place, while it makes a class for example.
    """
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _describe(error: OSError) -> str:
    if error.strerror is None:
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    full = " (nothing was written)" if error.errno == errno.ENOSPC else ""
    return f"{where}{error.strerror}{full}"


def show_warnings() -> None:
    """Print warnings as one line each on the standard error."""

    def show(message: Any, *_: Any, **__: Any) -> None:
        typer.echo(f"smalto: warning: {' '.join(str(message).split())}", err=True)

    warnings.showwarning = show
