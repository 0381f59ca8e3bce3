"""The Python in the documents runs, and says what it says it says."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/scaling.md"])
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = blocks(name)
    assert found
    for block in found:
        exec(compile(block, name, "exec"), {})
