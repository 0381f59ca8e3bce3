"""The commands: learn, encode, show, info, denoise, inpaint."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import typer
from commands import run
from PIL import Image
from scipy import sparse

import smalto
from smalto import cli, datasets
from smalto.cli.app import app
from smalto.cli.ctrl_c import INTERRUPTED
from smalto.cli.errors import plain_errors
from smalto.cli.inputs import names_of_columns, open_table
from smalto.cli.outputs import write_figure
from smalto.coders import Lasso
from smalto.image import text_mask

pytest.importorskip("matplotlib")


def test_version():
    done = run("--version")
    assert done.exit_code == 0
    assert done.output == f"smalto {smalto.__version__}\n"


def test_help_is_readable():
    listing = run("--help").output
    assert "..." not in listing.split("Commands:")[1]  # no summary is cut off
    for command in app.registered_commands:
        text = run(command.callback.__name__, "--help").output
        assert "----" not in text  # no underlined headings of docstrings
        assert "  smalto " in text or command.callback.__name__ == "demo"


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
    settings = {"max_epochs": 1, "random_state": 0}
    result = smalto.learn(np.load(table), 16, Lasso(mean_nonzeros=3), **settings)
    np.testing.assert_array_equal(learned.D, result.D)
    assert learned.coder == result.coder


def test_encode_writes_codes(model, table, tmp_path):
    X, learned = np.load(table), smalto.Model.load(model)
    for name in ("codes.npz", "codes.npy"):
        done = run("encode", model, table, "-o", tmp_path / name)
        assert done.exit_code == 0, done.output
        assert str(tmp_path / name) in done.output
        assert done.stderr == "coding: 100 %, 400 of 400 samples\n"  # no bar in a file
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


def test_an_error_that_python_made_of_ctrl_c_is_ctrl_c(monkeypatch, capsys):
    class Impatient:
        def __set_name__(self, owner, name):
            raise KeyboardInterrupt

    def load():
        type("Half", (), {"field": Impatient()})

    with pytest.raises(typer.Exit) as ended, plain_errors():
        load()
    assert ended.value.exit_code == INTERRUPTED

    assert capsys.readouterr().err == "smalto: stopped\n"


@pytest.mark.parametrize("cause", [RuntimeError("in place of it"), KeyboardInterrupt()])
def test_ctrl_c_before_a_command_begins(monkeypatch, capsys, cause):
    def interrupted():
        raise cause from KeyboardInterrupt()

    codes = []
    monkeypatch.setattr("smalto.cli.app.run", interrupted)
    monkeypatch.setattr(os, "_exit", codes.append)
    cli.main()
    assert codes == [INTERRUPTED]
    assert capsys.readouterr().err == "smalto: stopped\n"


def test_after_ctrl_c_the_process_ends_at_once(monkeypatch):
    """Nothing is torn down: a Ctrl-C inside the compiler's library may have spoilt that."""
    codes = []
    monkeypatch.setattr("smalto.cli.app.run", lambda: sys.exit(INTERRUPTED))
    monkeypatch.setattr(os, "_exit", codes.append)
    with pytest.raises(SystemExit):
        cli.main()
    assert codes == [INTERRUPTED]


def test_ctrl_c_while_the_library_is_imported():
    """It ends in `main`, since nothing heavy is imported before."""
    code = """
import sys
import smalto.cli
assert not {"numpy", "numba", "typer"} & set(sys.modules), "imported before main"
class Impatient:
    def find_spec(self, name, *_):
        if name == "numpy":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Impatient())
sys.argv = ["smalto", "--version"]
smalto.cli.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "", "smalto: stopped\n")


IGNORED = """
            class Late:
                def __del__(self):
                    raise KeyboardInterrupt
            Late()"""


@pytest.mark.parametrize("becomes", ["raise ImportError('half a module')", "pass", IGNORED])
def test_ctrl_c_that_an_import_turns_into_something_else(becomes):
    code = f"""
import os, signal, sys
import smalto.cli
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in the background
class Impatient:
    def find_spec(self, name, *_):
        if name == "numba":
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(1000): pass
            except KeyboardInterrupt:
                pass
            {becomes}
sys.meta_path.insert(0, Impatient())
sys.argv = ["smalto", "--version"]
smalto.cli.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "", "smalto: stopped\n")


