"""That what benchmarks, documents and examples import from smalto is there, also inside functions."""

import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FILES = sorted(
    path for folder in ("benchmarks", "docs", "examples") for path in (ROOT / folder).rglob("*.py")
)


def imported(path):
    """Yield module and name of all that a script imports from smalto."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "smalto":
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imported_names_exist(path):
    for module, name in imported(path):
        is_there = hasattr(importlib.import_module(module), name)
        assert is_there or importlib.util.find_spec(f"{module}.{name}"), f"{module} has no {name}"
