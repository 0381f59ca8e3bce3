"""Models and checkpoints, and what commands keep in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.cli.errors import fail
from smalto.learning.memory.state import State


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
    return Model.of(state, {"use": energy_of_atoms(state).tolist()}), state


def energy_of_atoms(state: State) -> Array:
    """Sum of the squared coefficients of each atom in the codes so far."""
    energy = np.zeros(len(state.D))
    for part in state.stats:
        energy += part.scale * part.A.diagonal()
    return energy


def by_energy(energy: Any) -> Array:
    """The numbers of atoms in order of decreasing energy."""
    return np.argsort(-np.asarray(energy, float), kind="stable")
