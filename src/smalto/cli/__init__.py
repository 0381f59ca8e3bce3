"""The command ``smalto``: `commands/` has a file per command, the files beside it what they share."""

from __future__ import annotations

from smalto.cli.app import app, main

__all__ = ["app", "main"]
