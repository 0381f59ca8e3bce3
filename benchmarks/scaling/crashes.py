"""Killed runs, full disks and lost workers must not change the dictionary.

``python -m benchmarks.scaling.crashes`` kills a run with SIGKILL at 20 random moments, each
time resuming from its checkpoint; fills a small disk under a run (as root, on
Linux); and kills a Dask worker at 10 random moments. ``--quick`` does each a few times.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from smalto import State, learn
from smalto.coders import Lasso
from smalto.learners import Online, Replacement
from smalto.learning import Checkpoint

EPOCHS, ATOMS = 5, 64
PROBLEM = {
    "coder": Lasso(0.5),
    "learner": Online(64, memory="replace"),
    "replacement": Replacement(correlation=0.8, every=2),
    "random_state": 0,
}


def data() -> Any:
    """Return samples that lead to duplicate and unused atoms."""
    return np.random.default_rng(0).standard_normal((20_000, 24))


def child(folder: Path) -> None:
    """Learn, from the checkpoint if there is one; this is the run that is killed."""
    path = folder / "run.safetensors"
    options: Any = {"max_epochs": EPOCHS, "callbacks": [Checkpoint(path, every_steps=1)]}
    state = {"state": State.load(path)} if path.exists() else PROBLEM
    result = learn(folder / "x.npy", ATOMS, **state, **options)
    np.save(folder / "D.npy", result.D)


def kills(count: int, folder: Path, seed: int) -> tuple[int, int, bool]:
    """Kill a run repeatedly; return the kills, the readable checkpoints, and whether D is equal."""
    X = data()
    np.save(folder / "x.npy", X)
    expected = learn(X, ATOMS, max_epochs=EPOCHS, **PROBLEM).D
    path, rng = folder / "run.safetensors", random.Random(seed)
    killed = readable = 0
    command = [sys.executable, "-m", "benchmarks.scaling.crashes", "--child", str(folder)]
    while not (folder / "D.npy").exists():
        before = _stamp(path)
        process = subprocess.Popen(command)
        try:
            if killed == count:
                process.wait()
                continue
            while _stamp(path) == before and process.poll() is None:
                time.sleep(0.002)
            time.sleep(rng.random() * 0.5)
            process.send_signal(signal.SIGKILL)
            process.wait()
        finally:
            process.kill()
        if (folder / "D.npy").exists():
            break
        killed += 1
        readable += State.load(path).step > 0
    return killed, readable, bool(np.array_equal(np.load(folder / "D.npy"), expected))


def _stamp(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


def full_disk(folder: Path) -> str:
    """Fill the disk under a run, and describe what happens."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    if sys.platform != "linux" or os.geteuid() or subprocess.run(mount, check=False).returncode:
        return "skipped: needs root on Linux to mount a small disk"
    X, path = data(), folder / "run.safetensors"

    def fill(state: State, record: Any) -> None:
        if record.step == 100:
            free = os.statvfs(folder)
            (folder / "other").write_bytes(b"x" * (free.f_bavail * free.f_frsize))

    try:
        expected = learn(X, ATOMS, max_epochs=1, **PROBLEM).D
        saver = Checkpoint(path, every_steps=20, keep=1)
        try:
            learn(X, ATOMS, max_epochs=1, callbacks=[saver, fill], **PROBLEM)
        except OSError as error:
            told = f"{error.strerror} ({error.__notes__[-1]})"
        else:
            told = "no error!"
        kept = State.load(path).step
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            saver = Checkpoint(path, every_steps=20, keep=1, on_error="warn")
            D = learn(X, ATOMS, max_epochs=1, callbacks=[saver, fill], **PROBLEM).D
        same = bool(np.array_equal(D, expected))
        return (
            f"error: {told}; checkpoint of step {kept} intact; with on_error='warn' "
            f"{len(said)} warnings, dictionary equal: {same}"
        )
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def lost_workers(count: int, seed: int) -> tuple[int, int]:
    """Kill a worker once in each of several runs; return how many finished, and how many equal."""
    import dask.array as da
    from distributed import Client, LocalCluster

    from smalto import distributed

    rng = random.Random(seed)
    X = da.from_array(data()[:8000], chunks=(500, 24))
    options: Any = {**PROBLEM, "learner": Online(256), "max_epochs": 2}
    ended = equal = 0
    whole = None
    for number in range(count):
        # A new cluster each time: a killed worker is not always replaced soon enough.
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local,
            Client(local) as client,
        ):
            if whole is None:
                whole = distributed.learn(X, ATOMS, client=client, **options)
            moment = rng.randrange(1, whole.state.step)

            def strike(
                state: State, record: Any, moment: int = moment, client: Client = client
            ) -> None:
                if record.step == moment:
                    pids = list(client.run(os.getpid).values())
                    victim, delay = rng.choice(pids), rng.random() * 0.1
                    threading.Timer(delay, os.kill, (victim, signal.SIGKILL)).start()

            again = distributed.learn(X, ATOMS, client=client, callbacks=[strike], **options)
            ended += 1
            equal += bool(np.array_equal(again.D, whole.D))
            print(
                f"  run {number + 1}: worker killed after step {moment}; equal: {equal}", flush=True
            )
    return ended, equal


def main() -> None:
    """Run the selected tests and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=["kills", "disk", "workers"])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child)
        return
    with tempfile.TemporaryDirectory() as folder:
        if arguments.only in (None, "kills"):
            wanted = 3 if arguments.quick else 20
            killed, readable, same = kills(wanted, Path(folder), arguments.seed)
            print(f"SIGKILL: {killed} kills, {readable} readable checkpoints, same D: {same}")
        if arguments.only in (None, "disk"):
            disk = Path(folder) / "disk"
            disk.mkdir()
            print(f"full disk: {full_disk(disk)}")
    if arguments.only in (None, "workers"):
        ended, equal = lost_workers(2 if arguments.quick else 10, arguments.seed)
        print(f"lost workers: {ended} runs ended, {equal} with the same dictionary")


if __name__ == "__main__":
    main()
