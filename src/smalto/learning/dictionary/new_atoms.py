"""Atoms made from samples, for the first dictionary and for replacements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy

from smalto.checks import Array, Rows
from smalto.constraints.base import Constraint, project_checked

RESERVOIR = 64  # badly coded samples that a state keeps, at most


def directions(X: Rows, order: Array, count: int, rng: np.random.Generator) -> Array:
    """Return ``count`` distinct rows of X, scaled to norm 1 but not yet projected.

    Rows are tried in the given order. If too few are distinct, random directions are added; those
    that no code uses are later replaced by badly coded samples.
    """
    found: dict[bytes, Array] = {}
    for row in _in_order(X, order, count):
        unit = _unit(row)
        if unit is not None:
            found.setdefault(unit.tobytes(), unit)
        if len(found) == count:
            break
    rest = rng.standard_normal((count - len(found), X.shape[1])).astype(X.dtype)
    rest /= np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), 1e-12)
    return np.vstack([*found.values(), rest])


def _in_order(X: Rows, order: Array, at_once: int) -> Iterator[Array]:
    """Yield the rows of X in an order, so many of them copied at once."""
    for first in range(0, len(order), at_once):
        rows = X[order[first : first + at_once]]
        yield from rows.toarray() if scipy.sparse.issparse(rows) else rows


def as_atom(x: Array, constraint: Constraint) -> Array:
    """Return the sample x as an atom of the set, made as long as the set allows.

    Either x or −x is used, whichever the projection keeps more of (they differ for non-negative
    atoms). The atom is zero if the projection keeps nothing.
    """
    sides = [_projected(x, constraint), _projected(-x, constraint)]
    kept = max(sides, key=lambda atom: round(float(np.linalg.norm(atom)), 6))
    return _projected(kept, constraint)  # again, because it may now be made longer


def _projected(x: Array, constraint: Constraint) -> Array:
    unit = _unit(x)
    if unit is None:
        return np.zeros_like(x)
    project_checked(constraint, unit)
    return unit


def _unit(x: Array) -> Array | None:
    norm = float(np.linalg.norm(np.asarray(x, np.float64)))
    return (x / norm).astype(x.dtype) if norm > 0 else None
