"""The exact regularisation path."""

import naive
import numpy as np
import pytest
from hypothesis import given
from problems import DEGENERATE, examples, ordinary, problems

from smalto import encode, lasso_path
from smalto.coders import Lasso


def check_path(path, x, D, ridge=0.0, positive=False):
    """Optimal at every kink and half-way between any two of them."""
    lams = path.lams
    assert np.all(np.diff(lams) <= 0)
    scale = 1e-300 + (np.abs(D) @ np.abs(x)).max(initial=0.0)
    for lam in np.concatenate([lams, (lams[1:] + lams[:-1]) / 2]):
        code = path.at(lam)
        grown = scale + np.abs(code).sum() * np.abs(D @ D.T).max()
        violation = naive.lasso_violation(x[None], D, code[None], lam, ridge, positive)[0]
        # A coefficient that is zero up to rounding does not have to sit at the bound.
        tiny = np.where(np.abs(code) < 1e-9 * (1e-300 + np.abs(code).max(initial=0.0)), 0.0, code)
        violation = min(
            violation, naive.lasso_violation(x[None], D, tiny[None], lam, ridge, positive)[0]
        )
        assert violation <= 1e-7 * grown


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("positive", [False, True])
def test_optimal_everywhere(name, positive):
    X, D = DEGENERATE[name]
    for x in X[:5]:
        check_path(lasso_path(x, D, positive=positive), x, D, positive=positive)


@examples(150)
@given(problem=problems())
def test_optimal_on_any_problem(problem):
    X, D, _, ridge, positive = problem
    path = lasso_path(X[0], D, ridge=ridge, positive=positive)
    check_path(path, X[0], D, ridge, positive)


def test_the_path_has_drops():
    # Correlated atoms make coefficients come back to zero: one-way paths would be wrong here.
    drops = 0
    for seed in range(20):
        X, D = ordinary(seed, k=20, m=12, correlated=2.0)
        path = lasso_path(X[0], D)
        drops += int(np.sum(np.diff(path.nonzeros) < 0))
        check_path(path, X[0], D)
    assert drops > 5


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("positive", [False, True])
def test_agrees_with_the_coder(ridge, positive):
    X, D = ordinary(k=40, m=25)
    path = lasso_path(X[0], D, ridge=ridge, positive=positive)
    for lam in np.linspace(0.002, 0.35, 30):
        code = encode(X[:1], D, Lasso(lam, ridge=ridge, positive=positive)).toarray()[0]
        np.testing.assert_allclose(path.at(lam), code, atol=1e-8)


def test_begins_at_zero_and_ends_at_least_squares():
    X, D = ordinary(k=6, m=20)
    path = lasso_path(X[0], D)
    assert path.lams[0] == pytest.approx(np.abs(D @ X[0]).max())
    assert path.codes[[0]].nnz == 0
    np.testing.assert_array_equal(path.at(path.lams[0] * 1.5), 0)
    expected = np.linalg.lstsq(D.T, X[0], rcond=None)[0]
    np.testing.assert_allclose(path.at(path.lams[-1]), expected, atol=1e-9)


def test_stops_where_asked():
    X, D = ordinary()
    path = lasso_path(X[0], D, lam_end=0.1)
    assert path.lams[-1] == pytest.approx(0.1)
    with pytest.raises(ValueError, match=r"the path ends at lam=0.1, .* lam=0.05"):
        path.at(0.05)


def test_against_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    X, D = ordinary(k=10, m=30)
    alphas, _, coefs = linear_model.lars_path(D.T, X[0], method="lasso")
    path = lasso_path(X[0], D)
    for alpha, coef in zip(alphas * 30, coefs.T, strict=True):
        np.testing.assert_allclose(path.at(max(alpha, path.lams[-1])), coef, atol=1e-8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: lasso_path(np.eye(2), np.eye(2)),
            r"x must be one signal \(m,\), got shape \(2, 2\)",
        ),
        (lambda: lasso_path(np.ones(3), np.eye(2)), "D has 2 features"),
        (lambda: lasso_path([np.nan, 1], np.eye(2)), "x contains NaN"),
        (lambda: lasso_path(np.ones(2), np.eye(2), ridge=-1), "ridge must be >= 0, got -1"),
        (lambda: lasso_path(np.ones(2), np.eye(2), lam_end=-1), "lam_end must be >= 0, got -1"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("x", [np.array(["a", "b"]), np.array([1.0, 2.0j])])
def test_signals_are_real_numbers(x):
    with pytest.raises(TypeError, match="x must hold real numbers, got dtype"):
        lasso_path(x, np.eye(2))


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
def test_a_path_to_zero_reaches_zero(size):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x, D = size * rng.standard_normal(5), rng.standard_normal((6, 5))
        path = lasso_path(x, D)
        np.testing.assert_array_equal(path.at(0), path.codes[[-1]].toarray()[0])
        np.testing.assert_allclose(path.at(0) @ D, x, atol=1e-9 * size)
