"""Everything that a page shows, gathered from a result, a state, a model or an estimator."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from smalto.checks import Array, Rows
from smalto.coders.base import Coder
from smalto.learning._learn import Result
from smalto.learning.callbacks.log import Log
from smalto.learning.files.model import Model
from smalto.learning.memory.record import Record
from smalto.learning.memory.state import State
from smalto.learning.reported import Reported
from smalto.plot.histories import read_log
from smalto.reporting.html import shortened
from smalto.reporting.number_texts import duration, in_bytes

_LONGEST = 300  # characters of a setting

REASONS = {
    "epochs": "the number of passes over the data was reached",
    "steps": "the number of steps was reached",
    "seconds": "the time was up",
    "callback": "a callback ended it, as early stopping does",
    "interrupt": "it was interrupted (Ctrl-C)",
    "source": "the stream ended",
    "tol": "the cost no longer fell",
    "error": "it failed",
}


@dataclass(frozen=True)
class Facts:
    """What is known of a dictionary and of the run that it comes from; a log has no dictionary."""

    D: Array | None
    coder: Coder | None
    settings: dict[str, str]
    history: Sequence[Record] = ()
    stopped: str | None = None  # as in `Result.stopped`; None if that is unknown
    energy: Array | None = None  # of the codes, by atom
    last_used: Array | None = None  # number of samples since each atom was used
    memory: dict[str, str] = field(default_factory=dict)
    timings: dict[str, str] = field(default_factory=dict)
    patch_shape: tuple[int, ...] | None = None
    names: Sequence[str] | None = None
    prepare: Callable[[Rows], Rows] | None = None  # makes signals of samples
    failure: str | None = None


def facts_of(what: Any) -> Facts:
    """Return the facts about a result, a state, a model, a fitted estimator or a log."""
    if isinstance(what, Result):
        return facts_of_state(what.state, what.D, what.stopped)
    if isinstance(what, State):
        return facts_of_state(what)
    if isinstance(what, Model):
        return _facts_of_model(what)
    if isinstance(getattr(what, "state_", None), State):
        return _facts_of_estimator(what)
    if isinstance(what, Log):
        return _facts_of_log(what.path)
    if isinstance(what, str | os.PathLike):
        if Path(what).suffix == ".safetensors":
            message = (
                f"{what} is no log: load it first, with smalto.Model.load or smalto.State.load"
            )
            raise ValueError(message)
        return _facts_of_log(Path(what))
    if isinstance(what, Reported):
        check_is_fitted(what, "state_")
    message = (
        "a report is about a Result, a State, a Model, a fitted estimator such as "
        f"DictionaryLearning, or the log of a run, got {type(what).__name__}"
    )
    raise TypeError(message)


def facts_of_state(state: State, D: Array | None = None, stopped: str | None = None) -> Facts:
    """Return the facts about a run that has reached a state."""
    settings = {
        "coder": repr(state.coder),
        "constraint": repr(state.constraint),
        "learner": repr(state.learner),
        "replacement": repr(state.replacement),
        "continuation": None if state.continuation is None else repr(state.continuation),
        "seed": str(state.seed),
        "data set": None if state.n_rows is None else f"{state.n_rows:,} samples",
    }
    return Facts(
        D=state.D if D is None else D,
        coder=state.coder.fixed(),
        settings=_brief(settings),
        history=state.history,
        stopped=stopped,
        energy=state.energy(),
        last_used=state.samples - state.last_used,
        memory={"dictionary": _size(state.D), "statistics": _size_of_statistics(state)},
        timings={"learning": duration(state.seconds)},
    )


def _facts_of_model(model: Model) -> Facts:
    known = {"use", "patch", "names"}
    energy = np.asarray(model.info.get("use", ()), np.float64)
    settings = {"coder": repr(model.coder), "constraint": repr(model.constraint)}
    settings |= {str(key): str(value) for key, value in model.info.items() if key not in known}
    stopped = settings.pop("stopped", None)
    patch = model.info.get("patch")
    last = model.history[-1] if model.history else None
    return Facts(
        D=model.D,
        coder=model.coder,
        settings=_brief(settings),
        history=model.history,
        stopped=stopped,
        energy=energy if energy.shape == (len(model.D),) else None,
        memory={"dictionary": _size(model.D)},
        timings={} if last is None else {"learning": duration(last.seconds)},
        patch_shape=None if patch is None else tuple(int(side) for side in patch),
        names=model.info.get("names"),
    )


def _facts_of_log(path: Path) -> Facts:
    history = read_log(path)
    timings = {"learning": duration(history[-1].seconds)} if history else {}
    settings = _brief({"log": str(path)})
    return Facts(D=None, coder=None, settings=settings, history=history, timings=timings)


def _facts_of_estimator(estimator: Any) -> Facts:
    found = facts_of_state(estimator.state_, estimator.components_, vars(estimator).get("stopped_"))
    names = vars(estimator).get("feature_names_in_")
    settings = {"estimator": shortened(type(estimator).__name__), **found.settings}
    return Facts(
        **{
            **vars(found),
            "settings": settings,
            "names": None if names is None else [str(name) for name in names],
            "prepare": estimator._signals,
            # Components may stand in another order than the atoms of the state.
            "energy": _in_order_of(estimator, found.energy),
            "last_used": _in_order_of(estimator, found.last_used),
        }
    )


def _in_order_of(estimator: Any, values: Array | None) -> Array | None:
    """Return values of the atoms of the state in the order of the components."""
    D, components = estimator.state_.D, estimator.components_
    if values is None or np.array_equal(D, components):
        return values
    norms = np.linalg.norm(D, axis=1)
    products = np.abs(components @ D.T) / np.where(norms > 0, norms, 1.0)
    return np.asarray(values[products.argmax(axis=1)])


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of what computes, and the machine."""
    found = {"Python": platform.python_version()}
    for name in ("smalto", "numpy", "scipy", "numba", "scikit-learn"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    found["machine"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return found


def peak_memory() -> str | None:
    """Return the most memory that this process has had, if the system tells."""
    if sys.platform == "win32":
        return None
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return in_bytes(most * (1 if sys.platform == "darwin" else 1024))


def _brief(settings: Mapping[str, str | None]) -> dict[str, str]:
    return {
        name: shortened(value, _LONGEST) for name, value in settings.items() if value is not None
    }


def _size(array: Array) -> str:
    shape = " × ".join(f"{side:,}" for side in array.shape)
    return f"{in_bytes(array.nbytes)} ({shape}, {array.dtype})"


def _size_of_statistics(state: State) -> str:
    total = sum(part.A.nbytes + part.B.nbytes for part in state.stats)
    if state.store is not None:
        total += state.store.indices.nbytes + state.store.values.nbytes
    return in_bytes(total)
