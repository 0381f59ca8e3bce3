"""Gaps of codes over atoms that are one direction but for rounding."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from smalto import encode
from smalto.coders import GroupLasso, Lasso, duality_gap
from smalto.coders.precise_residuals import precise_residuals

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


def test_gaps_of_unpenalized_atoms_count_what_their_rounding_adds():
    """Coefficients of 3e8 cancel: float64 does not know their objective well enough."""
    rng = np.random.default_rng(3)
    bumps = np.exp(-0.5 * ((np.linspace(0.0, 1.0, 47) - rng.random((39, 1))) / 0.5) ** 2)
    bumps /= np.linalg.norm(bumps, axis=1, keepdims=True)
    D = np.vstack([bumps, rng.standard_normal((3, 47))])
    X, weights = rng.standard_normal((20, 47)), np.where(np.arange(42) < 39, 0.0, 1.0)
    coder = Lasso(1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what cannot be proven is said
        codes, info = encode(X, D, coder, penalty_weights=weights, return_info=True)
    gap = duality_gap(X, D, codes, coder, penalty_weights=weights)
    A = codes.toarray()
    exact = np.array([float(_exact_fit(x, D, a)) for x, a in zip(X, A, strict=True)])
    # Coefficients beyond 1e11 would fit more: those directions are only rounding.
    _, sizes, basis = np.linalg.svd(bumps, full_matrices=False)
    basis = basis[sizes > 1e-11 * sizes[0]]
    best = X - A[:, 39:] @ D[39:]
    best -= (best @ basis.T) @ basis
    above = exact - 0.5 * (best**2).sum(axis=1)
    assert above.max() > 1e-10  # or there is nothing to see
    assert (above <= 1.01 * gap + 1e-13).all()
    assert (above <= 1.01 * info.gap + 1e-13).all()


@pytest.mark.parametrize("size", [1.0, 1e4, 1e8, 1e12])
def test_residuals_of_coefficients_that_cancel(size):
    rng = np.random.default_rng(0)
    D = rng.standard_normal((6, 9))
    D[3:] = D[:3] + rng.standard_normal((3, 9)) / size
    half = size * rng.standard_normal((5, 3))
    codes = csr_array(np.hstack([half, -half]))
    X = rng.standard_normal((5, 9))
    exact = [float(_exact_fit(x, D, a)) for x, a in zip(X, codes.toarray(), strict=True)]
    fit = 0.5 * (precise_residuals(X, D, codes) ** 2).sum(axis=1)
    np.testing.assert_allclose(fit, exact, rtol=1e-11 if size <= 1e4 else 1e-14)


def _exact_fit(x, D, code):
    """Return ``½‖x − αD‖²`` without any rounding."""
    used = [(Fraction(float(code[j])), D[j]) for j in np.flatnonzero(code)]
    left = [
        Fraction(float(x[i])) - sum(c * Fraction(float(atom[i])) for c, atom in used)
        for i in range(len(x))
    ]
    return sum(each * each for each in left) / 2
