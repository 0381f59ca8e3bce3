"""``smalto show``: plot the atoms of a dictionary."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from smalto.cli.errors import fail, plain_errors
from smalto.cli.model_files import by_energy, load_model
from smalto.cli.option_types import Force
from smalto.cli.outputs import PLOT_SUFFIXES, check_output, need_matplotlib, write_figure


def show(
    model: Annotated[Path, typer.Argument(help="A model, or the checkpoint of a run.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The plot to write (.png, .svg, .pdf or .jpg).",
            show_default="the model's name with .png",
        ),
    ] = None,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain", help="Gray atoms, each scaled to its own range, instead of red and blue."
        ),
    ] = False,
    patch: Annotated[
        str | None,
        typer.Option(help="Shape of an atom, as 8x8 or 8x8x3.", show_default="as learned"),
    ] = None,
    unsorted: Annotated[
        bool, typer.Option("--unsorted", help="Keep the order of the dictionary.")
    ] = False,
    force: Force = False,
) -> None:
    """Plot the atoms of a dictionary, most used first.

    Positive values are red, negative ones blue, zero is white. Atoms of color patches are shown
    in their colors.

    For example:

      smalto show model.safetensors -o atoms.png
    """
    need_matplotlib()
    out = model.with_suffix(".png") if out is None else out
    check_output(out, force, PLOT_SUFFIXES)
    with plain_errors():
        from smalto.plot import dictionary_mosaic

        learned, _ = load_model(model)
        shape = _shape_of_atoms(patch, learned)
        energy = learned.info.get("use", ())
        order = None if unsorted or len(energy) != len(learned.D) else by_energy(energy)
        signed = not plain and len(shape) == 2
        write_figure(out, dictionary_mosaic(learned.D, shape, signed=signed, order=order))
    typer.echo(f"{len(learned.D)} atoms; wrote {out}")


def _shape_of_atoms(patch: str | None, model: Any) -> tuple[int, ...]:
    """The shape given by --patch, that of the patches learned from, or a square."""
    if patch is None:
        m = model.D.shape[1]
        side = math.isqrt(m)
        known = model.info.get("patch", (side, side) if side * side == m else None)
        if known is None:
            fail(f"atoms of {m} numbers have no known shape: give --patch, for example 1x{m}")
        return tuple(int(side) for side in known)
    try:
        return tuple(int(side) for side in patch.lower().split("x"))
    except ValueError:
        fail(f"--patch must be as 8x8 or 8x8x3, got {patch}")
