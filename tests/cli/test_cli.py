import importlib.util
import io
import os
import re
import signal
import subprocess
import sys
import time

import numba
import numpy as np
import pytest
from children import child
from PIL import Image
from scipy import sparse
from typer.testing import CliRunner

import smalto
from smalto import cli, datasets
from smalto.cli.commands.demo import FILES, _every_fifth_tile, _milestones
from smalto.cli.errors import INTERRUPTED
from smalto.cli.outputs import write_figure
from smalto.cli.progress_bar import say_if_compiling
from smalto.coders import Lasso
from smalto.image import text_mask

pytest.importorskip("matplotlib")

QUICK = ["--atoms", "36", "--patch", "6", "--seconds", "0.3", "--threads", "1"]


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


def test_help_is_readable():
    listing = run("--help").output
    assert "..." not in listing.split("Commands:")[1]  # no summary is cut off
    for command in cli.app.registered_commands:
        text = run(command.callback.__name__, "--help").output
        assert "----" not in text  # no underlined headings of docstrings
        assert "  smalto " in text or command.callback.__name__ == "demo"


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
        while not re.search(r"[1-9]/600 s, cost", log.read_text()):
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


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_compilation_is_announced_once_and_only_if_there_is_any(capsys):
    @numba.njit
    def one(x):
        return x + 1

    @numba.njit
    def two(x):
        return x + 2

    with say_if_compiling():
        one(1)
        two(1)
        one(1.0)
    assert capsys.readouterr().err == "compiling kernels (first run only)\n"
    with say_if_compiling():
        one(1)
    assert capsys.readouterr().err == ""
    one(np.float32(1))  # the listener is gone
    assert capsys.readouterr().err == ""


def test_a_picture_is_written_whole_or_not_at_all(tmp_path):
    class Broken:
        def savefig(self, file, **kind):
            file.write(b"half of")
            raise OSError

    (tmp_path / "cost.png").write_text("mine")
    with pytest.raises(OSError):
        write_figure(tmp_path / "cost.png", Broken())
    assert [p.name for p in tmp_path.iterdir()] == ["cost.png"]
    assert (tmp_path / "cost.png").read_text() == "mine"


def test_milestones_begin_at_one_and_spread():
    steps = _milestones()
    assert steps[:6] == [1, 2, 3, 4, 5, 6]
    ratios = np.diff(steps[20:]) / steps[20:-1]
    assert ratios.min() > 0.05
    assert ratios.max() < 0.2
    assert steps[-1] > 10**7


# --- learn, encode, show, info


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "samples.npy"
    rng = np.random.default_rng(0)
    np.save(path, rng.standard_normal((400, 12)))
    return path


@pytest.fixture
def model(tmp_path, table):
    path = tmp_path / "model.safetensors"
    done = run("learn", table, "--out", path, "--atoms", 16, "--mean-nonzeros", 3)
    assert done.exit_code == 0, done.output
    return path


def test_learn_writes_a_model_and_no_checkpoint_stays(model, table):
    learned = smalto.Model.load(model)
    assert learned.D.shape == (16, 12)
    assert [p.name for p in model.parent.iterdir()] == ["samples.npy", "model.safetensors"] or {
        p.name for p in model.parent.iterdir()
    } == {"samples.npy", "model.safetensors"}
    result = smalto.learn(np.load(table), 16, Lasso(mean_nonzeros=3), random_state=0)
    np.testing.assert_array_equal(learned.D, result.D)
    assert learned.coder == result.coder


def test_encode_writes_codes(model, table, tmp_path):
    X, learned = np.load(table), smalto.Model.load(model)
    for name in ("codes.npz", "codes.npy"):
        done = run("encode", model, table, "-o", tmp_path / name)
        assert done.exit_code == 0, done.output
        assert str(tmp_path / name) in done.output
    expected = smalto.encode(X, learned.D, learned.coder).toarray()
    np.testing.assert_allclose(sparse.load_npz(tmp_path / "codes.npz").toarray(), expected)
    np.testing.assert_allclose(np.load(tmp_path / "codes.npy"), expected)


