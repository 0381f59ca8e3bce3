import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import smalto
from smalto import cli, datasets

pytest.importorskip("matplotlib")

QUICK = ["--atoms", "36", "--patch", "5", "--seconds", "0.3", "--threads", "1"]


def run(*arguments):
    return CliRunner().invoke(cli.app, [str(a) for a in arguments], prog_name="smalto")


@pytest.fixture
def no_learning(monkeypatch):
    def refuse(*arguments, **settings):
        pytest.fail("learning began")

    monkeypatch.setattr(smalto, "learn", refuse)


def test_version():
    done = run("--version")
    assert done.exit_code == 0
    assert done.output == f"smalto {smalto.__version__}\n"


def test_help_names_the_demo_and_its_options():
    assert "demo" in run("--help").output
    text = run("demo", "--help").output
    assert run("demo", "--help").exit_code == 0
    for option in ("out", "photo", "atoms", "patch", "seconds", "threads", "seed", "force"):
        assert f"--{option}" in text


def test_the_demo_learns_and_names_its_pictures(tmp_path):
    out = tmp_path / "a" / "b"
    done = run("demo", "--out", out, *QUICK)
    assert done.exit_code == 0, done.output
    assert sorted(p.name for p in out.iterdir()) == ["cost.png", "dictionary.png"]
    for name in ("dictionary.png", "cost.png"):
        assert str(out / name) in done.output
        with Image.open(out / name) as picture:
            pixels = np.asarray(picture.convert("RGB"), dtype=float)
        assert min(pixels.shape[:2]) > 300
        assert pixels.std() > 10
    before, after = map(float, re.findall(r"0\.\d{4} ", done.stdout))
    assert after < before
    nonzeros = float(re.search(r"([\d.]+) atoms per patch", done.stdout).group(1))
    assert 1 < nonzeros < 36
    assert "36 atoms learned" in done.stdout
    assert re.search(r"[\d,]+ patches per second", done.stdout)
    assert "try next: smalto demo" in done.stdout


def test_the_mosaic_shows_one_tile_per_atom(tmp_path):
    assert run("demo", "--out", tmp_path, *QUICK).exit_code == 0
    with Image.open(tmp_path / "dictionary.png") as picture:
        pixels = np.asarray(picture.convert("RGB"))
    white = (pixels == 255).all(axis=(1, 2))
    tops = np.flatnonzero(white[:-1] & ~white[1:])
    assert len(tops) == 6  # 36 atoms: six rows of six


@pytest.mark.usefixtures("no_learning")
@pytest.mark.parametrize("name", ["dictionary.png", "cost.png"])
def test_nothing_is_overwritten(tmp_path, name):
    (tmp_path / name).write_text("mine")
    done = run("demo", "--out", tmp_path, *QUICK)
    assert done.exit_code == 1
    assert str(tmp_path / name) in done.output
    assert "--force" in done.output
    assert (tmp_path / name).read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_force_overwrites(tmp_path):
    (tmp_path / "cost.png").write_text("mine")
    assert run("demo", "--out", tmp_path, "--force", *QUICK).exit_code == 0
    with Image.open(tmp_path / "cost.png") as picture:
        assert picture.format == "PNG"


@pytest.mark.usefixtures("no_learning")
def test_matplotlib_is_asked_for_before_anything_is_done(tmp_path, monkeypatch):
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda name: None)
    done = run("demo", "--out", tmp_path / "new")
    assert done.exit_code == 1
    assert 'pip install "smalto[plot]"' in done.output
    assert not (tmp_path / "new").exists()


@pytest.mark.usefixtures("no_learning")
def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("mine")
    done = run("demo", "--out", tmp_path / "file")
    assert done.exit_code == 1
    assert str(tmp_path / "file") in done.output
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.usefixtures("no_learning")
def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch):
    monkeypatch.setattr(cli.os, "access", lambda path, mode: mode != os.W_OK)
    done = run("demo", "--out", tmp_path)
    assert done.exit_code == 1
    assert f"{tmp_path}: it is read-only" in done.output


