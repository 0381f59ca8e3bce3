"""The command-line application and its list of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from smalto import __version__
from smalto.cli.commands.demo import demo
from smalto.cli.commands.denoise import denoise
from smalto.cli.commands.encode import encode
from smalto.cli.commands.info import info
from smalto.cli.commands.inpaint import inpaint
from smalto.cli.commands.learn import learn
from smalto.cli.commands.report import report
from smalto.cli.commands.show import show
from smalto.cli.commands.warmup import warmup
from smalto.cli.errors import show_warnings

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help=(
        "Dictionary learning: find atoms such that every sample is a combination of a few.\n\n"
        "Start with 'smalto demo'. Learn a dictionary from pictures or a table with 'smalto learn', "
        "look at it with 'smalto report', 'smalto show' and 'smalto info', code data with "
        "'smalto encode', restore pictures with 'smalto denoise' and 'smalto inpaint'. Compile "
        "everything beforehand with "
        "'smalto warmup'. For the options of a command: 'smalto learn --help'."
    ),
)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"smalto {__version__}")
        raise typer.Exit


@app.callback()
def _smalto(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", is_eager=True, callback=_show_version
        ),
    ] = False,
) -> None:
    pass


for command in (demo, learn, report, encode, show, info, denoise, inpaint, warmup):
    app.command()(command)


def run() -> None:
    """Run the command that the user has given."""
    show_warnings()
    app(prog_name="smalto")