def test_text_tables_and_holes(tmp_path):
    X = np.random.default_rng(0).standard_normal((300, 5))
    X[3, 2] = np.nan
    path = tmp_path / "table.csv"
    np.savetxt(path, X, delimiter=",", header="a,b,c,d,e", comments="")
    out = tmp_path / "m.safetensors"
    done = run("learn", path, "-o", out, "--atoms", 6, "--lam", 0.5)
    assert done.exit_code == 1
    assert "NaN" in done.output
    assert not out.exists()
    assert run("learn", path, "-o", out, "--atoms", 6, "--lam", 0.5, "--missing").exit_code == 0
    done = run("encode", out, path, "-o", tmp_path / "c.npz", "--missing")
    assert done.exit_code == 0, done.output


def test_info_and_show(model, tmp_path):
    text = run("info", model).output
    for word in ("16 of 12 numbers", "Lasso(lam=", "L2Ball"):
        assert word in text
    done = run("show", model, "-o", tmp_path / "atoms.png")
    assert done.exit_code == 1
    assert "--patch" in done.output
    done = run("show", model, "-o", tmp_path / "atoms.png", "--patch", "3x4")
    assert done.exit_code == 0, done.output
    with Image.open(tmp_path / "atoms.png") as picture:
        colors = np.asarray(picture.convert("RGB"), int)
    assert (colors[..., 0] > colors[..., 2] + 100).any()  # red
    assert (colors[..., 2] > colors[..., 0] + 100).any()  # blue


def test_learn_from_pictures_and_mend_one(tmp_path):
    photo = datasets.sample_photo("flower")[100:180, 200:300]
    Image.fromarray(photo).save(tmp_path / "photo.png")
    out = tmp_path / "m.safetensors"
    done = run("learn", tmp_path / "photo.png", "-o", out, "--patch", 6, "--atoms", 40)
    assert done.exit_code == 0, done.output
    assert smalto.Model.load(out).info["patch"] == [6, 6, 3]
    assert run("show", out).exit_code == 0
    mask = text_mask(photo.shape[:2], size=12)
    Image.fromarray(mask).save(tmp_path / "mask.png")
    damaged = np.where(mask[:, :, None], np.array([255, 0, 255], np.uint8), photo)
    Image.fromarray(damaged).save(tmp_path / "damaged.png")
    results = []
    for where in (["--mask", tmp_path / "mask.png"], ["--key", "#ff00ff"]):
        restored = tmp_path / f"{where[0]}.png"
        files = ["-o", restored, "--model", out, "--compare", tmp_path / f"{where[0]}-compare.png"]
        done = run("inpaint", tmp_path / "damaged.png", *where, *files)
        assert done.exit_code == 0, done.output
        results.append(np.asarray(Image.open(restored)))
    np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(results[0][~mask], photo[~mask])
    error = np.sqrt(np.mean((results[0].astype(float) - photo)[mask] ** 2))
    assert error < 0.3 * np.sqrt(np.mean((damaged.astype(float) - photo)[mask] ** 2))
    noisy = photo + np.random.default_rng(0).normal(0, 25, photo.shape)
    noisy = np.clip(np.round(noisy), 0, 255).astype(np.uint8)
    Image.fromarray(noisy).save(tmp_path / "noisy.png")
    done = run("denoise", tmp_path / "noisy.png", "--model", out, "--sigma", 25)
    assert done.exit_code == 0, done.output
    clean = np.asarray(Image.open(tmp_path / "noisy-restored.png"), float)
    assert np.mean((clean - photo) ** 2) < 0.5 * np.mean((noisy.astype(float) - photo) ** 2)


