"""Films: read, denoised and written frame by frame, with their sound."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import typer

from smalto.cli.errors import fail, plain_errors
from smalto.cli.outputs import STREAM, check_output, write_whole

SUFFIXES = (".mp4", ".mov", ".m4v", ".mkv")
_QUALITY = "16"  # constant rate factor of H.264: 0 is without loss, 18 looks like it


def is_film(path: Path) -> bool:
    """Whether a path is a film, by its name."""
    return path.suffix.lower() in SUFFIXES


def restore_film(source: Path, out: Path | None, force: bool, **options: Any) -> None:
    """Denoise a film with options of `denoise_video`; the sound is copied."""
    if importlib.util.find_spec("av") is None:
        fail('films need PyAV: pip install "smalto[video]"')
    if not source.is_file():
        fail(f"there is no file {source}")
    out = source.with_name(f"{source.stem}-restored{source.suffix}") if out is None else out
    if out == STREAM:
        fail("a film is a file: give its name with -o")
    check_output(out, force, SUFFIXES)
    started = time.perf_counter()
    with plain_errors("stopped: nothing was written"):
        count = _restore(source, out, options)
    seconds = time.perf_counter() - started
    typer.echo(f"{count} frames in {seconds:.1f} s; wrote {out}")


def _restore(source: Path, out: Path, options: dict[str, Any]) -> int:
    """Write the film; return the number of frames."""
    import av

    from smalto.image import denoise_video
    from smalto.learning import Progress

    progress = Progress(label="denoising")
    done = 0

    def write(file: Any) -> None:
        nonlocal done
        with (
            _opened(source) as film,
            av.open(
                file, "w", format="matroska" if out.suffix.lower() == ".mkv" else "mp4"
            ) as made,
        ):
            picture = film.streams.video[0]
            total = _number_of_frames(film)
            target = made.add_stream("libx264", rate=picture.average_rate or Fraction(25))
            target.width, target.height = picture.width, picture.height
            target.pix_fmt, target.options = "yuv420p", {"crf": _QUALITY}
            is_even = picture.width % 2 == picture.height % 2 == 0
            if not is_even:
                target.pix_fmt = "yuv444p"
            sound = film.streams.audio[0] if film.streams.audio else None
            copied = None if sound is None else made.add_stream_from_template(sound)
            frames = (frame.to_ndarray(format="rgb24") for frame in _frames(source))
            for clean in denoise_video(frames, channel_axis=2, **options):
                made.mux(target.encode(av.VideoFrame.from_ndarray(clean, format="rgb24")))
                done += 1
                share = min(done / total, 1.0) if total else None
                progress.show(share, f"{done} of {total or '?'} frames")
            made.mux(target.encode())
            if copied is not None:
                for packet in film.demux(sound):
                    if packet.dts is not None:
                        packet.stream = copied
                        made.mux(packet)

    try:
        write_whole(out, write)
    finally:
        progress.close()
    return done


def _opened(source: Path) -> Any:
    """Open a film; say in one line why that is not possible."""
    import av

    try:
        film = av.open(str(source))
    except av.FFmpegError as error:
        message = f"{source} is damaged, or not a film that can be read: {error.strerror}"
        raise ValueError(message) from error
    if not film.streams.video:
        film.close()
        message = f"{source} has no pictures"
        raise ValueError(message)
    return film


def _frames(source: Path) -> Iterator[Any]:
    with _opened(source) as film:
        yield from film.decode(video=0)


def _number_of_frames(film: Any) -> int:
    """Number of frames of a film, by its duration if it does not say, or 0."""
    stream = film.streams.video[0]
    if stream.frames:
        return int(stream.frames)
    if film.duration and stream.average_rate:
        return max(1, int(film.duration / 1_000_000 * stream.average_rate + 0.5))
    return 0
