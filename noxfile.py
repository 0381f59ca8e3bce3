#!/usr/bin/env -S uv run --script

# /// script
# dependencies = ["nox>=2025.2"]
# ///

"""Tasks: ``nox`` (lint and tests), ``nox -s coverage``, ``nox -s sdist``."""

from __future__ import annotations

import tarfile
from pathlib import Path

import nox

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "uv|virtualenv"

# Tests that reach every kernel on problems small enough for plain Python.
PLAIN = {
    "tests/test_active.py": "",
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
def coverage(session: nox.Session) -> None:
    """Which lines of the kernels the tests reach: nothing is compiled, so they can be counted."""
    session.install("-e", ".[test]", "coverage>=7.6")
    session.run("coverage", "erase")
    session.run(
        "coverage", "run", "-m", "pytest", "-q", "-n", "0", *PLAIN, *session.posargs,
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
