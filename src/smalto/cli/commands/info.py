"""``smalto info``: describe a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from smalto.cli.errors import one_line, plain_errors
from smalto.cli.model_files import load_model


def info(
    model: Annotated[Path, typer.Argument(help="A model, or the checkpoint of a run.")],
) -> None:
    """Describe the contents of a model file.

    For example:

      smalto info model.safetensors
    """
    with plain_errors():
        learned, state = load_model(model)
    k, m = learned.D.shape
    lines: dict[str, Any] = {
        "file": f"{model}, {model.stat().st_size / 1e6:.1f} MB",
        "contents": "a model" if state is None else "a checkpoint: continue with learn --resume",
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
    energy = np.asarray(learned.info.get("use", ()), float)
    if energy.size == k and energy.sum() > 0:
        cumulated = np.cumsum(np.sort(energy)[::-1])
        half = int(np.searchsorted(cumulated, 0.5 * energy.sum())) + 1
        lines["use"] = (
            f"{half} atoms carry half of the energy of the codes, {np.sum(energy == 0)} are unused"
        )
    if names := learned.info.get("names", ()):
        some = ", ".join(one_line(str(name))[:30] for name in names[:5])
        lines["names"] = some if len(names) <= 5 else f"{some} and {len(names) - 5} more"
    for name, value in learned.info.items():
        if name != "use":
            lines.setdefault(name, value)
    width = max(map(len, lines))
    for name, value in lines.items():
        typer.echo(f"{name:<{width}}  {value}")
