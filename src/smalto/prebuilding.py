"""Compile kernels for a platform wheel, which then has them from the first call on.

`hatch_build.py` in the root of the project calls this; see CONTRIBUTING.md. The result is a folder
that becomes ``smalto/kernels/prebuilt`` in the wheel, where `kernels/prebuilt_files.py` finds it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smalto.kernels.compiled_files import cache_folder
from smalto.kernels.prebuilt_files import ABOUT, LEVELS, environment, machine, runs_here
from smalto.threads import available_cores
from smalto.warming_up.tasks import names
from smalto.warming_up.workers import run_all


def build(
    folder: Path, levels: Sequence[str] | None = None, families: Sequence[str] | None = None
) -> list[Path]:
    """Compile kernels for some levels of processors into a folder; return the files.

    Everything is compiled and kept where compiled kernels always are, then everything is run again
    in new processes, and what they read is copied: the kernels that Python calls. They contain
    those that they call themselves.

    Parameters
    ----------
    folder : Path
        The folder to write to.
    levels : sequence of str, optional
        Levels of processors, as "x86-64-v3" or "v3"; by default the best that this one has, up
        to x86-64-v3.
    families : sequence of str, optional
        Families or tasks of `smalto.warming_up.tasks`; all by default.
    """
    cache = cache_folder()
    if cache is None:
        message = "kernels cannot be compiled for a wheel without a folder for them"
        raise OSError(message)
    chosen = [_level(name) for name in levels] if levels else [_best_level()]
    folder.mkdir(parents=True, exist_ok=True)
    for level in chosen:
        for name in sorted(_needed(level, names(families))):
            shutil.copyfile(cache / name, folder / name)
    about = {"levels": chosen, **environment()}
    (folder / ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return sorted(folder.iterdir())


def _needed(level: str, tasks: list[str]) -> set[str]:
    """Compile for a level; return the names of the files that the tasks read then."""
    variables = {"NUMBA_CPU_NAME": LEVELS[level].cpu_name, "NUMBA_CPU_FEATURES": ""}
    reports: list[dict[str, Any]] = []
    for _ in range(2):
        reports.clear()
        run_all(tasks, available_cores(), lambda name, report: reports.append(report), variables)
    compiled = {name for report in reports for name in report["made"]}
    if compiled:
        message = f"compiled kernels were not found again: {', '.join(sorted(compiled))}"
        raise RuntimeError(message)
    return {name for report in reports for name in report["read"]}


def _best_level() -> str:
    for level in LEVELS:
        if runs_here(level):
            return level
    message = f"there is no level for the processor {machine()}, only {', '.join(LEVELS)}"
    raise ValueError(message)


def _level(name: str) -> str:
    """Return the full name of a level that runs here; raise ValueError if there is none."""
    for level in LEVELS:
        if name in (level, level.removeprefix("x86-64-")):
            if runs_here(level):
                return level
            message = f"this processor cannot run code for {level}, so it cannot be tried here"
            raise ValueError(message)
    message = f"level must be one of {', '.join(LEVELS)}, got {name!r}"
    raise ValueError(message)
