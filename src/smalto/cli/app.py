"""The command line as a whole: which commands there are."""

from __future__ import annotations

from typing import Annotated

import typer

from smalto import __version__
from smalto.cli.common import show_warnings
from smalto.cli.demo import demo
from smalto.cli.encode import encode
from smalto.cli.learn import learn
from smalto.cli.restore import denoise, inpaint
from smalto.cli.show import info, show

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help=(
        "Learn the atoms of which data can be composed, a few at a time.\n\n"
        "Begin with: smalto demo. Then learn a dictionary from pictures or tables (smalto learn), "
        "look at it (smalto show, smalto info), code data with it (smalto encode), or let it mend "
        "pictures (smalto denoise, smalto inpaint). Each command explains itself: smalto learn "
        "--help."
    ),
)


def _show_version(asked: bool) -> None:
    if asked:
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


for command in (demo, learn, encode, show, info, denoise, inpaint):
    app.command()(command)


def main() -> None:
    """Run the command."""
    show_warnings()
    app(prog_name="smalto")
