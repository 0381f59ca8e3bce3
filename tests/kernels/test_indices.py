"""That no kernel counts from the end of an array: its indices are used as they are."""

import ast
from pathlib import Path

import pytest

import smalto.kernels

MARKS = {"kernel", "summing", "inlined", "part"}
FILES = sorted(Path(smalto.kernels.__path__[0]).rglob("*.py"))


def from_the_end(source):
    """Yield the subscripts in kernels that begin with a minus sign, and their lines."""
    for function in ast.walk(ast.parse(source)):
        marks = [ast.unparse(mark) for mark in getattr(function, "decorator_list", ())]
        if MARKS.isdisjoint(marks):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Subscript):
                axes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                if any(ast.unparse(axis).startswith("-") for axis in axes):
                    yield f"line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_kernel_counts_from_the_end(path):
    assert list(from_the_end(path.read_text(encoding="utf-8"))) == []


def test_such_indices_are_found():
    source = "@kernel\ndef last(x, i):\n    return x[-1] + x[0, -i] + x[i - 1]\n"
    assert list(from_the_end(source)) == ["line 3: x[-1]", "line 3: x[0, -i]"]
