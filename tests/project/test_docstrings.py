"""The docstrings of public names follow numpydoc, and each says what to see also."""

import importlib
import inspect

import pytest

MODULES = [
    "coders", "compat.sklearn", "constraints", "datasets", "distributed", "image", "learners",
    "learning", "plot", "projections", "sources",
]  # fmt: skip

# Not asked of anybody: examples and extended summaries where one line says it all, descriptions
# of what is "as in" another function, and an order of parameters other than by importance.
EVERYWHERE = {
    "GL01", "GL02", "GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "GL10",
    "SS01", "SS02", "SS04", "SS05", "SS06",
    "PR02", "PR05", "PR06", "PR10", "RT02", "RT05", "YD01", "SA02", "SA04",
}  # fmt: skip
OF_NAMES = {"PR01", "RT01", "SA01"}  # asked of names, not of every method


def names():
    found = {}
    for module in ("smalto", *(f"smalto.{name}" for name in MODULES)):
        module = importlib.import_module(module)
        for name in module.__all__:
            thing = getattr(module, name)
            if not isinstance(thing, str):
                found.setdefault(id(thing), f"{module.__name__}.{name}")
    return sorted(found.values())


def problems(name, wanted):
    validate = pytest.importorskip("numpydoc.validate").validate
    # A summary may begin with a formula, and need not be a command.
    return [f"{name}: {code} {text}" for code, text in validate(name)["errors"] if code in wanted]


def test_public_names_are_documented():
    found = []
    for name in names():
        module, _, short = name.rpartition(".")
        thing = getattr(importlib.import_module(module), short)
        text = inspect.getdoc(thing) or ""
        wanted = EVERYWHERE | OF_NAMES
        if inspect.isclass(thing) and ("Attributes\n---" in text or issubclass(thing, tuple)):
            wanted = wanted - {"PR01"}  # a result, not something that users make
        if inspect.isclass(thing) and getattr(thing, "_is_protocol", False):
            wanted = wanted - {"PR01"}
        found += problems(name, wanted)
    assert not found


def test_public_methods_are_documented():
    found = []
    for name in names():
        module, _, short = name.rpartition(".")
        thing = getattr(importlib.import_module(module), short)
        if inspect.isclass(thing):
            for method, value in vars(thing).items():
                if not method.startswith("_") and callable(value):
                    found += problems(f"{name}.{method}", EVERYWHERE)
    assert not found
