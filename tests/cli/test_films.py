"""The commands denoise and inpaint for films."""

import os
import re
import signal
import sys
import time
from fractions import Fraction

import naive_image as naive
import numpy as np
import pytest
from children import child
from commands import run
from PIL import Image

from smalto.cli.errors import INTERRUPTED

av = pytest.importorskip("av")


def film(path, count=6, width=64, with_sound=True):
    """A picture that moves, with noise and a tone."""
    rng = np.random.default_rng(0)
    with av.open(str(path), "w") as made:
        stream = made.add_stream("libx264", rate=Fraction(25))
        stream.width, stream.height, stream.pix_fmt = width, 48, "yuv444p"
        stream.options = {"crf": "2"}
        sound = made.add_stream("aac", rate=8000) if with_sound else None
        for t in range(count):
            clean = naive.picture(48, 100)[:, t : t + width]
            noisy = clean[:, :, None] + rng.normal(0, 15, (48, width, 1)) * np.ones(3)
            pixels = np.clip(noisy, 0, 255).astype(np.uint8)
            made.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        made.mux(stream.encode())
        if sound is not None:
            wave = np.sin(np.arange(2048) / 3).astype(np.float32)[None]
            frame = av.AudioFrame.from_ndarray(wave, format="fltp", layout="mono")
            frame.sample_rate = 8000
            made.mux(sound.encode(frame))
            made.mux(sound.encode())
    return path


def frames_of(path):
    with av.open(str(path)) as made:
        return [f.to_ndarray(format="gray").astype(float) for f in made.decode(video=0)]


@pytest.mark.parametrize(("ending", "width", "joint"), [(".mp4", 64, True), (".mkv", 63, False)])
def test_a_film_is_denoised(tmp_path, ending, width, joint):
    source = film(tmp_path / f"film{ending}", width=width)
    out = tmp_path / f"clean{ending}"
    options = ["--effort", 1] if joint else []
    done = run("denoise", source, "-o", out, "--sigma", 15, "--atoms", 32, *options)
    assert done.exit_code == 0, done.output
    assert "6 frames in" in done.stdout
    assert re.search(r"denoising: \d+ %, .* left, 6 of \d+ frames", done.stderr)
    before, after = frames_of(source), frames_of(out)
    assert len(after) == 6
    clean = [naive.picture(48, 100)[:, t : t + width] for t in range(6)]
    errors = [np.mean((np.array(x) - clean) ** 2) for x in (before, after)]
    assert errors[1] < 0.5 * errors[0]
    with av.open(str(out)) as made:
        assert len(made.streams.audio) == 1
        assert made.streams.video[0].average_rate == 25
        assert sum(frame.samples for frame in made.decode(audio=0)) >= 2048


def test_what_goes_wrong_with_films(tmp_path):
    source = film(tmp_path / "film.mp4", 1, with_sound=False)
    (tmp_path / "cut.mp4").write_bytes(source.read_bytes()[:200])
    for arguments, words in (
        ([tmp_path / "cut.mp4"], "cut.mp4 is damaged, or not a film that can be read"),
        ([tmp_path / "none.mp4"], "there is no file"),
        ([source, "-o", tmp_path / "x.png"], "must end in .mp4 or"),
        ([source, "-o", source], "already exists"),
        ([source, source], "a film can only be restored alone"),
        ([source, "--poisson"], "--poisson is for pictures, not for films"),
    ):
        done = run("denoise", *arguments)
        assert done.exit_code == 1
        (line,) = done.stderr.splitlines()
        assert words in line
    assert {path.name for path in tmp_path.iterdir()} == {"film.mp4", "cut.mp4"}


def written(
    path, pixels, *, codec="libx264", pix_fmt="yuv444p", options=None, rotation=0, pts=None
):
    """A film of these frames, RGB or with alpha."""
    layout = "rgba" if pixels[0].shape[2] == 4 else "rgb24"
    with av.open(str(path), "w") as made:
        stream = made.add_stream(codec, rate=Fraction(25))
        stream.height, stream.width = pixels[0].shape[:2]
        stream.pix_fmt, stream.options = pix_fmt, options or {"crf": "2"}
        if rotation:
            stream.set_display_rotation(rotation)
        for number, one in enumerate(pixels):
            frame = av.VideoFrame.from_ndarray(one, format=layout)
            frame.pts = number if pts is None else pts[number]
            frame.time_base = Fraction(1, 25)
            made.mux(stream.encode(frame))
        made.mux(stream.encode())
    return path


def scene(count=5, width=64):
    """Frames of a picture that moves (height, width, 3), without noise."""
    moving = [naive.picture(48, 100)[:, 2 * t : 2 * t + width] for t in range(count)]
    return [
        np.repeat(np.clip(one, 0, 255).astype(np.uint8)[:, :, None], 3, axis=2) for one in moving
    ]


def hole(count=5):
    """Masks of a square that stays where it is."""
    marks = np.zeros((count, 48, 64), bool)
    marks[:, 20:27, 30:37] = True
    return marks


def as_pixels(marks):
    return np.repeat((255 * marks).astype(np.uint8)[..., None], 3, axis=-1)


