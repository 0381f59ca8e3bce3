"""The commands denoise and inpaint: files, folders, masks, and what goes wrong."""

import os
import re
import signal
import sys
import time
import warnings

import numpy as np
import pytest
from children import child
from commands import run
from PIL import Image

from smalto import Model, datasets
from smalto.cli.errors import INTERRUPTED
from smalto.coders import Lasso
from smalto.constraints import L2Ball
from smalto.image import noise
from smalto.image.files.metadata import Metadata
from smalto.image.files.picture_file import PictureFile, open_picture_file
from smalto.image.files.writing import fit_to, kind_of, write_picture_file

pytest.importorskip("matplotlib")


def photo(side=24):
    return datasets.sample_photo("flower")[100 : 100 + side, 200 : 200 + side]


def noisy(side=24):
    values = photo(side) + np.random.default_rng(0).normal(0, 20, (side, side, 3))
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def put(path, pixels, alpha=None, metadata=Metadata()):  # noqa: B008
    with path.open("wb") as file:
        write_picture_file(file, fit_to(PictureFile(pixels, alpha, metadata), kind_of(path)))
    return path


def turned_exif(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif.tobytes().removeprefix(b"Exif\0\0")


@pytest.fixture
def model(tmp_path):
    """Atoms with which nothing has to be learned: cosines of 4 x 4 RGB pixels."""
    waves = np.cos(np.pi * np.outer(np.arange(4) + 0.5, np.arange(4)) / 4)
    atoms = np.einsum("ai,bj->ijab", waves, waves).reshape(16, 16)[1:]
    atoms = np.kron(atoms, np.ones(3)) / 6
    path = tmp_path / "model.safetensors"
    Model(atoms.astype(np.float32), Lasso(0.1), L2Ball(), info={"patch": [4, 4, 3]}).save(path)
    return path


FILES = {
    "a.png": np.uint8,
    "deep.png": np.uint16,
    "b.tif": np.uint8,
    "deep.tif": np.uint16,
    "float.tiff": np.float32,
    "c.webp": np.uint8,
    "d.jpg": np.uint8,
    "e.npy": np.float64,
    "f.bmp": np.uint8,
}


def as_type(dtype):
    if np.dtype(dtype).kind == "f":
        return (noisy() / 255).astype(dtype)
    return noisy().astype(dtype) * dtype(np.iinfo(dtype).max // 255)


@pytest.mark.parametrize("name", FILES)
def test_what_goes_in_comes_out(tmp_path, model, name):
    alpha = None if name[-3:] in ("jpg", "npy", "bmp") else as_type(FILES[name])[:, :, 0]
    metadata = (
        Metadata() if name[-3:] in ("npy", "bmp") else Metadata(exif=turned_exif(8), icc=b"x" * 200)
    )
    put(tmp_path / name, as_type(FILES[name]), alpha, metadata)
    given = open_picture_file(tmp_path / name)
    done = run("denoise", tmp_path / name, "--model", model)
    assert done.exit_code == 0, done.output
    restored = tmp_path / f"{name.split('.')[0]}-restored.{name.split('.')[1]}"
    assert str(restored) in done.stdout
    back = open_picture_file(restored)
    assert back.pixels.dtype == FILES[name]
    assert back.metadata == given.metadata
    assert (back.alpha is None) == (alpha is None)
    if alpha is not None:
        np.testing.assert_array_equal(back.alpha, given.alpha)
    top = given.range[1]
    errors = [
        np.mean((open_picture_file(p).upright().pixels / top - _upright(photo(), given) / 255) ** 2)
        for p in (tmp_path / name, restored)
    ]
    assert errors[1] < 0.6 * errors[0]


def _upright(pixels, like):
    """The clean picture, turned as the file is when it is shown."""
    turn = 8 if like.kind != "NPY" and like.kind != "BMP" else 1
    return PictureFile(pixels, None, Metadata(exif=turned_exif(turn))).upright().pixels


def test_floats_are_never_a_black_picture(tmp_path):
    for number, (scale, shift) in enumerate([(1.0, 0.0), (3000.0, -200.0), (1e-4, 0.5)]):
        values = noisy()[:, :, 0] / 255 * scale + shift
        np.save(tmp_path / "a.npy", values)
        out = tmp_path / f"{number}.png"
        done = run("denoise", tmp_path / "a.npy", "-o", out, "--sigma", 0)
        assert done.exit_code == 0, done.output
        assert re.search(r"values from .* to .* become 0 to 65535 in PNG", done.stderr)
        pixels = np.asarray(Image.open(out))
        assert np.ptp(pixels) > (30000 if number < 2 else 0)


def test_sigma_in_other_levels_is_questioned_before_any_work(tmp_path, model):
    put(tmp_path / "deep.png", as_type(np.uint16))
    done = run("denoise", tmp_path / "deep.png", "--sigma", 20, "--model", model)
    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert "--sigma 20 is far from the noise" in line
    assert "in levels of the file (0 to 65535): leave --sigma out, or add --sure" in line
    assert not (tmp_path / "deep-restored.png").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = run("denoise", tmp_path / "deep.png", "--sigma", 20, "--sure", "--model", model)
    assert done.exit_code == 0, done.output


def test_sigma_beyond_all_levels_is_questioned(tmp_path, model):
    loud = np.random.default_rng(0).integers(0, 256, (24, 24, 3), dtype=np.uint8)
    for name, pixels in (("loud.png", loud), ("pixel.png", loud[:1, :1])):
        put(tmp_path / name, pixels)
        command = ["denoise", tmp_path / name, "--sigma", 300, "--model", model]
        done = run(*command)
        assert done.exit_code == 1
        assert f"--sigma 300 is more than all levels of {tmp_path / name} (0 to 255)" in done.stderr
        assert run(*command, "--sure").exit_code == 0


def test_values_that_are_no_numbers(tmp_path, model):
    values = noisy() / np.float32(255)
    values[3, 4:9] = np.nan
    source = put(tmp_path / "nan.tif", values.astype(np.float32))
    for options in ([], ["--sigma", 0.1], ["--poisson"]):
        done = run("denoise", source, "--model", model, *options)
        assert done.exit_code == 1
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"smalto: {source} contains NaN or infinity: 15 such values")
        assert line.endswith("replace them, or fill them in by smalto inpaint")
    mask = np.zeros((24, 24), np.uint8)
    mask[3, 4:8] = 255
    where = ["--mask", put(tmp_path / "mask.png", mask), "-o", tmp_path / "out.tif"]
    done = run("inpaint", source, *where, "--model", model)
    assert done.exit_code == 1
    assert f"{source} contains NaN or infinity: 3 such values" in done.stderr
    mask[3, 8] = 255
    put(tmp_path / "mask.png", mask)
    done = run("inpaint", source, *where, "--model", model)
    assert done.exit_code == 0, done.output
    assert np.isfinite(open_picture_file(tmp_path / "out.tif").pixels).all()


def test_noisy_floats_are_not_washed_out(tmp_path):
    rng = np.random.default_rng(0)
    clean = 0.1 + 0.8 * np.tile(np.linspace(0, 1, 64), (64, 1))
    values = (clean + rng.normal(0, 0.1, clean.shape)).astype(np.float32)
    assert values.min() < -0.1
    assert values.max() > 1.1
    np.save(tmp_path / "a.npy", values)
    command = ["denoise", tmp_path / "a.npy", "--force", "--sigma", 0, "-o"]
    done = run(*command, tmp_path / "a.png")
    assert re.search(r"values from 0 to 1 become 0 to 65535 in PNG; .* % are outside", done.stderr)
    found = open_picture_file(tmp_path / "a.png").pixels / 65535
    np.testing.assert_allclose(found, np.clip(values, 0, 1), atol=1e-4)
    done = run(*command, tmp_path / "b.npy")  # floats are not clipped
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), values)
    done = run(*command, tmp_path / "a.png", "--range", "-0.5", "1.5")
    assert "values from -0.5 to 1.5 become 0 to 65535 in PNG\n" in done.stderr
    found = open_picture_file(tmp_path / "a.png").pixels / 65535
    np.testing.assert_allclose(found, (values + 0.5) / 2, atol=1e-4)
    done = run(*command, tmp_path / "a.png", "--range", 1, 0)
    assert "--range must be two numbers, black below white, got 1 0" in done.stderr


