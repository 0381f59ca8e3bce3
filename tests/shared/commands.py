"""The commands, as tests call them."""

from typer.testing import CliRunner

from smalto.cli.app import app


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], prog_name="smalto")
