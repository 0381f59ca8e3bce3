"""Which codes may be spoilt by rounding: large coefficients that cancel each other."""

from __future__ import annotations

import numpy as np

from smalto.kernels.jit import summing


@summing
def doubtful_rows(indptr, indices, values, sizes, norms, limit, out):
    """Set ``out`` where ``Σ|α_j|‖d_j‖ > limit ‖x‖`` or α is not finite.

    ``sizes`` are the norms of the atoms, ``norms`` the squared norms of the signals. Returns in how
    many rows that is so.
    """
    count = np.int64(0)
    for row in range(out.size):
        total = 0.0
        for p in range(indptr[row], indptr[row + 1]):
            total += abs(np.float64(values[p])) * sizes[indices[p]]
        out[row] = not total * total <= limit * limit * norms[row]
        count += out[row]
    return count
