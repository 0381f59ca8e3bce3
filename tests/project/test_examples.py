"""The examples of the gallery: each is sound as it stands, and runs if that is asked for.

``SMALTO_EXAMPLES=run pytest tests/project/test_examples.py`` runs all of them, which takes minutes.
Otherwise the quickest one of each section is run.
"""

import ast
import importlib
import os
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"

if not (DOCS.parent / "examples").is_dir():
    pytest.skip("the examples are not part of this copy", allow_module_level=True)

sys.path.insert(0, str(DOCS))
import draw_thumbnails

EXAMPLES = draw_thumbnails.examples()
QUICK = {
    "certificates",
    "filling_a_table",
    "sparse_cca_of_genomes",
}
PUBLIC = [
    "smalto", "smalto.choosing", "smalto.coders", "smalto.constraints", "smalto.datasets", "smalto.distributed",
    "smalto.image", "smalto.learners", "smalto.learning", "smalto.plot", "smalto.projections", "smalto.reporting",
    "smalto.sources",
]  # fmt: skip

each = pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)


def test_there_are_many():
    assert len(EXAMPLES) >= 24
    assert len({script.stem for script in EXAMPLES}) == len(EXAMPLES)


@each
def test_it_has_a_title_and_says_what_it_shows(script):
    text = ast.get_docstring(ast.parse(script.read_text("utf-8")))
    title, line, empty, *rest = text.splitlines()
    assert title
    assert line == "=" * len(title)
    assert not empty
    assert len(" ".join(rest)) > 100


@each
def test_it_prints_draws_and_ends_with_the_picture(script):
    text = script.read_text("utf-8")
    assert "print(" in text
    assert "plt.show()" in text
    assert "sys.argv" not in text  # notebooks have other arguments
    assert len(text.splitlines()) <= 95


@each
def test_it_has_a_small_thumbnail(script):
    thumbnail = DOCS / "thumbnails" / f"{script.stem}.png"
    assert thumbnail.is_file(), "run python docs/draw_thumbnails.py"
    assert 1_000 < thumbnail.stat().st_size < draw_thumbnails.LARGEST


def test_no_thumbnail_is_left_over():
    names = {path.stem for path in (DOCS / "thumbnails").iterdir()}
    assert names == {script.stem for script in EXAMPLES}


@each
def test_it_uses_public_names_alone(script):
    tree = ast.parse(script.read_text("utf-8"))
    used = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert not any(name.name.startswith("smalto.") for name in node.names)
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "smalto":
            used = True
            assert node.module in PUBLIC
            module = importlib.import_module(node.module)
            modules = {name.removeprefix("smalto.") for name in PUBLIC}
            allowed = {*module.__all__, *(modules if node.module == "smalto" else ())}
            assert {name.name for name in node.names} <= allowed
        if isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_")
    assert used


@each
def test_it_runs(script, tmp_path):
    if os.environ.get("SMALTO_EXAMPLES") != "run" and script.stem not in QUICK:
        pytest.skip("SMALTO_EXAMPLES=run runs it")
    for package in ("matplotlib", "skimage", "dask.distributed"):
        pytest.importorskip(package)
    printed, figures = draw_thumbnails.run(script, tmp_path)
    assert printed
    assert figures
