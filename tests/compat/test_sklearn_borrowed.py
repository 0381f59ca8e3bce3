"""The list of scikit-learn's tests that are left out names only tests that exist."""

import subprocess
import sys
from pathlib import Path

import pytest
from sklearn_tests import INSTALLED, LEFT_OUT, MADE_FOR


@pytest.mark.skipif(not INSTALLED.startswith(f"{MADE_FOR}."), reason="another scikit-learn")
def test_every_test_that_is_left_out_exists():
    files = [str(path) for path in Path(__file__).parent.glob("test_sklearn_own_*.py")]
    command = [sys.executable, "-m", "pytest", "-n", "0", "--collect-only", "-q", *files]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = [line.partition("::")[::2] for line in listed.splitlines() if "::" in line]
    ids = {(Path(path).stem.replace("sklearn_own_", ""), test) for path, test in found}
    assert len(ids) > 500
    known = ids | {(file, test.partition("[")[0]) for file, test in ids}
    for file, reasons in LEFT_OUT.items():
        assert {(file, test) for test in reasons} <= known
