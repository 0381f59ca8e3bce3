"""The search for pairs of atoms that are nearly the same."""

from __future__ import annotations

from smalto.kernels.jit import kernel


@kernel
def mark_close(G, scale, least, close):
    """Mark the atoms i that have ``|G_ij| scale_i > least_j`` with a later atom j."""
    k = scale.size
    for i in range(k):
        count = 0
        for j in range(i + 1, k):
            count += abs(G[i, j]) * scale[i] > least[j]
        close[i] = count > 0
