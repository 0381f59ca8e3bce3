"""Atoms made from samples: the first dictionary, and replacements."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from smalto.checks import Array, Rows
from smalto.constraints.base import Constraint, project_checked

RESERVOIR = 64  # badly coded samples kept at hand


def directions(X: Rows, order: Array, count: int, rng: np.random.Generator) -> Array:
    """Return distinct directions of rows of X, of norm 1: the first atoms, not yet projected.

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
    """Return the direction of a sample as an atom, as long as the set allows.

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
