"""What given sparse codes cost: their fit, and the penalty of the elastic net."""

from __future__ import annotations

import numpy as np

from smalto.kernels.jit import kernel


@kernel
def fit_of_rows(G, Q, norms, indptr, indices, values, out):
    """``½‖x − αD‖²`` of each row, from G = D Dᵀ, q = x Dᵀ and ‖x‖²."""
    for row in range(out.size):
        begin, end = indptr[row], indptr[row + 1]
        total = norms[row]
        for p in range(begin, end):
            i = indices[p]
            inner = 0.5 * np.float64(values[p]) * G[i, i] - Q[row, i]
            for r in range(begin, p):
                inner += np.float64(values[r]) * G[i, indices[r]]
            total += 2.0 * values[p] * inner
        out[row] = 0.5 * max(total, 0.0)


@kernel
def fit_at_optimum(Q, norms, indptr, indices, values, lam, ridge, out):
    """``½‖x − αD‖²`` of each row, for codes that are optimal on their atoms, without G.

    There the correlation of the residual with atom j is ``lam sign(α_j) + ridge α_j``.
    """
    for row in range(out.size):
        total = norms[row]
        for p in range(indptr[row], indptr[row + 1]):
            value = np.float64(values[p])
            total -= value * Q[row, indices[p]] + lam * abs(value) + ridge * value * value
        out[row] = 0.5 * max(total, 0.0)


@kernel
def elastic_net_of_rows(indptr, values, lam, ridge, out):
    """``lam ‖α‖₁ + ridge/2 ‖α‖²`` of each row."""
    for row in range(out.size):
        total, squares = 0.0, 0.0
        for p in range(indptr[row], indptr[row + 1]):
            value = np.float64(values[p])
            total += abs(value)
            squares += value * value
        out[row] = lam * total + 0.5 * ridge * squares
