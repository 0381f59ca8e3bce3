"""Saving and loading of a `State`, with checks of every field."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from smalto.checks import Array, check_finite, check_kind, check_role
from smalto.coders.base import Coder
from smalto.constraints import Constraint
from smalto.learning.files.as_json import from_json, to_json
from smalto.learning.files.container import read_file, write_file
from smalto.learning.learners.base import Learner
from smalto.learning.memory.code_store import CodeStore
from smalto.learning.memory.record import history_from_array, history_to_array
from smalto.learning.memory.state import State
from smalto.learning.memory.statistics import Stats

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
        state.history = history_from_array(arrays["history"])
        _check(state)
    except (ValueError, TypeError) as error:
        message = f"{path} does not hold a valid state: {error}"
        raise ValueError(message) from error
    return state


def _check(state: State) -> None:
    """Raise unless the fields of a state fit together: the kernels do not check them."""
    check_role("coder", state.coder, Coder, "Lasso()")
    check_role("constraint", state.constraint, Constraint, "L2Ball()")
    check_role("learner", state.learner, Learner, "Online()")
    D = state.D
    _want("D", D, D.dtype, (None, None))
    if D.dtype not in (np.float32, np.float64) or 0 in D.shape:
        message = f"D is {D.dtype} of shape {D.shape}, expected float32 or float64 of shape (k, m)"
        raise ValueError(message)
    k, m = D.shape
    _want("last_used", state.last_used, np.int64, (k,))
    room = len(state.worst_cost)
    _want("worst", state.worst, D.dtype, (room, m))
    _want("worst_cost", state.worst_cost, np.float64, (room,))
    for number, part in enumerate(state.stats):
        _check_stats(f"stats[{number}]", part, k, m)
    for name in ("step", "epoch", "place", "samples", "seed"):
        if getattr(state, name) < 0:
            message = f"{name} is {getattr(state, name)}, expected at least 0"
            raise ValueError(message)
    if not (math.isfinite(state.seconds) and state.seconds >= 0):
        message = f"seconds is {state.seconds}, expected a finite number of at least 0"
        raise ValueError(message)
    if state.n_rows is not None and not 0 <= state.place <= state.n_rows:
        message = f"place is {state.place} of {state.n_rows} samples"
        raise ValueError(message)
    # The statistics must have the structure with which the learner begins.
    stats, store = state.learner.begin(D, state.n_rows)
    if len(stats) != len(state.stats) or (store is None) != (state.store is None):
        message = f"its statistics or stored codes are not those of {state.learner}"
        raise ValueError(message)
    if state.store is not None:
        _check_store(state.store, k, state.n_rows or 0, D.dtype)


def _check_stats(name: str, part: Stats, k: int, m: int) -> None:
    _want(f"{name}.A", part.A, np.float64, (k, k))
    _want(f"{name}.B", part.B, np.float64, (k, m))
    for key in ("constant", "weight", "scale"):
        if not math.isfinite(getattr(part, key)):
            message = f"{name}.{key} is {getattr(part, key)}, expected a finite number"
            raise ValueError(message)
    if not part.scale > 0:
        message = f"{name}.scale is {part.scale}, expected a number above 0"
        raise ValueError(message)


def _check_store(store: CodeStore, k: int, n_rows: int, dtype: Any) -> None:
    _want("store.counts", store.counts, np.int32, (n_rows,))
    _want("store.penalties", store.penalties, np.float64, (n_rows,))
    slots = store.indices.shape[-1]
    _want("store.indices", store.indices, np.int32, (n_rows, slots))
    _want("store.values", store.values, dtype, (n_rows, slots))
    if store.counts.min(initial=0) < -1 or store.counts.max(initial=0) > slots:
        message = f"store.counts are outside -1 ... {slots}"
        raise ValueError(message)
    if store.indices.min(initial=0) < 0 or store.indices.max(initial=0) >= k:
        message = f"store.indices name atoms outside 0 ... {k - 1}"
        raise ValueError(message)


def _want(name: str, array: Array, dtype: Any, shape: tuple[int | None, ...]) -> None:
    fits = array.ndim == len(shape) and all(
        size in (None, found) for size, found in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype != dtype:
        wanted = f"{np.dtype(dtype)} of shape {shape}"
        message = f"{name} is {array.dtype} of shape {array.shape}, expected {wanted}"
        raise ValueError(message)
    check_finite(name, array)
