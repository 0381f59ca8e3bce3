"""Samples that no atom reaches: a way out of saddle points.

A sample that has no feature in common with any atom has a code of zeros, and features that no coded
sample has stay zero in all atoms. Descent cannot leave such a point, however bad it is. Here atoms that
others can do without are exchanged for such samples.
"""

from __future__ import annotations

import numpy as np

from smalto.checks import Array
from smalto.coders.scaling import squared_norms
from smalto.learning.alternating.variables import DenseCodes

_NEARLY = 1e-10  # added to the diagonal of a Gram matrix of unit atoms, so that it has an inverse


def unreached(codes: DenseCodes) -> Array:
    """Return the numbers of the samples that are not zero, but whose codes are."""
    rows = np.flatnonzero(~codes.old.any(axis=0))
    return rows[squared_norms(codes.X[rows]) > 0]


def reach_more(D: Array, codes: DenseCodes, lost: Array) -> int:
    """Turn atoms into some of the samples ``lost``, where these lower the cost; return how many.

    Removing atom j costs at least ``½ Σ c_j²`` times its squared distance from the span of the
    others. A sample as an atom gains what it explains of those that were not reached. Atoms have norm
    1 or are zero; D and the codes are changed in place.
    """
    norms = squared_norms(codes.X[lost])
    uses = np.einsum("ij,ij->i", codes.old, codes.old, dtype=np.float64)
    wide, left = D.astype(np.float64), np.arange(len(D))
    while lost.size and left.size:
        G = wide[left] @ wide[left].T + _NEARLY * np.eye(len(left))
        costs = uses[left] / np.diagonal(np.linalg.inv(G))
        place, x = int(np.argmin(costs)), codes.direction(int(lost[np.argmax(norms)]))
        assert x is not None, "samples of norm zero are not lost"
        shared = np.asarray(codes.X[lost] @ x, np.float64)
        if not shared @ shared > costs[place]:
            break
        D[left[place]] = x
        codes.old[left[place]] = codes.ahead[left[place]] = 0.0
        others = shared <= 0.0
        left, lost, norms = np.delete(left, place), lost[others], norms[others]
    return len(D) - len(left)