def test_a_range_is_for_filled_pictures_too(tmp_path, model):
    deep, mask = as_type(np.uint16) // 16, np.zeros((24, 24), np.uint8)
    mask[10, 3:20] = 255
    put(tmp_path / "deep.png", deep, np.full((24, 24), 65535, np.uint16))
    put(tmp_path / "mask.png", mask)
    where = ["--mask", tmp_path / "mask.png", "-o", tmp_path / "out.jpg", "--model", model]
    done = run("inpaint", tmp_path / "deep.png", *where, "--range", 0, 4095)
    assert done.exit_code == 0, done.output
    assert "values from 0 to 4095 become 0 to 255 in JPEG" in done.stderr
    out = open_picture_file(tmp_path / "out.jpg").pixels.astype(int)
    assert np.abs(out - noisy())[mask == 0].mean() < 4


def test_volumes_are_for_python(tmp_path):
    np.save(tmp_path / "vol.npy", np.zeros((24, 24, 24)))
    done = run("denoise", tmp_path / "vol.npy")
    assert done.exit_code == 1
    assert "in Python, smalto.image.denoise and smalto.image.inpaint take volumes" in done.stderr


def test_errors_name_options(tmp_path):
    done = run("denoise", put(tmp_path / "a.png", noisy()), "--patch", 300)
    assert done.exit_code == 1
    assert "--patch 300 x 300 is too large for the default atoms" in done.stderr
    assert "or give --atoms, to learn fewer" in done.stderr


