"""What the commands ``denoise`` and ``inpaint`` share: one picture after another, to its file."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from smalto.checks import Array
from smalto.cli.ctrl_c import INTERRUPTED, comes_from_ctrl_c
from smalto.cli.errors import explain, fail, one_line, plain_errors
from smalto.cli.inputs import open_picture
from smalto.cli.outputs import STREAM, write_figure, write_whole
from smalto.cli.picture_progress import PictureProgress, Watch
from smalto.cli.picture_tasks import Plan, Task
from smalto.warn import warnings_to

if TYPE_CHECKING:
    from smalto.cli.picture_report import Shown
    from smalto.image.files.picture_file import PictureFile


@dataclass(frozen=True)
class Settings:
    """What a restoration may know beside its picture."""

    source: Path
    watch: Watch
    n_threads: int | None
    say: Callable[[str], None]  # writes a line about the picture
    with_page: bool  # the picture will be shown in a page


@dataclass(frozen=True)
class Done:
    """What is known of a picture that has been restored."""

    about: str
    seconds: float
    shown: Shown | None  # in a page


@dataclass(frozen=True)
class Restored:
    """The pixels of a restored picture, its opacity, and what to say about it."""

    pixels: Array
    alpha: Array | None
    about: str


Restore = Callable[["PictureFile", Settings], Restored]
_OPTIONS = {  # for what is said of arguments in Python
    "pass n_atoms": "give --atoms",
    "patch_size": "--patch",
    "pass sigma": "give --sigma",
}


def restore_all(plan: Plan, restore: Restore, label: str, jobs: int, threads: int | None) -> None:
    """Restore the pictures of a plan; exit with 1 if one of them could not be."""
    if plan.folder is None:
        _restore_single(plan, restore, label, threads)
    else:
        _restore_many(plan, restore, label, jobs, threads)


def _restore_single(plan: Plan, restore: Restore, label: str, threads: int | None) -> None:
    (task,) = plan.tasks
    with plain_errors("stopped: nothing was written"), PictureProgress(label, 1) as progress:
        watch = progress.watch(task.source)
        with_page = plan.report is not None
        done = _restore(
            task, restore, Settings(task.source, watch, threads, progress.say, with_page)
        )
        _write_page(plan, [done], {})
    written = [path for path in (task.out, task.compare, plan.report) if path is not None]
    typer.echo(
        f"{done.about}, in {done.seconds:.1f} s; wrote {' and '.join(map(str, written))}",
        err=task.out == STREAM,
    )


def _restore_many(plan: Plan, restore: Restore, label: str, jobs: int, threads: int | None) -> None:
    from smalto.threads import resolve_threads

    started = time.perf_counter()
    if plan.done:
        typer.echo(
            f"{_count(len(plan.done))} in {plan.folder} already: skipped (--force does them again)",
            err=True,
        )
    jobs = max(1, min(jobs, len(plan.tasks)))
    per_job = max(1, resolve_threads(threads) // jobs)
    progress = PictureProgress(label, len(plan.tasks))
    batch = _Batch(progress, restore, per_job, plan.report is not None)
    for source, why in plan.refused.items():
        batch.refuse(source, why)
    stopped = not batch.run(plan.tasks, jobs)
    with plain_errors():
        if not stopped:
            _plot_earlier(plan)
        _write_page(plan, batch.done, batch.failed)
    seconds = time.perf_counter() - started
    failures = f", {len(batch.failed)} could not be restored" if batch.failed else ""
    written = [path for path in (plan.folder, plan.plots, plan.report) if path is not None]
    typer.echo(
        f"{_count(len(batch.done))} in {seconds:.1f} s{failures}; "
        f"wrote to {' and '.join(map(str, written))}"
    )
    if stopped:
        typer.echo("smalto: stopped: the same command goes on with the other pictures", err=True)
        raise typer.Exit(INTERRUPTED)
    if batch.failed:
        raise typer.Exit(1)


def _count(number: int) -> str:
    return "1 picture" if number == 1 else f"{number} pictures"


def _write_page(plan: Plan, done: list[Done], failed: dict[Path, str]) -> None:
    """Write a page of all pictures, also of those that have been restored earlier."""
    if plan.report is None:
        return
    from smalto.cli.picture_report import write_page

    shown = [one.shown for one in done if one.shown is not None]
    failed = dict(failed)
    for task in plan.done:
        try:
            shown.append(_shown_from_disk(task))
        except (ValueError, OSError) as error:
            failed[task.source] = f"was restored earlier, but cannot be shown: {explain(error)}"
            typer.echo(f"smalto: {task.source} {one_line(failed[task.source])}", err=True)
    write_page(plan.report, shown, failed)


def _plot_earlier(plan: Plan) -> None:
    """Draw the plots that are missing of pictures that have been restored earlier."""
    for task in plan.done:
        if task.compare is None or task.compare.exists():
            continue
        from smalto.plot import before_after

        try:
            _, *images = _from_disk(task)
            write_figure(task.compare, before_after(*images))
        except (ValueError, OSError) as error:
            why = f"was restored earlier, but cannot be plotted: {explain(error)}"
            typer.echo(f"smalto: {task.source} {one_line(why)}", err=True)


def _shown_from_disk(task: Task) -> Shown:
    """A picture that has been restored earlier, as a page shows it."""
    from smalto.cli.picture_report import show

    picture, *images = _from_disk(task)
    size = f"{picture.pixels.shape[1]} x {picture.pixels.shape[0]} pixels"
    return show(str(task.source), f"{size}, {picture.describe()}, restored earlier", *images)


def _from_disk(task: Task) -> tuple[PictureFile, Array, Array]:
    """A picture that has been restored earlier, and how it is shown before and after."""
    from smalto.image.files.writing import as_shown

    before, after = open_picture(task.source), open_picture(task.out)
    before = replace(before, given_range=task.range)
    same = before.pixels.dtype == after.pixels.dtype
    images = as_shown(before), as_shown(after, before.range if same else None)
    if images[0].shape != images[1].shape:
        message = f"{task.out} has other sides or colors"
        raise ValueError(message)
    return before, *images


class _Batch:
    """Many pictures: those that fail are answered in one line each, and the rest is done."""

    def __init__(
        self, progress: PictureProgress, restore: Restore, n_threads: int, with_page: bool
    ) -> None:
        self.progress, self.restore = progress, restore
        self.n_threads, self.with_page = n_threads, with_page
        self.done: list[Done] = []
        self.failed: dict[Path, str] = {}
        self._stop = threading.Event()

    def run(self, tasks: list[Task], jobs: int) -> bool:
        """Restore all pictures; return False if Ctrl-C was pressed."""
        try:
            with self.progress:
                for task in self._finished(tasks, jobs):
                    self.progress.advance(task.source)
        except BaseException as error:
            if not comes_from_ctrl_c(error):
                raise
            return False
        return True

    def _finished(self, tasks: list[Task], jobs: int) -> Iterator[Task]:
        """Yield each picture when it is done or has failed."""
        if jobs == 1:
            for task in tasks:
                self._try(task)
                yield task
            return
        with ThreadPoolExecutor(jobs) as pool:
            waiting = {pool.submit(self._try, task): task for task in tasks}
            try:
                while waiting:
                    for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                        future.result()
                        yield waiting.pop(future)
            except BaseException:
                self._stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _try(self, task: Task) -> None:
        def say(text: str) -> None:
            self.progress.say(f"{task.source.name}: {text}")

        watch = self.progress.watch(task.source, self._stop.is_set)
        settings = Settings(task.source, watch, self.n_threads, say, self.with_page)
        try:
            self.done.append(_restore(task, self.restore, settings))
        except BaseException as error:
            known = None if comes_from_ctrl_c(error) else explain(error)
            if known is None:
                raise
            self.refuse(task.source, known)

    def refuse(self, source: Path, why: str) -> None:
        """Say why a picture is not restored."""
        name = "" if str(source) in why else f"{source}: "
        self.failed[source] = one_line(why)
        self.progress.say(f"smalto: {name}{one_line(why)}")


def _restore(task: Task, restore: Restore, settings: Settings) -> Done:
    """Read a picture, restore it and write it; files appear when they are complete."""
    from smalto.image.files.writing import KINDS, as_shown, fit_to, kind_of, write_picture_file
    from smalto.image.stages import watched

    started = time.perf_counter()
    picture = replace(open_picture(task.source), given_range=task.range)
    if task.out == STREAM:
        kind = picture.kind if picture.kind in KINDS.values() else "PNG"
    else:
        kind = kind_of(task.out)
    range_ = picture.range
    for note in fit_to(picture, kind, range_).notes:  # before the work
        settings.say(note)
    with watched(settings.watch.tell), warnings_to(lambda text: settings.say(f"warning: {text}")):
        restored = restore(picture, settings)
    pixels = restored.pixels
    if pixels.dtype.kind == "f":
        pixels = np.clip(pixels, *picture.limits)
    after = replace(picture, pixels=pixels, alpha=restored.alpha)
    fitted = fit_to(after, kind, range_)
    settings.watch.check()
    write_whole(task.out, lambda file: write_picture_file(file, fitted))
    size = f"{pixels.shape[1]} x {pixels.shape[0]} pixels"
    about = f"{size}, {picture.describe()}, {restored.about}"
    shown = None
    if task.compare is not None or settings.with_page:
        images = as_shown(picture, range_), as_shown(after, range_)
        if task.compare is not None:
            from smalto.plot import before_after

            write_figure(task.compare, before_after(*images))
        if settings.with_page:
            from smalto.cli.picture_report import show

            shown = show(str(task.source), about, *images)
    return Done(about, time.perf_counter() - started, shown)


def check_values(
    picture: PictureFile, source: Path, way_out: str, damaged: Array | None = None
) -> None:
    """Raise ValueError, with a way out, if values that are not damaged are no numbers."""
    from smalto.image.checks import check_pixels_finite

    try:
        check_pixels_finite(picture.pixels, str(source), damaged)
    except ValueError as error:
        message = f"{error}: {way_out}"
        raise ValueError(message) from None


@contextmanager
def naming_options() -> Iterator[None]:
    """Let errors name options of the command in place of the arguments in Python."""
    try:
        yield
    except ValueError as error:
        known = str(error)
        for words, option in _OPTIONS.items():
            known = known.replace(words, option)
        raise ValueError(known) from error


def dictionary_settings(
    model: Path | None, atoms: int | None, patch: int | None, is_color: bool, gray_too: bool = False
) -> dict[str, Any]:
    """Arguments for a dictionary; those not given are left out.

    A model must be of color patches or gray ones, as the picture; or gray for both (``gray_too``).
    """
    if model is not None:
        return _settings_of_model(model, is_color, gray_too)
    settings: dict[str, Any] = {}
    if atoms is not None:
        settings["n_atoms"] = atoms
    if patch is not None:
        settings["patch_size"] = patch
    return settings


def _settings_of_model(path: Path, is_color: bool, gray_too: bool) -> dict[str, Any]:
    from smalto import Model

    learned = Model.load(path)
    shape = learned.info.get("patch")
    if shape is None:
        fail(f"{path} was not learned from pictures")
    if (len(shape) == 3) != is_color and not (gray_too and len(shape) == 2):
        kinds = ("gray", "color")
        message = (
            f"{path} was learned from {kinds[len(shape) == 3]} patches, but {kinds[is_color]} ones "
            "are needed here"
        )
        raise ValueError(message)
    return {"D": learned.D, "patch_size": (shape[0], shape[1])}
