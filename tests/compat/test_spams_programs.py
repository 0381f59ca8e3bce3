"""SPAMS's own test programs, from its source archive, with ``spams`` replaced by our module."""

import html
import os
import re
import tarfile
import urllib.error
import urllib.parse
import urllib.request

import pytest
from children import child

INDEX = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/") + "/spams-bin/"
RUN = """
import sys
import smalto.compat.spams

sys.modules["spams"] = smalto.compat.spams
folder, group, name, size = sys.argv[1:]
sys.path.insert(0, folder)
import test_utils
if size == "32":
    test_utils.set_float32()
tests = __import__("test_" + group).tests
dict(zip(tests[::2], tests[1::2]))[name]()
"""
PROGRAMS = {
    "linalg": ["normalize"],
    "decomp": ["sparseProject", "cd", "l1L2BCD", "lasso", "lassoMask", "lassoWeighted", "omp",
               "ompMask", "somp"],
    "dictLearn": ["trainDL", "trainDL_Memory", "nmf"],
}  # fmt: skip
LONG = {"lassoWeighted", "trainDL", "trainDL_Memory", "nmf"}
# Programs that use something of SPAMS that is not there, and what it is (and nine of linear algebra).
OTHERS = {
    "prox": {"fistaFlat": "trace-norm-vec", "fistaGraph": "fistaGraph", "fistaTree": "tree-linf",
             "proximalFlat": "l1linf", "proximalGraph": "proximalGraph",
             "proximalTree": "tree-l0"},
    "dictLearn": {"archetypalAnalysis": "archetypalAnalysis", "structTrainDL": "graph"},
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of SPAMS's test programs, fetched."""
    pytest.importorskip("spams", reason="only compared with where SPAMS is installed")
    target = tmp_path_factory.mktemp("spams")
    try:
        with urllib.request.urlopen(INDEX, timeout=30) as page:
            links = re.findall(r'href="([^"]+\.tar\.gz)[#"]', page.read().decode())
        address = urllib.parse.urljoin(INDEX, html.unescape(links[-1]))
        with urllib.request.urlopen(address, timeout=60) as archive:
            (target / "spams.tar.gz").write_bytes(archive.read())
    except (OSError, IndexError, urllib.error.URLError) as error:
        pytest.skip(f"SPAMS's source archive cannot be fetched: {error}")
    with tarfile.open(target / "spams.tar.gz") as archive:
        archive.extractall(target, filter="data")
    return next(target.glob("*/test*/test_decomp.py")).parent


def run(folder, tmp_path, group, name, size):
    """Run a program; return its exit code and its last line of errors, which is not about compiling."""
    streams = {"stdout": -1, "stderr": -1, "text": True, "cwd": tmp_path}
    with child(RUN, folder, group, name, size, **streams) as program:
        lines = program.communicate()[1].strip().splitlines()
    errors = [line for line in lines if not line.startswith("smalto: compiling")]
    return program.returncode, errors[-1] if errors else ""


@pytest.mark.parametrize("size", ["32", "64"])
@pytest.mark.parametrize(
    ("group", "name"), [(group, name) for group, names in PROGRAMS.items() for name in names]
)
def test_programs_of_spams_run(folder, tmp_path, group, name, size):
    if name in LONG and size == "32":
        pytest.skip("it takes long, and runs in float64")
    assert run(folder, tmp_path, group, name, size) == (0, "")


@pytest.mark.parametrize(
    ("group", "name"), [(group, name) for group, names in OTHERS.items() for name in names]
)
def test_other_programs_of_spams_end_where_something_is_not_there(folder, tmp_path, group, name):
    code, last = run(folder, tmp_path, group, name, "64")
    assert code == 1
    assert last.startswith("NotImplementedError"), last
    assert OTHERS[group][name] in last