def test_masks_of_nothing_and_masks_of_almost_all(tmp_path, model):
    mask = np.zeros((48, 48), bool)
    put(tmp_path / "a.png", photo(48), np.full((48, 48), 255, np.uint8))
    out = ["-o", tmp_path / "out.png", "--force", "--model", model]

    def filled(marks):
        put(tmp_path / "mask.png", marks.astype(np.uint8))
        return run("inpaint", tmp_path / "a.png", "--mask", tmp_path / "mask.png", *out)

    done = filled(mask)
    assert done.exit_code == 0, done.output
    assert "the mask marks no pixel: the picture is written as it was" in done.stderr
    np.testing.assert_array_equal(open_picture_file(tmp_path / "out.png").pixels, photo(48))
    done = run("inpaint", tmp_path / "a.png", "--mask-alpha", *out)
    assert "no pixel is transparent: the picture is written as it was" in done.stderr
    mask[10:14, 5:40] = True
    assert "inverted" not in filled(mask).stderr
    assert "is the mask inverted? It must be black where" in filled(~mask).stderr
    assert "inverted" not in filled(np.random.default_rng(0).random(mask.shape) < 0.8).stderr


def test_nan_marks_the_damage_of_a_picture_of_floats(tmp_path):
    pixels = photo(32).astype(float)
    pixels[10:12, 5:20] = np.nan
    np.save(tmp_path / "holes.npy", pixels)
    done = run("inpaint", tmp_path / "holes.npy", "-o", tmp_path / "whole.npy")
    assert done.exit_code == 0, done.output
    assert "2.9 % of the pixels are damaged" in done.stderr
    whole = np.load(tmp_path / "whole.npy")
    known = np.isfinite(pixels)
    assert np.isfinite(whole).all()
    np.testing.assert_array_equal(whole[known], pixels[known])


def test_no_noise_is_said_to_change_nothing(tmp_path, model):
    put(tmp_path / "a.png", photo())
    done = run("denoise", tmp_path / "a.png", "--sigma", 0, "-o", tmp_path / "b.png")
    assert "--sigma 0 means that there is no noise" in done.stderr
    np.testing.assert_array_equal(open_picture_file(tmp_path / "b.png").pixels, photo())


