"""The code in the documents runs, and what they name exists."""

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

import smalto
from smalto import coders, constraints, datasets, distributed, image, learners, learning

ROOT = Path(__file__).parents[2]


MODULES = [
    "coders", "constraints", "datasets", "distributed", "estimators", "image", "learners",
    "learning", "plot", "projections", "sources",
]  # fmt: skip

sys.path.insert(0, str(ROOT / "docs"))
import draw_pictures


def blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/scaling.md"])
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = blocks(name)
    assert found
    for block in found:
        exec(compile(block, name, "exec"), {})


@pytest.mark.parametrize(
    "page", draw_pictures.pages(), ids=lambda page: page.relative_to(ROOT / "docs").as_posix()
)
def test_pages_run_and_draw_their_pictures(page, tmp_path):
    shown = draw_pictures.PICTURE.findall(page.read_text(encoding="utf-8"))
    assert draw_pictures.run(page, tmp_path) == [name for _, name in shown]
    for text, name in shown:
        assert text
        assert (page.parent / name).is_file(), "run python docs/draw_pictures.py"


def test_every_public_name_is_in_the_reference():
    listed = set()
    for page in (ROOT / "docs/api").glob("*.md"):
        for module, names in re.findall(
            r"currentmodule:: (\S+)\n.*?:nosignatures:\n\n(.*?)```",
            page.read_text(encoding="utf-8"),
            re.DOTALL,
        ):
            listed |= {id(getattr(importlib.import_module(module), name)) for name in names.split()}
    for module in [smalto, *(importlib.import_module(f"smalto.{name}") for name in MODULES)]:
        missing = [name for name in module.__all__ if id(getattr(module, name)) not in listed]
        assert not missing, module.__name__


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
