"""Runs that are killed at random instants and resumed, and checkpoints on a full disk."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.campaign.random_data import Array
from benchmarks.campaign.report import Report
from smalto import State, learn
from smalto.coders import OMP, Lasso
from smalto.learners import SGD, Batch, Online, Replacement
from smalto.learning import Checkpoint

KILLED = "killed runs resume"
BITS = "killed and resumed: the same bits"
FULL = "a full disk: the last checkpoint stays, nothing is left behind"
WRITERS = "two writers of one checkpoint: every file read is whole"
SECONDS = 0.5  # a run ends by itself after about that long
RUNS: Any = [
    {"coder": Lasso(0.5), "learner": Online(32, memory="replace"),
     "replacement": Replacement(correlation=0.8, every=2)},
    {"coder": Lasso(mean_nonzeros=4), "learner": Online(32)},
    {"coder": OMP(3), "learner": Online(40, memory="two-epochs")},
    {"coder": Lasso(0.5), "learner": Batch()},
    {"coder": Lasso(0.4), "learner": SGD(32)},
]  # fmt: skip


@functools.lru_cache
def samples() -> Array:
    """Return samples that lead to duplicate and unused atoms."""
    return np.random.default_rng(0).standard_normal((1500, 16))


@functools.lru_cache
def whole(number: int) -> Array:
    """Return the dictionary of a run that nothing disturbs."""
    return learn(samples(), 24, **_settings(number)).D


def _settings(number: int) -> dict[str, Any]:
    epochs = 12 if isinstance(RUNS[number]["learner"], Batch) else 2
    return {**RUNS[number], "max_epochs": epochs, "random_state": 0, "n_threads": 1}


def run(number: int, folder: Path) -> None:
    """Learn, from the checkpoint if there is one: what is killed."""
    path, options = folder / "run.safetensors", _settings(number)
    if path.exists():
        options = {"state": State.load(path), "max_epochs": options["max_epochs"], "n_threads": 1}
    D = learn(samples(), 24, callbacks=[Checkpoint(path, every_steps=1)], **options).D
    np.save(folder / "part.npy", D)
    (folder / "part.npy").replace(folder / "D.npy")


def kill(rng: np.random.Generator, report: Report) -> None:
    """Kill a run again and again, each time after a random time, until it is done."""
    number, fresh = int(rng.integers(len(RUNS))), bool(rng.random() < 0.05)
    expected = whole(number)
    with tempfile.TemporaryDirectory() as name:
        folder, kills = Path(name), 0
        while not (folder / "D.npy").exists():
            patience = 30.0 if kills >= 8 else float(rng.random()) * (2.0 if fresh else SECONDS)
            ended = _killed_after(patience, number, folder, fresh)
            if ended:
                report.check(KILLED, (folder / "D.npy").exists(), f"run {number} failed")
                break
            report.cases += 1
            kills += 1
            path = folder / "run.safetensors"
            readable = not path.exists() or State.load(path).step > 0
            report.check(KILLED, readable, f"run {number}")
        if (folder / "D.npy").exists():
            same = np.array_equal(np.load(folder / "D.npy"), expected)
            report.check(BITS, same, f"run {number}, {kills} kills")
        report.notes["kills"] += kills


def _killed_after(patience: float, number: int, folder: Path, fresh: bool) -> bool:
    """Start a run and kill it; return whether it had ended before."""
    if fresh:
        code = (
            "import sys, pathlib; from benchmarks.campaign.kills import run; "
            "run(int(sys.argv[1]), pathlib.Path(sys.argv[2]))"
        )
        with subprocess.Popen([sys.executable, "-c", code, str(number), str(folder)]) as process:
            try:
                process.wait(patience + (60.0 if patience == 30.0 else 0.0))
            except subprocess.TimeoutExpired:
                process.kill()
                return False
            return True
    child = os.fork()
    if child == 0:
        try:
            run(number, folder)
        finally:
            os._exit(0)
    return _ended(child, patience)


def _ended(child: int, patience: float) -> bool:
    """Wait for a child; kill it when the time is over; return whether it had ended before."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def fill(rng: np.random.Generator, report: Report) -> None:
    """Learn where files can only grow to a random size."""
    number, warn = int(rng.integers(len(RUNS))), bool(rng.random() < 0.5)
    expected = whole(number)
    report.cases += 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "run.safetensors"
        half = learn(samples(), 24, **{**_settings(number), "max_epochs": 1})
        half.state.save(path)
        before = path.read_bytes()
        limit = int(rng.integers(0, len(before) // 2))
        child = os.fork()
        if child == 0:
            os._exit(_on_full_disk(path, limit, number, warn, expected))
        status = os.waitpid(child, 0)[1]
        what = (
            f"run {number}, {limit} of {len(before)} bytes, on_error={'warn' if warn else 'raise'}"
        )
        code = os.waitstatus_to_exitcode(status)
        report.check(FULL, code == 0, f"{what}: exit code {code}")
        left = sorted(each.name for each in folder.iterdir())
        intact = path.read_bytes() == before and set(left) <= {path.name, path.name + ".1"}
        report.check(FULL, intact, f"{what}: {left}")


def _on_full_disk(path: Path, limit: int, number: int, warn: bool, expected: Array) -> int:
    """Learn with a limit on the size of files; return 0 if all went as promised."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    saver = Checkpoint(path, every_steps=3, on_error="warn" if warn else "raise")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            D = learn(samples(), 24, callbacks=[saver], **_settings(number)).D
    except OSError as error:
        return 1 if warn or not any("checkpoint" in note for note in error.__notes__) else 0
    except BaseException:  # noqa: BLE001 (the exit code tells)
        return 2
    said = any("could not be written" in str(each.message) for each in caught)
    return 0 if warn and said and np.array_equal(D, expected) else 3


def write_together(rng: np.random.Generator, report: Report) -> None:
    """Let two runs write the same checkpoint while it is read."""
    number, keep = int(rng.integers(len(RUNS))), int(rng.integers(1, 4))
    whole(number)
    with tempfile.TemporaryDirectory() as name:
        path, children = Path(name) / "run.safetensors", []
        for _ in range(2):
            child = os.fork()
            if child == 0:
                try:
                    saver = Checkpoint(path, every_steps=1, keep=keep)
                    D = learn(samples(), 24, callbacks=[saver], **_settings(number)).D
                    os._exit(0 if np.array_equal(D, whole(number)) else 3)
                except BaseException:  # noqa: BLE001 (the exit code tells)
                    os._exit(4)
            children.append(child)
        codes: list[int] = []
        deadline = time.monotonic() + 60
        while children and time.monotonic() < deadline:
            if path.exists():
                report.cases += 1
                report.check(WRITERS, State.load(path).step > 0, f"run {number}, {keep=}")
            for child in list(children):
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    children.remove(child)
                    codes.append(os.waitstatus_to_exitcode(status))
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        report.check(WRITERS, codes == [0, 0], f"run {number}, {keep=}: exit codes {codes}")
