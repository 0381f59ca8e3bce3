"""How a command notices Ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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


@contextmanager
def never_lost() -> Iterator[None]:
    """Raise KeyboardInterrupt after a Ctrl-C in here, whatever has become of it.

    While a compiled module is imported, Python may raise something else in its place, or only say
    that it is ignored, in a callback of its own; then this is not said.
    """
    pressed: list[int] = []
    say_ignored = sys.unraisablehook

    def say(ignored: Any) -> None:
        if not isinstance(ignored.exc_value, KeyboardInterrupt):
            say_ignored(ignored)

    def press(number: int, frame: Any) -> None:
        pressed.append(number)
        signal.default_int_handler(number, frame)

    handles = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if handles:
        signal.signal(signal.SIGINT, press)
        sys.unraisablehook = say
    try:
        yield
    except Exception:
        if not pressed:
            raise
    finally:
        if handles:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            sys.unraisablehook = say_ignored
    if pressed:
        raise KeyboardInterrupt
