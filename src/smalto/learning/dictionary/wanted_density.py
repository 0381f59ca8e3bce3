"""Dictionaries of a wanted density: the constraint is chosen along with the update."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from smalto.checks import Array
from smalto.constraints.base import Constraint
from smalto.constraints.density import CLOSE, density, missed
from smalto.learning.dictionary.sweep import sweep
from smalto.learning.memory.state import State

# Change of log(gamma) in one step. Codes need some steps to follow a change of the set: with short
# atoms they are small, and with small codes atoms become short.
REACH = 0.25
MOST_IDLE = 0.1  # share of short and idle atoms above which the set grows, whatever the density
COLLAPSED = 0.1  # share of its norm below which a dictionary has lost what was learned
SHORT = 0.5  # norm below which an atom may be idle because it is short


class Feasible(NamedTuple):
    """A dictionary and the set that all of its atoms lie in."""

    D: Array
    constraint: Constraint


def wants_density(constraint: Constraint) -> bool:
    """Return whether the set is chosen such that atoms have a wanted density."""
    return constraint.density is not None and constraint.adapts


def feasible(state: State, n_threads: int = 1) -> Feasible:
    """Return a copy of the dictionary with every atom inside the constraint set, and the set.

    If a density is wanted that the dictionary does not have, because learning has not come that far
    or atoms were replaced since the last update, it is updated once more, with a set for which it
    has. Where this set is smaller than the one that was learned with, atoms are so short there that
    codes would be small or zero: they are stretched to the border of the larger one, which leaves the
    density as it is. The state stays as it is.
    """
    D, constraint = state.D.copy(), state.constraint
    if not wants_density(constraint):
        return Feasible(D, constraint)
    assert constraint.density is not None
    project_all(constraint, D)
    if abs(density(D) / constraint.density - 1.0) <= CLOSE:
        return Feasible(D, constraint)

    before = D.copy()

    def update(tried: Any) -> Array:
        D[:] = state.D
        project_all(tried, D)
        sweep(D, state.stats, tried, n_threads)
        return D

    found = constraint.adapted(update)
    collapsed = np.linalg.norm(D) < COLLAPSED * np.linalg.norm(before)
    if collapsed and missed(before, constraint.density) is None:
        return Feasible(before, constraint)
    if all(constraint.gauge(atom) < found.gauge(atom) for atom in D if atom.any()):
        for atom in D:
            _stretch(constraint, atom)
        return Feasible(D, constraint)
    return Feasible(D, found)


def _stretch(constraint: Constraint, atom: Array) -> None:
    """Make an atom so long that it is on the border of a set ``‖d‖² + Ω(d) ≤ 1``, for a norm Ω."""
    square = float(np.square(atom, dtype=np.float64).sum())
    if square > 0.0:
        norm = constraint.gauge(atom) - square
        atom *= atom.dtype.type(2.0 / (norm + math.sqrt(norm**2 + 4.0 * square)))
        constraint.project(atom)  # rounding


def update_to_density(state: State, n_new: int, n_threads: int) -> None:
    """Have the learner update the dictionary, with the set for which it has the wanted density.

    With `Online(features=)`, the density is that of the features that the step looks at.
    """
    D, surrogate, before = state.D.copy(), state.surrogate, state.constraint
    view = state.learner.view(state)

    def update(tried: Any) -> Array:
        state.D, state.surrogate, state.constraint = D.copy(), surrogate, tried
        if tried is not before:
            project_all(tried, state.D)
        state.learner.update(state, n_new, n_threads)
        return state.D if view is None else state.D[:, view.features]

    idle = state.samples - state.last_used > state.replacement.idle * len(D)
    short = np.linalg.norm(D, axis=1) < SHORT
    if (idle & short).mean() > MOST_IDLE:  # atoms are so short that no code uses them
        update(before.loosened(math.exp(REACH)))
    else:
        state.constraint = before.adapted(update, REACH)
    if state.constraint is not before and state.learner.has_surrogate:
        state.measure_surrogate()


def project_all(constraint: Constraint, D: Array) -> None:
    """Project all atoms, in place: some may lie outside a set that has changed."""
    for atom in D:
        constraint.project(atom)
