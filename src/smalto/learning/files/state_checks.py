"""Checks of every field of a loaded state: the kernels that use them check nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from smalto.checks import Array, check_finite, check_role
from smalto.coders.base import Coder
from smalto.constraints import Constraint
from smalto.learning.learners.base import Learner
from smalto.learning.memory.code_store import CodeStore
from smalto.learning.memory.state import State
from smalto.learning.memory.statistics import SMALLEST_SCALE, Stats

_LARGEST = 2**53  # counts up to which float64, in which histories are stored, is exact
_ROUNDING = 1e-6  # share of the largest entry by which sums may be below zero


def check_fields(state: State) -> None:
    """Raise unless the fields of a state are valid and fit together."""
    check_problem(state.coder, state.constraint, state.D)
    for name in ("eps", "max_nonzeros", "radius"):
        value = getattr(state.coder, name, None)
        if isinstance(value, tuple):
            _refuse(f"{name} of the coder", value, "one number for all signals")
    check_role("learner", state.learner, Learner, "Online()")
    k, m = state.D.shape
    _want("last_used", state.last_used, np.int64, (k,))
    room = len(state.worst_cost) if state.worst_cost.ndim else 0
    _want("worst", state.worst, state.D.dtype, (room, m))
    _want("worst_cost", state.worst_cost, np.float64, (room,))
    if room == 0:
        _refuse("worst_cost", "empty", "at least one cost")
    for name in ("step", "epoch", "place", "samples"):
        _within(name, getattr(state, name), 0, _LARGEST)
    _within("seed", state.seed, 0, math.inf)
    _within("seconds", state.seconds, 0.0, 1e300)
    if math.isinf(state.surrogate):
        _refuse("surrogate", state.surrogate, "a finite number, or NaN")
    if state.n_rows is not None:
        _within("n_rows", state.n_rows, 1, _LARGEST)
        if not 0 <= state.place <= state.n_rows:
            message = f"place is {state.place}, beyond n_rows={state.n_rows}"
            raise ValueError(message)
    _within("worst_cost", state.worst_cost.min(), 0.0, math.inf)
    _within("last_used", state.last_used.min(), 0, _LARGEST)
    _within("last_used", state.last_used.max(), 0, max(state.samples, 0))
    steps = [record.step for record in state.history]
    if steps != sorted(steps) or (steps and steps[-1] > state.step):
        _refuse("history", f"of steps that end at {steps[-1]}", f"rising ones up to {state.step}")
    _check_learner(state)


def check_problem(coder: Any, constraint: Any, D: Array) -> None:
    """Raise unless these are a dictionary, and a coder and a constraint that fit it."""
    check_role("coder", coder, Coder, "Lasso()")
    check_role("constraint", constraint, Constraint, "L2Ball()")
    if D.ndim != 2 or 0 in D.shape or D.dtype not in (np.float32, np.float64):
        message = f"D is {D.dtype} of shape {D.shape}, expected float32 or float64 of shape (k, m)"
        raise ValueError(message)
    check_finite("D", D)
    if constraint.adapts:
        constraint.gauge(D[0])  # which raises if gamma is not decided
    if getattr(coder, "lam", 0.0) is None:
        _refuse("coder", coder, "one whose lam is decided")
    wanted, most = getattr(coder, "mean_nonzeros", None), min(D.shape)
    if wanted is not None and wanted > most:
        _refuse("mean_nonzeros of the coder", wanted, f"at most {most}")
    for name in ("penalty_weights", "parents", "atom_groups"):
        values: Any = getattr(coder, name, None)
        listed = isinstance(values, tuple | list | np.ndarray)
        if listed and np.ndim(next(iter(values), 0)) == 0 and len(values) != len(D):
            _refuse(f"{name} of the coder", f"for {len(values)} atoms", f"one for each of {len(D)}")


def _check_learner(state: State) -> None:
    """Raise unless the statistics have the structure with which the learner begins."""
    k, m = state.D.shape
    resolved = state.learner.resolve(k, state.n_rows)
    if resolved != state.learner:
        _refuse("learner", state.learner, f"all settings decided, as in {resolved}")
    if state.n_rows is None:
        refusal = state.learner.refusal(stream=True, missing=False)
        if refusal is not None:
            raise ValueError(refusal)
    stats, store = state.learner.begin(state.D, state.n_rows)
    if len(stats) != len(state.stats) or (store is None) != (state.store is None):
        message = f"its statistics or stored codes are not those of {state.learner}"
        raise ValueError(message)
    for number, part in enumerate(state.stats):
        _check_stats(f"stats[{number}]", part, k, m, stats[number].A.dtype.type)
    if state.store is not None:
        _check_store(state.store, k, state.n_rows or 0, state.D.dtype)


def _check_stats(name: str, part: Stats, k: int, m: int, begins_as: Any) -> None:
    # Files of earlier versions have every A in float64.
    of_A = np.float64 if part.A.dtype == np.float64 else begins_as
    _want(f"{name}.A", part.A, of_A, (k, k))
    _want(f"{name}.B", part.B, np.float64, (k, m))
    _want(f"{name}.code_sum", part.code_sum, np.float64, (k,))
    _want(f"{name}.sample_sum", part.sample_sum, np.float64, (m,))
    for key in ("constant", "weight", "scale"):
        if not math.isfinite(getattr(part, key)):
            message = f"{name}.{key} is {getattr(part, key)}, expected a finite number"
            raise ValueError(message)
    _within(f"{name}.scale", part.scale, SMALLEST_SCALE, 1.0)
    _within(f"{name}.weight", part.weight, -_ROUNDING * abs(part.constant), math.inf)
    diagonal = part.A.diagonal()
    _within(f"{name}.A", diagonal.min(), -_ROUNDING * np.abs(diagonal).max(), math.inf)


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
    used = np.arange(1, slots) < store.counts[:, None]
    if (used & (np.diff(store.indices, axis=1) <= 0)).any():
        message = "store.indices do not rise within each code"
        raise ValueError(message)


def _want(name: str, array: Array, dtype: Any, shape: tuple[int, ...]) -> None:
    if array.shape != shape or array.dtype != dtype:
        wanted = f"{np.dtype(dtype)} of shape {shape}"
        message = f"{name} is {array.dtype} of shape {array.shape}, expected {wanted}"
        raise ValueError(message)
    check_finite(name, array)


def _within(name: str, value: Any, low: float, high: float) -> None:
    if not low <= value <= high:
        bound = f"at least {low:g}" if high in (math.inf, 1e300) else f"from {low:g} to {high:g}"
        message = f"{name} is {value}, expected a finite number, {bound}"
        raise ValueError(message)


def _refuse(name: str, value: Any, wanted: str) -> None:
    message = f"{name} is {value}, expected {wanted}"
    raise ValueError(message)
