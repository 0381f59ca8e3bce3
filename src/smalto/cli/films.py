"""Films: read, restored and written frame by frame, with their sound."""

from __future__ import annotations

import importlib.util
import time
from collections import deque
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import typer

from smalto.checks import Array
from smalto.cli.errors import fail, plain_errors
from smalto.cli.outputs import STREAM, check_output, write_whole

SUFFIXES = (".mp4", ".mov", ".m4v", ".mkv")
_QUALITY = "16"  # constant rate factor of H.264: 0 is without loss, 18 looks like it
_COLORS = ("colorspace", "color_primaries", "color_trc")  # what a film says of its colors
_UNKNOWN = 2  # of any of these

Restore = Callable[[Iterator[Array]], Iterator[Array]]  # yields as many frames as it gets


def is_film(path: Path) -> bool:
    """Whether a path is a film, by its name."""
    return path.suffix.lower() in SUFFIXES


def check_film_options(pictures: list[Path], only_pictures: dict[str, Any]) -> None:
    """Fail if there is more than one film, or if options are given that only pictures have."""
    if len(pictures) > 1:
        fail("a film can only be restored alone")
    for name, value in only_pictures.items():
        if value:
            fail(f"{name} is for pictures, not for films")


def restore_film(
    source: Path,
    out: Path | None,
    force: bool,
    label: str,
    restore: Restore,
    *,
    layout: str = "rgb24",
) -> None:
    """Restore the frames of a film, given in some layout, to RGB; the sound is copied."""
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
        count = _restore(source, out, label, restore, layout)
    seconds = time.perf_counter() - started
    typer.echo(f"{count} frames in {seconds:.1f} s; wrote {out}")


def frames_of(source: Path, layout: str = "rgb24") -> Iterator[Array]:
    """Yield the frames of a film, upright."""
    for frame in _frames(source):
        yield _pixels(frame, layout)


def _restore(source: Path, out: Path, label: str, restore: Restore, layout: str) -> int:
    """Write the film; return the number of frames."""
    import av

    from smalto.learning import Progress

    progress = Progress(label=label)
    done = 0

    def write(file: Any) -> None:
        nonlocal done
        kind = "matroska" if out.suffix.lower() == ".mkv" else "mp4"
        with _opened(source) as film, av.open(file, "w", format=kind) as made:
            total = _number_of_frames(film)
            picture = film.streams.video[0]
            target = made.add_stream("libx264", rate=picture.average_rate or Fraction(25))
            sound = film.streams.audio[0] if film.streams.audio else None
            copied = None if sound is None else made.add_stream_from_template(sound)
            originals: deque[Any] = deque()  # that have not been restored yet

            def pixels() -> Iterator[Array]:
                for frame in _frames(source):
                    originals.append(frame)
                    yield _pixels(frame, layout)

            for clean in restore(pixels()):
                original = originals.popleft()
                if done == 0:
                    _set_up(target, original, clean.shape)
                made.mux(target.encode(_frame(clean, original, target)))
                done += 1
                share = min(done / total, 1.0) if total else None
                progress.show(share, f"{done} of {total or '?'} frames")
            if done == 0:
                message = f"{source} has no frames"
                raise ValueError(message)
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


def _set_up(target: Any, original: Any, shape: tuple[int, ...]) -> None:
    """Prepare the stream that is written for frames of this shape, with colors as in the film."""
    target.height, target.width = shape[:2]
    is_even = shape[0] % 2 == shape[1] % 2 == 0
    target.pix_fmt, target.options = "yuv420p" if is_even else "yuv444p", {"crf": _QUALITY}
    context = target.codec_context
    if original.pts is not None:
        context.time_base = original.time_base
    for name in _COLORS:
        setattr(context, name, getattr(original, name))


def _frame(pixels: Array, original: Any, target: Any) -> Any:
    """A frame to write, shown when the original one was."""
    import av

    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
    colors = None if original.colorspace == _UNKNOWN else original.colorspace
    frame = frame.reformat(format=target.pix_fmt, dst_colorspace=colors)
    if original.pts is not None:
        frame.pts, frame.time_base = original.pts, original.time_base
    return frame


def _pixels(frame: Any, layout: str) -> Array:
    """The pixels of a frame, turned as the film says."""
    turns = round(frame.rotation / 90)
    return np.ascontiguousarray(np.rot90(frame.to_ndarray(format=layout), turns))


def _frames(source: Path) -> Iterator[Any]:
    with _opened(source) as film:
        yield from film.decode(video=0)


def has_alpha(source: Path) -> bool:
    """Whether the frames of a film have an alpha channel."""
    with _opened(source) as film:
        return any(part.is_alpha for part in film.streams.video[0].codec_context.format.components)


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


def _number_of_frames(film: Any) -> int:
    """Number of frames of a film, by its duration if it does not say, or 0."""
    stream = film.streams.video[0]
    if stream.frames:
        return int(stream.frames)
    if film.duration and stream.average_rate:
        return max(1, int(film.duration / 1_000_000 * stream.average_rate + 0.5))
    return 0
