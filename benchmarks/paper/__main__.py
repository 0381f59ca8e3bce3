"""Run the paper's experiments: ``python -m benchmarks.paper NAME [--quick] [--data DIR]``."""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.paper import page
from benchmarks.paper.data import Data
from benchmarks.paper.frame import Study
from benchmarks.peers.common import announce
from smalto.datasets import DATA_VARIABLE

EXPERIMENTS = page.EXPERIMENTS
ALONE = ("inpainting",)  # they use all cores, so a second process would disturb them


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one experiment or all; return 1 if one has failed."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    options = _parser().parse_args(arguments)
    if options.name == "page":
        page.write(options.docs)
        return 0
    names = EXPERIMENTS if options.name in ("all", "plan") else (options.name,)
    folder = options.data or os.environ.get(DATA_VARIABLE)
    data = Data(Path(folder) if folder else None)
    if data.folder is not None and not data.folder.is_dir():
        print(f"there is no folder {data.folder}")
    if options.fresh:
        shutil.rmtree(options.out / "parts", ignore_errors=True)
    until = time.monotonic() + 60.0 * options.minutes
    failed = []
    for name in names:
        study = Study(name, options.quick, data, options.out)
        module = importlib.import_module(f"benchmarks.paper.{name}")
        if options.name == "plan":
            _plan(study, module)
            continue
        print(f"== {name}")
        announce(study.about)
        try:
            _run(study, module, until, options)
        except KeyboardInterrupt:
            print(f"\ninterrupted: the parts done are kept in {options.out / 'parts'}")
            return 130
        except Exception:  # noqa: BLE001  # run the others all the same
            traceback.print_exc()
            failed.append(name)
        if time.monotonic() > until:
            print("the time is over: the same command goes on")
            break
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def _run(study: Study, module: Any, until: float, options: argparse.Namespace) -> None:
    """Compute the parts of an experiment; when none is left, write its results."""
    tasks = module.tasks(study)
    now = [t for key, t in tasks.items() if options.parts is None or options.parts in key]
    left = [task for task in now if not study.is_done(task)]
    helpers = []
    if len(left) > 1 and study.name not in ALONE and not options.helper:
        rest = f"{max(0.0, (until - time.monotonic()) / 60.0):.3f}"
        command = [sys.executable, "-m", "benchmarks.paper", study.name, "--helper", "--minutes", rest,
                   "--out", str(study.out), *(["--quick"] if study.quick else []),
                   *(["--parts", options.parts] if options.parts else []),
                   *(["--data", str(study.data.folder)] if study.data.folder else [])]  # fmt: skip
        helpers = [subprocess.Popen(command) for _ in range(options.processes - 1)]
    try:
        study.work(now, until)
    finally:
        for helper in helpers:
            helper.wait()
    left = [task for task in tasks.values() if not study.is_done(task)]
    if options.helper:
        return
    if left:
        minutes = sum(task.minutes for task in left)
        print(
            f"{len(left)} of {len(tasks)} parts are left, about {minutes:.0f} minutes of one core"
        )
        return
    module.report(study, {key: study.part(task) for key, task in tasks.items()})
    if options.docs is not None and not study.quick:
        page.take(study, options.docs)


def _plan(study: Study, module: Any) -> None:
    """Print how many parts of an experiment are done, and how long the others will take."""
    tasks = list(module.tasks(study).values())
    left = [task.minutes for task in tasks if not study.is_done(task)]
    print(
        f"{study.name:14} {len(tasks) - len(left):3d} of {len(tasks):3d} parts done; "
        f"{sum(left):6.1f} minutes of one core left, the longest part {max(left, default=0.0):.1f}"
    )


def _parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="python -m benchmarks.paper",
        description="The experiments of the paper. A run that was stopped goes on.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = result.add_argument
    others = "all; plan: what is left to do; page: write the page from the results"
    add("name", choices=(*EXPERIMENTS, "all", "plan", "page"), metavar="NAME",
        help=f"{', '.join(EXPERIMENTS)}; {others}")  # fmt: skip
    add("--quick", action="store_true", help="small problems, to check that it runs")
    add("--data", metavar="DIR", help=f"folder of the data sets; by default ${DATA_VARIABLE}")
    add("--out", type=Path, default=Path("benchmarks/results/paper"), metavar="DIR",
        help="folder for parts, figures and numbers")  # fmt: skip
    add("--docs", type=Path, metavar="DIR",
        help="also write figures, numbers and the page to this folder (docs)")  # fmt: skip
    add("--fresh", action="store_true", help="discard the results of earlier runs")
    add("--parts", metavar="WORD",
        help="only parts with this word in their key: A, OL1, SPAMS, grid, ...")  # fmt: skip
    add("--minutes", type=float, default=20.0, help="begin no part that would end after these")
    add("--processes", type=int, default=1, help="processes of one thread that share the parts")
    add("--helper", action="store_true", help=argparse.SUPPRESS)
    return result


if __name__ == "__main__":
    sys.exit(main())
