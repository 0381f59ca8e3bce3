"""What the commands ``denoise`` and ``inpaint`` share."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import typer

from smalto.checks import Array
from smalto.cli.errors import fail
from smalto.cli.outputs import (
    PLOT_SUFFIXES,
    STREAM,
    check_output,
    need_matplotlib,
    write_figure,
    write_picture,
)


def check_outputs(picture: Path, out: Path | None, compare: Path | None, force: bool) -> Path:
    """Fail if an output cannot be written; return the path of the restored picture."""
    if out is None:
        out = STREAM if picture == STREAM else picture.with_name(f"{picture.stem}-restored.png")
    check_output(out, force)
    if compare is not None:
        need_matplotlib()
        check_output(compare, force, PLOT_SUFFIXES)
    return out


def dictionary_settings(
    model: Path | None, atoms: int | None, patch: int | None, pixels: Array
) -> dict[str, Any]:
    """Arguments for the dictionary; those not given on the command line are left out."""
    if model is not None:
        return _settings_of_model(model, pixels)
    settings: dict[str, Any] = {}
    if atoms is not None:
        settings["n_atoms"] = atoms
    if patch is not None:
        settings["patch_size"] = patch
    return settings


def _settings_of_model(path: Path, pixels: Array) -> dict[str, Any]:
    from smalto import Model

    learned = Model.load(path)
    shape = learned.info.get("patch")
    if shape is None:
        fail(f"{path} was not learned from pictures")
    if (len(shape) == 3) != (pixels.ndim == 3):
        kinds = ("gray", "color")
        fail(
            f"{path} was learned from {kinds[len(shape) == 3]} pictures, but this one is "
            f"{kinds[pixels.ndim == 3]}"
        )
    return {"D": learned.D, "patch_size": (shape[0], shape[1])}


def write_restored(
    out: Path, restored: Array, compare: Path | None, before: Array, started: float
) -> None:
    """Write the result and the comparison, and report the time since ``started``."""
    seconds = time.perf_counter() - started
    write_picture(out, restored)
    written = [out]
    if compare is not None:
        from smalto.plot import before_after

        write_figure(compare, before_after(before, restored))
        written.append(compare)
    typer.echo(
        f"{restored.shape[1]} x {restored.shape[0]} pixels in {seconds:.1f} s; "
        f"wrote {' and '.join(map(str, written))}",
        err=out == STREAM,
    )
