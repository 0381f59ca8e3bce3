"""By how much codes fit worse than least squares on the atoms that they use."""

from __future__ import annotations

from typing import Any

import numpy as np

from smalto.kernels.coding.omp import Source
from smalto.kernels.coding.omp_fit import fit_chosen
from smalto.kernels.jit import kernel, summing


@summing
def _subtract(value, atom, left):
    for i in range(left.size):
        left[i] -= value * atom[i]


@summing
def _product(atom, left):
    total = 0.0
    for i in range(left.size):
        total += atom[i] * left[i]
    return total


@kernel
def off_least_squares(X, D, codes, G, active, left, c, squares, off):
    """Write ``‖x − αD‖²`` and by how much its half is above that of the best code on the same atoms.

    The difference is ``½ cᵀG⁻¹c``, where c are the correlations of the residual with these atoms and
    G is their Gram matrix, which may be in float32: it is to be told roughly. It is infinite where an
    atom nearly depends on the others. All else is in float64; ``left`` and ``c`` are scratch.
    """
    indptr, indices, values = codes
    zero: Any = np.int64(0)
    source = Source(G, None, c, zero, None)
    for row in range(X.shape[0]):
        first, s = indptr[row], indptr[row + 1] - indptr[row]
        for i in range(left.size):
            left[i] = X[row, i]
        for p in range(first, first + s):
            _subtract(np.float64(values[p]), D[indices[p]], left)
        squares[row] = _product(left, left)
        for i in range(s):
            j = indices[first + i]
            active.atoms[i] = j
            c[j] = _product(D[j], left)
        taken, gained = fit_chosen(source, c.size, 0.0, -np.inf, active, s)
        off[row] = -0.5 * gained if taken == s else np.inf
