"""The dictionary update (Algorithm 2 of the paper): block coordinate descent over the atoms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
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
    for atoms of which nothing is known, which would become zero.

    The residuals of a block of atoms come from matrix products, which take most of the time. While
    a group of blocks is updated, other threads begin the residuals of the next group, with the atoms
    that do not change meanwhile. The result is that of an update atom by atom, up to rounding.
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
    packed, group = PackedTerms(D), _Group(slice(0, 0), D)
    _run(group.beginnings(packed, stats, unit, added), n_threads)
    while group.blocks:
        after = _Group(group.atoms, D)
        rest = after.beginnings(packed, stats, unit, added)
        _run([partial(group.update, packed, constraint, smallest), *rest], n_threads)
        change += group.change
        group = after
    return unit * (change if added is None else change - 0.5 * _weighted_square(added, D))


class _Group:
    """The next few blocks of atoms after others, with their rows of A and of residuals.

    Attributes
    ----------
    atoms : slice
        Their numbers, and those of each of the ``blocks``.
    changing : slice
        The atoms that change while the residuals are begun, and these themselves.
    change : float
        What their update has changed the objective by.
    """

    def __init__(self, before: slice, D: Array) -> None:
        k, m = D.shape
        block = BLOCK if k < MANY else LARGE_BLOCK
        few = k <= block * LARGEST_GROUP
        most = k if few else block * max(2, min(k // (4 * block), LARGEST_GROUP))
        first, end = before.stop, min(before.stop + most, k)
        self.atoms, self.changing = slice(first, end), slice(before.start, end)
        self.blocks = [slice(at, min(at + block, end)) for at in range(first, end, block)]
        self.A, self.R = np.zeros((end - first, k), D.dtype), np.zeros((end - first, m), D.dtype)
        self.change = 0.0

    def _rows(self, block: slice) -> tuple[Array, Array]:
        """Return the rows of A and of the residuals of a block."""
        first = self.atoms.start
        rows = slice(block.start - first, block.stop - first)
        return self.A[rows], self.R[rows]

    def beginnings(
        self, packed: PackedTerms, stats: tuple[Stats, ...], unit: float, added: Array | None
    ) -> list[Callable[[], None]]:
        """Return tasks that compute A, and ``B − A D`` without the atoms that change."""

        def begin(block: slice) -> None:
            A, R = self._rows(block)
            for part in stats:
                add_scaled(part.A[block], part.scale / unit, A)
                add_scaled(part.B[block], part.scale / unit, R)
            if added is not None:
                A[:, block] += np.diag(added[block])
            for some in (slice(0, self.changing.start), slice(self.changing.stop, A.shape[1])):
                if some.start < some.stop:
                    R -= packed.products(A, some)

        return [partial(begin, block) for block in self.blocks]

    def update(self, packed: PackedTerms, constraint: Constraint, smallest: float) -> None:
        """Update the atoms, block by block."""
        for block in self.blocks:
            A, R = self._rows(block)
            R -= packed.products(A, self.changing)
            self.change += constraint.sweep_block(packed.D, R, A, block.start, smallest)
            packed.renew(block)


def _run(tasks: Sequence[Callable[[], None]], n_threads: int) -> None:
    run_tasks(lambda number: tasks[number](), len(tasks), n_threads)


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