@pytest.fixture
def odd(tmp_path):
    """A folder with good pictures, and with broken and odd ones."""
    folder = tmp_path / "photos"
    folder.mkdir()
    put(folder / "good.png", noisy())
    put(folder / "last.tif", as_type(np.uint16))
    whole = (folder / "good.png").read_bytes()
    (folder / "cut.png").write_bytes(whole[: len(whole) // 2])
    (folder / "text.jpg").write_text("not a picture")
    (folder / "empty.webp").write_bytes(b"")
    put(folder / "one.png", noisy()[:1, :1])
    picture = Image.fromarray(noisy())
    picture.convert("CMYK").save(folder / "print.jpg")
    picture.save(folder / "moving.gif", save_all=True, append_images=[Image.fromarray(photo())])
    picture.convert("1").save(folder / "bits.png")
    picture.convert("P").save(folder / "palette.gif")
    Image.new("1", (15_000, 15_000)).save(folder / "bomb.png")
    picture.convert("I").save(folder / "signed.tif")
    (folder / "notes.txt").write_text("no picture")
    return folder


REFUSED = {
    "cut.png": "damaged or truncated",
    "text.jpg": "is not a picture",
    "empty.webp": "is not a picture",
    "print.jpg": "is a CMYK picture: convert it to RGB first",
    "moving.gif": "moves (2 frames)",
    "bomb.png": "too many pixels",
    "signed.tif": "cannot be read: its values have 32 bits (signed): convert them",
}


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_folder_of_broken_and_odd_files(tmp_path, odd, jobs):
    out, page = tmp_path / "clean", tmp_path / "page.html"
    options = ["-o", out, "--sigma", 0, "--jobs", jobs]
    done = run("denoise", odd, *options, "--report", page, "--compare", tmp_path / "plots")
    assert done.exit_code == 1
    errors = [line for line in done.stderr.splitlines() if line.startswith("smalto: ")]
    assert len(errors) == len(REFUSED)
    for name, words in REFUSED.items():
        (line,) = (line for line in errors if name in line)
        assert words in line
    good = {"good.png", "last.tif", "bits.png", "palette.png", "one.png"}
    assert {path.name for path in out.iterdir()} == good
    assert {path.stem for path in (tmp_path / "plots").iterdir()} == {n.split(".")[0] for n in good}
    assert f"{odd}: files that end in .txt are left out\n" in done.stderr
    assert "palette.gif: a palette becomes RGB" in done.stderr
    assert "bits.png: black and white (1 bit) becomes gray (8 bits)" in done.stderr
    assert re.search(r"denoising: 100 %, 0:00 left, 12 of 12 pictures", done.stderr)
    written = re.escape(f"{out} and {tmp_path / 'plots'} and {page}")
    assert re.fullmatch(
        rf"5 pictures in .* s, 7 could not be restored; wrote to {written}\n", done.stdout
    )
    text = page.read_text()
    assert text.count("<img") == 5 * 4
    for words in REFUSED.values():
        assert words in text
    # The same once more: what is done is skipped.
    before = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    done = run("denoise", odd, *options)
    assert done.exit_code == 1
    assert f"5 pictures in {out} already: skipped" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in out.iterdir()} == before


def test_the_noise_is_estimated_once_and_said(tmp_path, monkeypatch):
    clean = np.tile(np.linspace(60, 180, 96), (96, 1))
    shared = np.rint(clean + np.random.default_rng(0).normal(0, 20, clean.shape))
    gray = np.clip(shared, 0, 255).astype(np.uint8)
    put(tmp_path / "a.png", np.stack([gray] * 3, axis=2))
    calls = []
    real = noise.noise_of
    monkeypatch.setattr(noise, "noise_of", lambda *args: calls.append(1) or real(*args))
    done = run("denoise", tmp_path / "a.png", "--effort", 0)
    assert done.exit_code == 0, done.output
    said = float(re.search(r"noise: standard deviation ([\d.]+) of 255", done.stderr)[1])
    assert said == pytest.approx(20.0, rel=0.1)
    assert f"noise {said:.3g}, in" in done.stdout
    assert len(calls) == 1


def test_sigma_far_below_the_noise_is_said(tmp_path, model):
    put(tmp_path / "a.png", noisy(48))
    for sigma, said in ((2, True), (15, False)):
        done = run("denoise", tmp_path / "a.png", "--sigma", sigma, "--model", model, "--force")
        assert done.exit_code == 0, done.output
        assert (f"--sigma {sigma} is far below the noise, about" in done.stderr) == said


def test_a_pixel_does_not_tell_its_noise(tmp_path):
    put(tmp_path / "one.png", noisy()[:1, :1])
    done = run("denoise", tmp_path / "one.png")
    assert done.exit_code == 1
    assert "a picture of 1 x 1 is too small to tell noise from content: give --sigma" in done.stderr


def test_jobs_do_not_matter(tmp_path, model):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(5):
        put(folder / f"{number}.png", np.roll(noisy(), number, axis=0))
    results = []
    for jobs in (1, 4):
        out = tmp_path / f"by-{jobs}"
        done = run("denoise", folder, "-o", out, "--model", model, "--jobs", jobs)
        assert done.exit_code == 0, done.output
        results.append({path.name: path.read_bytes() for path in out.iterdir()})
    assert results[0] == results[1]
    assert len(results[0]) == 5


def test_patterns_and_several_pictures(tmp_path, model):
    for name in ("a1.png", "a2.png", "b1.png"):
        put(tmp_path / name, noisy())
    done = run("denoise", tmp_path / "a*.png", "-o", tmp_path / "one", "--model", model)
    assert done.exit_code == 0, done.output
    assert {path.name for path in (tmp_path / "one").iterdir()} == {"a1.png", "a2.png"}
    pair = [tmp_path / "a1.png", tmp_path / "b1.png"]
    done = run("denoise", *pair, "-o", tmp_path / "two", "--model", model)
    assert {path.name for path in (tmp_path / "two").iterdir()} == {"a1.png", "b1.png"}
    done = run("denoise", tmp_path / "b1.png", "-o", tmp_path / "one", "--model", model)
    assert (tmp_path / "one" / "b1.png").exists()
    for arguments, words in (
        ([*pair], "say in which folder to write the 2 pictures: -o FOLDER"),
        ([*pair, "-o", tmp_path / "x.png"], "is the name of one picture, but there are 2"),
        ([*pair, "-o", tmp_path], "is the folder of a1.png: write to another one"),
        ([tmp_path / "two", "-o", tmp_path / "x.png"], "is the name of one picture, but there are"),
        ([tmp_path / "b*.png", "-o", tmp_path / "x.png"], "results of a folder or pattern go to a"),
        ([tmp_path / "b*.png"], "say in which folder to write the result: -o FOLDER"),
    ):
        done = run("denoise", *arguments, "--model", model)
        assert done.exit_code == 1
        (line,) = done.stderr.splitlines()
        assert words in line


def test_the_page_shows_what_was_restored_earlier(tmp_path, model):
    folder, out, page = tmp_path / "photos", tmp_path / "clean", tmp_path / "page.html"
    folder.mkdir()
    for number in range(3):
        put(folder / f"{number}.png", np.roll(noisy(), number, axis=0))
    put(folder / "float.npy", noisy() / 200)
    command = ["denoise", folder, "-o", out, "--model", model, "--report", page]
    done = run(*command)
    assert done.exit_code == 0, done.output
    assert done.stdout.endswith(f"wrote to {out} and {page}\n")
    whole = page.read_text()
    assert whole.count("<img") == 4 * 4
    (out / "1.png").unlink()
    done = run(*command)  # the page of a folder is written anew
    assert done.exit_code == 0, done.output
    assert "4 restored" in page.read_text()
    addresses = r'src="([^"]*)"'
    assert re.findall(addresses, page.read_text()) == re.findall(addresses, whole)
    # What is there, but no result, is answered in a line.
    (out / "2.png").write_text("no picture")
    put(out / "0.png", photo(30))
    done = run(*command)
    assert done.exit_code == 0, done.output
    assert "2.png was restored earlier, but cannot be shown: " in done.stderr
    assert "0.png has other sides or colors" in done.stderr
    assert "2 restored, 2 not" in page.read_text()
    # A file that is no such page is not written over.
    page.write_text("<title>Mine</title>")
    assert "page.html already exists: use --force" in run(*command).stderr


def test_pictures_of_the_same_name_in_one_folder(tmp_path, model):
    folder, out = tmp_path / "photos", tmp_path / "clean"
    folder.mkdir()
    Image.fromarray(noisy()).save(folder / "anim.gif")
    put(folder / "anim.png", np.roll(noisy(), 5, axis=0))
    put(folder / "other.png", noisy())
    done = run("denoise", folder, "-o", out, "--model", model)
    assert done.exit_code == 0, done.output
    assert {path.name for path in out.iterdir()} == {"anim.gif.png", "anim.png", "other.png"}
    errors = [
        np.abs(open_picture_file(out / name).pixels - np.roll(photo().astype(float), by, 0)).mean()
        for name, by in (("anim.gif.png", 0), ("anim.png", 5))
    ]
    assert max(errors) < 20
    # The same name in two folders is answered in one line, and the rest is done.
    second = tmp_path / "second"
    second.mkdir()
    put(second / "other.png", noisy())
    put(second / "new.png", noisy())
    done = run("denoise", folder, second, second, "-o", tmp_path / "all", "--model", model)
    assert done.exit_code == 1
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("smalto: "))
    assert f"{second / 'other.png'} and {folder / 'other.png'} would both be written to" in line
    assert (tmp_path / "all" / "new.png").exists()
    assert "4 pictures in" in done.stdout


