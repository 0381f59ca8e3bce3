"""The dictionary update (Algorithm 2): block coordinate descent over the atoms."""

from __future__ import annotations

import numpy as np

from smalto.checks import Array
from smalto.constraints.base import Constraint, project_checked
from smalto.kernels.learning.block_sweep import add_scaled
from smalto.learning.memory.statistics import Stats
from smalto.threads import run_tasks

BLOCK = 64  # atoms whose residuals come from one product
SLICE = 128  # features of that product computed by one task

# An atom with A_jj below this share of the largest is left alone: nothing is known of it.
_UNKNOWN = 1e-12


def sweep(D: Array, stats: tuple[Stats, ...], constraint: Constraint, n_threads: int) -> float:
    """One pass of block coordinate descent on ``½ Σ A∘DDᵀ − Σ B∘D`` over the constraint set.

    A and B are the sums of the given statistics. D (k, m) is updated in place, each atom
    seeing those already updated; returns by how much the objective has changed (it falls).
    The residuals of a block of atoms come from one matrix product, which gives the same
    result as atom after atom, to rounding, at the speed of BLAS.
    """
    k, m = D.shape
    diagonal = np.zeros(k)
    for part in stats:
        diagonal += part.scale * part.A.diagonal()
    smallest = unknown_below(diagonal)
    change = 0.0
    for first in range(0, k, BLOCK):
        last = min(first + BLOCK, k)
        A, R = np.zeros((last - first, k), D.dtype), np.zeros((last - first, m), D.dtype)
        for part in stats:
            add_scaled(part.A[first:last], part.scale, A)
            add_scaled(part.B[first:last], part.scale, R)

        def task(number: int, A: Array = A, R: Array = R) -> None:
            features = slice(number * SLICE, min((number + 1) * SLICE, m))
            R[:, features] -= A @ D[:, features]

        run_tasks(task, -(-m // SLICE), n_threads)
        change += constraint.sweep_block(D, R, A, first, smallest)
    return change


def unknown_below(diagonal: Array) -> float:
    """The A_jj up to which nothing is known of an atom."""
    return _UNKNOWN * float(diagonal.max(initial=0.0))


def gradient_step(
    D: Array, stats: Stats, rate: float, constraint: Constraint, n_threads: int
) -> None:
    """``D ← Π(D − rate (A D − B))`` in place: one projected gradient step, atom by atom."""
    k, m = D.shape
    moved = np.empty_like(D)

    def task(number: int) -> None:
        first, last = number * BLOCK, min((number + 1) * BLOCK, k)
        A, B = np.zeros((last - first, k), D.dtype), np.zeros((last - first, m), D.dtype)
        add_scaled(stats.A[first:last], stats.scale, A)
        add_scaled(stats.B[first:last], stats.scale, B)
        moved[first:last] = D[first:last] - D.dtype.type(rate) * (A @ D - B)
        for atom in moved[first:last]:
            project_checked(constraint, atom)

    run_tasks(task, -(-k // BLOCK), n_threads)
    D[:] = moved
