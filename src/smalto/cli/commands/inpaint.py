"""``smalto inpaint``: fill in the damaged pixels of a picture."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from smalto.checks import Array
from smalto.cli.errors import fail, plain_errors
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


def inpaint(
    picture: PictureFile,
    mask: Annotated[
        Path | None,
        typer.Option(
            help="A picture of the same size that is black where the other one is undamaged.",
            show_default=False,
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="Alternatively, the color of damaged pixels, as '#ff0000'.", show_default=False
        ),
    ] = None,
    key_tolerance: Annotated[
        int,
        typer.Option(min=0, max=255, help="Largest difference from the key color in any channel."),
    ] = 0,
    out: RestoredFile = None,
    model: ModelFile = None,
    atoms: Atoms = None,
    patch: Patch = None,
    compare: Compare = None,
    threads: Threads = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Fill in the damaged pixels of a picture.

    They may be under text or scratches, or just missing. Say which ones with a mask or a key color.

    For example:

      smalto inpaint damaged.png --mask damage.png -o restored.png

      smalto inpaint scan.jpg --key '#ff0000' --key-tolerance 40 -o restored.png
    """
    from smalto import image
    from smalto.learning import Progress

    if (mask is None) == (key is None):
        fail("say where the damage is: with either --mask or --key")
    out = check_outputs(picture, out, compare, force)
    with plain_errors():
        pixels = open_picture(picture)
        if mask is not None:
            damaged = _read_mask(mask, pixels)
        else:
            damaged = _has_color(pixels, str(key), key_tolerance)
        typer.echo(f"{100 * damaged.mean():.1f} % of the pixels are damaged", err=True)
        settings = dictionary_settings(model, atoms, patch, pixels)
        started = time.perf_counter()
        restored = image.inpaint(
            pixels,
            damaged,
            channel_axis=2 if pixels.ndim == 3 else None,
            callbacks=(Progress(),),
            n_threads=threads,
            random_state=seed,
            **settings,
        )
        write_restored(out, restored, compare, pixels, started)


def _read_mask(path: Path, pixels: Array) -> Array:
    """Read a picture as a mask: True where it is not black."""
    from smalto.image import read_picture

    marks = read_picture(path)
    if marks.shape[:2] != pixels.shape[:2]:
        fail(
            f"{path} is {marks.shape[1]} x {marks.shape[0]}, the picture "
            f"{pixels.shape[1]} x {pixels.shape[0]}: they must have the same size"
        )
    return np.asarray(marks.reshape(*marks.shape[:2], -1).any(axis=2))


def _has_color(pixels: Array, key: str, tolerance: int) -> Array:
    """A mask of the pixels that have the key color; fail if there are none."""
    match = re.fullmatch(r"#?([0-9a-fA-F]{6})", key)
    if match is None:
        fail(f"--key must be a color such as '#ff0000', got {key!r}")
    color = np.array([int(match[1][i : i + 2], 16) for i in (0, 2, 4)])
    if pixels.dtype != np.uint8:
        fail("--key needs a picture with 8 bits per channel: use --mask instead")
    channels = pixels if pixels.ndim == 3 else pixels[:, :, None]
    damaged = (np.abs(channels.astype(int) - color) <= tolerance).all(axis=2)
    if not damaged.any():
        fail(f"no pixel has the color {key}: try a larger --key-tolerance")
    return np.asarray(damaged)
