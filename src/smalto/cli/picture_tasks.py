"""Which pictures to restore, and where the results go."""

from __future__ import annotations

import glob
import math
from collections import Counter
from dataclasses import dataclass, field, replace
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
    range: tuple[float, float] | None = None  # the values of black and white, if given


@dataclass(frozen=True)
class Plan:
    """All pictures to restore."""

    tasks: list[Task]
    folder: Path | None  # for the results, unless there is a single one
    report: Path | None
    plots: Path | None = None  # the folder of the plots
    done: list[Task] = field(default_factory=list)  # results are in the folder already
    refused: dict[Path, str] = field(default_factory=dict)  # and why


def plan_of(
    pictures: list[Path],
    out: Path | None,
    compare: Path | None,
    report: Path | None,
    force: bool,
    range_: tuple[float, float] | None,
) -> Plan:
    """Find the pictures and check all outputs, before any work is done."""
    if range_ is not None and not -math.inf < range_[0] < range_[1] < math.inf:
        fail(f"--range must be two numbers, black below white, got {range_[0]:g} {range_[1]:g}")
    found = (source for given in pictures for source in _found(given, (out, compare)))
    sources = [*dict.fromkeys(found)]  # each once
    is_one = len(pictures) == 1 and sources == pictures and not (out is not None and out.is_dir())
    if compare is not None:
        need_matplotlib()
    if report is not None:
        if report == STREAM:
            fail("a report is a file: give its name with --report")
        check_output(report, force or (not is_one and _is_page(report)), (".html",))
    if is_one:
        task = _single(sources[0], out, compare, force)
        return Plan([replace(task, range=range_)], None, report)
    if STREAM in sources:
        fail("the standard input can only be restored alone")
    if out is None or out == STREAM:
        which = "result" if len(sources) == 1 else f"{len(sources)} pictures"
        fail(f"say in which folder to write the {which}: -o FOLDER")
    outs, refused = _outputs(sources, out)
    plots: list[Path | None] = [None] * len(outs)
    if compare is not None:
        plots = [*_plots(compare, [*outs.values()])]
    every = [Task(*files, range_) for files in zip(outs, outs.values(), plots, strict=True)]
    tasks = [task for task in every if force or not task.out.exists()]
    for task in tasks:
        _check_plot(task, [*sources, *outs.values()], force)
    done = [task for task in every if task not in tasks]
    return Plan(tasks, out, report, compare, done, refused)


def _is_page(path: Path) -> bool:
    """Whether a file is a page of pictures, which is written anew when a folder is gone on with."""
    from smalto.cli.picture_report import TITLE

    if not path.is_file():
        return False
    with path.open("rb") as file:
        return f"<title>{TITLE}</title>".encode() in file.read(1000)


def _found(given: Path, results: tuple[Path | None, ...]) -> list[Path]:
    """The pictures that a file, folder or pattern stands for."""
    if given == STREAM or given.is_file():
        return [given]
    if given.is_dir():
        return _in_folder(given, {path.resolve() for path in results if path is not None})
    names = glob.glob(str(given)) if glob.has_magic(str(given)) else []  # noqa: PTH207 (any root)
    if not names:
        fail(f"there is no file {given}")
    return [Path(name) for name in sorted(names)]


def _in_folder(given: Path, results: set[Path]) -> list[Path]:
    """The pictures in a folder; say what else is in it, but for folders of results."""
    from smalto.image.reading import SUFFIXES

    inside = sorted(p for p in given.iterdir() if not p.name.startswith("."))
    files = [p for p in inside if p.is_file()]
    folders = [p.name for p in inside if p.is_dir() and p.resolve() not in results]
    found = [p for p in files if p.suffix.lower() in (*SUFFIXES, ".npy")]
    if not found:
        own = f"; folders in it are left out: {', '.join(folders)}" if folders else ""
        fail(f"there are no pictures ({', '.join(SUFFIXES)}, .npy) in {given}{own}")
    if others := sorted({p.suffix or p.name for p in files} - {p.suffix for p in found}):
        typer.echo(f"{given}: files that end in {', '.join(others)} are left out", err=True)
    if folders:
        typer.echo(f"{given}: folders in it are left out: {', '.join(folders)}", err=True)
    return found


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


def _outputs(sources: list[Path], folder: Path) -> tuple[dict[Path, Path], dict[Path, str]]:
    """Where to write the result of each picture, and which ones cannot be written, and why.

    Of two that would be the same file, that which has its name keeps it, and the other has its own
    ending before the new one, as in ``a.gif.png``.
    """
    from smalto.image.files.writing import KINDS

    if not folder.is_dir() and folder.suffix.lower() in KINDS:
        many = f"there are {len(sources)}"
        why = many if len(sources) > 1 else "results of a folder or pattern go to a folder"
        fail(f"{folder} is the name of one picture, but {why}: give a folder")
    names: dict[Path, str] = {}
    taken: dict[str, Path] = {}
    refused: dict[Path, str] = {}
    for source in sorted(sources, key=lambda source: source.name != _result_name(source)):
        if source.parent.resolve() == folder.resolve():
            fail(f"{folder} is the folder of {source.name}: write to another one")
        wanted = [_result_name(source), f"{source.name}{_ending(source)}"]
        free = [name for name in wanted if name.lower() not in taken]
        if free and (free[0] == wanted[0] or source.name != wanted[0]):
            names[source] = free[0]
            taken[free[0].lower()] = source
        else:
            refused[source] = (
                f"{source} and {taken[wanted[0].lower()]} would both be written to "
                f"{folder / wanted[0]}: restore them separately"
            )
    _make_folder(folder)
    return {source: folder / names[source] for source in sources if source in names}, refused


def _result_name(source: Path) -> str:
    return f"{source.stem}{_ending(source)}"


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"no pictures can be written to {folder}: {error.strerror or error}")
