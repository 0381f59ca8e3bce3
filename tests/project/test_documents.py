"""The code in the documents runs, and the glossary names what exists."""

import inspect
import re
from pathlib import Path

import pytest

import smalto
from smalto import coders, constraints, datasets, distributed, image, learners, learning

ROOT = Path(__file__).parents[2]


def blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/scaling.md"])
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = blocks(name)
    assert found
    for block in found:
        exec(compile(block, name, "exec"), {})


def public_parameters():
    names = set()
    for module in (smalto, coders, constraints, datasets, distributed, image, learners, learning):
        for thing in vars(module).values():
            for member in (thing, *(vars(thing).values() if inspect.isclass(thing) else ())):
                if callable(member):
                    try:
                        names |= set(inspect.signature(member).parameters)
                    except (TypeError, ValueError):
                        continue
    return names


def test_the_glossary_names_parameters_that_exist():
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    section = text.split("## Numbers that are easily confused")[1].split("\n## ")[0]
    words = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = set(re.findall(r"`(\w+)`", " ".join(words)))
    assert len(named) > 10
    assert named <= public_parameters()
