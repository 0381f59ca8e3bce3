"""What is said while kernels are compiled."""

import importlib
import io
import logging
import os
import pkgutil
import subprocess
import sys
from types import SimpleNamespace

import numba
import numba.core.event
import pytest

from smalto import kernels
from smalto.kernels import compiling
from smalto.kernels.prebuilt_files import Prebuilt

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


def event(module="coding.lasso"):
    """The event that Numba triggers when it begins to compile a kernel of this module."""
    function = SimpleNamespace(__module__=f"smalto.kernels.{module}")
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})


@pytest.fixture
def said(monkeypatch):
    """The lines that are logged, at once."""
    lines = []
    monkeypatch.setattr(compiling, "PATIENCE", 0.0)
    monkeypatch.setattr(compiling._log, "warning", lambda text, *words: lines.append(text % words))
    return lines


def ended(*, failed=False):
    """The event that it triggers at the end."""
    return SimpleNamespace(_exc_details=(KeyboardInterrupt, None, None) if failed else (None,) * 3)


def compile_for(watch, lines, count, module="coding.lasso", *, failed=False):
    """Compile until there are so many lines."""
    watch.on_start(event(module))
    while len(lines) < count:
        compiling.time.sleep(0.001)
    watch.on_end(ended(failed=failed))


def test_each_family_that_takes_long_is_mentioned_once(said, monkeypatch):
    monkeypatch.setattr(compiling, "cache_folder", lambda: "somewhere")
    watch = compiling._Watch()
    for module, count in (("coding.lasso", 1), ("coding.lasso", 1), ("coding.fit", 2)):
        compile_for(watch, said, count, module)
    _, seconds = compiling.family_of("smalto.kernels.coding.lasso")
    assert said == [
        f"smalto: compiling the lasso kernels, once for this machine: about {seconds} s",
        "smalto: compiling the coding kernels, once for this machine",
    ]


def test_what_ctrl_c_has_ended_is_mentioned_again(said, monkeypatch):
    monkeypatch.setattr(compiling, "cache_folder", lambda: "somewhere")
    watch = compiling._Watch()
    compile_for(watch, said, 1, failed=True)
    compile_for(watch, said, 2)
    assert said[0] == said[1]


def test_an_exception_that_ends_compiling_is_noticed():
    seen = []

    class Listener(numba.core.event.Listener):
        def on_start(self, event):
            pass

        def on_end(self, event):
            seen.append(compiling._failed(event))

    with numba.core.event.install_listener("smalto:test", Listener()):
        with numba.core.event.trigger_event("smalto:test"):
            pass
        with pytest.raises(KeyboardInterrupt), numba.core.event.trigger_event("smalto:test"):
            raise KeyboardInterrupt
    assert seen == [False, True]


def test_what_cannot_be_kept_is_not_called_once(said, monkeypatch):
    monkeypatch.setattr(compiling, "cache_folder", lambda: None)
    compile_for(compiling._Watch(), said, 1, "coding.fit")
    assert said == ["smalto: compiling the coding kernels, for this process only"]


def test_why_compiled_kernels_that_came_are_not_used_is_said_first(said, monkeypatch):
    monkeypatch.setattr(compiling, "prebuilt", lambda: Prebuilt(None, "they are for another"))
    watch = compiling._Watch()
    compile_for(watch, said, 2)
    compile_for(watch, said, 3, "learning.sums")
    assert said[0] == "smalto: they are for another"
    assert [line.split(",")[0] for line in said[1:]] == [
        "smalto: compiling the lasso kernels",
        "smalto: compiling the learning kernels",
    ]


def test_functions_of_others_are_counted_but_not_mentioned(said):
    watch = compiling._Watch()
    function = SimpleNamespace(__module__="somebody.else")
    watch.on_start(SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)}))
    compiling.time.sleep(0.05)
    watch.on_end(ended())
    assert watch.seconds() >= 0.05
    assert said == []


def test_what_is_soon_compiled_is_not_mentioned(said, monkeypatch):
    monkeypatch.setattr(compiling, "PATIENCE", 1e6)
    watch = compiling._Watch()
    watch.on_start(event())
    watch.on_start(event())
    watch.on_end(ended())
    watch.on_end(ended())
    assert watch._speaker is None
    assert said == []
    assert watch.seconds() > 0


@pytest.mark.parametrize("level", [logging.WARNING, logging.ERROR])
def test_a_terminal_shows_the_seconds_while_it_compiles(monkeypatch, level):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(compiling, "PATIENCE", 0.0)
    monkeypatch.setattr(compiling, "_REFRESH", 0.001)
    logger = logging.getLogger("smalto")
    monkeypatch.setattr(logger, "propagate", False)
    logger.setLevel(level)
    compiling._log.manager._clear_cache()
    try:
        watch = compiling._Watch()
        watch.on_start(event())
        for _ in range(3000):
            compiling.time.sleep(0.001)
            if "kernels, 0 s" in terminal.getvalue() or level == logging.ERROR:
                break
        watch.on_end(ended())
    finally:
        logger.setLevel(logging.NOTSET)
    shown = terminal.getvalue().split("\r")
    if level == logging.ERROR:
        assert shown == [""]
    else:
        assert "smalto: compiling the lasso kernels, 0 s" in shown
        assert shown[-2].isspace()
        assert shown[-1] == ""


def test_every_family_has_kernels():
    modules = [
        module.name
        for module in pkgutil.walk_packages(kernels.__path__, "smalto.kernels.")
        if not module.ispkg and importlib.import_module(module.name)
    ]
    assert {compiling.family_of(name) for name in modules} >= set(compiling._FAMILIES.values())


def test_the_line_goes_to_the_standard_error_and_can_be_turned_off(tmp_path):
    code = """
import logging, sys
from smalto.kernels import compiling
compiling.PATIENCE = 0.0
if sys.argv[1:]:
    logging.getLogger("smalto").setLevel(logging.ERROR)
import numpy as np
from smalto.projections import project_l2_ball
project_l2_ball(np.ones((2, 2)))
"""
    for quiet, lines in ((), 1), (("quiet",), 0):
        done = subprocess.run(
            [sys.executable, "-c", code, *quiet],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / f"{lines}")},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr.count("smalto: compiling the projection kernels") == lines
        assert done.stderr.count("\n") == lines
        assert done.stdout == ""
    again = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "0")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert again.stderr == ""  # a warm cache


def test_functions_without_a_module_are_counted_too():
    function = SimpleNamespace(__module__=None)  # as libraries make them by exec
    event = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})
    watch = compiling._Watch()
    watch.on_start(event)
    watch.on_end(ended())
    assert watch.seconds() > 0
