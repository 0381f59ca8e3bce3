"""``smalto inpaint``: fill in the damaged pixels of pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from smalto.checks import Array
from smalto.cli.errors import fail
from smalto.cli.inputs import open_picture
from smalto.cli.option_types import (
    Atoms,
    Compare,
    Force,
    Jobs,
    ModelFile,
    Patch,
    PictureFiles,
    ReportFile,
    RestoredFile,
    Seed,
    Threads,
)
from smalto.cli.picture_tasks import plan_of
from smalto.cli.restoration import Restored, Settings, dictionary_settings, restore_all

if TYPE_CHECKING:
    from smalto.image.files.picture_file import PictureFile


def inpaint(
    pictures: PictureFiles,
    mask: Annotated[
        Path | None,
        typer.Option(
            help="A picture of the same size that is black where the other one is undamaged; or a "
            "folder with such a picture for each, by name.",
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
    effort: Annotated[
        int,
        typer.Option(
            min=0,
            max=2,
            help="Quality against time: 0 codes patches one by one, 1 fills similar ones together, 2 "
            "does both, with more and larger groups.",
        ),
    ] = 1,
    out: RestoredFile = None,
    model: ModelFile = None,
    atoms: Atoms = None,
    patch: Patch = None,
    compare: Compare = None,
    report: ReportFile = None,
    jobs: Jobs = 1,
    threads: Threads = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Fill in the damaged pixels of pictures.

    They may be under text or scratches, or just missing. Say which ones with a mask, by their color,
    or by transparency. Known pixels, and all that the file says beside its pixels, stay as they are.

    For example:

      smalto inpaint damaged.png --mask damage.png -o restored.png

      smalto inpaint scan.jpg --mask-color red --mask-tolerance 40 -o restored.png

      smalto inpaint scans/ --mask masks/ -o restored/ --report restored.html
    """
    if (mask is not None) + (mask_color is not None) + mask_alpha != 1:
        fail("say where the damage is: with one of --mask, --mask-color and --mask-alpha")
    color = None if mask_color is None else _color(mask_color)
    if mask is not None and not mask.exists():
        fail(f"there is no file {mask}")
    plan = plan_of(pictures, out, compare, report, force)

    def damage(picture: PictureFile, source: Path) -> Array:
        if mask is not None:
            return _read_mask(mask, picture, source)
        if color is not None:
            return _has_color(picture, color, str(mask_color), mask_tolerance)
        return _is_transparent(picture, source)

    def restore(picture: PictureFile, settings: Settings) -> Restored:
        from smalto import image

        damaged = damage(picture, settings.source)
        about = f"{100 * damaged.mean():.1f} % of the pixels are damaged"
        settings.say(about)
        pixels = image.inpaint(
            picture.pixels,
            damaged,
            channel_axis=picture.channel_axis,
            effort=effort,
            callbacks=(settings.watch,),
            n_threads=settings.n_threads,
            random_state=seed,
            **dictionary_settings(model, atoms, patch, picture.pixels.ndim == 3),
        )
        # What was missing by its transparency is opaque now.
        alpha = np.full_like(picture.alpha, picture.range[1]) if mask_alpha else picture.alpha
        return Restored(pixels, alpha, about)

    restore_all(plan, restore, "inpainting", jobs, threads)


def _read_mask(path: Path, picture: PictureFile, source: Path) -> Array:
    """Read a mask, True where it is not black, for the pixels as they are stored."""
    from smalto.image.files.picture_file import turned_back

    if path.is_dir():
        found = sorted(p for p in path.iterdir() if p.stem == source.stem)
        if not found:
            message = f"{source}: there is no mask {source.stem}.* in {path}"
            raise ValueError(message)
        path = found[0]
    marks = open_picture(path).upright().pixels
    shown = picture.upright().pixels.shape[:2]
    if marks.shape[:2] != shown:
        message = (
            f"{path} is {marks.shape[1]} x {marks.shape[0]}, the picture {shown[1]} x {shown[0]}: "
            "they must have the same size"
        )
        raise ValueError(message)
    damaged = np.asarray(marks.reshape(*shown, -1).any(axis=2))
    return turned_back(damaged, picture.metadata.orientation)


def _color(text: str) -> Array:
    """Return a color, red, green and blue from 0 to 255."""
    from PIL import ImageColor

    try:
        return np.array(ImageColor.getrgb(text)[:3])
    except ValueError:
        fail(f"--mask-color must be a color such as red or '#ff0000', got {text!r}")


def _has_color(picture: PictureFile, color: Array, name: str, tolerance: float) -> Array:
    """A mask of the pixels that have a color."""
    low, high = picture.range
    pixels = picture.pixels if picture.pixels.ndim == 3 else picture.pixels[:, :, None]
    levels = (pixels.astype(np.float64) - low) * (255.0 / ((high - low) or 1.0))
    damaged = (np.abs(levels - color) <= tolerance + 1e-6).all(axis=2)
    if not damaged.any():
        message = f"no pixel has the color {name}: try a larger --mask-tolerance"
        raise ValueError(message)
    return np.asarray(damaged)


def _is_transparent(picture: PictureFile, source: Path) -> Array:
    """A mask of the pixels that are not opaque."""
    if picture.alpha is None:
        message = f"{source} has no alpha channel: use --mask or --mask-color"
        raise ValueError(message)
    most = 1.0 if picture.alpha.dtype.kind == "f" else np.iinfo(picture.alpha.dtype).max
    return np.asarray(picture.alpha < most)
