"""How a command notices Ctrl-C."""

from __future__ import annotations

INTERRUPTED = 130  # exit code after Ctrl-C


def comes_from_ctrl_c(error: BaseException | None) -> bool:
    """Tell whether an exception is, or was raised because of, a KeyboardInterrupt.

    Python raises others in its place, while it makes a class for example.
    """
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False
