"""``smalto denoise``: remove noise from pictures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

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

_FAR = 20.0  # times: then a given sigma is questioned


def denoise(
    pictures: PictureFiles,
    out: RestoredFile = None,
    sigma: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Standard deviation of the noise, in levels of the file: 0 to 255 with 8 bits, 0 to "
            "65535 with 16 bits, values as they are in files of floats.",
            show_default="estimated",
        ),
    ] = None,
    sure: Annotated[
        bool,
        typer.Option("--sure", help="Use --sigma even if it is far from what the picture shows."),
    ] = False,
    effort: Annotated[
        int,
        typer.Option(
            min=0,
            max=2,
            help="Quality against time: 0 codes patches one by one, 1 similar ones together, 2 takes "
            "more atoms and groups.",
        ),
    ] = 1,
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
    """Remove noise from pictures.

    The result has the bits, the alpha channel, the color profile, the EXIF and the resolution of the
    picture; what its format cannot keep is said. A folder is gone on with after Ctrl-C by the same
    command, and pictures that cannot be read do not stop it.

    For example:

      smalto denoise noisy.png -o clean.png --compare before-after.png

      smalto denoise photos/ -o clean/ --report clean.html
    """
    plan = plan_of(pictures, out, compare, report, force)

    def restore(picture: PictureFile, settings: Settings) -> Restored:
        from smalto import image

        level = _level(picture, sigma, sure, settings)
        pixels = image.denoise(
            picture.pixels,
            level,
            channel_axis=picture.channel_axis,
            effort=effort,
            callbacks=(settings.watch,),
            n_threads=settings.n_threads,
            random_state=seed,
            **dictionary_settings(model, atoms, patch, picture.pixels.ndim == 3, True),
        )
        return Restored(pixels, picture.alpha, f"noise {level:.3g}")

    restore_all(plan, restore, "denoising", jobs, threads)


def _level(picture: PictureFile, sigma: float | None, sure: bool, settings: Settings) -> float:
    """Return the standard deviation of the noise; refuse one that is far from the estimate."""
    from smalto import image

    if sigma is not None and (sure or sigma == 0):
        return sigma
    try:
        found = image.estimate_noise(picture.pixels, channel_axis=picture.channel_axis)
    except ValueError:
        if sigma is None:
            message = (
                f"{settings.source}: {picture.pixels.shape[1]} x {picture.pixels.shape[0]} pixels are "
                "too few to tell noise from content: give --sigma"
            )
            raise ValueError(message) from None
        return sigma
    low, high = picture.range
    if sigma is None:
        share = f", {20 * math.log10((high - low) / found):.1f} dB" if found > 0 else ""
        settings.say(f"noise: standard deviation {found:.3g} of {high - low:.6g}{share}")
        return found
    if found > 0 and not 1 / _FAR < sigma / found < _FAR:
        message = (
            f"--sigma {sigma:g} is far from the noise in {settings.source}, about {found:.3g} in "
            f"levels of the file ({low:.6g} to {high:.6g}): leave --sigma out, or add --sure"
        )
        raise ValueError(message)
    return sigma
