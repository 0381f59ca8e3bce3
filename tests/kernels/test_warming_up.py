"""That `smalto.warmup` compiles every kernel, and what it says of it."""

import ast
import importlib
import inspect
import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numba
import pytest
from commands import run
from numba.core.dispatcher import Dispatcher

import smalto
from smalto import kernels, warming_up
from smalto.warming_up import tasks, workers

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
DTYPES = ("float32", "float64")


def test_everything_is_compiled():
    """One test, so that parallel runs of the tests compile everything only once."""
    warm = smalto.warmup()
    assert warm.folder is not None
    assert warm.n_files >= warm.compiled + warm.loaded
    assert warm.size > 1e5
    found = {dtype: tasks_in_a_new_process(dtype) for dtype in DTYPES}
    for reports in found.values():
        assert all(report["made"] == [] for report in reports)
        assert all(report["seconds"] == 0.0 for report in reports)
        # Every kernel that Python calls is run in both dtypes.
        assert kernels_called_by_python() - loaded(reports) == set()
        # Every other kernel is called by one of these.
        assert set(all_kernels()) - reached_from(loaded(reports)) == set()


def tasks_in_a_new_process(dtype):
    """The reports of all tasks of a dtype."""
    code = (
        "import json, sys\nfrom smalto.warming_up.tasks import names, run\n"
        "print(json.dumps([run(name) for name in names() if name.endswith(sys.argv[1])]))"
    )
    command = [sys.executable, "-c", code, dtype]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def loaded(reports):
    """The names of the kernels in the files that were read."""
    return {file.rsplit(".", 2)[0] for report in reports for file in report["read"]}


def modules_of(package):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.startswith("smalto.plot"):  # it needs matplotlib, but no kernel
            yield importlib.import_module(module.name)


def name_of(kernel):
    module = kernel.py_func.__module__.removeprefix("smalto.kernels.")
    return f"{module}.{kernel.py_func.__qualname__}"


def kernels_in(module):
    """The kernels that a module uses: by their own name, or as ``module.kernel``."""
    source = ast.parse(inspect.getsource(module))
    for node in ast.walk(source):
        value = None
        if isinstance(node, ast.Name):
            value = vars(module).get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = vars(module).get(node.value.id)
            value = getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
        if isinstance(value, Dispatcher):
            yield value


def kernels_called_by_python():
    called = {
        name_of(kernel)
        for module in modules_of(smalto)
        if not module.__name__.startswith("smalto.kernels")
        for kernel in kernels_in(module)
    }
    assert len(called) > 30
    return called


def all_kernels():
    found = {
        name_of(value): value
        for module in modules_of(kernels)
        for value in vars(module).values()
        if isinstance(value, Dispatcher)
    }
    assert len(found) > 150
    return found


def reached_from(names):
    """These kernels and all that they call."""
    known, reached, todo = all_kernels(), set(), sorted(names)
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo += [name_of(kernel) for kernel in _called(known[name].py_func)]
    return reached


def _called(function):
    names = set(function.__code__.co_names)
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, Dispatcher):
            yield value
        elif isinstance(value, ModuleType):
            for inner in names & set(vars(value)):
                if isinstance(getattr(value, inner), Dispatcher):
                    yield getattr(value, inner)


def test_the_command_says_where_the_kernels_are(monkeypatch):
    found = warming_up.Warmup(12.3, 7, 3, Path("somewhere"), 20, 2_500_000)
    monkeypatch.setattr(warming_up, "warmup", lambda processes: found)
    done = run("warmup")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "7 kernels compiled, 3 loaded in 12 s",
        "20 files, 2.5 MB in somewhere",
    ]


def test_without_a_folder_for_the_kernels_nothing_is_compiled(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    code = "from smalto.cli import main; import sys; sys.argv[1:] = ['warmup']; main()"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(blocked)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 1
    warning, error = done.stderr.splitlines()
    assert "warning: compiled kernels cannot be kept" in warning
    assert error == "smalto: nothing was compiled, because it could not have been kept"


def test_a_task_that_fails_ends_the_others(monkeypatch):
    with pytest.raises(RuntimeError, match=r"nothing:float32 cannot be compiled:(.|\n)*KeyError"):
        workers.run_all(["nothing:float32", "homotopy:float32"], 1, lambda name, report: None)


def test_tasks_by_name():
    assert tasks.names(["homotopy"]) == ["homotopy:float32", "homotopy:float64"]
    assert tasks.names(["homotopy:float64"]) == ["homotopy:float64"]
    with pytest.raises(ValueError, match=r"kernels must be of lasso, .*, got homotropy"):
        tasks.names(["homotropy"])


def test_processes_must_be_some():
    with pytest.raises(ValueError, match="n_processes must be"):
        smalto.warmup(0)
