"""Wheels with compiled kernels: built, installed, and used without a compiler."""

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import numba
import pytest
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

from smalto import prebuilding
from smalto.kernels import prebuilt_files
from smalto.kernels.prebuilt_files import LEVELS, Prebuilt, prebuilt, runs_here

ROOT = Path(__file__).parents[2]
FAMILIES = "lasso:float32,learning:float32,denoise:float32,homotopy:float32"

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")

needs_a_level = pytest.mark.skipif(
    not any(map(runs_here, LEVELS)), reason="there is no level for this processor"
)

NO_COMPILER = """
import sys
from numba.core import compiler

def refuse(*arguments, **options):
    raise AssertionError("Numba's compiler was called")

compiler.compile_extra = refuse
import numpy as np
from smalto import encode, learn
from smalto.coders import Lasso
from smalto.image import denoise
import smalto
assert smalto.__file__.startswith(sys.prefix), smalto.__file__
X = np.random.default_rng(0).standard_normal((300, 20)).astype(np.float32)
D = learn(X, 30, Lasso(0.3), max_steps=3, random_state=0).D
codes = encode(X, D, Lasso(0.3))
assert codes.nnz > 300
rows, columns = np.mgrid[:32, :32]
picture = 0.5 + 0.3 * np.sin(rows / 3) * np.cos(columns / 4)
picture += 0.1 * np.random.default_rng(0).standard_normal(picture.shape)
assert denoise(picture.astype(np.float32), 0.1, effort=0, n_atoms=64, max_steps=5).shape == (32, 32)
"""

COMPILES = """
import numpy as np
from smalto.kernels import compiling
compiling.PATIENCE = 0.0
from smalto.projections import project_l2_ball
print(project_l2_ball(np.array([[3.0, 4.0]])))
"""


def installed(folder):
    """The Python of a new environment in which a wheel with compiled kernels is installed."""
    environment = {
        **os.environ, "SMALTO_PREBUILD": "1", "SMALTO_PREBUILD_FAMILIES": FAMILIES,
    }  # fmt: skip
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, env=environment, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    assert parse_wheel_filename(wheel.name)[3] & set(sys_tags())
    venv.create(folder / "venv")
    (packages,) = {
        path for pattern in ("lib/python*/site-packages", "Lib/site-packages")
        for path in (folder / "venv").glob(pattern)
    }  # fmt: skip
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    others = {str(Path(module.__file__).parents[1]) for module in (numba, pytest)}
    (packages / "others.pth").write_text("\n".join(others))  # what smalto needs
    (python,) = {
        path for name in ("bin/python", "Scripts/python.exe")
        for path in (folder / "venv").glob(name)
    }  # fmt: skip
    return python


