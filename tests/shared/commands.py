"""The commands, as tests call them."""

from typer.testing import CliRunner

from smalto import cli


def run(*arguments):
    return CliRunner().invoke(cli.app, [str(a) for a in arguments], prog_name="smalto")
