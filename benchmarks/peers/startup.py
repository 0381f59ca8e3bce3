"""Startup time of smalto, and memory of a long pass.

The first call of each kind in a new process: with no compiled kernels in the cache, with all that it
needs there (``--no-empty``: in the usual cache, nothing is compiled for it), and, given ``--wheel``,
with the compiled kernels that come with a wheel and an empty cache. Then whether the memory of a
pass over a memory map grows with its length. Every figure is measured in new processes.

Run it with ``python -m benchmarks.peers.startup``. A wheel with compiled kernels is made by
``SMALTO_PREBUILD=1 python -m build --wheel``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

N_FIRST = 1000
SIDE = 64  # of the pictures that are restored
SHARED = 64 * 256  # distinct rows of the memory map; the rest repeats them


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print, each figure in new processes."""
    from benchmarks.peers.common import add_common, announce, machine, save, table

    command = argparse.ArgumentParser(
        description="Import, first calls, memory.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    command.add_argument(
        "--repeats", type=int, default=3, help="warm runs, the best of which counts"
    )
    command.add_argument("--n", type=int, default=1_000_000, help="rows of the memory map")
    command.add_argument("--wheel", type=Path, help="a wheel with compiled kernels")
    command.add_argument("--calls", nargs="+", choices=CALLS, default=list(CALLS), help="which")
    command.add_argument(
        "--no-empty", action="store_true", help="do not compile anything: measure only the rest"
    )
    add_common(command)
    options = command.parse_args(arguments)
    if options.quick:
        options.repeats, options.n, options.no_empty = 1, 50_000, True
        options.calls = [call for call in options.calls if call in QUICK]
    about = machine()
    announce(about)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = None
        if options.wheel is not None:
            wheel = folder / "wheel"
            zipfile.ZipFile(options.wheel).extractall(wheel)
        found = []
        for number, call in enumerate(options.calls):
            row = measure(call, folder / f"{number}", wheel, options)
            seconds = ", ".join(f"{key} {row[key]:.2f} s" for key in row if key != "call")
            print(f"{call}: {seconds}", file=sys.stderr, flush=True)
            found.append(row)
        lengths = (max(options.n // 10, 20_000), options.n)
        path = write_patches(folder / "patches", options.n)
        memory = [child("memory", path, str(n)) for n in lengths]

    print(
        "The first call in a new process: seconds. 'empty' and 'warm' are the states of the cache;"
    )
    print("'wheel' has compiled kernels in the package, and an empty cache.")
    columns = [key for key in ("empty", "warm", "wheel") if key in found[0]]
    table(
        ["call", *columns],
        [[row["call"], *(f"{row[key]:.2f}" for key in columns)] for row in found],
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
    save(options.out, "startup", about, options, calls=found, memory=memory, growth=growth)


def measure(call: str, folder: Path, wheel: Path | None, options: Any) -> dict[str, Any]:
    """Return the seconds of a first call, for each state of the cache."""
    found: dict[str, Any] = {"call": call}
    cache = None if options.no_empty else folder / "cache"
    if cache is not None:
        found["empty"] = child("call", call, cache=cache)["seconds"]
    warm = [child("call", call, cache=cache)["seconds"] for _ in range(options.repeats)]
    found["warm"] = min(warm)
    if wheel is not None:
        caches = [folder / f"{number}" for number in range(options.repeats)]
        found["wheel"] = min(child("call", call, cache=c, wheel=wheel)["seconds"] for c in caches)
    return found


def child(
    task: str, *arguments: str, cache: Path | None = None, wheel: Path | None = None
) -> dict[str, Any]:
    """Run a task of this module in a new process, with this kernel cache or the usual one."""
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed has its bytecode
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    if wheel is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(wheel), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers.startup", "--task", task, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the task {task} failed:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def write_patches(path: Path, n: int) -> str:
    """Write n patches of 8 x 8 as raw float32, part by part."""
    patches = _patches(SHARED)
    with path.open("wb") as file:
        for begin in range(0, n, SHARED):
            file.write(patches[: n - begin].tobytes())
    return str(path)


def _patches(n: int, dtype: str = "float32") -> Any:
    """Centered patches of 8 x 8 of norm 1, made without any kernel."""
    import numpy as np

    windows = np.lib.stride_tricks.sliding_window_view(_gray(), (8, 8))
    rows, columns = (np.random.default_rng(0).integers(0, size, n) for size in windows.shape[:2])
    X = windows[rows, columns].reshape(n, 64)
    X = X - X.mean(axis=1, keepdims=True)
    return (X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-6)).astype(dtype)


def _gray() -> Any:
    from smalto.datasets import sample_photo
    from smalto.image import luminance

    return luminance(sample_photo())


def task_call(name: str) -> dict[str, Any]:
    """Return the seconds of the first call of this kind."""
    if name == "import":
        begin = time.perf_counter()
        from smalto import encode, learn  # noqa: F401
    else:
        call = CALLS[name]()
        begin = time.perf_counter()
        call()
    return {"seconds": time.perf_counter() - begin}


def _encode(coder: str, dtype: str) -> Callable[[], Callable[[], Any]]:
    def prepare() -> Callable[[], Any]:
        from smalto import coders, encode

        X = _patches(N_FIRST, dtype)
        chosen: Any = {
            "Lasso": lambda: coders.Lasso(0.15),
            "OMP": lambda: coders.OMP(5),
            "GroupLasso": lambda: coders.GroupLasso(0.15, [[i, i + 1] for i in range(0, 256, 2)]),
        }[coder]()
        return lambda: encode(X, X[:256], chosen)

    return prepare


def _learn(dtype: str) -> Callable[[], Callable[[], Any]]:
    def prepare() -> Callable[[], Any]:
        from smalto import learn
        from smalto.coders import Lasso

        X = _patches(N_FIRST, dtype)
        return lambda: learn(X, 256, Lasso(0.15), max_epochs=1, random_state=0)

    return prepare


def _sparse_pca() -> Callable[[], Any]:
    from smalto import SparsePCA

    X = _patches(N_FIRST)
    return lambda: SparsePCA(16, density=0.3, random_state=0).fit(X)


def _picture() -> Any:
    return _gray()[:SIDE, :SIDE].astype("float32")


def _denoise() -> Callable[[], Any]:
    import numpy as np

    from smalto.image import denoise

    noisy = _picture() + 0.1 * np.random.default_rng(0).standard_normal((SIDE, SIDE))
    return lambda: denoise(noisy.astype("float32"), 0.1, random_state=0)


def _inpaint() -> Callable[[], Any]:
    import numpy as np

    from smalto.image import inpaint

    picture, missing = _picture(), np.random.default_rng(0).random((SIDE, SIDE)) < 0.3
    return lambda: inpaint(picture, missing, random_state=0)


def _warmup() -> Callable[[], Any]:
    import smalto

    return smalto.warmup


CALLS: dict[str, Callable[[], Callable[[], Any]]] = {
    "import": lambda: lambda: None,
    "encode, float32": _encode("Lasso", "float32"),
    "encode, float64": _encode("Lasso", "float64"),
    "learn, float32": _learn("float32"),
    "learn, float64": _learn("float64"),
    "OMP": _encode("OMP", "float32"),
    "GroupLasso": _encode("GroupLasso", "float32"),
    "SparsePCA": _sparse_pca,
    "denoise": _denoise,
    "inpaint": _inpaint,
    "warmup": _warmup,
}


def task_memory(path: str, n: str) -> dict[str, Any]:
    """Return anonymous memory before a pass over n rows of a memory map, and its peak during it."""
    import numpy as np

    from smalto import learn
    from smalto.coders import Lasso

    X = np.memmap(path, np.float32, "r", shape=(int(n), 64))
    learn(np.array(X[:4096]), 256, Lasso(0.15), max_epochs=1, random_state=0)  # load the kernels
    before = peak = _anonymous_memory()

    def watch(state: Any, record: Any) -> None:
        nonlocal peak
        if peak is not None and record.step % 8 == 0:
            peak = max(peak, _anonymous_memory() or 0)

    begin = time.perf_counter()
    learn(X, 256, Lasso(0.15), callbacks=[watch], max_epochs=1, random_state=0)
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


QUICK = ("import", "encode, float32", "OMP")

TASKS = {"call": task_call, "memory": task_memory}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--task"]:
        print(json.dumps(TASKS[sys.argv[2]](*sys.argv[3:])))
    else:
        main()
