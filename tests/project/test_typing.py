"""Users' programs pass type checkers, and type checkers see what users do wrong."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import smalto

PROGRAM = Path(__file__).with_name("typing_user.py")
HOME = Path(smalto.__file__).parents[1]

# Libraries without types are a user's own affair.
CONFIG = """
[mypy]
strict = true
follow_imports = silent
[mypy-scipy.*,sklearn.*,numba.*]
ignore_missing_imports = true
"""

WRONG = {
    "Lasso('0.1')": "arg-type",
    "learn(X, 16, max_epoch=3)": "call-arg",
    "learn(X, 16, learner=Lasso(0.1))": "arg-type",
    "encode(X, D, constraint)": "(arg-type|call-overload)",
    "encode(X, D, return_info=True).toarray()": "(attr-defined|union-attr)",
    "result.dictionary": "attr-defined",
}


def check(command, program, folder):
    """What a type checker says of a program, with the smalto that is being tested."""
    environment = dict(os.environ)
    if HOME.name != "site-packages":
        environment["MYPYPATH"] = str(HOME)
    done = subprocess.run(
        [*command, str(program)], cwd=folder, env=environment, capture_output=True, text=True,
        check=False, timeout=600,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip('mypy is missing: pip install "smalto[test]"')
    folder = tmp_path_factory.mktemp("mypy")
    (folder / "mypy.ini").write_text(CONFIG)
    command = [sys.executable, "-m", "mypy", "--config-file", str(folder / "mypy.ini")]
    return lambda program: check(command, program, folder)


def test_a_program_passes_mypy_strict(mypy):
    code, output = mypy(PROGRAM)
    assert code == 0, output


def test_mypy_finds_what_is_wrong(mypy, tmp_path):
    program = tmp_path / "wrong.py"
    right = PROGRAM.read_text()
    program.write_text(right + "".join(f"{line}\n" for line in WRONG))
    code, output = mypy(program)
    assert code == 1, output
    first = len(right.splitlines()) + 1
    for number, (line, kind) in enumerate(WRONG.items(), first):
        said = [text for text in output.splitlines() if text.startswith(f"{program}:{number}:")]
        assert said, f"{line} passes"
        assert any(re.search(rf"\[{kind}\]$", text) for text in said), said


def test_a_program_passes_pyright(tmp_path):
    if shutil.which("pyright") is None:
        pytest.skip("pyright is not installed")
    (tmp_path / "pyrightconfig.json").write_text(
        f'{{"extraPaths": ["{HOME.as_posix()}"], "reportMissingModuleSource": false}}'
    )
    program = tmp_path / "user.py"
    program.write_text(PROGRAM.read_text())
    code, output = check(["pyright", "--pythonpath", sys.executable], program, tmp_path)
    assert code == 0, output
