"""Lassos solved by pivots, with an orthogonal factorization of the atoms in use."""

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import examples

from smalto import encode
from smalto.coders import Lasso, pivoting
from smalto.coders.pivoting import pivoted


def check(x, D, lams, positive, start):
    code = pivoted(x, D, lams, positive, start, 1e-13 * 0.5 * float(x @ x), 1e9)
    off = naive.lasso_violation(x[None], D / lams[:, None], (code * lams)[None], 1.0, 0.0, positive)
    sizes = (np.linalg.norm(x) * np.linalg.norm(D, axis=1) / lams).max()
    assert off[0] <= 1e-9 * sizes
    if positive:
        assert (code >= 0).all()


@examples(60)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 40),
    m=st.integers(1, 60),
    exponent=st.floats(-6, 0),
    spread=st.floats(0, 2),
    positive=st.booleans(),
    warm=st.booleans(),
)
def test_optimal_from_anywhere(seed, k, m, exponent, spread, positive, warm):
    rng = np.random.default_rng(seed)
    x, D = rng.standard_normal(m), rng.standard_normal((k, m))
    lams = 10.0 ** (exponent + rng.uniform(-spread, spread, k))
    start = rng.standard_normal(k) * (rng.random(k) < 0.5) if warm else np.zeros(k)
    check(x, D, lams, positive, start)


@pytest.mark.parametrize("positive", [False, True])
def test_repeated_zero_and_nearly_repeated_atoms(positive):
    rng = np.random.default_rng(0)
    D = rng.standard_normal((12, 9))
    D = np.vstack([D, D[:5], D[:5] + 1e-7 * rng.standard_normal((5, 9)), np.zeros((2, 9))])
    for start in (np.zeros(len(D)), rng.standard_normal(len(D)), np.full(len(D), np.nan)):
        check(rng.standard_normal(9), D, np.full(len(D), 1e-3), positive, start)


def test_what_costs_too_much_is_left_as_it_is():
    start = np.array([0.5, 0.0])
    D = np.random.default_rng(0).standard_normal((2, 3))
    np.testing.assert_array_equal(
        pivoted(np.ones(3), D, np.ones(2), False, start, 0.0, 10.0), start
    )


def test_nothing_to_code():
    code = pivoted(np.zeros(3), np.eye(3), np.ones(3), False, np.ones(3), 0.0, 1e6)
    np.testing.assert_array_equal(code, 0.0)


def test_codes_with_as_many_atoms_as_features_are_optimal():
    """Every further atom depends on those in use; penalties differ by a factor of ten thousand."""
    rng = np.random.default_rng(1)
    m, k = 350, 700
    D, X = rng.random((k, m)), 5.0 + rng.standard_normal((2, m))
    weights = 10.0 ** rng.uniform(-2, 2, k)
    lam = 1e-6 * float(np.abs(X @ D.T).max())
    _, info = encode(X, D, Lasso(lam), penalty_weights=weights, return_info=True)
    assert (info.nonzeros >= m - 5).all()
    assert (info.gap <= 1e-8 * 0.5 * (X**2).sum(axis=1)).all()


def test_a_singular_factor_ends_the_search(monkeypatch):
    """The last atom may depend on the others in spite of all: the code so far is returned."""
    rng = np.random.default_rng(0)
    D, x = rng.standard_normal((12, 6)), rng.standard_normal(6)
    solve, calls = pivoting._Basis.solve, []

    def singular(self, right, slopes):
        calls.append(1)
        if len(calls) == 4:
            raise np.linalg.LinAlgError
        return solve(self, right, slopes)

    monkeypatch.setattr(pivoting._Basis, "solve", singular)
    code = pivoted(x, D, np.full(12, 0.1), False, np.zeros(12), 0.0, 1e9)
    assert len(calls) == 4
    left = x - code @ D
    assert 0.5 * left @ left + 0.1 * np.abs(code).sum() < 0.5 * x @ x