def run(python, code, cache):
    """Run a program in the new environment; return what it writes to the standard error."""
    names = ("PYTHONPATH", "NUMBA_CACHE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [python, "-W", "error", "-c", code],
        env={**environment, "NUMBA_CACHE_DIR": str(cache)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


@needs_a_level
def test_an_installed_wheel_with_compiled_kernels(tmp_path):
    python = installed(tmp_path)
    needs_no_compiler_and_no_cache(python, tmp_path / "blocked")
    compiles_elsewhere_what_it_has_not(python, tmp_path / "rest")
    newer = f"for numba 0.1, this is {numba.__version__}"
    compiles_and_says_why(python, tmp_path / "numba", {"numba": "0.1"}, newer)
    higher = "for processors of another, this one is of a lower level"
    compiles_and_says_why(python, tmp_path / "levels", {"levels": ["another"]}, higher)


def needs_no_compiler_and_no_cache(python, cache):
    cache.write_text("a file, so that nothing can be written")
    assert run(python, NO_COMPILER, cache) == ""


def compiles_elsewhere_what_it_has_not(python, cache):
    folder = files_of(python)
    before = sorted(path.name for path in folder.iterdir())
    assert run(python, COMPILES, cache).startswith("smalto: compiling the projection kernels")
    assert len(list(cache.rglob("*.nbc"))) > 0
    assert sorted(path.name for path in folder.iterdir()) == before


def compiles_and_says_why(python, cache, change, reason):
    about = files_of(python) / "about.json"
    written = about.read_text()
    about.write_text(json.dumps(json.loads(written) | change))
    lines = run(python, COMPILES, cache).splitlines()
    about.write_text(written)
    assert lines[0] == f"smalto: the compiled kernels that came with smalto are {reason}"
    assert lines[1].startswith("smalto: compiling the projection kernels, once for this machine")
    assert len(lines) == 2


def files_of(python):
    (about,) = python.parents[1].rglob("prebuilt/about.json")
    return about.parent


@pytest.fixture
def came(tmp_path, monkeypatch):
    """Make a file about kernels that came with the package."""
    monkeypatch.setattr(prebuilt_files, "FOLDER", tmp_path)

    def make(**about):
        content = {"levels": list(LEVELS), **prebuilt_files.environment(), **about}
        (tmp_path / "about.json").write_text(json.dumps(content))
        prebuilt.cache_clear()
        return prebuilt()

    yield make
    prebuilt.cache_clear()


def test_the_best_level_is_chosen(came, monkeypatch):
    monkeypatch.setattr(prebuilt_files, "machine", lambda: "x86_64")
    has = dict.fromkeys(LEVELS["x86-64-v3"].features, True)
    monkeypatch.setattr(prebuilt_files.binding, "get_host_cpu_features", lambda: has)
    assert came() == Prebuilt("x86-64-v3")
    has["avx2"] = False
    assert came() == Prebuilt("x86-64-v2")
    assert came(levels=["x86-64-v3"]).why_not.endswith("this one is of a lower level")
    monkeypatch.setattr(prebuilt_files, "machine", lambda: "aarch64")
    assert came() == Prebuilt("aarch64")
    assert came(levels=["x86-64-v2"]).level is None


def test_an_unknown_processor_has_no_level(came, monkeypatch):
    def unknown():
        raise RuntimeError

    monkeypatch.setattr(prebuilt_files, "machine", lambda: "x86_64")
    monkeypatch.setattr(prebuilt_files.binding, "get_host_cpu_features", unknown)
    assert came().level is None


@pytest.mark.parametrize("name", ["Python", "llvmlite", "system"])
def test_kernels_for_something_else_are_not_used(came, name):
    found = came(**{name: "another"})
    assert found.level is None
    this = prebuilt_files.environment()[name]
    assert found.why_not.endswith(f"are for {name} another, this is {this}")


def test_a_processor_that_is_named_is_compiled_for(came, monkeypatch):
    monkeypatch.setattr(numba.config, "CPU_NAME", "x86-64-v2")
    monkeypatch.setattr(numba.config, "CPU_FEATURES", "")
    assert came().level is None
    monkeypatch.setattr(prebuilt_files, "machine", lambda: "x86_64")
    assert prebuilt_files.level_compiled_for() == "x86-64-v2"
    monkeypatch.setattr(numba.config, "CPU_FEATURES", "+avx")
    assert prebuilt_files.level_compiled_for() is None


def test_a_pure_wheel_has_nothing_to_say(came):
    prebuilt.cache_clear()
    assert prebuilt() == Prebuilt(None, "")


def test_levels_must_exist_and_run_here(tmp_path, monkeypatch):
    monkeypatch.setattr(prebuilding, "runs_here", lambda level: level == "x86-64-v2")
    assert prebuilding._best_level() == "x86-64-v2"
    with pytest.raises(ValueError, match="this processor cannot run code for x86-64-v3"):
        prebuilding.build(tmp_path, ["v3"])
    with pytest.raises(ValueError, match=r"level must be one of x86-64-v3, .*, got 'v5'"):
        prebuilding.build(tmp_path, ["v5"])
    monkeypatch.setattr(prebuilding, "runs_here", lambda level: False)
    with pytest.raises(ValueError, match="there is no level for the processor"):
        prebuilding.build(tmp_path)
