#!/usr/bin/env -S uv run --script

# /// script
# dependencies = ["nox>=2025.2"]
# ///

"""Tasks: ``nox`` (lint and tests), ``nox -s docs``, ``nox -s coverage``, ``nox -s sdist``."""

from __future__ import annotations

import tarfile
from pathlib import Path

import nox

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "uv|virtualenv"

# Tests of kernels, on problems small enough for plain Python: files, and which of their tests.
PLAIN = {
    "tests/coders/test_active.py": "test",
    "tests/coders/test_path.py": "not any and not scikit",
    "tests/coders/test_lasso.py": "(ordinary or duplicate) and float64",
    "tests/coders/test_missing.py": "lazy_gram or might_as_well and float64 and not Bridge",
    "tests/coders/test_omp.py": (
        "definition and float64 or both_limits or rounds or ordinary and float64"
    ),
    "tests/coders/test_constrained.py": "one_bound_per_signal or zero_error or out_of_reach",
    "tests/coders/test_joint.py": "ordinary and float64 or astray",
    "tests/coders/test_groups.py": "optimal and ordinary and float64",
    "tests/coders/test_nonnegative.py": "twin or compress or dense",
    "tests/learning/test_update.py": "statistics or fit or blocked_sweep or store",
    "tests/constraints/test_constraints.py": "compiled_sweep",
    "tests/image/test_patches.py": "not any and not learning",
    "tests/image/test_denoise.py": "look_alike or each_other",
}


@nox.session
def lint(session: nox.Session) -> None:
    """Lint, types, import layers."""
    session.install(".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("lint-imports", "--no-cache")


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def tests(session: nox.Session) -> None:
    """The tests, on every Python that is there."""
    session.install(".[test]")
    session.run("pytest", *session.posargs)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """The documentation with its gallery, and every page of it in a browser."""
    session.install(".[docs,test]")
    folder = str(Path(session.create_tmp()) / "html")
    session.run("sphinx-build", "-W", "docs", folder)
    session.run(
        "pytest", "-q", "-n", "0", "tests/project/test_site.py", "tests/project/test_docstrings.py",
        env={"SMALTO_SITE": folder},
    )  # fmt: skip


@nox.session(default=False)
def coverage(session: nox.Session) -> None:
    """Which lines of the kernels the tests reach: nothing is compiled, so they can be counted."""
    session.install("-e", ".[test]", "coverage>=7.6")
    session.run("coverage", "erase")
    for file, which in PLAIN.items():
        session.run(
            "coverage", "run", "-m", "pytest", "-q", "-n", "0", file, "-k", which,
            env={"NUMBA_DISABLE_JIT": "1"},
        )  # fmt: skip
    session.run("coverage", "combine")
    session.run("coverage", "report", "--include", "*/smalto/kernels/*")


@nox.session(default=False)
def sdist(session: nox.Session) -> None:
    """An unpacked sdist passes its own tests, with nothing of this folder at hand."""
    session.install("build")
    folder = Path(session.create_tmp())
    session.run("python", "-m", "build", "--sdist", "--outdir", str(folder / "dist"))
    (archive,) = (folder / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    session.chdir(folder / archive.name.removesuffix(".tar.gz"))
    session.install(".[test]")
    session.run("pytest", "-q", *session.posargs)


if __name__ == "__main__":
    nox.main()
