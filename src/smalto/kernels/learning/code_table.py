"""Sparse codes in a table with a fixed number of slots per sample: reading and writing."""

from __future__ import annotations

from smalto.kernels.jit import kernel


@kernel
def fetch_rows(table_indices, table_values, numbers, indptr, indices, values):
    """Read the codes of some samples; ``indptr`` says how many nonzeros each has."""
    for row in range(numbers.size):
        number = numbers[row]
        for p in range(indptr[row], indptr[row + 1]):
            slot = p - indptr[row]
            indices[p] = table_indices[number, slot]
            values[p] = table_values[number, slot]


@kernel
def put_rows(indptr, indices, values, numbers, counts, table_indices, table_values):
    """Write the codes of some samples, each of which must fit into the slots."""
    for row in range(numbers.size):
        number = numbers[row]
        counts[number] = indptr[row + 1] - indptr[row]
        for p in range(indptr[row], indptr[row + 1]):
            slot = p - indptr[row]
            table_indices[number, slot] = indices[p]
            table_values[number, slot] = values[p]


@kernel
def merge_atom(counts, indices, values, j, into, sign):
    """Add the coefficient of atom j, times ``sign``, to that of atom ``into``, in every code.

    With into = −1 it is dropped. Codes stay sorted by atom.
    """
    for row in range(counts.size):
        count = max(counts[row], 0)
        place = -1
        for slot in range(count):
            if indices[row, slot] == j:
                place = slot
        if place < 0:
            continue
        value = sign * values[row, place]
        for slot in range(place, count - 1):
            indices[row, slot] = indices[row, slot + 1]
            values[row, slot] = values[row, slot + 1]
        count -= 1
        if into >= 0:
            slot = 0
            while slot < count and indices[row, slot] < into:
                slot += 1
            if slot < count and indices[row, slot] == into:
                values[row, slot] += value
            else:
                for other in range(count, slot, -1):
                    indices[row, other] = indices[row, other - 1]
                    values[row, other] = values[row, other - 1]
                indices[row, slot] = into
                values[row, slot] = value
                count += 1
        counts[row] = count
