"""Other Python processes that tests start."""

import contextlib
import subprocess
import sys
import threading

# A shell may start the tests with Ctrl-C ignored (a job in the background), and children inherit it.
_HEED_CTRL_C = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"


@contextlib.contextmanager
def child(code, *arguments, seconds=600, **options):
    """A program that heeds Ctrl-C, and that has ended when the test has, however that ends.

    ``seconds`` is the time after which it must be hanging, on the slowest machine.
    """
    command = [sys.executable, "-c", _HEED_CTRL_C + code, *map(str, arguments)]
    with subprocess.Popen(command, **options) as process:
        alarm = threading.Timer(seconds, process.kill)
        alarm.start()
        try:
            yield process
        finally:
            alarm.cancel()
            process.kill()