def test_folders_in_a_folder_are_named(tmp_path, model):
    folder = tmp_path / "photos"
    (folder / "sub").mkdir(parents=True)
    done = run("denoise", folder, "-o", folder / "clean", "--model", model)
    assert done.exit_code == 1
    assert "folders in it are left out: sub" in done.stderr
    put(folder / "a.png", noisy())
    (folder / "clean").mkdir()
    done = run("denoise", folder, "-o", folder / "clean", "--model", model)
    assert done.exit_code == 0, done.output
    assert f"{folder}: folders in it are left out: sub\n" in done.stderr


def test_plots_may_be_jpeg_files(tmp_path, model):
    put(tmp_path / "a.png", noisy())
    for name in ("plot.jpg", "plot.JPEG"):
        options = "-o", tmp_path / "b.png", "--force", "--compare", tmp_path / name
        done = run("denoise", tmp_path / "a.png", *options, "--model", model)
        assert done.exit_code == 0, done.output
        assert open_picture_file(tmp_path / name).kind == "JPEG"


def test_masks_by_color_by_alpha_and_by_folder(tmp_path, model):
    mask = np.zeros((24, 24), bool)
    mask[10:12, 3:20] = True
    damaged = np.where(mask[:, :, None], np.array([255, 0, 0], np.uint8), photo())
    scans, masks = tmp_path / "scans", tmp_path / "masks"
    scans.mkdir()
    masks.mkdir()
    opaque = np.where(mask, 0, 255).astype(np.uint8)
    put(scans / "a.png", damaged, opaque)
    put(masks / "a.tif", mask.astype(np.uint8))
    put(tmp_path / "deep.tif", damaged.astype(np.uint16) * 257)
    results = []
    for where in (
        ["--mask", masks],
        ["--mask", masks / "a.tif"],
        ["--mask-color", "red"],
        ["--mask-color", "#fd0101", "--mask-tolerance", 3],
        ["--mask-alpha"],
    ):
        out = tmp_path / f"out{len(results)}.png"
        done = run("inpaint", scans / "a.png", *where, "-o", out, "--model", model)
        assert done.exit_code == 0, done.output
        assert "5.9 % of the pixels are damaged" in done.stderr
        results.append(open_picture_file(out))
        np.testing.assert_array_equal(results[-1].pixels, results[0].pixels)
        expected = np.full_like(opaque, 255) if where == ["--mask-alpha"] else opaque
        np.testing.assert_array_equal(results[-1].alpha, expected)
    np.testing.assert_array_equal(results[0].pixels[~mask], photo()[~mask])
    out = tmp_path / "deep-out.tif"
    done = run("inpaint", tmp_path / "deep.tif", "--mask-color", "red", "-o", out, "--model", model)
    assert done.exit_code == 0, done.output
    deep = open_picture_file(out).pixels
    assert np.abs(deep[mask] / 257.0 - results[0].pixels[mask]).max() < 2
    put(scans / "b.png", damaged)
    done = run("inpaint", scans, "--mask", masks, "-o", tmp_path / "all", "--model", model)
    assert done.exit_code == 1
    assert "there is no mask b.* in" in done.stderr
    assert (tmp_path / "all" / "a.png").exists()


