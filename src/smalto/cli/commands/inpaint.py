"""``smalto denoise`` and ``smalto inpaint``: pictures mended with a dictionary of their own."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from smalto.checks import Array
from smalto.cli.common import (
    STREAM,
    Bar,
    Force,
    Seed,
    Threads,
    check_output,
    fail,
    need_matplotlib,
    plain_errors,
    read_input,
    say_if_compiling,
    write_figure,
    write_picture,
)

Picture = Annotated[Path, typer.Argument(help="The picture, or - for the standard input.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", help="The picture to write, or -.", show_default="NAME-restored.png"
    ),
]
Compare = Annotated[
    Path | None,
    typer.Option(help="Also draw before and after, with a zoom (.png).", show_default=False),
]
Dictionary = Annotated[
    Path | None,
    typer.Option(
        "--model",
        help="Use the atoms of this model: nothing is learned.",
        show_default="learned from the picture",
    ),
]
Atoms = Annotated[
    int | None, typer.Option(min=1, help="How many atoms are learned.", show_default=False)
]
Patch = Annotated[int | None, typer.Option(min=2, help="The side of a patch.", show_default=False)]


def denoise(
    picture: Picture,
    out: Out = None,
    sigma: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Standard deviation of the noise, in grey levels of the file (0 to 255).",
            show_default="estimated",
        ),
    ] = None,
    joint: Annotated[
        bool, typer.Option("--joint", help="Code similar patches together: better, and slower.")
    ] = False,
    model: Dictionary = None,
    atoms: Atoms = None,
    patch: Patch = None,
    compare: Compare = None,
    threads: Threads = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Remove noise from a picture.

    Example:

      smalto denoise noisy.png -o clean.png --compare before-after.png
    """
    from smalto.image import denoise as run
    from smalto.image import estimate_noise

    out = _outputs(picture, out, compare, force)
    with plain_errors():
        pixels = read_input(picture)
        axis = 2 if pixels.ndim == 3 else None
        if sigma is None:
            sigma = estimate_noise(pixels, channel_axis=axis)
            typer.echo(f"noise: standard deviation {sigma:.1f}", err=True)
        settings = _settings(model, atoms, patch, pixels)
        if joint:
            settings["joint"] = True
        clock = time.perf_counter()
        with say_if_compiling(), Bar() as bar:
            restored = run(
                pixels, sigma, channel_axis=axis, callbacks=(bar,), n_threads=threads,
                random_state=seed, **settings,
            )  # fmt: skip
        _write(out, restored, compare, pixels, clock)


def inpaint(
    picture: Picture,
    mask: Annotated[
        Path | None,
        typer.Option(
            help="A picture of the same size, not black where the other one is damaged.",
            show_default=False,
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="Instead: the colour of damaged pixels, as '#ff0000'.", show_default=False
        ),
    ] = None,
    tolerance: Annotated[
        int, typer.Option(min=0, max=255, help="How far from the key a channel may be.")
    ] = 0,
    out: Out = None,
    model: Dictionary = None,
    atoms: Atoms = None,
    patch: Patch = None,
    compare: Compare = None,
    threads: Threads = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Fill in what is missing from a picture: text over it, scratches, dead pixels.

    Examples
    --------
      smalto inpaint damaged.png --mask damage.png -o restored.png

      smalto inpaint scan.jpg --key '#ff0000' --tolerance 40 -o restored.png
    """
    from smalto.image import inpaint as run

    if (mask is None) == (key is None):
        fail("say where the damage is: with either --mask or --key")
    out = _outputs(picture, out, compare, force)
    with plain_errors():
        pixels = read_input(picture)
        if mask is not None:
            damaged = _mask(mask, pixels)
        else:
            damaged = _of_colour(str(key), tolerance, pixels)
        typer.echo(f"{100 * damaged.mean():.1f} % of the pixels are damaged", err=True)
        axis = 2 if pixels.ndim == 3 else None
        settings = _settings(model, atoms, patch, pixels)
        clock = time.perf_counter()
        with say_if_compiling(), Bar() as bar:
            restored = run(
                pixels, damaged, channel_axis=axis, callbacks=(bar,), n_threads=threads,
                random_state=seed, **settings,
            )  # fmt: skip
        _write(out, restored, compare, pixels, clock)


def _outputs(picture: Path, out: Path | None, compare: Path | None, force: bool) -> Path:
    if out is None:
        out = STREAM if picture == STREAM else picture.with_name(f"{picture.stem}-restored.png")
    check_output(out, force)
    if compare is not None:
        need_matplotlib()
        check_output(compare, force, (".png", ".svg", ".pdf"))
    return out


def _settings(
    model: Path | None, atoms: int | None, patch: int | None, pixels: Array
) -> dict[str, Any]:
    """What was said about the dictionary; what was not is left to the function."""
    settings: dict[str, Any] = {}
    if model is not None:
        from smalto import Model

        learned = Model.load(model)
        shape = learned.info.get("patch")
        if shape is None:
            fail(f"{model} was not learned from pictures")
        if (len(shape) == 3) != (pixels.ndim == 3):
            kinds = ("grey", "colour")
            fail(
                f"{model} was learned from {kinds[len(shape) == 3]} pictures, this one is "
                f"{kinds[pixels.ndim == 3]}"
            )
        return {"dictionary": learned.D, "patch_size": (shape[0], shape[1])}
    if atoms is not None:
        settings["n_atoms"] = atoms
    if patch is not None:
        settings["patch_size"] = patch
    return settings


def _mask(path: Path, pixels: Array) -> Array:
    from smalto.image import read_picture

    marks = read_picture(path)
    if marks.shape[:2] != pixels.shape[:2]:
        fail(
            f"{path} is {marks.shape[1]} x {marks.shape[0]}, the picture "
            f"{pixels.shape[1]} x {pixels.shape[0]}: they must have the same size"
        )
    return np.asarray(marks.reshape(*marks.shape[:2], -1).any(axis=2))


def _of_colour(key: str, tolerance: int, pixels: Array) -> Array:
    match = re.fullmatch(r"#?([0-9a-fA-F]{6})", key)
    if match is None:
        fail(f"--key must be a colour such as '#ff0000', got {key!r}")
    colour = np.array([int(match[1][i : i + 2], 16) for i in (0, 2, 4)])
    if pixels.dtype != np.uint8:
        fail("--key needs a picture of 8 bits per channel: give a --mask")
    channels = pixels if pixels.ndim == 3 else pixels[:, :, None]
    damaged = (np.abs(channels.astype(int) - colour) <= tolerance).all(axis=2)
    if not damaged.any():
        fail(f"no pixel has the colour {key}: try a larger --tolerance")
    return np.asarray(damaged)


def _write(out: Path, restored: Array, compare: Path | None, before: Array, clock: float) -> None:
    seconds = time.perf_counter() - clock
    write_picture(out, restored)
    wrote = [out]
    if compare is not None:
        from smalto.plot import before_after

        write_figure(compare, before_after(before, restored))
        wrote.append(compare)
    typer.echo(
        f"{restored.shape[1]} x {restored.shape[0]} pixels in {seconds:.1f} s; "
        f"wrote {' and '.join(map(str, wrote))}",
        err=out == STREAM,
    )
