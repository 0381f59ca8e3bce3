"""The examples of NMF run, and print what they say."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

if not EXAMPLES.is_dir():
    pytest.skip("the examples are not part of this copy", allow_module_level=True)


def test_parts_of_faces(monkeypatch, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("skimage")
    monkeypatch.delenv("SMALTO_DATA", raising=False)
    monkeypatch.setattr(sys, "argv", ["parts_of_faces.py", str(tmp_path / "parts.png")])
    runpy.run_path(str(EXAMPLES / "parts_of_faces.py"))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["parts", "few parts per face (lam = 0.05)"]
    assert (tmp_path / "parts.png").stat().st_size > 1000


def test_topics(capsys):
    found = runpy.run_path(str(EXAMPLES / "topics.py"))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 15
    assert found["codes"].format == "csr"
    assert found["model"].components_.min() >= 0