def test_a_run_that_was_stopped_goes_on(tmp_path, table):
    out = tmp_path / "m.safetensors"
    state = out.with_suffix(".state.safetensors")
    options = ["-o", out, "--atoms", 8, "--lam", 0.5, "--max-epochs", 3]
    half = smalto.learn(np.load(table), 8, Lasso(0.5), max_epochs=1, random_state=0).state
    half.save(state)
    done = run("learn", table, *options)
    assert done.exit_code == 1
    assert "--resume" in done.output
    assert run("info", state).exit_code == 0
    done = run("learn", table, *options, "--resume")
    assert done.exit_code == 0, done.output
    whole = smalto.learn(np.load(table), 8, Lasso(0.5), max_epochs=3, random_state=0)
    np.testing.assert_array_equal(smalto.Model.load(out).D, whole.D)
    assert not state.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["learn", "nothing.npy"], "there is no file nothing.npy"),
        (
            ["learn", "{table}", "--lam", "1", "--mean-nonzeros", "3"],
            "either --lam or --mean-nonzeros",
        ),
        (["learn", "{table}", "--resume"], "no run to resume"),
        (["learn", "{table}", "-o", "{tmp}/none/m.safetensors"], "there is no folder"),
        (["learn", "{table}", "-o", "{tmp}/m.pkl"], "must end in .safetensors"),
        (["learn", "{table}", "{table}"], "only one table"),
        (["learn", "{tmp}/broken.png"], "not a picture"),
        (["learn", "{table}", "--atoms", "1000"], "fewer than the 1000 atoms"),
        (["encode", "{table}", "{table}"], "no whole safetensors file"),
        (["info", "{tmp}/gone"], "there is no file"),
        (["show", "{tmp}/bad.safetensors"], "no whole safetensors file"),
        (["denoise", "{tmp}/broken.png"], "not a picture"),
        (["denoise", "{tmp}/small.png", "--patch", "20", "--sigma", "5"], "does not fit"),
        (["inpaint", "{tmp}/small.png"], "either --mask or --key"),
        (["inpaint", "{tmp}/small.png", "--mask", "{tmp}/other.png"], "same size"),
        (["inpaint", "{tmp}/small.png", "--mask", "{tmp}/broken.png"], "not a picture"),
        (
            ["inpaint", "{tmp}/small.png", "--mask", "{tmp}/all.png"],
            "nothing of the picture is known",
        ),
        (["inpaint", "{tmp}/small.png", "--key", "red"], "such as '#ff0000'"),
        (["inpaint", "{tmp}/small.png", "--key", "#123456"], "no pixel has the color"),
        (["inpaint", "{tmp}/small.png", "--key", "#000000", "-o", "{tmp}/x.doc"], "not a format"),
    ],
)
def test_one_clear_line_for_what_goes_wrong(tmp_path, table, arguments, words, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.png").write_bytes(b"not a picture")
    (tmp_path / "bad.safetensors").write_bytes(b"")
    pixels = np.zeros((16, 16), np.uint8)
    pixels[4:] = np.arange(16) * 10
    Image.fromarray(pixels).save(tmp_path / "small.png")
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "other.png")
    Image.fromarray(np.full((16, 16), 255, np.uint8)).save(tmp_path / "all.png")
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    done = run(*(str(a).format(tmp=tmp_path, table=table) for a in arguments))
    assert done.exit_code == 1, done.output
    lines = [line for line in done.stderr.splitlines() if line.startswith("smalto: ")]
    assert len(lines) == 1
    assert words in lines[0]
    assert "Traceback" not in done.output
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_streams(model, table, tmp_path):
    command = [sys.executable, "-c", "from smalto.cli import main; main()"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [*command, "encode", str(model), "-", "-o", "-"],
        input=table.read_bytes(),
        capture_output=True,
        env=environment,
        check=True,
        timeout=600,
    )
    codes = sparse.load_npz(io.BytesIO(done.stdout))
    assert codes.shape == (400, 16)