def test_masks_with_loss_and_masks_on_a_clear_ground(tmp_path, model):
    mask = np.zeros((24, 24), bool)
    mask[6:14, 5:13] = True
    white = np.full((24, 24), 255, np.uint8)
    put(tmp_path / "a.png", photo())
    Image.fromarray(white * mask).save(tmp_path / "loss.jpg", quality=85)
    put(tmp_path / "clear.png", white, white * mask)
    assert np.any(open_picture_file(tmp_path / "loss.jpg").pixels[~mask] > 0)
    for name in ("loss.jpg", "clear.png"):
        out = tmp_path / f"{name}-out.png"
        done = run("inpaint", tmp_path / "a.png", "--mask", tmp_path / name, "-o", out,
                   "--model", model)  # fmt: skip
        assert done.exit_code == 0, done.output
        assert "11.1 % of the pixels are damaged" in done.stderr


def test_masks_grow(tmp_path, model):
    mask = np.zeros((24, 24), bool)
    mask[6:14, 20:24] = True
    larger = np.zeros((24, 24), bool)
    larger[4:16, 18:24] = True
    put(tmp_path / "a.png", np.where(mask[:, :, None], np.uint8([255, 0, 0]), photo()))
    put(tmp_path / "mask.png", larger.astype(np.uint8))
    results = []
    for where in (["--mask", tmp_path / "mask.png"], ["--mask-color", "red", "--mask-grow", 2]):
        out = tmp_path / f"out{len(results)}.png"
        done = run("inpaint", tmp_path / "a.png", *where, "-o", out, "--model", model)
        assert done.exit_code == 0, done.output
        assert "12.5 % of the pixels are damaged" in done.stderr
        results.append(open_picture_file(out).pixels)
    np.testing.assert_array_equal(*results)


