"""The sufficient statistics A = Σ αᵀα and B = Σ αᵀx, from sparse codes (lines 5, 6 of Alg. 1).

A signal with s nonzeros costs s² + s·m operations here, not k² + k·m. The work is cut by
atoms (rows of A and B), and each row sums over the signals in their order, so that the result
does not depend on how many threads share the rows.
"""

from __future__ import annotations

from smalto.kernels.jit import kernel, summing


@kernel
def by_atom(indptr, indices, n_atoms, atom_ptr, rows, places):
    """Turn row-wise codes into atom-wise lists: which rows use an atom, and where.

    The users of atom j are ``rows[atom_ptr[j] : atom_ptr[j + 1]]`` in increasing order, and
    their coefficients stand at ``places`` in the values of the codes.
    """
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
def add_to_gram(indptr, indices, values, atom_ptr, rows, places, weights, weight, first, last, A):
    """``A[j] += weight Σ w α_j α`` for the atoms from ``first`` to ``last``.

    The weights w of the rows may be None: all are 1.
    """
    for j in range(first, last):
        for u in range(atom_ptr[j], atom_ptr[j + 1]):
            row = rows[u]
            scaled = weight * values[places[u]]
            if weights is not None:
                scaled *= weights[row]
            for p in range(indptr[row], indptr[row + 1]):
                A[j, indices[p]] += scaled * values[p]


@summing
def add_to_products(values, atom_ptr, rows, places, weights, X, weight, first, last, B):
    """``B[j] += weight Σ w α_j x`` for the atoms from ``first`` to ``last``."""
    m = X.shape[1]
    for j in range(first, last):
        for u in range(atom_ptr[j], atom_ptr[j + 1]):
            scaled = weight * values[places[u]]
            if weights is not None:
                scaled *= weights[rows[u]]
            x = X[rows[u]]
            for i in range(m):
                B[j, i] += scaled * x[i]
