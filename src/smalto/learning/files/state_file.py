"""Saving and loading of a `State`, with checks of every field."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from smalto.checks import Array, check_kind
from smalto.learning.files.as_json import from_json, to_json
from smalto.learning.files.container import read_file, write_file
from smalto.learning.files.state_checks import check_fields
from smalto.learning.memory.record import history_from_array, history_to_array
from smalto.learning.memory.state import State

KIND = "state"


def save_state(state: State, path: str | Path, keep: int = 1) -> None:
    """Save a state to a file; an existing one is replaced once the new one is complete.

    ``keep`` versions are kept, including the new one, as path, path.1, path.2, ...
    """
    arrays: dict[str, Array] = {"history": history_to_array(state.history)}
    settings = to_json(replace(state, history=[]), arrays, "state")
    write_file(Path(path), KIND, settings, arrays, keep)


def load_state(path: str | Path) -> State:
    """Load a state from a file; raise ValueError if it is damaged or inconsistent."""
    _, settings, arrays = read_file(Path(path), (KIND,))
    return state_from(Path(path), settings, arrays)


def state_from(path: Path, settings: Any, arrays: dict[str, Array]) -> State:
    """Return the checked state from the settings and arrays of a file."""
    try:
        state: State = from_json(settings, arrays)
        check_kind("the content", state, State, "a State")
        if "history" not in arrays:
            message = "it has no history"
            raise ValueError(message)  # noqa: TRY301 (reported like the others)
        for name, array in arrays.items():
            if array.size == 0 and name.endswith("_sum"):  # which would be replaced by zeros
                message = f"{name} is empty"
                raise ValueError(message)  # noqa: TRY301
        state.history = history_from_array(arrays["history"])
        check_fields(state)
    except (ValueError, TypeError) as error:
        message = f"{path} does not hold a valid state: {error}"
        raise ValueError(message) from error
    return state
