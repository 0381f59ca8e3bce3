"""Ctrl-C while kernels are compiled or loaded."""

import signal
import threading

import numba
import pytest

from smalto.kernels import compiled_files, compiler
from smalto.kernels.interrupts import interrupts_wait
from smalto.kernels.jit import kernel


@pytest.fixture
def heeded():
    """Ctrl-C raises, also where the shell ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_waits_and_is_not_lost(heeded):
    reached = []

    def work():
        with interrupts_wait():
            signal.raise_signal(signal.SIGINT)
            reached.append(True)
        pytest.fail("the interrupt was lost")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_and_ignored_signals_are_left_alone():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts_wait():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)

    def enter():
        with interrupts_wait():
            seen.append(signal.getsignal(signal.SIGINT))

    seen = []
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
@pytest.mark.parametrize("where", [compiler, compiled_files])
def test_llvm_is_only_called_while_ctrl_c_waits(monkeypatch, where):
    entered = []

    class Watched:
        def __enter__(self):
            entered.append(True)

        def __exit__(self, *error):
            pass

    @kernel
    def plus(x):
        return x + 3

    plus(1)  # compiled, and written
    plus.overloads.clear()
    monkeypatch.setattr(where, "interrupts_wait", Watched)
    if where is compiler:
        monkeypatch.setattr(compiled_files.KernelCache, "load_overload", lambda *arguments: None)
    again = kernel(plus.py_func)
    assert again(2) == 5
    assert entered


def test_ctrl_c_while_compiling_shows_no_frames_of_the_compiler(monkeypatch, tmp_path):
    monkeypatch.setattr(compiled_files, "cache_folder", lambda: tmp_path)

    def impatient(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(compiler.KernelCompiler, "compile_extra", impatient)

    @kernel
    def one_more(x):
        return x + 1.0

    with pytest.raises(KeyboardInterrupt) as stopped:
        one_more(1.0)
    assert str(stopped.traceback[-1].path).endswith("compiler.py")
    assert len(stopped.traceback) < 6
    assert stopped.value.__suppress_context__