@pytest.mark.parametrize("kind", ["picture", "film", "color", "alpha"])
def test_a_film_is_filled(tmp_path, kind):
    clean, marks = scene(), hole()
    damaged = [
        np.where(m[..., None], np.uint8([250, 0, 0]), c) for c, m in zip(clean, marks, strict=True)
    ]
    source = tmp_path / "film.mov"
    if kind == "alpha":
        opaque = (255 * ~marks).astype(np.uint8)
        frames = [np.dstack(pair) for pair in zip(clean, opaque, strict=True)]
        written(source, frames, codec="png", pix_fmt="rgba", options={})
        options = ["--mask-alpha", "--mask-grow", 0]
    else:
        written(source, damaged)
        options = ["--mask-color", "#fa0000", "--mask-tolerance", 60, "--mask-grow", 1]
    if kind == "picture":
        Image.fromarray(as_pixels(marks[0])).save(tmp_path / "mask.png")
        options = ["--mask", tmp_path / "mask.png"]
    elif kind == "film":
        options = ["--mask", written(tmp_path / "mask.mp4", list(as_pixels(marks)))]
    out = tmp_path / "restored.mp4"
    done = run("inpaint", source, *options, "-o", out)
    assert done.exit_code == 0, done.output
    assert "5 frames in" in done.stdout
    assert re.search(r"inpainting: \d+ %, .*5 of 5 frames", done.stderr)
    share = {"alpha": "1.6", "color": "2.6"}.get(kind, "3.9")
    assert f"{share} % of the pixels were damaged" in done.stderr
    after = np.array(frames_of(out))
    expected = np.array(clean)[..., 0].astype(float)
    assert np.sqrt(np.mean((after - expected)[marks] ** 2)) < 0.5 * np.std(expected[marks])
    assert np.sqrt(np.mean((after - expected)[~marks] ** 2)) < 3.0


def test_films_are_turned_upright_and_keep_their_times_and_colors(tmp_path):
    red = np.zeros((48, 64, 3), np.uint8) + np.uint8([200, 40, 40])
    red[:10, :20] = 255
    times = [0, 1, 5, 6]
    source = tmp_path / "film.mp4"
    with av.open(str(source), "w") as made:
        stream = made.add_stream("libx264", rate=Fraction(25))
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv444p"
        stream.options = {"crf": "2"}
        stream.codec_context.colorspace = 1  # ITU-R BT.709
        stream.set_display_rotation(90)
        for time in times:
            frame = av.VideoFrame.from_ndarray(red, format="rgb24")
            frame = frame.reformat(format="yuv444p", dst_colorspace=1)
            frame.pts, frame.time_base = time, Fraction(1, 25)
            made.mux(stream.encode(frame))
        made.mux(stream.encode())
    out = tmp_path / "clean.mp4"
    done = run("denoise", source, "-o", out, "--sigma", 2)
    assert done.exit_code == 0, done.output
    with av.open(str(out)) as made:
        frames = list(made.decode(video=0))
    assert [round(float(25 * frame.time)) for frame in frames] == times
    assert frames[0].colorspace == 1
    assert frames[0].rotation == 0
    shown = frames[0].to_ndarray(format="rgb24").astype(float)
    expected = np.rot90(red).astype(float)
    assert shown.shape == expected.shape
    assert np.sqrt(np.mean((shown - expected) ** 2)) < 4.0


def test_what_goes_wrong_with_masks_of_films(tmp_path):
    source = written(tmp_path / "film.mp4", scene(2))
    written(tmp_path / "short.mp4", list(as_pixels(hole(1))))
    Image.fromarray(as_pixels(hole()[0])[:20]).save(tmp_path / "small.png")
    Image.fromarray(np.zeros((48, 64), np.uint8)).save(tmp_path / "black.png")
    (tmp_path / "text.png").write_text("no picture")
    before = {path.name for path in tmp_path.iterdir()}
    for options, words in (
        ([], "say where the damage is"),
        (["--mask", tmp_path / "none.png"], "there is no file"),
        (["--mask", tmp_path], "the mask of a film is a picture or a film"),
        (["--mask", tmp_path / "text.png"], "text.png is not a picture"),
        (["--mask", tmp_path / "small.png"], "small.png is 64 x 20, the film 64 x 48"),
        (["--mask", tmp_path / "black.png"], "no pixel of"),
        (["--mask", tmp_path / "short.mp4"], "short.mp4 has fewer frames than the film"),
        (["--mask-color", "lime"], "no pixel has the color lime"),
        (["--mask-alpha"], "film.mp4 has no alpha channel: use --mask or --mask-color"),
        (["--mask-alpha", "--effort", 2], "--effort is for pictures, not for films"),
    ):
        done = run("inpaint", source, *options)
        assert done.exit_code == 1
        assert words in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("command", ["denoise", "inpaint"])
def test_ctrl_c_leaves_no_half_film(tmp_path, command):
    source = written(tmp_path / "film.mp4", scene(18) * 20)
    Image.fromarray(as_pixels(hole()[0])).save(tmp_path / "mask.png")
    before = {path.name for path in tmp_path.iterdir()} | {"log"}
    options = [command, source, "--threads", "1"]
    options += ["--mask", tmp_path / "mask.png"] if command == "inpaint" else ["--sigma", "5"]
    log, program = tmp_path / "log", "from smalto.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with (
        log.open("w") as file,
        child(program, *options, env=environment, stdout=file, stderr=file) as process,
    ):
        while not (tmp_path / ".film-restored.mp4.part").exists():
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.wait()
    text = log.read_text()
    assert process.returncode == INTERRUPTED, text
    assert "smalto: stopped: nothing was written" in text
    assert "Traceback" not in text
    assert {path.name for path in tmp_path.iterdir()} == before
