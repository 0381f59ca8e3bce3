"""The command denoise for films."""

import re
from fractions import Fraction

import naive_image as naive
import numpy as np
import pytest
from commands import run

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
        ([source, source], "a film can only be denoised alone"),
        ([source, "--poisson"], "--poisson is for pictures, not for films"),
    ):
        done = run("denoise", *arguments)
        assert done.exit_code == 1
        (line,) = done.stderr.splitlines()
        assert words in line
    assert {path.name for path in tmp_path.iterdir()} == {"film.mp4", "cut.mp4"}
