"""Replacement of unused and duplicate atoms (Section 3.4.5 of the paper)."""

from __future__ import annotations

import numpy as np
import scipy

from smalto.checks import Array, Rows
from smalto.coders.products import Packed, gram
from smalto.kernels.learning.duplicates import mark_close
from smalto.learning.dictionary.new_atoms import as_atom
from smalto.learning.memory.contributions import WORST, Addition, Contribution
from smalto.learning.memory.state import State

_UNTRIED = 0.2  # share of the usual time after which an atom that was never used is replaced
_FADE = 0.9  # factor on the remembered costs at each step, so that newer samples win


def candidates(state: State, new: Addition, number: int) -> tuple[Rows, Array]:
    """Return samples of block ``number`` of a step that may become atoms, and their ranks.

    They are those with the largest costs, which are their ranks, or random ones with random ranks.
    """
    if not state.replacement.random:
        return new.worst()
    assert isinstance(new, Contribution), "samples are needed, not sums of them"
    rng = np.random.default_rng([state.seed, state.step, number])
    rows = rng.permutation(np.flatnonzero(new.weighted_costs()))[:WORST]
    return new.X[rows], rng.random(len(rows))


def remember_worst(state: State, X: Rows, costs: Array) -> None:
    """Keep those of the given samples whose costs, or ranks, exceed those of the ones kept."""
    state.worst_cost *= _FADE
    places = np.argsort(state.worst_cost, kind="stable")[: len(costs)]
    rows = np.argsort(-costs, kind="stable")[: len(places)]
    better = costs[rows] > state.worst_cost[places]
    places, rows = places[better], rows[better]
    state.worst[places] = X[rows].toarray() if scipy.sparse.issparse(X) else X[rows]
    state.worst_cost[places] = costs[rows]


def replace_atoms(state: State, G: Array | None, n_threads: int) -> int:
    """Replace unused and duplicate atoms, every few steps; return how many were replaced.

    ``G`` is the Gram matrix before the last update, if it is available. The statistics of the past
    are changed accordingly: those of an unused atom are dropped, those of a duplicate are added to
    the atom that it duplicates, exactly as if the old codes had been changed.
    """
    replacement = state.replacement
    if state.step % replacement.every:
        return 0
    k = len(state.D)
    if G is None:
        G = gram(Packed(state.D), n_threads)
    # Atoms that were never used, such as first atoms far from the data, are given up sooner.
    patience = np.where(state.last_used > 0, 1.0, _UNTRIED) * replacement.idle
    idle = np.flatnonzero(state.samples - state.last_used > patience * k)
    doubles = _duplicates(state.D, G, replacement.correlation)
    replaced = 0
    for j in dict.fromkeys([*idle.tolist(), *doubles]):  # without repetition
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
        state.measure_surrogate(n_threads)
    return replaced


def _duplicates(D: Array, G: Array, correlation: float) -> dict[int, tuple[int, float]]:
    """Map each atom that duplicates an earlier one to that atom and their relative sign."""
    norms = np.sqrt(np.maximum(G.diagonal()[: len(D)], 0.0))
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    least = 0.99 * correlation * np.where(norms > 0, norms, np.inf)
    found: dict[int, tuple[int, float]] = {}
    close = np.empty(len(D), np.bool_)
    mark_close(G, scale, least, close)
    # G may be slightly out of date: take candidates from it, then check the current atoms.
    for i in np.flatnonzero(close):
        others = np.flatnonzero(np.abs(G[i, : len(D)]) * scale[i] > least)
        for j in others[others > i]:
            if int(j) in found or int(i) in found:
                continue
            cosine = float(np.vdot(D[i], D[j])) / max(
                float(np.linalg.norm(D[i]) * np.linalg.norm(D[j])), 1e-300
            )
            if abs(cosine) > correlation:
                found[int(j)] = (int(i), float(np.sign(cosine)))
    return found


def _next_atom(state: State) -> Array | None:
    """Return the first in rank of the remembered samples as an atom; None if none is left."""
    place = int(np.argmax(state.worst_cost))
    if not state.worst_cost[place] > 0.0:
        return None
    state.worst_cost[place] = 0.0
    atom = as_atom(state.worst[place], state.constraint)
    return atom if atom.any() else None


def _merge(state: State, j: int, into: int, sign: float) -> None:
    """Add the past of atom j, times ``sign``, to atom ``into``, or drop it if ``into`` is −1."""
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
