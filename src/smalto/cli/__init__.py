"""The command ``smalto``: one file per command, and `common.py` for what they share."""

from __future__ import annotations

from smalto.cli.app import app, main

__all__ = ["app", "main"]
