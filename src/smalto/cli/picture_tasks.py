"""Which pictures to restore, and where the results go."""

from __future__ import annotations

import glob
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import typer

from smalto.cli.errors import fail
from smalto.cli.outputs import (
    PLOT_SUFFIXES,
    STREAM,
    check_output,
    check_picture_output,
    need_matplotlib,
)


@dataclass(frozen=True)
class Task:
    """A picture to restore, and the files to write."""

    source: Path
    out: Path
    compare: Path | None


@dataclass(frozen=True)
class Plan:
    """All pictures to restore."""

    tasks: list[Task]
    folder: Path | None  # for the results, unless there is a single one
    n_done: int  # pictures that are in the folder already
    report: Path | None


def plan_of(
    pictures: list[Path], out: Path | None, compare: Path | None, report: Path | None, force: bool
) -> Plan:
    """Find the pictures and check all outputs, before any work is done."""
    sources = [source for given in pictures for source in _found(given)]
    is_one = len(pictures) == 1 and sources == pictures and not (out is not None and out.is_dir())
    if compare is not None:
        need_matplotlib()
    if report is not None:
        check_output(report, force, (".html",))
        if report == STREAM:
            fail("a report is a file: give its name with --report")
    if is_one:
        task = _single(sources[0], out, compare, force)
        return Plan([task], None, 0, report)
    if STREAM in sources:
        fail("the standard input can only be restored alone")
    if out is None or out == STREAM:
        fail(f"say in which folder to write the {len(sources)} pictures: -o FOLDER")
    outs = _outputs(sources, out)
    plots: list[Path | None] = [None] * len(outs)
    if compare is not None:
        plots = [*_plots(compare, outs)]
    tasks = [
        Task(*files)
        for files in zip(sources, outs, plots, strict=True)
        if force or not files[1].exists()
    ]
    for task in tasks:
        _check_plot(task, [*sources, *outs], force)
    return Plan(tasks, out, len(sources) - len(tasks), report)


def _found(given: Path) -> list[Path]:
    """The pictures that a file, folder or pattern stands for."""
    from smalto.image.reading import SUFFIXES

    if given == STREAM or given.is_file():
        return [given]
    if given.is_dir():
        files = sorted(p for p in given.iterdir() if p.is_file() and not p.name.startswith("."))
        found = [p for p in files if p.suffix.lower() in (*SUFFIXES, ".npy")]
        if not found:
            fail(f"there are no pictures ({', '.join(SUFFIXES)}, .npy) in {given}")
        if others := sorted({p.suffix or p.name for p in files} - {p.suffix for p in found}):
            typer.echo(f"{given}: files that end in {', '.join(others)} are left out", err=True)
        return found
    names = glob.glob(str(given)) if glob.has_magic(str(given)) else []  # noqa: PTH207 (any root)
    if not names:
        fail(f"there is no file {given}")
    return [Path(name) for name in sorted(names)]


def _single(source: Path, out: Path | None, compare: Path | None, force: bool) -> Task:
    if out is None:
        out = (
            STREAM
            if source == STREAM
            else source.with_name(f"{source.stem}-restored{_ending(source)}")
        )
    check_picture_output(out, force)
    task = Task(source, out, compare)
    _check_plot(task, [source, out], force)
    return task


def _plots(folder: Path, outs: list[Path]) -> list[Path]:
    """Where to plot each picture; with its whole name if another one differs in the ending only."""
    _make_folder(folder)
    counts = Counter(path.stem.lower() for path in outs)
    names = [path.stem if counts[path.stem.lower()] == 1 else path.name for path in outs]
    return [folder / f"{name}.png" for name in names]


def _check_plot(task: Task, pictures: list[Path], force: bool) -> None:
    """Fail if a plot cannot be written, or would replace a picture."""
    if task.compare is None:
        return
    if task.compare.resolve() in {picture.resolve() for picture in pictures}:
        fail(f"--compare would write its plot over {task.compare}: give another name or folder")
    check_output(task.compare, force, PLOT_SUFFIXES)


def _ending(source: Path) -> str:
    """The ending of a result: that of the picture, if such files can be written."""
    from smalto.image.files.writing import KINDS

    return source.suffix if source.suffix.lower() in KINDS else ".png"


def _outputs(sources: list[Path], folder: Path) -> list[Path]:
    """Where to write the result of each picture; fail if two of them would be the same file."""
    from smalto.image.files.writing import KINDS

    if not folder.is_dir() and folder.suffix.lower() in KINDS:
        fail(f"{folder} is the name of one picture, but there are {len(sources)}: give a folder")
    outs = [folder / f"{source.stem}{_ending(source)}" for source in sources]
    taken: dict[str, Path] = {}
    for source, path in zip(sources, outs, strict=True):
        if source.parent.resolve() == folder.resolve():
            fail(f"{folder} is the folder of {source.name}: write to another one")
        other = taken.setdefault(path.name.lower(), source)
        if other is not source:
            fail(f"{other} and {source} would both be written to {path}: restore them separately")
    _make_folder(folder)
    return outs


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"no pictures can be written to {folder}: {error.strerror or error}")
