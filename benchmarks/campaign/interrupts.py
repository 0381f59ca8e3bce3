"""Ctrl-C at random instants in every command of the command line."""

from __future__ import annotations

import functools
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy import sparse

from benchmarks.campaign.report import Report
from smalto import Model, State, learn
from smalto.coders import Lasso

CLEAN = "Ctrl-C ends a command without a traceback"
WHOLE = "Ctrl-C leaves whole files or none"
RESUMED = "a command that was stopped resumes: the same bits"
COMMANDS: dict[str, list[str]] = {
    "learn": ["learn", "x.npy", "-o", "m.safetensors", "--atoms", "24", "--max-epochs", "4",
              "--batch", "32", "--checkpoint-seconds", "0", "--threads", "1"],
    "encode": ["encode", "model.safetensors", "big.npy", "-o", "codes.npz", "--threads", "1"],
    "show": ["show", "model.safetensors", "-o", "atoms.png"],
    "info": ["info", "model.safetensors"],
    "denoise": ["denoise", "picture.png", "-o", "clean.png", "--sigma", "20"],
    "inpaint": ["inpaint", "picture.png", "--mask", "mask.png", "-o", "full.png"],
    "demo": ["demo", "--out", "demo", "--atoms", "32", "--patch", "6", "--seconds", "0.5"],
}  # fmt: skip
OUTPUTS = ("m.safetensors", "codes.npz", "atoms.png", "clean.png", "full.png")
START = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from smalto.cli import main
print("ready", flush=True)
sys.argv[0] = "smalto"
main()
"""


@functools.lru_cache
def fixtures() -> Path:
    """Return a folder with the files that the commands read."""
    folder = Path(tempfile.mkdtemp(prefix="campaign"))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 16))
    np.save(folder / "x.npy", X)
    np.save(folder / "big.npy", rng.standard_normal((60_000, 16)))
    state = learn(X, 16, Lasso(0.5), max_epochs=1, random_state=0).state
    Model.of(state, {"patch": [4, 4]}).save(folder / "model.safetensors")
    rows = np.add.outer(np.arange(48), np.arange(48)) * 2.0
    picture = np.clip(rows + 20 * rng.standard_normal((48, 48)), 0, 255).astype(np.uint8)
    Image.fromarray(picture).save(folder / "picture.png")
    Image.fromarray((255 * (rng.random((48, 48)) < 0.2)).astype(np.uint8)).save(folder / "mask.png")
    return folder


def interrupt(rng: np.random.Generator, report: Report) -> None:
    """Start a command, press Ctrl-C after a random time, and look at what it leaves."""
    name = str(rng.choice(list(COMMANDS)))
    report.cases += 1
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given) / "work"
        shutil.copytree(fixtures(), folder)
        before = {path.name for path in folder.iterdir()}
        code, text = _run(COMMANDS[name], folder, float(rng.random()) * 2.5)
        # Python itself loses a Ctrl-C in some callbacks of its own, such as those of imports.
        lost = "Exception ignored in" in text and code == 0
        ended = -signal.SIGINT  # while Python was shutting down
        held = lost or (code in (0, 130, ended) and "Traceback" not in text)
        report.check(CLEAN, held, f"{name}: exit code {code}, {text.strip()[-300:]!r}")
        after = {path.name for path in folder.iterdir()} - before
        left = [each for each in after if each.endswith(".part") or each.startswith(".")]
        whole = all(_is_whole(folder / each) for each in OUTPUTS if each in after)
        report.check(WHOLE, whole and not left, f"{name}: {sorted(after)}")
        if name == "learn" and code == 130 and (folder / "m.state.safetensors").exists():
            report.check(RESUMED, _resumed(folder), "learn --resume")


def _run(arguments: list[str], folder: Path, patience: float | None) -> tuple[int, str]:
    """Run a command, with Ctrl-C after a time; return its exit code and error output."""
    with subprocess.Popen(
        [sys.executable, "-c", START, *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        try:
            if patience is not None:
                time.sleep(patience)
                process.send_signal(signal.SIGINT)
            text = process.communicate(timeout=120)[1]
        finally:
            process.kill()
        return process.returncode, text


def _is_whole(path: Path) -> bool:
    """Return whether a file can be read to its end."""
    try:
        if path.suffix == ".npz":
            return bool(sparse.load_npz(path).shape[0])
        if path.suffix == ".safetensors":
            return Model.load(path).D.size > 0
        with Image.open(path) as picture:
            picture.load()
    except (OSError, ValueError):
        return False
    return True


def _resumed(folder: Path) -> bool:
    """Return whether the resumed command has the dictionary of one that nothing disturbs."""
    State.load(folder / "m.state.safetensors")
    code, _ = _run([*COMMANDS["learn"], "--resume"], folder, None)
    return code == 0 and bool(np.array_equal(Model.load(folder / "m.safetensors").D, _expected()))


@functools.lru_cache
def _expected() -> Any:
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given) / "work"
        shutil.copytree(fixtures(), folder)
        _run(COMMANDS["learn"], folder, None)
        return Model.load(folder / "m.safetensors").D
