"""The command ``smalto``: one file per command in `commands/`, their helpers beside it.

Nothing is imported here but what Python has: a Ctrl-C while the library is imported, which takes a
second, ends in `main` as any other.
"""

from __future__ import annotations

import os
import sys

from smalto.cli.ctrl_c import INTERRUPTED, comes_from_ctrl_c, never_lost

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        with never_lost():
            from smalto.cli.app import run
        run()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _leave()
        raise
    except (Exception, KeyboardInterrupt) as error:  # outside of commands, which say more
        if not comes_from_ctrl_c(error):
            raise
        print("smalto: stopped", file=sys.stderr)  # noqa: T201
        _leave()


def _leave() -> None:
    """End the process at once: a Ctrl-C inside the compiler may have left it unfit for a proper end."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(INTERRUPTED)
