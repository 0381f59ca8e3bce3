"""What the coders of several signals at once share: groups of rows with one set of atoms.

A group's coefficients are kept as a table with one row per active atom and the signals side by
side, padded with zeros to whole vectors: what is done to an atom is done to all signals at once.
"""

from __future__ import annotations

import numpy as np

from smalto.kernels.coding.active_set import LANES
from smalto.kernels.jit import kernel


@kernel
def padded(n):
    """So many signals take so much room in a row of a table."""
    return (n + LANES - 1) // LANES * LANES


@kernel
def write_group(table, atoms, s, order, row, n, out_ptr, out_atoms, out_codes):
    """Append the codes of the n rows from ``row`` on, atoms increasing; ``order`` is scratch."""
    size = padded(n)
    for p in range(s):
        r = p
        while r > 0 and atoms[order[r - 1]] > atoms[p]:
            order[r] = order[r - 1]
            r -= 1
        order[r] = p
    position = out_ptr[row]
    for i in range(n):
        for p in range(s):
            out_atoms[position] = atoms[order[p]]
            out_codes[position] = table[order[p] * size + i]
            position += 1
        out_ptr[row + i + 1] = position


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
