"""The sufficient statistics A = Σ αᵀα and B = Σ αᵀx, from sparse codes (lines 5, 6 of Alg. 1).

A signal with s nonzeros costs s² + s·m operations here, not k² + k·m. The work is divided by atoms
(rows of A and B), and each row is summed over the signals in their order, so that the result does
not depend on how many threads share the rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from smalto.kernels.jit import inlined, kernel, summing


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
    """``B[j] += weight Σ w α_j x`` for the atoms from ``first`` to ``last``.

    Four samples are added at once: each pass over a row of B then adds four rows of X.
    """
    atom_ptr, rows, _ = users
    m = X.shape[1]
    for j in range(first, last):
        u, end = atom_ptr[j], atom_ptr[j + 1]
        while u < end:
            a = _scaled(values, users, weights, weight, u)
            x = X[rows[u]]
            if u + 4 > end:
                for i in range(m):
                    B[j, i] += a * x[i]
                u += 1
                continue
            b = _scaled(values, users, weights, weight, u + 1)
            c = _scaled(values, users, weights, weight, u + 2)
            d = _scaled(values, users, weights, weight, u + 3)
            y, z, v = X[rows[u + 1]], X[rows[u + 2]], X[rows[u + 3]]
            for i in range(m):
                B[j, i] += a * x[i] + b * y[i] + c * z[i] + d * v[i]
            u += 4


@inlined
def _scaled(values, users, weights, weight, u):
    """``weight w α`` of the u-th coefficient in the list of users."""
    scaled = weight * values[users.places[u]]
    if weights is not None:
        scaled *= weights[users.rows[u]]
    return scaled


@summing
def add_to_sums(codes, users, weights, X, weight, code_sum, sample_sum):
    """``code_sum += weight Σ w α`` and ``sample_sum += weight Σ w x``."""
    for j in range(code_sum.size):
        total = 0.0
        for u in range(users.atom_ptr[j], users.atom_ptr[j + 1]):
            total += _scaled(codes.values, users, weights, weight, u)
        code_sum[j] += total
    for row in range(X.shape[0]):
        scaled = weight
        if weights is not None:
            scaled *= weights[row]
        for i in range(X.shape[1]):
            sample_sum[i] += scaled * X[row, i]
