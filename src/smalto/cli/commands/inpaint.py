"""``smalto inpaint``: fill in the damaged pixels of pictures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smalto.checks import Array
from smalto.cli.errors import fail
from smalto.cli.films import check_film_options, is_film, restore_film
from smalto.cli.masks import (
    WHERE,
    Color,
    grown,
    has_color,
    is_nan,
    is_transparent,
    looks_inverted,
    mask_of_frames,
    named_color,
    opaque,
    read_mask,
)
from smalto.cli.option_types import (
    Atoms,
    Compare,
    Force,
    Jobs,
    ModelFile,
    Patch,
    PictureFiles,
    Range,
    ReportFile,
    RestoredFile,
    Seed,
    Threads,
)
from smalto.cli.picture_tasks import plan_of
from smalto.cli.restoration import (
    Restored,
    Settings,
    check_values,
    dictionary_settings,
    naming_options,
    restore_all,
)

if TYPE_CHECKING:
    from smalto.image.files.picture_file import PictureFile

_GROW = 2  # pixels around the damage of a film: colors, of half the resolution, are spoilt there


def inpaint(
    pictures: PictureFiles,
    mask: Annotated[
        Path | None,
        typer.Option(
            help="A picture of the same size that is black or clear where the other one is undamaged; "
            "or a folder with such a picture for each, by name. For a film, such a picture for all "
            "frames, or a film that is darker than middle gray there.",
            show_default=False,
        ),
    ] = None,
    mask_color: Annotated[
        str | None,
        typer.Option(
            help="Alternatively, the color of damaged pixels, as red or '#ff0000'.",
            show_default=False,
        ),
    ] = None,
    mask_tolerance: Annotated[
        float,
        typer.Option(
            min=0, max=255, help="Largest difference from that color in any channel, of 255."
        ),
    ] = 0,
    mask_alpha: Annotated[
        bool,
        typer.Option("--mask-alpha", help="Alternatively, pixels that are not opaque are damaged."),
    ] = False,
    mask_grow: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Pixels that are at most this far from damaged ones count as damaged: colors next to "
            "damage are spoilt in JPEG files and films.",
            show_default="0 for pictures, 2 for films",
        ),
    ] = None,
    effort: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=2,
            help="1 fills similar patches together, the fastest way; 2 codes patches, then fills more "
            "and larger groups; 0 only codes patches, one by one, over learned atoms.",
            show_default="1",
        ),
    ] = None,
    out: RestoredFile = None,
    model: ModelFile = None,
    atoms: Atoms = None,
    patch: Patch = None,
    range_: Range = None,
    compare: Compare = None,
    report: ReportFile = None,
    jobs: Jobs = 1,
    threads: Threads = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Fill in the damaged pixels of pictures, or of a film.

    They may be under text or scratches, or just missing. Say which ones with a mask, by their color,
    or by transparency; in pictures of floats they may be NaN. Known pixels, and all that the file
    says beside its pixels, stay as they are.

    For example:

      smalto inpaint damaged.png --mask damage.png -o restored.png

      smalto inpaint scan.jpg --mask-color red --mask-tolerance 40 -o restored.png

      smalto inpaint scans/ --mask masks/ -o restored/ --report restored.html

      smalto inpaint film.mp4 --mask logo.png -o restored.mp4
    """
    is_a_film = any(is_film(picture) for picture in pictures)
    given = (mask is not None) + (mask_color is not None) + mask_alpha
    if given > 1 or (is_a_film and not given):
        fail(WHERE)
    if mask_tolerance and mask_color is None:
        fail("--mask-tolerance belongs to --mask-color: leave it out, or say which color")
    color = None if mask_color is None else named_color(mask_color, mask_tolerance)
    if mask is not None and not mask.exists():
        fail(f"there is no file {mask}")
    if is_a_film:
        only_pictures = {
            "--effort": effort is not None, "--model": model, "--atoms": atoms, "--patch": patch,
            "--compare": compare, "--report": report, "--jobs": jobs > 1, "--range": range_,
        }  # fmt: skip
        check_film_options(pictures, only_pictures)
        grow = _GROW if mask_grow is None else mask_grow
        _fill_film(pictures[0], out, force, mask, color, grow, threads)
        return
    plan = plan_of(pictures, out, compare, report, force, range_)

    def damage(picture: PictureFile, source: Path) -> Array:
        if mask is not None:
            return read_mask(mask, picture, source)
        if color is not None:
            return has_color(picture, color)
        return is_transparent(picture, source) if mask_alpha else is_nan(picture)

    def restore(picture: PictureFile, settings: Settings) -> Restored:
        from smalto import image

        damaged = grown(damage(picture, settings.source), mask_grow or 0)
        about = f"{100 * damaged.mean():.1f} % of the pixels are damaged"
        settings.say(about)
        if not damaged.any():
            marks = "no pixel is transparent" if mask_alpha else "the mask marks no pixel"
            settings.say(f"{marks}: the picture is written as it was")
        elif mask is not None and looks_inverted(damaged):
            settings.say(
                "is the mask inverted? It must be black where the picture is undamaged, but most "
                "of it is not"
            )
        check_values(picture, settings.source, "mark them as damaged, too", damaged)
        with naming_options():
            pixels = image.inpaint(
                picture.pixels,
                damaged,
                channel_axis=picture.channel_axis,
                effort=1 if effort is None else effort,
                callbacks=(settings.watch,),
                n_threads=settings.n_threads,
                random_state=seed,
                **dictionary_settings(model, atoms, patch, picture.pixels.ndim == 3),
            )
        # What was missing by its transparency is opaque now.
        alpha = opaque(picture.alpha) if mask_alpha else picture.alpha
        return Restored(pixels, alpha, about)

    restore_all(plan, restore, "inpainting", jobs, threads)


def _fill_film(
    source: Path,
    out: Path | None,
    force: bool,
    mask: Path | None,
    color: Color | None,
    grow: int,
    threads: int | None,
) -> None:
    """Fill in the pixels of a film that are marked or have a color or, without both, are clear."""
    shares: list[float] = []  # of damaged pixels, for each frame

    def restore(frames: Iterator[Array]) -> Iterator[Array]:
        from smalto.image import inpaint_video

        mark = mask_of_frames(source, mask, color)

        def marked(frame: Array) -> Array:
            damaged = grown(mark(frame), grow)
            shares.append(float(damaged.mean()))
            return damaged

        frames, again = tee(frames)  # each is asked for a frame, then for its mask
        colors = (frame[:, :, :3] for frame in frames)
        yield from inpaint_video(colors, map(marked, again), channel_axis=2, n_threads=threads)
        if not any(shares):
            message = f"no pixel of {source} is damaged" if color is None else color.not_found()
            raise ValueError(message)

    restore_film(source, out, force, "inpainting", restore, layout="rgba")
    typer.echo(f"{100 * sum(shares) / len(shares):.1f} % of the pixels were damaged", err=True)
