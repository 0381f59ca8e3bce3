"""That a process can fork while other threads compile or compute something."""

import os
import signal
import threading
import time

import pytest
from numba.core.compiler_lock import global_compiler_lock

from smalto import threads
from smalto.cached import cached_property
from smalto.kernels import ahead, compiling

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
LOCKS = {
    "compiler": global_compiler_lock,
    "watch": compiling._watch.lock,
    "expected": ahead.EXPECTED_LOCK,
    "BLAS": threads._blas_lock,
}


def exit_code_of(child, seconds):
    """Wait for a process, but not for ever."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hung"


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_of_another_thread_is_free_in_the_child(name):
    lock, held = LOCKS[name], threading.Event()

    def hold():
        lock.acquire()
        held.set()
        time.sleep(0.2)
        lock.release()

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    child = os.fork()
    if child == 0:
        for each in LOCKS.values():
            each.acquire()
            each.release()
        os._exit(7)
    assert exit_code_of(child, 20) == 7
    other.join()
    for each in LOCKS.values():  # and free here
        each.acquire()
        each.release()


class Slow:
    began, goes_on = threading.Event(), threading.Event()

    def __init__(self, waits):
        self.waits, self.computed = waits, 0

    @cached_property
    def value(self):
        self.computed += 1
        if self.waits:
            self.began.set()
            self.goes_on.wait()
        return 7


def test_a_property_that_another_thread_computes_is_free_in_the_child():
    slow, quick = Slow(True), Slow(False)
    other = threading.Thread(target=lambda: slow.value)
    other.start()
    Slow.began.wait()
    child = os.fork()
    if child == 0:
        os._exit(quick.value)
    assert exit_code_of(child, 20) == 7
    Slow.goes_on.set()
    other.join()
    assert slow.value == slow.value == 7
    assert slow.computed == 1
