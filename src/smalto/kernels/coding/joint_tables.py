"""What the coders of groups of signals share: each group uses one set of atoms.

The coefficients of a group are a table with one row per active atom and the signals side by side,
filled up with zeros to whole vectors: what is done to an atom is done to all signals at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smalto.kernels.coding.active_set import LANES
from smalto.kernels.jit import kernel


class SignalGroups(NamedTuple):
    """Signals in groups: group g holds the rows from ``groups[g]`` to ``groups[g + 1]``."""

    Q: Any  # x Dᵀ (n, width)
    norms: Any  # ‖x‖² (n,)
    groups: Any  # int64


@kernel
def padded(n):
    """The length of a row of a table for n signals."""
    return (n + LANES - 1) // LANES * LANES


@kernel
def group_norm(signals, g):
    """``‖X‖²`` of the signals of group g."""
    total = 0.0
    for i in range(signals.groups[g], signals.groups[g + 1]):
        total += signals.norms[i]
    return total


@kernel
def write_group(table, atoms, s, order, row, n, out):
    """Append the codes of the n rows from ``row`` on, atoms increasing; ``order`` is scratch."""
    size = padded(n)
    for p in range(s):
        r = p
        while r > 0 and atoms[order[r - 1]] > atoms[p]:
            order[r] = order[r - 1]
            r -= 1
        order[r] = p
    position = out.indptr[row]
    for i in range(n):
        for p in range(s):
            out.indices[position] = atoms[order[p]]
            out.values[position] = table[order[p] * size + i]
            position += 1
        out.indptr[row + i + 1] = position


@kernel
def sum_of_norms(indptr, indices, values, groups, squares, out):
    """``Σ_j ‖α_j over the group‖₂`` of each group of sparse codes; ``squares`` is zero scratch."""
    for g in range(out.size):
        begin, end = indptr[groups[g]], indptr[groups[g + 1]]
        for p in range(begin, end):
            value = np.float64(values[p])
            squares[indices[p]] += value * value
        total = 0.0
        for p in range(begin, end):
            total += np.sqrt(squares[indices[p]])
            squares[indices[p]] = 0.0
        out[g] = total
