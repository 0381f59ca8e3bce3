"""That another process compiles what a call needs later, and that no kernel is compiled twice."""

import json
import os
import subprocess
import sys
import threading

import numba
import pytest
from numba.core.compiler_lock import global_compiler_lock

from smalto.kernels import ahead
from smalto.kernels.compiled_files import KernelCache
from smalto.kernels.file_lock import fcntl, locked
from smalto.kernels.jit import kernel

pytestmark = [
    pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled"),
    pytest.mark.skipif(fcntl is None, reason="files cannot be locked"),
]


def environment(folder):
    return {**os.environ, "NUMBA_CACHE_DIR": str(folder)}


def test_a_call_finds_what_the_other_process_has_compiled(tmp_path):
    code = """
import json
from smalto.kernels import ahead
from smalto.warming_up import tasks

ahead._possible = lambda: True  # on one core, too
with ahead.expecting("homotopy", dtype="float64"):
    tasks.run("sparse_cca:float32")  # compiles something, so the other process begins
    process = ahead._expected._process
    process.wait(120)
    report = tasks.run("homotopy:float64")
print(json.dumps([process.returncode, len(report["made"]), len(report["read"])]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=environment(tmp_path),
    )
    returncode, made, read = json.loads(done.stdout)
    assert (returncode, made) == (0, 0)
    assert read > 0


def test_nothing_is_started_if_nothing_is_compiled(monkeypatch):
    monkeypatch.setattr(ahead, "start_process", lambda **pipes: pytest.fail("started"))
    with ahead.expecting("homotopy", dtype="float32"):
        pass
    ahead.compile_ahead()  # a call that expects nothing


@pytest.mark.parametrize("reason", ["variable", "folder", "core", "executable"])
def test_when_there_is_no_other_process(monkeypatch, reason):
    monkeypatch.delenv("SMALTO_COMPILE_AHEAD", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)
    assert ahead._possible()
    if reason == "variable":
        monkeypatch.setenv("SMALTO_COMPILE_AHEAD", "0")
    elif reason == "folder":
        monkeypatch.setattr(ahead, "cache_folder", lambda: None)
    elif reason == "core":
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0}, raising=False)
    else:
        monkeypatch.setattr(sys, "executable", "")
    assert not ahead._possible()


def test_the_process_ends_with_the_outermost_call(monkeypatch):
    monkeypatch.setattr(ahead, "_possible", lambda: True)
    with ahead.expecting("lasso", dtype="float32"):
        with ahead.expecting("L2Ball", dtype="float32"):
            ahead.compile_ahead()
            process = ahead._expected._process
            ahead.compile_ahead()
            assert ahead._expected._process is process
        assert process.poll() is None
    assert process.poll() is not None


def test_a_process_that_cannot_be_started_does_not_matter(monkeypatch):
    def refuse(*arguments, **options):
        raise OSError("no memory")

    monkeypatch.setattr(ahead, "_possible", lambda: True)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with ahead.expecting("lasso", dtype="float32"):
        ahead.compile_ahead()


def test_one_holder_at_a_time(tmp_path):
    path, order = tmp_path / "a.lock", []

    def hold():
        with locked(path) as held:
            order.append(held)

    with locked(path) as held:
        assert held
        other = threading.Thread(target=hold)
        other.start()
        other.join(0.2)
        assert order == []
    other.join(10)
    assert order == [True]
    assert list(tmp_path.iterdir()) == []


def test_where_files_cannot_be_locked_nothing_is_held(tmp_path):
    with locked(tmp_path / "missing" / "a.lock") as held:
        assert not held


def test_two_processes_compile_each_kernel_once(tmp_path):
    code = (
        "import json; from smalto.warming_up.tasks import run; "
        "print(json.dumps(run('homotopy:float64')['made']))"
    )
    options = {"stdout": subprocess.PIPE, "text": True, "env": environment(tmp_path)}
    both = [subprocess.Popen([sys.executable, "-c", code], **options) for _ in range(2)]
    made = [json.loads(process.communicate()[0]) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert set(made[0]).isdisjoint(made[1])
    assert sorted(made[0] + made[1]) == sorted(path.name for path in tmp_path.rglob("*.*"))


def test_files_are_looked_for_by_one_thread_at_a_time(monkeypatch):
    @kernel
    def add_one(x):
        return x + 1

    seen = []
    lacking = KernelCache.lacking
    monkeypatch.setattr(
        KernelCache,
        "lacking",
        lambda *arguments: seen.append(global_compiler_lock.is_locked()) or lacking(*arguments),
    )
    assert add_one(1) == 2
    assert seen == [True]
