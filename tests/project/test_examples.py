"""The examples run, without data of their own, and draw what they draw."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"

if not FOLDER.is_dir():
    pytest.skip("the examples are not part of this copy", allow_module_level=True)

EXAMPLES = sorted(FOLDER.glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path):
    pytest.importorskip("matplotlib")
    environment = {key: value for key, value in os.environ.items() if key != "SMALTO_DATA"}
    picture = tmp_path / "picture.png"
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path), str(picture)],
        cwd=tmp_path,
        env=environment | {"MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert picture.stat().st_size > 0