def test_plots_of_pictures_of_an_earlier_run(tmp_path, model):
    photos, out, plots = (tmp_path / name for name in ("photos", "clean", "plots"))
    photos.mkdir()
    for name in ("a.png", "b.png"):
        put(photos / name, noisy())
    options = "-o", out, "--sigma", 20, "--model", model
    assert run("denoise", photos, *options).exit_code == 0
    put(photos / "c.png", noisy())
    done = run("denoise", photos, *options, "--compare", plots)
    assert done.exit_code == 0, done.output
    assert {path.name for path in plots.iterdir()} == {"a.png", "b.png", "c.png"}
    drawn = {path: path.read_bytes() for path in plots.iterdir()}
    assert drawn[plots / "a.png"] == drawn[plots / "c.png"]  # as it would have been then
    (plots / "a.png").unlink()
    (photos / "b.png").write_bytes(b"damaged")
    (plots / "b.png").unlink()
    done = run("denoise", photos, *options, "--compare", plots)
    assert done.exit_code == 0, done.output
    assert "b.png was restored earlier, but cannot be plotted" in done.stderr
    assert {path.name for path in plots.iterdir()} == {"a.png", "c.png"}


def test_plots_replace_no_pictures(tmp_path, model):
    photos = tmp_path / "photos"
    photos.mkdir()
    put(photos / "a.png", noisy())
    put(photos / "a.tif", noisy())
    put(photos / "b.png", noisy())
    out, plots = tmp_path / "clean", tmp_path / "plots"
    before = {path: path.read_bytes() for path in photos.iterdir()}
    for arguments in (
        [photos / "b.png", "-o", tmp_path / "c.png", "--compare", tmp_path / "c.png"],
        [photos / "b.png", "-o", tmp_path / "c.png", "--compare", photos / "b.png", "--force"],
        [photos, "-o", out, "--compare", out],
        [photos, "-o", out, "--compare", photos, "--force"],
    ):
        done = run("denoise", *arguments, "--model", model)
        assert done.exit_code == 1
        (line,) = done.stderr.splitlines()
        assert "--compare would write its plot over" in line
    assert {path: path.read_bytes() for path in photos.iterdir()} == before
    done = run("denoise", photos, "-o", out, "--compare", plots, "--model", model)
    assert done.exit_code == 0, done.output
    assert {path.name for path in plots.iterdir()} == {"a.png.png", "a.tif.png", "b.png"}
    (out / "b.png").unlink()
    done = run("denoise", photos, "-o", out, "--compare", plots, "--model", model)
    assert done.exit_code == 1
    assert "b.png already exists: use --force" in done.stderr


@pytest.mark.parametrize("name", ["a.png", "a.tif", "deep.tif"])
def test_a_mask_is_for_the_picture_as_it_is_shown(tmp_path, model, name):
    stored = photo()[:20].astype(np.uint16 if name == "deep.tif" else np.uint8)
    shown = PictureFile(stored, None, Metadata(exif=turned_exif(6))).upright().pixels
    assert shown.shape[:2] == (24, 20)
    mask = np.zeros(shown.shape[:2], bool)
    mask[3, 5:9] = True
    put(tmp_path / name, stored, None, Metadata(exif=turned_exif(6)))
    put(tmp_path / "mask.png", mask.astype(np.uint8) * 255)
    out = tmp_path / f"out-{name}"
    done = run("inpaint", tmp_path / name, "--mask", tmp_path / "mask.png", "-o", out,
               "--model", model)  # fmt: skip
    assert done.exit_code == 0, done.output
    assert open_picture_file(out).pixels.shape == stored.shape
    changed = (open_picture_file(out).upright().pixels != shown).any(axis=2)
    assert changed.any()
    assert not changed[~mask].any()


def test_inpaint_by_effort(tmp_path):
    picture, mask = photo(), np.zeros((24, 24), np.uint8)
    mask[3:20:4] = 255
    put(tmp_path / "a.png", picture)
    put(tmp_path / "mask.png", mask)
    given = ["inpaint", tmp_path / "a.png", "--mask", tmp_path / "mask.png", "--seed", 0]
    found = []
    for effort in (None, 0, 1):
        out = tmp_path / f"{effort}.png"
        done = run(*given, "-o", out, *([] if effort is None else ["--effort", effort]))
        assert done.exit_code == 0, done.output
        assert ("learning atoms" in done.stderr) == (effort == 0)
        found.append(open_picture_file(out).pixels)
    assert np.array_equal(found[0], found[2])
    assert not np.array_equal(found[0], found[1])
    assert run(*given, "-o", tmp_path / "b.png", "--effort", 3).exit_code == 2


