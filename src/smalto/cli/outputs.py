"""What commands share: how they fail, how they write, how they show progress."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn, Self, TypeAlias

import numpy as np
import typer

from smalto.checks import Array
from smalto.learning.memory.state import Record, State

INTERRUPTED = 130
STREAM = Path("-")  # the standard input or output, where a file is asked for

Threads: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="How many threads.", show_default="all cores")
]
Seed: TypeAlias = Annotated[int, typer.Option(min=0, help="The seed of all randomness.")]
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]


def fail(message: str) -> NoReturn:
    """End with one line on what is wrong."""
    typer.echo(f"smalto: {' '.join(message.split())}", err=True)
    raise typer.Exit(1)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn what users can do something about into one line each; bugs keep their traceback."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except OSError as error:
        fail(_words_of(error))
    except MemoryError:
        fail("there is not enough memory for this")
    except (ValueError, TypeError, ImportError, ArithmeticError) as error:
        fail(str(error) or type(error).__name__)


def _words_of(error: OSError) -> str:
    if error.strerror is None:
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    full = " (nothing was written)" if error.errno == errno.ENOSPC else ""
    return f"{where}{error.strerror}{full}"


def show_warnings() -> None:
    """Let warnings be one line each on the standard error."""

    def show(message: Any, *_: Any, **__: Any) -> None:
        typer.echo(f"smalto: warning: {' '.join(str(message).split())}", err=True)

    warnings.showwarning = show


def check_output(path: Path, force: bool, endings: tuple[str, ...] = ()) -> None:
    """Refuse, before any work is done, a file that cannot or should not be written."""
    if path == STREAM:
        return
    if endings and path.suffix.lower() not in endings:
        fail(f"{path} must end in {' or '.join(endings)}")
    folder = path.parent
    if not folder.is_dir():
        fail(f"there is no folder {folder} for {path.name}")
    if path.is_dir():
        fail(f"{path} is a folder")
    if path.exists() and not force:
        fail(f"{path} is already there: give --force to overwrite it, or another name")
    if not os.access(folder, os.W_OK):
        fail(f"{folder} is read-only")


def write_whole(path: Path, write: Callable[[Any], None]) -> None:
    """Let ``write`` fill a file; it appears under its name when it is whole, or not at all."""
    if path == STREAM:
        held = io.BytesIO()
        write(held)
        sys.stdout.buffer.write(held.getvalue())
        sys.stdout.buffer.flush()
        return
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_picture(path: Path, pixels: Array) -> None:
    """Write pixels, uint8 or uint16 grey, in the format that the ending says."""
    from PIL import Image

    picture = Image.fromarray(pixels)
    endings = Image.registered_extensions()
    kind = "PNG" if path == STREAM else endings.get(path.suffix.lower())
    if kind is None or kind not in Image.SAVE:
        fail(f"{path.suffix or path.name!r} is no ending of a picture that can be written")
    settings = {"quality": 95} if kind in ("JPEG", "WEBP") else {}
    write_whole(path, lambda file: picture.save(file, kind, **settings))


def write_figure(path: Path, axes_or_figure: Any) -> None:
    """Write a Matplotlib picture."""
    figure = getattr(axes_or_figure, "figure", axes_or_figure)
    kind = path.suffix.lower().lstrip(".") or "png"
    write_whole(path, lambda file: figure.savefig(file, format=kind))


def read_input(path: Path) -> Any:
    """A picture from a file, or from the standard input."""
    from smalto.image import read_picture

    if path == STREAM:
        return read_picture(io.BytesIO(sys.stdin.buffer.read()))  # type: ignore[arg-type]
    if not path.exists():
        fail(f"there is no file {path}")
    return read_picture(path)


def need_matplotlib() -> None:
    """Say how to get it before anything is done that would need it in the end."""
    import importlib.util

    if importlib.util.find_spec("matplotlib") is None:
        fail('the pictures need matplotlib: pip install "smalto[plot]"')


@contextmanager
def say_if_compiling() -> Iterator[None]:
    """Say it once when a kernel is not in the cache and has to be compiled."""
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        said = False

        def on_start(self, event: Any) -> None:
            if not self.said:
                self.said = True
                typer.echo("compiling kernels (first run only)", err=True)

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        yield


class Bar:
    """Progress of learning: the cost, the speed and the time left.

    By the seconds, if their number is known, else by the samples (of an unknown number).
    """

    def __init__(self, *, seconds: float | None = None, samples: int | None = None) -> None:
        from tqdm import tqdm

        self.seconds = seconds
        rest = "" if seconds is None and samples is None else " {bar}"
        clock = "{n:.0f}/{total:.0f} s" if seconds is not None else "{n_fmt}"
        if seconds is None and samples is not None:
            clock = "{n_fmt}/{total_fmt}, {remaining} left"
        self.bar = tqdm(
            total=samples if seconds is None else seconds,
            desc="learning",
            unit_scale=seconds is None,
            bar_format=f"{{desc}}{rest} {clock}{{postfix}}",
            dynamic_ncols=True,
            file=sys.stderr,
        )
        self.cost: float | None = None

    def __call__(self, state: State, record: Record) -> None:
        """Move the bar."""
        old = record.batch_cost if self.cost is None else self.cost
        self.cost = 0.9 * old + 0.1 * record.batch_cost  # single batches jump about
        shown = self.cost if record.test_cost is None else record.test_cost
        speed = record.samples / max(record.seconds, 1e-9)
        self.bar.set_postfix_str(f"cost {shown:.4f}, {speed:,.0f} samples/s", refresh=False)
        if self.seconds is None:
            self.bar.update(record.samples - self.bar.n)
        else:
            self.bar.update(min(record.seconds, self.seconds) - self.bar.n)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()


def use_of_atoms(state: State) -> Array:
    """The energy that the codes of the past have put into each atom."""
    use = np.zeros(len(state.D))
    for part in state.stats:
        use += part.scale * part.A.diagonal()
    return use