@pytest.mark.usefixtures("no_learning")
@pytest.mark.parametrize(
    ("option", "value"),
    [("atoms", 1), ("patch", 1), ("patch", 33), ("seconds", 0), ("seconds", "inf"), ("seconds", "nan"), ("threads", 0), ("seed", -1),
     ("photo", "lena"), ("atoms", "many")],
)  # fmt: skip
def test_wrong_values_are_refused_by_the_name_of_the_option(tmp_path, option, value):
    done = run("demo", "--out", tmp_path / "new", f"--{option}", value)
    assert done.exit_code == 2
    assert f"'--{option}'" in done.output
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(os.name == "nt", reason="signals are for POSIX")
def test_ctrl_c_leaves_the_pictures_of_what_was_learned(tmp_path):
    command = [sys.executable, "-c", "from smalto.cli import main; main()", "demo"]
    options = ["--out", str(tmp_path), "--atoms", "36", "--patch", "5", "--seconds", "600"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "80"}
    log = tmp_path / "log"
    with (
        log.open("w") as written,
        subprocess.Popen(
            [*command, *options], env=environment, stdout=written, stderr=written
        ) as process,
    ):
        try:
            limit = time.monotonic() + 90
            while not re.search(r"[1-9]/600 s, cost", log.read_text()):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < limit, "learning never began"
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            process.wait(timeout=30)
        finally:
            process.kill()
    assert process.returncode == cli.INTERRUPTED
    assert "36 atoms learned" in log.read_text()
    assert "Traceback" not in log.read_text()
    for name in ("dictionary.png", "cost.png"):
        with Image.open(tmp_path / name) as picture:
            picture.verify()


def test_test_patches_share_no_pixel_with_training_patches(monkeypatch):
    numbers = np.arange(427 * 640 * 3).reshape(427, 640, 3)
    seen = []
    monkeypatch.setattr(datasets, "sample_photo", lambda name: numbers)
    monkeypatch.setattr(datasets, "random_patches", lambda tiles, *a, **k: seen.append(tiles))
    cli._patches(cli.Photo.flower, 8, 0)
    train, test = (set(np.concatenate([t.ravel() for t in tiles]).tolist()) for tiles in seen)
    assert not train & test
    assert len(train | test) == numbers.size
    assert 0.1 < len(test) / numbers.size < 0.3


@pytest.mark.parametrize("patch", [2, 8, 32])
def test_patches_of_any_size_can_be_had(patch, monkeypatch):
    monkeypatch.setattr(cli, "N_TRAIN", 100)
    monkeypatch.setattr(cli, "N_TEST", 50)
    train, test = cli._patches(cli.Photo.china, patch, 0)
    assert train.shape == (100, 3 * patch**2)
    assert test.shape == (50, 3 * patch**2)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_compilation_is_announced_once_and_only_if_there_is_any(capsys):
    @numba.njit
    def one(x):
        return x + 1

    @numba.njit
    def two(x):
        return x + 2

    with cli._say_if_compiling():
        one(1)
        two(1)
        one(1.0)
    assert capsys.readouterr().out == "compiling kernels (first run only)\n"
    with cli._say_if_compiling():
        one(1)
    assert capsys.readouterr().out == ""
    one(np.float32(1))  # the listener is gone
    assert capsys.readouterr().out == ""


def test_a_picture_is_written_whole_or_not_at_all(tmp_path):
    class Broken:
        def savefig(self, path, **kind):
            Path(path).write_bytes(b"half of")
            raise OSError

    (tmp_path / "cost.png").write_text("mine")
    with pytest.raises(OSError):
        cli._write(Broken(), tmp_path / "cost.png")
    assert [p.name for p in tmp_path.iterdir()] == ["cost.png"]
    assert (tmp_path / "cost.png").read_text() == "mine"


def test_milestones_begin_at_one_and_spread():
    steps = cli._milestones()
    assert steps[:6] == [1, 2, 3, 4, 5, 6]
    ratios = np.diff(steps[20:]) / steps[20:-1]
    assert ratios.min() > 0.05
    assert ratios.max() < 0.2
    assert steps[-1] > 10**7
