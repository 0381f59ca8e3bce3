"""Compiled kernels that came with the package, if any.

A platform wheel has files like those of `compiled_files` in the folder ``prebuilt`` beside this
file, compiled for a level that many processors have in common instead of for one processor, and
``about.json``, which says what they are for. Nothing is ever written there.
"""

from __future__ import annotations

import functools
import json
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite
import numba
from llvmlite import binding
from numba.core import config

FOLDER = Path(__file__).parent / "prebuilt"
ABOUT = "about.json"
_V2 = {"cx16", "popcnt", "sse4.2", "ssse3"}
_V3 = {"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}


@dataclass(frozen=True)
class Level:
    """A set of processors that run the same code."""

    machine: str
    cpu_name: str  # for LLVM
    features: frozenset[str]  # that a processor must have


LEVELS = {  # the best first
    "x86-64-v3": Level("x86_64", "x86-64-v3", frozenset(_V2 | _V3)),
    "x86-64-v2": Level("x86_64", "x86-64-v2", frozenset(_V2)),
    "aarch64": Level("aarch64", "generic", frozenset()),
}


@dataclass(frozen=True)
class Prebuilt:
    """Which of the compiled kernels that came with the package this process can use."""

    level: str | None  # the level that they were compiled for; None if there are none
    why_not: str = ""  # why those that came cannot be used


@functools.cache
def prebuilt() -> Prebuilt:
    """Return whether this process can use the compiled kernels that came with the package."""
    try:
        about = json.loads((FOLDER / ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Prebuilt(None)
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None:
        return Prebuilt(None, _because("for no processor in particular", "NUMBA_CPU_NAME is set"))
    for name, value in environment().items():
        if about.get(name) != value:
            return Prebuilt(None, _because(f"for {name} {about.get(name)}", f"this is {value}"))
    for level in LEVELS:
        if level in about["levels"] and runs_here(level):
            return Prebuilt(level)
    levels = " or ".join(about["levels"])
    return Prebuilt(None, _because(f"for processors of {levels}", "this one is of a lower level"))


def _because(purpose: str, this: str) -> str:
    return f"the compiled kernels that came with smalto are {purpose}, {this}"


def environment() -> dict[str, Any]:
    """Return what compiled kernels depend on besides the processor."""
    return {
        "Python": f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}",
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "system": sys.platform,
    }


def machine() -> str:
    """Return the kind of processor: x86_64, aarch64 or another one."""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


def runs_here(level: str) -> bool:
    """Return whether this processor runs code for a level."""
    needed = LEVELS[level]
    if needed.machine != machine():
        return False
    try:
        found = binding.get_host_cpu_features() if needed.features else {}
    except RuntimeError:  # unknown to LLVM
        return False
    return all(found.get(feature, False) for feature in needed.features)


def level_compiled_for() -> str | None:
    """Return the level that Numba has been told to compile for; None if for this processor."""
    for name, level in LEVELS.items():
        if level.cpu_name == config.CPU_NAME and config.CPU_FEATURES == "":
            return name if level.machine == machine() else None
    return None