@pytest.mark.skipif(os.name == "nt", reason="signals are for POSIX")
@pytest.mark.parametrize("many", [False, True])
def test_ctrl_c_leaves_nothing_half_written(tmp_path, many):
    folder, out = tmp_path / "photos", tmp_path / "clean"
    folder.mkdir()
    for number in range(3):
        put(folder / f"{number}.png", noisy(120))
    log, program = tmp_path / "log", "from smalto.cli import main; main()"
    target = [folder, "-o", out] if many else [folder / "0.png", "-o", tmp_path / "x.png"]
    options = ["denoise", *target, "--atoms", "400", "--threads", "1"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with (
        log.open("w") as written,
        child(program, *options, env=environment, stdout=written, stderr=written) as process,
    ):
        while "noise: standard deviation" not in log.read_text():
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.wait()
    text = log.read_text()
    assert process.returncode == INTERRUPTED, text
    assert "smalto: stopped" in text
    assert "Traceback" not in text
    assert not (tmp_path / "x.png").exists()
    assert not out.exists() or not list(out.iterdir())


def test_noise_by_light_and_by_a_map(tmp_path):
    rng = np.random.default_rng(0)
    light = np.tile(np.linspace(20, 220, 128), (96, 1))
    counted = np.clip(3 * rng.poisson(light / 3), 0, 255).astype(np.uint8)
    source = put(tmp_path / "counted.png", counted)
    quick = ["--atoms", "16", "--patch", "6"]
    done = run("denoise", source, "-o", tmp_path / "a.png", "--poisson", *quick)
    assert re.search(r"noise: \d[.\d]* levels per photon, read noise", done.stderr)
    run("denoise", source, "-o", tmp_path / "b.png", "--poisson", "--gain", 3, *quick)
    np.save(tmp_path / "map.npy", np.sqrt(3 * light))
    by_map = "--sigma-map", tmp_path / "map.npy"
    run("denoise", source, "-o", tmp_path / "c.png", *by_map, *quick)
    for name in "abc":
        error = np.array(Image.open(tmp_path / f"{name}.png")) - light
        assert np.sqrt(np.mean(error**2)) < 6
    out = "-o", tmp_path / "d.png"
    failed = run("denoise", source, *out, *by_map, "--poisson")
    assert failed.exit_code == 1
    assert "only one of" in failed.stderr
    failed = run("denoise", source, *out, "--gain", 3)
    assert failed.exit_code == 1
    assert "--gain belongs to --poisson" in failed.stderr
    failed = run("denoise", put(tmp_path / "small.png", counted[:30]), *out, *by_map)
    assert failed.exit_code == 1
    assert "map.npy is 128 x 96, the picture 128 x 30" in failed.stderr


def test_coding_has_a_share_and_the_time_left(tmp_path, model):
    put(tmp_path / "a.png", noisy(40))
    done = run("denoise", tmp_path / "a.png", "-o", tmp_path / "b.png", "--model", model)
    assert done.exit_code == 0, done.output
    assert "coding patches: 100 %" in done.stderr
    put(tmp_path / "mask.png", np.eye(40, dtype=np.uint8))
    where = ["--mask", tmp_path / "mask.png", "-o", tmp_path / "c.png"]
    done = run("inpaint", tmp_path / "a.png", *where, "--atoms", 16, "--patch", 6)
    assert done.exit_code == 0, done.output
    assert "learning atoms: 100 %, 0:00 left" in done.stderr
    assert "coding patches: 100 %" in done.stderr


@pytest.mark.parametrize("jobs", [1, 2])
def test_warnings_name_their_picture(tmp_path, model, jobs):
    folder = tmp_path / "photos"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name in ("a.png", "b.png", "white.png"):
        noise = rng.normal(0, 20, (80, 80, 3))
        if name != "white.png":
            noise = (noise + np.roll(noise, 1, axis=1) + np.roll(noise, 2, axis=1)) / 2
        put(folder / name, np.clip(120 + noise, 0, 255).astype(np.uint8))
    done = run("denoise", folder, "-o", tmp_path / "clean", "--model", model, "--jobs", jobs)
    assert done.exit_code == 0, done.output
    told = [line for line in done.stderr.splitlines() if "warning" in line]
    assert sorted(line.split(":")[0] for line in told) == ["a.png", "b.png"]
    assert all("the noise is not white" in line for line in told)