def test_learn_with_held_out_samples_a_log_and_no_words(table, tmp_path):
    X = np.load(table)
    np.save(tmp_path / "other.npy", X[:40])
    out, log = tmp_path / "m.safetensors", tmp_path / "run.jsonl"
    options = ["-o", out, "--atoms", 6, "--lam", 0.5, "--max-epochs", 400, "--log", log]
    options += ["--validation", tmp_path / "other.npy", "--early-stopping", 2]
    done = run("learn", table, *options, "--quiet")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert rows[0]["step"] == 0
    assert rows[-1]["epoch"] < 400 - 1  # stopped early
    assert rows[-1]["test_cost"] is not None
    done = run("learn", table, *options, "--force")
    assert "stopped early" in done.stdout
    assert f"held-out cost {rows[-1]['test_cost']:.4f}" in done.stdout
    assert done.stderr.startswith("learning: ")
    assert " %, ended, " in done.stderr  # before its limits


def test_reports_of_a_run_a_model_and_a_checkpoint(tmp_path):
    rng = np.random.default_rng(0)
    names = ["<script>alert(1)</script>", *(f"gene {i}" for i in range(5))]
    data, model = tmp_path / "data.csv", tmp_path / "model.safetensors"
    lines = [",".join(map(str, row)) for row in rng.standard_normal((300, 6))]
    data.write_text("\n".join([",".join(names), *lines]))
    page = tmp_path / "run.html"
    learned = run(
        "learn", data, "--atoms", 7, "--max-epochs", 3, "-o", model, "--report", page, "-q"
    )
    assert learned.exit_code == 0, learned.output
    text = page.read_text()
    assert "Worst coded" in text
    assert ">ended<" in text
    assert "data.csv" in text
    out = tmp_path / "report.html"
    done = run("report", model, data, "-o", out)
    assert done.exit_code == 0, done.output
    assert done.output == f"wrote {out}\n"
    text = out.read_text()
    for wanted in ("How it went", "gene 3", "&lt;script&gt;alert(1)", "SHA-256", "model.safetensors",
                   smalto.Model.load(model).info["sha256"], "Online(batch_size="):  # fmt: skip
        assert wanted in text
    assert "<script>alert" not in text
    for suffix in (".jsonl", ".csv"):
        log = tmp_path / f"run{suffix}"
        options = ("-o", tmp_path / "again.safetensors", "--force", "--log", log, "-q")
        assert run("learn", data, "--atoms", 7, *options).exit_code == 0
        done = run("report", log, "-o", out, "--force")
        assert done.exit_code == 0, done.output
        assert "Cost against time" in out.read_text()
    state = tmp_path / "run.safetensors"
    smalto.learn(rng.standard_normal((99, 6)), 5, max_steps=3, random_state=0).state.save(state)
    words = tmp_path / "words.txt"
    words.write_text("a\nb\nc\nd\ne\nf\n")
    for options, wanted in (
        ((), 'class="line"'),
        (("--patch", "2x3"), "data:image/png"),
        (("--channels", 2), 'class="line"'),
        (("--names", words), 'class="chips"'),
        (("--title", "<b>"), "<h1>&lt;b&gt;</h1>"),
    ):
        done = run("report", state, "-o", out, "--force", *options)
        assert done.exit_code == 0, done.output
        assert wanted in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["report", "{model}", "-o", "{here}/a.txt"], "must end in .html"),
        (["report", "{here}/none.safetensors"], "there is no file"),
        (["report", "{model}", "{here}/none.npy"], "there is no file"),
        (["report", "{model}", "-o", "{here}/a.html", "--patch", "big"], "as 8x8 or 8x8x3"),
        (["report", "{model}", "-o", "{here}/a.html", "--patch", "9x9"], "has 81 values"),
        (["report", "{model}", "-o", "{here}/a.html", "--names", "{here}/no.txt"], "No such file"),
        (["report", "{model}", "-o", "-"], "a report is a file"),
        (["report", "{here}/none.jsonl"], "there is no file"),
        (["report", "{here}/run.jsonl", "{table}"], "is a log, without atoms to code"),
        (
            ["report", "{here}/run.jsonl", "--patch", "8x8"],
            "a log, without atoms to show by --patch",
        ),
        (["report", "{here}/run.jsonl", "--channels", "2"], "atoms to show by --channels"),
        (["report", "{model}", "--names", "{model}"], "--names must be a text file"),
        (["report", "{table}"], "smalto"),
        (
            ["learn", "{table}", "-o", "{here}/b.safetensors", "--report", "{here}/a.txt"],
            "must end in .html",
        ),
    ],
)
def test_reports_that_cannot_be_written(tmp_path, model, table, arguments, words, monkeypatch):
    monkeypatch.chdir(tmp_path)
    places = {"model": model, "table": table, "here": tmp_path}
    done = run(*(argument.format(**places) for argument in arguments))
    assert done.exit_code == 1
    assert words in done.output
    assert done.output.count("\n") == 1
    assert not list(tmp_path.glob("*.html"))


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
    for where in (["--mask", tmp_path / "mask.png"], ["--mask-color", "#ff00ff"]):
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
        (["learn", "{table}", "--log", "{tmp}/run.txt"], "must end in .jsonl or .csv"),
        (["learn", "{table}", "--validation", "none.npy"], "there is no file none.npy"),
        (
            ["learn", "{table}", "--validation", "a.npy", "--validation", "b.npy"],
            "can be read, got a.npy",
        ),
        (
            ["learn", "{tmp}/holes.csv"],
            "at (1, 0). If NaN means that an entry is missing, give --missing",
        ),
        (["learn", "{tmp}/broken.png"], "not a picture"),
        (["encode", "{table}", "{table}"], "is not a complete safetensors file"),
        (["info", "{tmp}/gone"], "there is no file"),
        (["show", "{tmp}/bad.safetensors"], "is not a complete safetensors file"),
        (["denoise", "{tmp}/broken.png"], "not a picture"),
        (["denoise", "{tmp}/small.png", "-o", "{tmp}/x.xyz"], "use one of .png, .jpg"),
        (["denoise", "{tmp}/none*.png"], "there is no file"),
        (["inpaint", "{tmp}/small.png"], "with one of --mask, --mask-color and --mask-alpha"),
        (["inpaint", "{tmp}/small.png", "--mask-alpha"], "has no alpha channel"),
        (
            ["inpaint", "{tmp}/small.png", "--mask-alpha", "--mask-tolerance", "3"],
            "--mask-tolerance belongs to --mask-color",
        ),
        (["inpaint", "{tmp}/small.png", "--mask", "{tmp}/gone.png"], "there is no file"),
        (["inpaint", "{tmp}/small.png", "--mask", "{tmp}/other.png"], "same size"),
        (["inpaint", "{tmp}/small.png", "--mask", "{tmp}/broken.png"], "not a picture"),
        (
            ["inpaint", "{tmp}/small.png", "--mask", "{tmp}/all.png"],
            "nothing of the picture is known",
        ),
        (["inpaint", "{tmp}/small.png", "--mask-color", "rad"], "such as red or '#ff0000'"),
        (["inpaint", "{tmp}/small.png", "--mask-color", "#123456"], "no pixel has the color"),
        (
            ["inpaint", "{tmp}/small.png", "--mask-color", "black", "-o", "{tmp}/x.doc"],
            "not a format",
        ),
    ],
)
def test_one_clear_line_for_what_goes_wrong(tmp_path, table, arguments, words, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.png").write_bytes(b"not a picture")
    (tmp_path / "bad.safetensors").write_bytes(b"")
    (tmp_path / "holes.csv").write_text("1,2\n,3\n4,5\n")
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
    command = [sys.executable, "-m", "smalto"]
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


def test_codes_are_data_and_pictures_have_codes(model, table, tmp_path):
    codes = tmp_path / "codes.npz"
    assert run("encode", model, table, "-o", codes).exit_code == 0
    done = run("learn", codes, "-o", tmp_path / "second.safetensors", "--atoms", 8)
    assert done.exit_code == 0, done.output
    assert smalto.Model.load(tmp_path / "second.safetensors").D.shape == (8, 16)
    Image.fromarray(datasets.sample_photo("flower")[100:130, 200:240]).save(tmp_path / "p.png")
    patches = tmp_path / "patches.safetensors"
    assert (
        run("learn", tmp_path / "p.png", "-o", patches, "--patch", 6, "--atoms", 20).exit_code == 0
    )
    done = run("encode", patches, tmp_path / "p.png", "-o", tmp_path / "of-picture.npz")
    assert done.exit_code == 0, done.output
    assert sparse.load_npz(tmp_path / "of-picture.npz").shape == (25 * 35, 20)
    done = run("encode", model, tmp_path / "p.png", "-o", tmp_path / "x.npz")
    assert done.exit_code == 1
    assert "the model was not learned from pictures" in done.stderr


def test_a_folder_is_not_a_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("info", ".")
    assert done.exit_code == 1
    assert "is a folder, not a complete safetensors file" in done.stderr


def test_columns_of_text_are_named(tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "m.safetensors"
    rows = "".join(f"{i},{i % 3},{'red' if i == 2 else i % 5}\n" for i in range(30))
    for first, column in (("size,age,color\n", "column color"), ("", "column 2")):
        path.write_text(first + rows)
        done = run("learn", path, "-o", out, "--atoms", 2)
        assert done.exit_code == 1
        assert f"{column} must hold numbers, but row 2 has 'red'" in done.stderr
        assert run("learn", path, "-o", out, "--atoms", 2, "--missing").exit_code == 1
    path.write_text("size,age\n" + "".join(f"{i},{'NA' if i == 3 else i % 4}\n" for i in range(30)))
    assert run("learn", path, "-o", out, "--atoms", 2, "--missing").exit_code == 0


def test_names_of_columns_may_be_quoted(tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "r.html"
    rows = "".join(f"{i},{i % 3},{i % 5}\n" for i in range(30))
    path.write_text('"size, in cm", "a ""good"" one",age\n' + rows)
    assert names_of_columns(path) == ["size, in cm", 'a "good" one', "age"]
    done = run("learn", path, "-o", tmp_path / "m.safetensors", "--atoms", 2, "--report", out)
    assert done.exit_code == 0, done.output
    assert "size, in cm" in out.read_text()
    # The model knows them too.
    assert smalto.Model.load(tmp_path / "m.safetensors").topics(n=1)[0] in names_of_columns(path)
    assert run("report", tmp_path / "m.safetensors", "-o", out, "--force").exit_code == 0
    assert "size, in cm" in out.read_text()
    assert 'size, in cm, a "good" one, age\n' in run("info", tmp_path / "m.safetensors").output


def test_a_byte_order_mark_is_no_text(tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "m.safetensors"
    path.write_text("1,2,3\n4,5,6\n7,8,10\n", encoding="utf-8-sig")
    assert "3 samples of 3 numbers" in run("learn", path, "-o", out, "--atoms", 2).output
    path.write_text("größe,b\n1,2\n3,4\n", encoding="utf-8-sig")
    assert names_of_columns(path) == ["größe", "b"]
    path.write_text("größe,b\n1,red\n3,4\n", encoding="utf-8-sig")
    assert "column b must hold numbers" in run("learn", path, "-o", out, "--force").stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1,2,3\n4,5\n7,8,9\n", "line 2 has 2 columns, but the first row has 3"),
        (b"a,b,c\n1,2,3\n4,5\n7,8,9\n", "line 3 has 2 columns, but the first row has 3"),
        (b"", "has no rows"),
        (b"a,b,c\n", "has no rows"),
        ("1,2\n3,4\n".encode("utf-16"), "is not text in UTF-8: save it as CSV in UTF-8"),
        ("a,b\n1,2\n3,größe\n".encode("latin-1"), "is not text in UTF-8"),
    ],
)
def test_text_that_is_no_table_is_refused_in_one_line(content, message, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    done = run("learn", path, "-o", tmp_path / "m.safetensors", "--atoms", 2)
    assert done.exit_code == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_a_first_row_that_numbers_the_columns_is_noted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("0,1,2\n4,5,6\n7,8,10\n")
    with pytest.warns(UserWarning, match=r"0 to 2, is taken for a sample: if it is a header"):
        assert open_table(path).n_rows == 3
    path.write_text("0\n1\n")
    assert open_table(path).n_rows == 2


@pytest.mark.parametrize(
    "cell", ["<0.1", "?", "NULL", "n/a", ".", "1.5*", "1D3", "0x10", "#N/A", "#DIV/0!"]
)
def test_a_first_sample_with_an_unreadable_cell_is_no_header(cell, tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "m.safetensors"
    rows = ["3,4,5", "5,6,9", "7,1,2"]
    for row in range(4):
        for column in range(3):
            bad = [cell if column == i else str(i + 2) for i in range(3)]
            path.write_text("\n".join([*rows[:row], ",".join(bad), *rows[row:]]) + "\n")
            done = run("learn", path, "--missing", "-o", out, "--atoms", 1)
            assert done.exit_code == 1, done.output
            wanted = f"column {column} must hold numbers, but row {row} has {cell!r}: drop the"
            assert wanted in done.stderr
            assert ("header" in done.stderr) == (row == 0)


def test_numbers_in_a_header_are_written_in_quotes(tmp_path):
    path = tmp_path / "t.csv"
    for first in ("id,2020,2021", "2020,2021,id", "NA,id,2021"):
        path.write_text(f"{first}\n1,2,3\n4,5,7\n")
        done = run("learn", path, "-o", tmp_path / "m.safetensors")
        assert done.exit_code == 1
        assert "has 'id': drop the column" in done.stderr
        assert "if the first line is a header, write the numbers in it in quotes" in done.stderr
    headers = {
        'id,"2020","2021"': ["id", "2020", "2021"],
        '"2019", "2020", "2021"': ["2019", "2020", "2021"],
        "EU,NA,US": ["EU", "NA", "US"],
        "# 2019,2020,2021": ["# 2019", "2020", "2021"],
    }
    for first, names in headers.items():
        path.write_text(f"{first}\n1,2,3\n4,5,7\n")
        assert names_of_columns(path) == names
        assert open_table(path).n_rows == 2


@pytest.mark.parametrize(
    ("first", "index", "names"),
    [
        (",a,b", range(3), ["a", "b"]),
        (",a,b", [17, 4, 4], ["a", "b"]),  # rows of a shuffled frame
        (",a,b", ["x", "y", "z"], ["a", "b"]),
        ("Unnamed: 0,a,b", range(3), ["a", "b"]),
        (",0,1", [17, 4, 5], ["0", "1"]),
        (",2020,2021", range(3), ["2020", "2021"]),
        ('"","a","b"', ['"1"', '"2"', '"3"'], ["a", "b"]),  # as R writes it
    ],
)
def test_an_index_without_a_name_is_left_out(first, index, names, tmp_path):
    path = tmp_path / "t.csv"
    X = np.array([[0.5, 2.0], [3.0, 1.0], [4.0, 8.0]])
    rows = "".join(f"{i},{x[0]},{x[1]}\n" for i, x in zip(index, X, strict=True))
    path.write_text(f"{first}\n{rows}")
    with pytest.warns(UserWarning, match="has no name, as the index .* and is left out"):
        np.testing.assert_array_equal(open_table(path).rows(np.arange(3)), X)
    assert names_of_columns(path) == names
    path.write_text(path.read_text().replace("\n3,", "\nred,").replace(",3.0,", ",red,"))
    done = run("learn", path, "-o", tmp_path / "m.safetensors")
    assert f"column {names[0]} must hold numbers, but row 1 has 'red'" in done.stderr


def test_a_first_column_of_numbers_is_kept_unless_it_is_an_index(tmp_path):
    path = tmp_path / "t.csv"
    for text in (
        "id,a\n0,2\n1,5\n2,4\n",
        "0,2\n1,5\n2,4\n",
        ",2\n1,5\n2,4\n",
        "a,\n1,5\n2,3\n2,4\n",
    ):
        path.write_text(text)
        source = open_table(path, missing=True)
        assert (source.n_rows, source.n_features) == (3, 2)


def test_learn_that_learned_nothing_fails(table, tmp_path):
    out = tmp_path / "z.safetensors"
    for more in ([], ["--quiet"]):
        done = run("learn", table, "--max-seconds", 0, "-o", out, *more)
        assert done.exit_code == 1
        assert "nothing was learned, and" in done.stderr
        assert "give more than --max-seconds 0" in done.stderr
        assert [p.name for p in tmp_path.iterdir()] == ["samples.npy"]


def test_columns_in_another_order_are_refused(tmp_path):
    data, other, out = (tmp_path / name for name in ("a.csv", "b.csv", "m.safetensors"))
    rows = "".join(f"{i},{i % 3}\n" for i in range(30))
    data.write_text("a,b\n" + rows)
    other.write_text("b,a\n" + rows)
    done = run("learn", data, "-o", out, "--atoms", 2, "--validation", other)
    assert "column 0 of the held-out samples is 'b', that of the data is 'a'" in done.stderr
    assert run("learn", data, "-o", out, "--atoms", 2, "--validation", data).exit_code == 0
    done = run("encode", out, other, "-o", tmp_path / "c.npz")
    assert "column 0 of" in done.stderr
    assert "is 'b', that of the model is 'a'" in done.stderr
