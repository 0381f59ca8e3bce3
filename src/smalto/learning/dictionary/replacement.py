"""Where atoms come from: the first dictionary, and new atoms for those that are of no use."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from smalto.checks import Array, Rows
from smalto.constraints import Constraint, project_checked
from smalto.learning.memory.state import State
from smalto.learning.options import Replacement

RESERVOIR = 64  # badly coded samples kept at hand
_FADE = 0.9  # how fast an old bad sample is forgotten, per step


def directions(X: Rows, order: Array, count: int, rng: np.random.Generator) -> Array:
    """Distinct directions of rows of X, of norm 1: the first atoms, before they are projected.

    Rows are looked at in this order. Where there are not enough of them the rest are random
    directions: they are replaced by badly coded samples if nothing uses them.
    """
    found: dict[bytes, Array] = {}
    for number in order:
        row = X[[number]].toarray()[0] if sparse.issparse(X) else X[number]
        unit = _unit(row)
        if unit is not None:
            found.setdefault(unit.tobytes(), unit)
        if len(found) == count:
            break
    rest = rng.standard_normal((count - len(found), X.shape[1])).astype(X.dtype)
    rest /= np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), 1e-12)
    return np.vstack([*found.values(), rest])


def as_atom(x: Array, constraint: Constraint) -> Array:
    """The direction of a sample as an atom, as long as the set allows.

    Where the set has a preferred side (non-negative atoms), x or −x, whichever it keeps more
    of. Zero if it keeps nothing.
    """
    sides = [_projected(x, constraint), _projected(-x, constraint)]
    kept = max(sides, key=lambda atom: round(float(np.linalg.norm(atom)), 6))
    return _projected(kept, constraint)  # what is left of it may be made longer


def _projected(x: Array, constraint: Constraint) -> Array:
    unit = _unit(x)
    if unit is None:
        return np.zeros_like(x)
    project_checked(constraint, unit)
    return unit


def _unit(x: Array) -> Array | None:
    norm = float(np.linalg.norm(np.asarray(x, np.float64)))
    return (x / norm).astype(x.dtype) if norm > 0 else None


def remember_worst(state: State, X: Rows, costs: Array) -> None:
    """Keep badly coded samples of a batch if they are worse than those kept."""
    state.worst_cost *= _FADE
    for row, cost in enumerate(costs):
        place = int(np.argmin(state.worst_cost))
        if cost <= state.worst_cost[place]:
            continue
        x = X[[row]].toarray()[0] if sparse.issparse(X) else X[row]
        state.worst[place] = x
        state.worst_cost[place] = cost


def replace_atoms(state: State, replacement: Replacement, G: Array) -> int:
    """Replace unused and duplicate atoms; ``G`` is the Gram matrix before the last update.

    The past is made consistent: that of an unused atom is dropped, that of a duplicate goes
    to its double, exactly as if all old codes had been changed so. Returns how many.
    """
    if state.step % replacement.every:
        return 0
    k = len(state.D)
    idle = np.flatnonzero(state.samples - state.last_used > replacement.idle * k)
    doubles = _duplicates(state.D, G[:k, :k], replacement.correlation)
    replaced = 0
    for j in dict.fromkeys([*idle.tolist(), *doubles]):  # each once
        atom = _next_atom(state)
        if atom is None:
            break
        if j in doubles:
            into, sign = doubles[j]
            _merge(state, j, into, sign)
        else:
            _merge(state, j, -1, 0.0)
        state.D[j] = atom
        state.last_used[j] = state.samples
        replaced += 1
    if replaced:
        state.measure_surrogate()
    return replaced


def _duplicates(D: Array, G: Array, correlation: float) -> dict[int, tuple[int, float]]:
    """For each atom that doubles an earlier one: which one, and with which sign."""
    norms = np.sqrt(np.maximum(G.diagonal(), 0.0))
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    # Candidates from the Gram matrix at hand, then checked on the atoms as they are now.
    close = np.abs(G) * scale[:, None] > 0.99 * correlation * np.where(norms > 0, norms, np.inf)
    found: dict[int, tuple[int, float]] = {}
    for i, j in zip(*np.nonzero(np.triu(close, 1)), strict=True):
        if int(j) in found or int(i) in found:
            continue
        cosine = float(np.vdot(D[i], D[j])) / max(
            float(np.linalg.norm(D[i]) * np.linalg.norm(D[j])), 1e-300
        )
        if abs(cosine) > correlation:
            found[int(j)] = (int(i), float(np.sign(cosine)))
    return found


def _next_atom(state: State) -> Array | None:
    """The worst-coded sample at hand, as an atom; None if there is none left."""
    place = int(np.argmax(state.worst_cost))
    if not state.worst_cost[place] > 0.0:
        return None
    state.worst_cost[place] = 0.0
    atom = as_atom(state.worst[place], state.constraint)
    return atom if atom.any() else None


def _merge(state: State, j: int, into: int, sign: float) -> None:
    """Give atom j's part of the past, times ``sign``, to atom ``into`` (−1: drop it)."""
    for part in state.stats:
        if into >= 0:
            part.A[into] += sign * part.A[j]
            part.A[:, into] += sign * part.A[:, j]
            part.B[into] += sign * part.B[j]
            part.code_sum[into] += sign * part.code_sum[j]
        part.A[j] = 0.0
        part.A[:, j] = 0.0
        part.B[j] = 0.0
        part.code_sum[j] = 0.0
    if state.store is not None:
        state.store.merge(j, into, sign)
