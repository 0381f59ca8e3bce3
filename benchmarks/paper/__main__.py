"""Run the paper's experiments: ``python -m benchmarks.paper NAME [--quick] [--data DIR]``."""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from benchmarks.paper.data import Data
from benchmarks.paper.frame import Study
from benchmarks.peers.common import announce
from smalto.datasets import DATA_VARIABLE

EXPERIMENTS = (
    "online_batch",
    "sgd",
    "batch_size",
    "forgetting",
    "nmf",
    "features",
    "genomics",
    "inpainting",
    "projections",
    "convergence",
)
QUICK_MINUTES = 0.02


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one experiment or all; return 1 if one has failed."""
    options = _parser().parse_args(arguments)
    names = EXPERIMENTS if options.name == "all" else (options.name,)
    minutes = QUICK_MINUTES if options.quick else options.minutes
    folder = options.data or os.environ.get(DATA_VARIABLE)
    data = Data(Path(folder) if folder else None)
    if data.folder is not None and not data.folder.is_dir():
        print(f"there is no folder {data.folder}")
    if options.fresh:
        shutil.rmtree(options.out / "parts", ignore_errors=True)
    failed = []
    for name in names:
        study = Study(name, options.quick, minutes, data, options.out)
        print(f"== {name}")
        announce(study.about)
        try:
            importlib.import_module(f"benchmarks.paper.{name}").run(study)
        except KeyboardInterrupt:
            print(f"\ninterrupted: the parts done are kept in {options.out / 'parts'}")
            return 130
        except Exception:  # noqa: BLE001  # run the others all the same
            traceback.print_exc()
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="python -m benchmarks.paper",
        description="The experiments of the paper. An interrupted run resumes.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = result.add_argument
    add("name", choices=(*EXPERIMENTS, "all"), metavar="NAME", help=", ".join(EXPERIMENTS))
    add("--quick", action="store_true", help="small problems, to check that it runs")
    add("--data", metavar="DIR", help=f"folder of the data sets; by default ${DATA_VARIABLE}")
    add(
        "--out",
        type=Path,
        default=Path("benchmarks/results/paper"),
        metavar="DIR",
        help="folder for figures, numbers and tables",
    )
    add("--fresh", action="store_true", help="discard the results of earlier runs")
    add("--minutes", type=float, default=5.0, help="approximate time limit of each")
    return result


if __name__ == "__main__":
    sys.exit(main())
