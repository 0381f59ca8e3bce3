"""The dictionary update (Algorithm 2 of the paper): block coordinate descent over the atoms."""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.checks import Array
from smalto.coders.products import PackedTerms
from smalto.coders.scaling import number_exponent
from smalto.constraints.base import Constraint
from smalto.kernels.learning.block_sweep import add_scaled
from smalto.learning.memory.statistics import Stats
from smalto.threads import run_tasks

BLOCK = 64  # atoms that are walked through at a time ...
LARGE_BLOCK = 128  # ... and of very many atoms, where matrix products take most of the time
MANY = 4096  # atoms
LARGEST_GROUP = 4  # blocks whose products with all other atoms are computed at once

# Atoms with A_jj up to this share of the largest are not updated: nothing is known about them.
_UNKNOWN = 1e-12
_LONG = 2.0**60  # length of a step from which on its projection depends on its direction only


def sweep(
    D: Array, stats: tuple[Stats, ...], constraint: Constraint, n_threads: int, ridge: float = 0.0
) -> float:
    """Make one pass of block coordinate descent on ``½ Σ A∘DDᵀ − Σ B∘D`` over the constraint set.

    A and B are the sums of the given statistics. D (k, m) is updated in place, atom by atom, each
    using those already updated. Return the change of the objective, which is not positive. With
    ``ridge`` the pass lowers that objective plus ``ridge/2 ‖D‖²``: A has it on its diagonal, except
    for atoms of which nothing is known, which would become zero. The residuals of a block of atoms
    come from matrix products, most of which are computed for several blocks at once, a task each: the
    result is the same up to rounding, and most of the time goes into these products.
    """
    k = len(D)
    stats = tuple(part for part in stats if part.A.diagonal().any())  # the others are zero
    diagonal = np.zeros(k)
    for part in stats:
        diagonal += part.scale * part.A.diagonal()
    unit = unit_of(max(float(diagonal.max(initial=0.0)), ridge), D.dtype)
    diagonal /= unit
    smallest = unknown_below(diagonal)
    added, change = None, 0.0
    if ridge:
        added = np.where(diagonal > smallest, ridge / unit, 0.0).astype(D.dtype)
        change = 0.5 * _weighted_square(added, D)
    block = BLOCK if k < MANY else LARGE_BLOCK
    few = k <= block * LARGEST_GROUP
    group = k if few else block * max(2, min(k // (4 * block), LARGEST_GROUP))
    packed = PackedTerms(D)
    for begin in range(0, k, group):
        atoms = slice(begin, min(begin + group, k))
        A, R = _residuals(packed, stats, atoms, block, unit, added, n_threads)
        for first in range(begin, atoms.stop, block):
            own = slice(first, min(first + block, atoms.stop))
            rows = slice(first - begin, own.stop - begin)
            R[rows] -= packed.products(A[rows], atoms)
            change += constraint.sweep_block(D, R[rows], A[rows], first, smallest)
            packed.renew(own)
    return unit * (change if added is None else change - 0.5 * _weighted_square(added, D))


def _residuals(
    packed: PackedTerms,
    stats: tuple[Stats, ...],
    atoms: slice,
    block: int,
    unit: float,
    added: Array | None,
    n_threads: int,
) -> tuple[Array, Array]:
    """Return the rows of A, and of ``B − A D`` with these atoms left out: they are about to change.

    Each block of atoms is a task.
    """
    D = packed.D
    k, m = D.shape
    size = atoms.stop - atoms.start
    A, R = np.zeros((size, k), D.dtype), np.zeros((size, m), D.dtype)
    others = [part for part in (slice(0, atoms.start), slice(atoms.stop, k)) if len(D[part])]

    def task(number: int) -> None:
        rows = slice(number * block, min((number + 1) * block, size))
        own = slice(atoms.start + rows.start, atoms.start + rows.stop)
        for part in stats:
            add_scaled(part.A[own], part.scale / unit, A[rows])
            add_scaled(part.B[own], part.scale / unit, R[rows])
        if added is not None:
            A[rows, own] += np.diag(added[own])
        for some in others:
            R[rows] -= packed.products(A[rows], some)

    run_tasks(task, -(-size // block), n_threads)
    return A, R


def _weighted_square(weights: Array, D: Array) -> float:
    """Return ``Σ w_j ‖d_j‖²``."""
    return float(np.einsum("j,ji,ji->", weights, D, D, dtype=np.float64))


def unknown_below(diagonal: Array) -> float:
    """Return the value of A_jj up to which nothing is known about an atom."""
    return _UNKNOWN * float(diagonal.max(initial=0.0))


def unit_of(size: float, dtype: np.dtype[Any]) -> float:
    """Return the power of two that A and B are divided by in this dtype, for A of this size.

    It is 1 for ordinary sizes, and in float64, which has room for all.
    """
    return 1.0 if dtype == np.float64 else 2.0 ** number_exponent(size)


def gradient_step(
    D: Array, stats: Stats, rate: float, constraint: Constraint, n_threads: int
) -> None:
    """Make one projected gradient step ``D ← Π(D − rate (A D − B))``, in place."""
    k, m = D.shape
    R = np.zeros((k, m), D.dtype)
    unit = unit_of(stats.scale * float(stats.A.diagonal().max(initial=0.0)), D.dtype)

    def descend(number: int) -> None:
        block = slice(number * BLOCK, min((number + 1) * BLOCK, k))
        A = np.zeros((block.stop - block.start, k), D.dtype)
        add_scaled(stats.A[block], stats.scale / unit, A)
        add_scaled(stats.B[block], stats.scale / unit, R[block])
        R[block] -= A @ D
        longest = np.abs(R[block]).max(axis=1, keepdims=True).astype(np.float64)
        with np.errstate(divide="ignore", over="ignore"):  # of tiny steps
            most = np.minimum(_LONG / longest, np.finfo(D.dtype).max)
        R[block] *= np.minimum(rate * unit, most).astype(D.dtype)

    run_tasks(descend, -(-k // BLOCK), n_threads)
    project_atoms(D, constraint, R, n_threads)


def project_atoms(
    D: Array, constraint: Constraint, R: Array | None = None, n_threads: int = 1
) -> None:
    """Replace ``D`` by ``Π(D + R)``, in place: a sweep with the identity in place of A."""
    k = len(D)
    R = np.zeros_like(D) if R is None else R

    def project(number: int) -> None:
        first, last = number * BLOCK, min((number + 1) * BLOCK, k)
        identity = np.eye(last - first, k, first, D.dtype)
        constraint.sweep_block(D, R[first:last], identity, first, 0.0)

    run_tasks(project, -(-k // BLOCK), n_threads)
