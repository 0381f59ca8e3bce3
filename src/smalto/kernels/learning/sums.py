"""The sufficient statistics A = Σ αᵀα and B = Σ αᵀx, from sparse codes (lines 5, 6 of Alg. 1).

A signal with s nonzeros costs s² + s·m operations here, not k² + k·m. The work is divided by atoms
(rows of A and B), and each row is summed over the signals in their order, so that the result does
not depend on how many threads share the rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from smalto.kernels.jit import kernel, summing


class Users(NamedTuple):
    """Which rows of some codes use an atom, increasing, and where their coefficients stand."""

    atom_ptr: Any  # int64 (k + 1,): those of atom j stand from atom_ptr[j] to atom_ptr[j + 1] in
    rows: Any  # int32: numbers of rows
    places: Any  # int32: places in the values of the codes


@kernel
def list_users(codes, n_atoms, users):
    """List the rows that use each atom."""
    indptr, indices, _ = codes
    atom_ptr, rows, places = users
    atom_ptr[:] = 0
    for p in range(indices.size):
        atom_ptr[indices[p] + 1] += 1
    for j in range(n_atoms):
        atom_ptr[j + 1] += atom_ptr[j]
    for row in range(indptr.size - 1):
        for p in range(indptr[row], indptr[row + 1]):
            j = indices[p]
            rows[atom_ptr[j]] = row
            places[atom_ptr[j]] = p
            atom_ptr[j] += 1
    for j in range(n_atoms, 0, -1):
        atom_ptr[j] = atom_ptr[j - 1]
    atom_ptr[0] = 0


@summing
def add_to_gram(codes, users, weights, weight, first, last, A):
    """``A[j] += weight Σ w α_j α`` for the atoms from ``first`` to ``last``.

    The weights w of the rows may be None: all are 1.
    """
    indptr, indices, values = codes
    atom_ptr, rows, places = users
    for j in range(first, last):
        for u in range(atom_ptr[j], atom_ptr[j + 1]):
            row = rows[u]
            scaled = weight * values[places[u]]
            if weights is not None:
                scaled *= weights[row]
            for p in range(indptr[row], indptr[row + 1]):
                A[j, indices[p]] += scaled * values[p]


@summing
def add_to_products(values, users, weights, X, weight, first, last, B):
    """``B[j] += weight Σ w α_j x`` for the atoms from ``first`` to ``last``."""
    atom_ptr, rows, places = users
    m = X.shape[1]
    for j in range(first, last):
        for u in range(atom_ptr[j], atom_ptr[j + 1]):
            scaled = weight * values[places[u]]
            if weights is not None:
                scaled *= weights[rows[u]]
            x = X[rows[u]]
            for i in range(m):
                B[j, i] += scaled * x[i]
