"""The command ``smalto``: one file per command in `commands/`, their helpers beside it."""

from __future__ import annotations

from smalto.cli.app import app, main

__all__ = ["app", "main"]
