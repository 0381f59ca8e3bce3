"""Learning from a memory map: resident memory, and throughput against an array in memory.

``python -m benchmarks.scaling.streaming`` writes 10 million samples of setting A (8x8 patches,
float32, 2.6 GB) to a temporary file and learns 256 atoms from all of them (``--samples`` changes
the number). Throughput is measured on parts of the run, alternating with the same number of
samples from an array in memory, in one process.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.common import load
from smalto import learn
from smalto.coders import Lasso
from smalto.learners import Online
from smalto.sources import as_source

Array = np.ndarray[Any, Any]


def resident() -> float:
    """Return the resident memory of this process in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


def write(path: Path, patches: Array, samples: int) -> None:
    """Write samples to a file: the patches repeated, each time scaled differently."""
    rng = np.random.default_rng(0)
    file = np.lib.format.open_memmap(
        path, mode="w+", dtype=np.float32, shape=(samples, patches.shape[1])
    )
    for begin in range(0, samples, len(patches)):
        part = patches[: min(len(patches), samples - begin)]
        factors = (0.8 + 0.4 * rng.random((len(part), 1))).astype(np.float32)
        file[begin : begin + len(part)] = part * factors
    file.flush()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    problem = load("A", 100_000, 1000)
    coder, learner = Lasso(problem.lam), Online()
    options: Any = {"init": problem.D0, "random_state": 0, "n_threads": arguments.threads}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "x.npy"
        write(path, problem.train, arguments.samples)
        some = min(200_000, arguments.samples)
        X = np.array(np.load(path, mmap_mode="r")[:some])
        np.save(Path(folder) / "part.npy", X)
        state = learn(X, 256, coder, learner=learner, max_steps=50, **options).state
        ratios, loads = [], []
        for _ in range(arguments.rounds):
            times, spent = [], []
            # A buffer smaller than the file, so that it is read chunk by chunk.
            file = as_source(Path(folder) / "part.npy", buffer_rows=some // 8)
            for data in (X, file):
                clock, processor = time.perf_counter(), time.process_time()
                learn(data, 256, state=state, max_epochs=2, n_threads=arguments.threads)
                times.append(time.perf_counter() - clock)
                spent.append(time.process_time() - processor)
            ratios.append(times[0] / times[1])
            loads.append(spent[1] / spent[0])
            rate = 2 * some / times[1]
            print(
                f"memory {times[0]:.2f} s, file {times[1]:.2f} s ({rate:.0f} samples/s): "
                f"throughput of the file {ratios[-1]:.3f} of that of memory",
                flush=True,
            )
        print(
            f"median throughput: {np.median(ratios):.3f} of that of an array in memory, with "
            f"{np.median(loads):.3f} of its processor time"
        )
        del X
        marks: dict[int, float] = {}

        def watch(state: Any, record: Any) -> None:
            for mark in (100_000, arguments.samples // 10, arguments.samples // 2):
                if record.samples >= mark and mark not in marks:
                    marks[mark] = resident()

        clock = time.perf_counter()
        result = learn(path, 256, coder, learner=learner, callbacks=[watch], **options)
        seconds = time.perf_counter() - clock
        marks[result.state.samples] = resident()
        for mark, size in marks.items():
            print(f"resident memory after {mark:>9} samples: {size:.0f} MB")
        growth = max(marks.values()) - marks[100_000]
        print(
            f"growth: {growth:.0f} MB in {seconds:.0f} s ({result.state.samples / seconds:.0f}/s)"
        )


if __name__ == "__main__":
    main()
