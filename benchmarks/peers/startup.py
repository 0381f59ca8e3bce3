"""Startup time of smalto, and memory of a long pass.

The time of ``import smalto``; the first fit in a new process, with and without compiled kernels
in the cache; and whether the memory of a pass over a memory map grows with its length. Every
figure is measured in new processes.

Run it with ``python -m benchmarks.peers.startup``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

N_FIRST = 1000
SHARED = 64 * 256  # distinct rows of the memory map; the rest repeats them


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print, each figure in new processes."""
    from benchmarks.peers.common import add_common, announce, machine, save, table

    command = argparse.ArgumentParser(
        description="Import, first fit, compilation, memory.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    command.add_argument(
        "--repeats", type=int, default=5, help="number of repeats, of which the best counts"
    )
    command.add_argument("--n", type=int, default=1_000_000, help="rows of the memory map")
    add_common(command)
    options = command.parse_args(arguments)
    if options.quick:
        options.repeats, options.n = 1, 50_000
    about = machine()
    announce(about)

    figures: dict[str, float] = {}
    compilation = None
    with tempfile.TemporaryDirectory() as folder:
        # An empty cache, so that the first run has no compiled kernels.
        cache = None if options.quick else Path(folder) / "cache"
        cold = child("fit", cache=cache)
        firsts = [child("fit", cache=cache) for _ in range(options.repeats)]
        if not options.quick:
            cold_all, warm_all = (child("everything", cache=cache) for _ in range(2))
        imports = [child("import", cache=cache) for _ in range(options.repeats)]
        lengths = (max(options.n // 10, 20_000), options.n)
        path = write_patches(Path(folder) / "patches", options.n)
        memory = [child("memory", path, str(n), cache=cache) for n in lengths]

    best = {key: min(run[key] for run in firsts) for key in firsts[0]}
    figures["import"] = min(run["import"] for run in imports)
    figures["first fit, warm cache, float32"] = best["float32"]
    figures["then in float64"] = best["float64"]
    figures["that process from start to end"] = best["process"]
    if not options.quick:
        figures["first fit, no cache, float32"] = cold["float32"]
        figures["then in float64, no cache"] = cold["float64"]
        figures["compilation of all that is used below"] = (
            cold["process"] + cold_all["process"] - best["process"] - warm_all["process"]
        )
        compilation = {"cold": cold_all, "warm": warm_all}
    print(f"Seconds in a new process; a fit is one pass over {N_FIRST:,} patches, k = 256")
    table(["what", "seconds"], [[what, f"{value:.2f}"] for what, value in figures.items()])
    if not options.quick:
        print("First calls after that fit: seconds without their kernels in the cache, and with")
        steps = [key for key in cold_all if key != "process"]
        table(
            ["what", "without", "with"],
            [[step, f"{cold_all[step]:.2f}", f"{warm_all[step]:.2f}"] for step in steps],
        )
    growth = None
    if all(entry["peak"] is not None for entry in memory):
        growth = memory[-1]["peak"] - memory[0]["peak"]
        print("One pass over a memory map of float32 patches, m = 64: anonymous memory in MiB")
        table(
            ["rows", "file", "before", "peak", "seconds"],
            [
                [f"{entry['n']:,}", f"{entry['file'] / 2**20:.0f}"]
                + [f"{entry[key] / 2**20:.1f}" for key in ("before", "peak")]
                + [f"{entry['seconds']:.2f}"]
                for entry in memory
            ],
        )
        more = memory[-1]["n"] - memory[0]["n"]
        print(f"growth: {growth / 2**20:+.1f} MiB for {more:,} more rows\n")
    save(
        options.out,
        "startup",
        about,
        options,
        seconds=figures,
        compilation=compilation,
        memory=memory,
        growth=growth,
    )


def child(task: str, *arguments: str, cache: Path | None) -> dict[str, Any]:
    """Run a task of this module in a new process, with this kernel cache or the usual one."""
    environment = {**os.environ, **({} if cache is None else {"NUMBA_CACHE_DIR": str(cache)})}
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers.startup", "--task", task, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - begin
    if done.returncode:
        raise RuntimeError(f"the task {task} failed:\n{done.stderr}")
    return {**json.loads(done.stdout.splitlines()[-1]), "process": seconds}


def write_patches(path: Path, n: int) -> str:
    """Write n patches of 8 x 8 as raw float32, part by part."""
    patches = _patches(SHARED)
    with path.open("wb") as file:
        for begin in range(0, n, SHARED):
            file.write(patches[: n - begin].tobytes())
    return str(path)


def _patches(n: int) -> Any:
    from smalto.datasets import random_patches, sample_photo

    return random_patches(sample_photo(), 8, n, as_gray=True, random_state=0)


def task_import() -> dict[str, Any]:
    """Return the seconds of the import."""
    begin = time.perf_counter()
    import smalto  # noqa: F401

    return {"import": time.perf_counter() - begin}


def task_fit() -> dict[str, Any]:
    """Return the seconds of the first fit, in each dtype."""
    import numpy as np

    from smalto import learn
    from smalto.coders import Lasso

    X = _patches(N_FIRST)
    found = {}
    for dtype in (np.float32, np.float64):
        signals = X.astype(dtype)
        begin = time.perf_counter()
        learn(signals, 256, Lasso(0.15), random_state=0)
        found[np.dtype(dtype).name] = time.perf_counter() - begin
    return found


def task_everything() -> dict[str, Any]:
    """Return the seconds of the first call of each kind."""
    import numpy as np
    from scipy import sparse

    from smalto import encode, lasso_path, learn
    from smalto.coders import Lasso
    from smalto.learners import SGD, Batch, Online

    X = _patches(600)
    found = {}
    for dtype in (np.float32, np.float64):
        signals, name = X.astype(dtype), np.dtype(dtype).name
        D = signals[:100]
        calls: dict[str, Callable[[], Any]] = {
            "learn": lambda x=signals: learn(x, 100, Lasso(0.15)),
            "learn, stored codes": lambda x=signals: learn(
                x, 100, Lasso(0.15), learner=Online(memory="replace"), max_epochs=2
            ),
            "learn, batch": lambda x=signals: learn(x, 100, Lasso(0.15), learner=Batch()),
            "learn, gradient": lambda x=signals: learn(x, 100, Lasso(0.15), learner=SGD(1.0, 10.0)),
            "learn, CSR": lambda x=signals: learn(sparse.csr_array(x), 100, Lasso(0.15)),
            "encode": lambda x=signals, D=D: encode(x, D, Lasso(0.15)),
            "encode, CSR": lambda x=signals, D=D: encode(sparse.csr_array(x), D, Lasso(0.15)),
            "encode, nonzeros": lambda x=signals, D=D: encode(x, D, Lasso(mean_nonzeros=5)),
            "lasso_path": lambda x=signals, D=D: lasso_path(x[-1], D),
        }
        for what, call in calls.items():
            begin = time.perf_counter()
            call()
            found[f"{what}, {name}"] = time.perf_counter() - begin
    return found


def task_memory(path: str, n: str) -> dict[str, Any]:
    """Return anonymous memory before a pass over n rows of a memory map, and its peak during it."""
    import numpy as np

    from smalto import learn
    from smalto.coders import Lasso

    X = np.memmap(path, np.float32, "r", shape=(int(n), 64))
    learn(np.array(X[:4096]), 256, Lasso(0.15), random_state=0)  # load the kernels
    before = peak = _anonymous_memory()

    def watch(state: Any, record: Any) -> None:
        nonlocal peak
        if peak is not None and record.step % 8 == 0:
            peak = max(peak, _anonymous_memory() or 0)

    begin = time.perf_counter()
    learn(X, 256, Lasso(0.15), callbacks=[watch], random_state=0)
    seconds = time.perf_counter() - begin
    size = int(n) * X.strides[0]
    return {"n": int(n), "file": size, "before": before, "peak": peak, "seconds": seconds}


def _anonymous_memory() -> int | None:
    """Return the anonymous memory of this process in bytes (Linux); None elsewhere."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    lines = [line for line in status.splitlines() if line.startswith("RssAnon:")]
    return 1024 * int(lines[0].split()[1]) if lines else None


TASKS = {
    "import": task_import,
    "fit": task_fit,
    "everything": task_everything,
    "memory": task_memory,
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--task"]:
        print(json.dumps(TASKS[sys.argv[2]](*sys.argv[3:])))
    else:
        main()
