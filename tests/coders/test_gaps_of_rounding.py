"""Gaps of codes over atoms that are one direction but for rounding."""

import warnings

import numpy as np

from smalto import encode
from smalto.coders import GroupLasso

ATOM = [0.55681866, 0.19727358, 0.33270407, 0.59063482, 0.07375754, 0.30974811, 0.30018425]
STEPS = [  # of 2⁻²⁷, from that atom to the others
    [0, 0, 0, 0, 0, 0, 0],
    [56, -54, 80, -112, 54, 24, 16],
    [-32, 2, 104, -80, 59, 96, -16],
    [-48, -66, 148, -88, 163, 36, 60],
    [-48, -138, 68, 24, 23, -12, 56],
    [-40, -100, 60, 16, 19, 76, -40],
]


def test_a_code_that_is_only_rounding_proves_nothing():
    """Its objective and its gap are huge, and their difference bounds no optimum."""
    X = np.array([[1.0, -2.0, -1.0, 2.0, -2.0, -2.0, 1.0]])
    D = np.float64(np.float32(ATOM)) + np.array(STEPS) * 2.0**-27
    lam, of_atoms = 4.0307215730888037e-07, np.array([2, 2, 2, 0, 1, 2])
    coder = GroupLasso(lam, of_atoms)

    def objective(code):
        norms = sum(
            np.linalg.norm(code[of_atoms == g]) * np.sqrt(np.sum(of_atoms == g)) for g in range(3)
        )
        return 0.5 * np.sum((X[0] - code @ D) ** 2) + lam * norms

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what cannot be proven is said
        narrow, info = encode(X.astype(np.float32), D.astype(np.float32), coder, return_info=True)
        wide = encode(X, D, coder)
    above = objective(narrow.toarray()[0].astype(np.float64)) - objective(wide.toarray()[0])
    assert (
        above > -1e-9
    )  # float64 has the better code, as it was not believed to be optimal too soon
    assert info.gap[0] >= 0.99 * above
