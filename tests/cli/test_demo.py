"""The command demo."""

import importlib.util
import os
import re
import signal
import sys
import time

import numpy as np
import pytest
from children import child
from commands import run
from PIL import Image

import smalto
from smalto import datasets
from smalto.cli.commands.demo import FILES, _every_fifth_tile, _milestones
from smalto.cli.errors import INTERRUPTED
from smalto.image import text_mask

pytest.importorskip("matplotlib")

QUICK = ["--atoms", "36", "--patch", "6", "--seconds", "0.3", "--threads", "1"]


@pytest.fixture
def no_learning(monkeypatch):
    def refuse(*arguments, **settings):
        pytest.fail("learning began")

    monkeypatch.setattr(smalto, "learn", refuse)


def test_help_names_the_demo_and_its_options():
    assert "demo" in run("--help").output
    text = run("demo", "--help").output
    assert run("demo", "--help").exit_code == 0
    for option in ("out", "photo", "atoms", "patch", "seconds", "threads", "seed", "force"):
        assert f"--{option}" in text


def test_the_demo_removes_the_text_and_names_its_pictures(tmp_path):
    out = tmp_path / "a" / "b"
    done = run("demo", "--out", out, *QUICK)
    assert done.exit_code == 0, done.output
    assert {p.name for p in out.iterdir()} == set(FILES)
    pictures = {}
    for name in FILES:
        assert name in done.output
        with Image.open(out / name) as picture:
            pictures[name] = np.asarray(picture.convert("RGB"), dtype=float)
        assert min(pictures[name].shape[:2]) > 300
        assert pictures[name].std() > 10
    photo = datasets.sample_photo("china").astype(float)
    mask = text_mask(photo.shape[:2])
    np.testing.assert_array_equal(pictures["restored.png"][~mask], photo[~mask])
    error = np.sqrt(np.mean((pictures["restored.png"] - photo)[mask] ** 2))
    assert error < 30
    before, after = map(float, re.findall(r"0\.\d{4} ", done.stdout))
    assert after < before
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
@pytest.mark.parametrize("name", FILES)
def test_nothing_is_overwritten(tmp_path, name):
    (tmp_path / name).write_text("mine")
    done = run("demo", "--out", tmp_path, *QUICK)
    assert done.exit_code == 1
    assert name in done.output
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
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
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
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    done = run("demo", "--out", tmp_path)
    assert done.exit_code == 1
    assert f"{tmp_path}: it is read-only" in done.output


@pytest.mark.usefixtures("no_learning")
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("atoms", 1),
        ("patch", 3),
        ("patch", 25),
        ("seconds", 0),
        ("seconds", "inf"),
        ("seconds", "nan"),
        ("threads", 0),
        ("seed", -1),
        ("photo", "lena"),
        ("atoms", "many"),
    ],
)
def test_wrong_values_are_refused_by_the_name_of_the_option(tmp_path, option, value):
    done = run("demo", "--out", tmp_path / "new", f"--{option}", value)
    assert done.exit_code == 2
    assert f"'--{option}'" in done.output
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(os.name == "nt", reason="signals are for POSIX")
def test_ctrl_c_leaves_the_pictures_of_what_was_learned(tmp_path):
    options = ["demo", "--out", tmp_path, "--atoms", "36", "--patch", "6", "--seconds", "600"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "80"}
    log, program = tmp_path / "log", "from smalto.cli import main; main()"
    with (
        log.open("w") as written,
        child(program, *options, env=environment, stdout=written, stderr=written) as process,
    ):
        while not re.search(r"learning: .* left, .* cost", log.read_text()):
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.wait()
    assert process.returncode == INTERRUPTED
    assert "36 atoms learned" in log.read_text()
    assert "Traceback" not in log.read_text()
    for name in FILES:
        with Image.open(tmp_path / name) as picture:
            picture.verify()


def test_a_fifth_of_the_photograph_is_held_out():
    tiles = _every_fifth_tile((427, 640), 48)
    assert 0.15 < tiles.mean() < 0.25
    assert tiles[:48, :48].all()
    assert not tiles[:48, 48:96].any()


def test_milestones_begin_at_one_and_spread():
    steps = _milestones()
    assert steps[:6] == [1, 2, 3, 4, 5, 6]
    ratios = np.diff(steps[20:]) / steps[20:-1]
    assert ratios.min() > 0.05
    assert ratios.max() < 0.2
    assert steps[-1] > 10**7
