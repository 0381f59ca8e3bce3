"""``smalto denoise``: remove noise from a picture."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from smalto.cli.errors import plain_errors
from smalto.cli.inputs import open_picture
from smalto.cli.option_types import (
    Atoms,
    Compare,
    Force,
    ModelFile,
    Patch,
    PictureFile,
    RestoredFile,
    Seed,
    Threads,
)
from smalto.cli.restoration import check_outputs, dictionary_settings, write_restored


def denoise(
    picture: PictureFile,
    out: RestoredFile = None,
    sigma: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Standard deviation of the noise, in gray levels of the file (0 to 255).",
            show_default="estimated",
        ),
    ] = None,
    joint: Annotated[
        bool, typer.Option("--joint", help="Code similar patches together: better, but slower.")
    ] = False,
    model: ModelFile = None,
    atoms: Atoms = None,
    patch: Patch = None,
    compare: Compare = None,
    threads: Threads = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Remove noise from a picture.

    For example:

      smalto denoise noisy.png -o clean.png --compare before-after.png
    """
    from smalto import image
    from smalto.learning import Progress

    out = check_outputs(picture, out, compare, force)
    with plain_errors():
        pixels = open_picture(picture)
        channel_axis = 2 if pixels.ndim == 3 else None
        if sigma is None:
            sigma = image.estimate_noise(pixels, channel_axis=channel_axis)
            typer.echo(f"noise: standard deviation {sigma:.1f}", err=True)
        settings = dictionary_settings(model, atoms, patch, pixels)
        started = time.perf_counter()
        restored = image.denoise(
            pixels,
            sigma,
            channel_axis=channel_axis,
            joint=joint,
            callbacks=(Progress(),),
            n_threads=threads,
            random_state=seed,
            **settings,
        )
        write_restored(out, restored, compare, pixels, started)
