"""``smalto show`` and ``smalto info``: a model as a picture, and in words."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from smalto.cli.common import (
    Force,
    check_output,
    fail,
    need_matplotlib,
    plain_errors,
    use_of_atoms,
    write_figure,
)


def show(
    model: Annotated[Path, typer.Argument(help="A model, or a checkpoint of a run.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The picture.", show_default="the model's name, as .png"),
    ] = None,
    plain: Annotated[
        bool,
        typer.Option("--plain", help="Atoms as pictures, each in its own range, not red and blue."),
    ] = False,
    patch: Annotated[
        str | None,
        typer.Option(help="Height x width of an atom, as 8x8 or 8x8x3.", show_default="as learned"),
    ] = None,
    unsorted: Annotated[
        bool, typer.Option("--unsorted", help="Leave atoms in their order, not by their use.")
    ] = False,
    force: Force = False,
) -> None:
    """Draw the atoms of a dictionary: positive red, negative blue, zero white, most used first.

    Atoms of colour patches are drawn in their colours.

    Example:

      smalto show model.safetensors -o atoms.png
    """
    need_matplotlib()
    out = model.with_suffix(".png") if out is None else out
    check_output(out, force, (".png", ".svg", ".pdf"))
    with plain_errors():
        from smalto.plot import dictionary_mosaic

        learned, _ = _load(model)
        shape = _shape(patch, learned)
        order = None if unsorted else _by_use(learned)
        colour = len(shape) == 3
        axes = dictionary_mosaic(learned.D, shape, signed=not (plain or colour), order=order)
        write_figure(out, axes)
    typer.echo(f"{len(learned.D)} atoms; wrote {out}")


def info(model: Annotated[Path, typer.Argument(help="A model, or a checkpoint of a run.")]) -> None:
    """Say what a model file holds.

    Example:

      smalto info model.safetensors
    """
    with plain_errors():
        learned, state = _load(model)
    k, m = learned.D.shape
    lines = {
        "file": f"{model}, {model.stat().st_size / 1e6:.1f} MB",
        "holds": "a model" if state is None else "a checkpoint: smalto learn --resume goes on",
        "atoms": f"{k} of {m} numbers, {learned.D.dtype}",
        "coder": learned.coder,
        "constraint": learned.constraint,
        "density": f"{100 * np.mean(learned.D != 0):.1f} % of the entries of the atoms are nonzero",
    }
    if state is not None:
        lines["learner"] = state.learner
        lines["progress"] = (
            f"{state.step:,} steps, {state.samples:,} samples, epoch {state.epoch + 1}, "
            f"{state.seconds:.1f} s"
        )
    use = np.asarray(learned.info.get("use", ()), float)
    if use.size == k and use.sum() > 0:
        half = int(np.searchsorted(np.cumsum(np.sort(use)[::-1]), 0.5 * use.sum())) + 1
        lines["use"] = (
            f"{half} atoms carry half of the energy of the codes, {np.sum(use == 0)} none"
        )
    for name, value in learned.info.items():
        if name != "use":
            lines.setdefault(name, value)
    width = max(map(len, lines))
    for name, value in lines.items():
        typer.echo(f"{name:<{width}}  {value}")


def _load(path: Path) -> tuple[Any, Any]:
    """The model in a file, and the state if it is a checkpoint."""
    from smalto import Model, State
    from smalto.learning.files.container import read_file

    if not path.exists():
        fail(f"there is no file {path}")
    kind, _, _ = read_file(path, ("model", "state"))
    if kind == "model":
        return Model.load(path), None
    state = State.load(path)
    return Model.of(state, {"use": use_of_atoms(state).tolist()}), state


def _shape(patch: str | None, model: Any) -> tuple[int, ...]:
    if patch is None:
        m = model.D.shape[1]
        side = math.isqrt(m)
        known = model.info.get("patch", (side, side) if side * side == m else None)
        if known is None:
            fail(f"how are {m} numbers to be drawn? Give --patch, as 1x{m} or any height x width")
        return tuple(int(side) for side in known)
    try:
        return tuple(int(side) for side in patch.lower().split("x"))
    except ValueError:
        fail(f"--patch must be as 8x8 or 8x8x3, got {patch}")


def _by_use(model: Any) -> Any:
    use = np.asarray(model.info.get("use", ()), float)
    return np.argsort(-use, kind="stable") if use.size == len(model.D) else None
