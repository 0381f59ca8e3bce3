"""Models and checkpoints, and what commands keep in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.cli.errors import fail
from smalto.learning.memory.state import State

_HASHED = 1 << 30  # bytes of a file that are hashed, at most


def load_model(path: Path) -> tuple[Any, State | None]:
    """Load the model in a file, and the state if the file is a checkpoint."""
    from smalto import Model
    from smalto.learning.files.container import read_file

    if not path.exists():
        fail(f"there is no file {path}")
    kind, _, _ = read_file(path, ("model", "state"))
    if kind == "model":
        return Model.load(path), None
    state = State.load(path)
    return Model.of(state, {"use": state.energy().tolist()}), state


def about_run(result: Any, data: list[Path]) -> dict[str, Any]:
    """Return what a model records about the run that it comes from."""
    state = result.state
    about = {
        "data": ", ".join(map(str, data)),
        "samples": state.samples,
        "learner": repr(state.learner),
        "seed": state.seed,
        "stopped": result.stopped,
        "use": state.energy().tolist(),
    }
    if len(data) == 1 and data[0].is_file() and data[0].stat().st_size <= _HASHED:
        from smalto.reporting.data_facts import hash_of_file

        about["sha256"] = hash_of_file(data[0])
    return about


def by_energy(energy: Any) -> Array:
    """The numbers of atoms in order of decreasing energy."""
    return np.argsort(-np.asarray(energy, float), kind="stable")
