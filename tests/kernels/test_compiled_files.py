"""Where compiled kernels are kept, and when they are found again."""

import hashlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from smalto.kernels import compiled_files
from smalto.kernels.compiled_files import KernelCache, cache_folder, source_digest
from smalto.kernels.jit import kernel

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


def double(x):
    return x[0] + x[0]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of compiled kernels that is empty, and whose kernels are those of this file."""
    monkeypatch.setattr(compiled_files, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(compiled_files, "source_digest", lambda module: "as it is")
    return tmp_path


def test_each_kind_of_arguments_has_a_file_that_is_found_again(folder):
    for dtype in (np.float32, np.float64):
        assert kernel(double)(np.ones(1, dtype)) == 2
    assert len(list(folder.iterdir())) == 2
    again = kernel(double)
    assert again(np.ones(1, np.float32)) == 2
    assert again(np.ones(1, np.float64)) == 2
    assert sum(again.stats.cache_hits.values()) == 2
    assert not again.stats.cache_misses
    again._cache.flush()
    assert list(folder.iterdir()) == []


def test_other_sources_have_other_files(folder, monkeypatch):
    kernel(double)(np.ones(1))
    monkeypatch.setattr(compiled_files, "source_digest", lambda module: "edited")
    edited = kernel(double)
    edited(np.ones(1))
    assert edited.stats.cache_misses
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("content", [b"", b"nonsense", pickle.dumps("nothing like it")[:-3]])
def test_a_damaged_file_is_compiled_anew(folder, content):
    kernel(double)(np.ones(1))
    (file,) = folder.iterdir()
    file.write_bytes(content)
    again = kernel(double)
    assert again(np.ones(1)) == 2
    assert again.stats.cache_misses
    third = kernel(double)
    assert third(np.ones(1)) == 2
    assert third.stats.cache_hits


def test_a_full_disk_does_not_matter(folder, monkeypatch):
    def full(path, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compiled_files, "_write", full)
    assert kernel(double)(np.ones(1)) == 2
    assert list(folder.iterdir()) == []


def forget_sources():
    """Read the sources of kernels anew."""
    compiled_files._source.cache_clear()
    source_digest.cache_clear()


def test_digests_follow_the_kernels_that_are_called(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled_files, "HERE", tmp_path)
    (tmp_path / "coding").mkdir()
    top, middle = tmp_path / "coding" / "top.py", tmp_path / "coding" / "middle.py"
    bottom = tmp_path / "bottom.py"
    top.write_text("from smalto.kernels.coding.middle import (\n    a,\n    b,\n)\n")
    middle.write_text("from smalto.kernels import bottom\n")
    bottom.write_text("x = 1\n")

    def digests():
        forget_sources()
        names = ("coding.top", "coding.middle", "bottom")
        return [source_digest(f"smalto.kernels.{name}") for name in names]

    before = digests()
    assert digests() == before
    bottom.write_text("x = 2\n")
    after = digests()
    assert all(one != other for one, other in zip(before, after, strict=True))
    top.write_text(top.read_text() + "y = 1\n")
    assert [one == other for one, other in zip(after, digests(), strict=True)] == [
        False,
        True,
        True,
    ]
    forget_sources()


def test_line_endings_do_not_matter(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled_files, "HERE", tmp_path)
    found = []
    for ending in ("\n", "\r\n"):
        top = "from smalto.kernels.bottom import (\n    a,\n    b,\n)\n".replace("\n", ending)
        (tmp_path / "top.py").write_bytes(top.encode())
        for bottom in (b"x = 1", b"x = 2"):
            (tmp_path / "bottom.py").write_bytes(bottom)
            forget_sources()
            found.append(source_digest("smalto.kernels.top"))
    forget_sources()
    assert found[:2] == found[2:]
    assert found[0] != found[1]


def test_settings_of_numba_that_change_the_code_have_files_of_their_own(monkeypatch):
    cache = KernelCache(double)
    plain = cache._file("types", "processor")
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    assert cache._file("types", "processor") != plain


def test_every_module_of_kernels_is_read():
    home = Path(compiled_files.__file__).parent
    for path in home.rglob("*.py"):
        name = ".".join(("smalto.kernels", *path.relative_to(home).with_suffix("").parts))
        if path.name != "__init__.py" and name not in compiled_files._AROUND:
            total = hashlib.sha256(f"{name}\0{path.read_text(encoding='utf-8')}\0".encode())
            alone = not list(compiled_files._imported(path.read_text(encoding="utf-8")))
            assert (source_digest(name) == total.hexdigest()) == alone


def test_how_files_are_kept_changes_no_kernel(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled_files, "HERE", tmp_path)
    (tmp_path / "jit.py").write_text("from smalto.kernels.compiled_files import KernelCache\n")
    found = []
    for source in ("x = 1", "x = 2"):
        (tmp_path / "compiled_files.py").write_text(source)
        forget_sources()
        found.append(source_digest("smalto.kernels.jit"))
    forget_sources()
    assert found[0] == found[1]


def test_where_nothing_can_be_written_everything_works(tmp_path):
    program = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import numpy as np
    from smalto.projections import project_l2_ball
    print(project_l2_ball(np.array([[3.0, 4.0]])))
print(len([w for w in caught if "cannot be kept" in str(w.message)]))
"""
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(blocked)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.split() == ["[[0.6", "0.8]]", "1"]


def test_the_folder_is_the_one_that_numba_is_told():
    if numba.config.CACHE_DIR:
        assert cache_folder() == Path(numba.config.CACHE_DIR) / "smalto-kernels"
    assert KernelCache(double).cache_path == str(cache_folder())
