"""Certificates, and agreement with a generic convex solver."""

import numpy as np
import pytest
from hypothesis import given
from missing_entries import holes, quiet
from problems import DTYPES, examples, ordinary, problems
from scipy import sparse

from smalto import encode
from smalto.coders import L0, OMP, ErrorBound, L1Ball, Lasso, Ridge, duality_gap

CONVEX = [
    Lasso(0.1),
    Lasso(0.1, positive=True),
    Lasso(0.05, ridge=0.2),
    Lasso(0.05, ridge=0.2, penalty_weights=np.geomspace(0.3, 3, 24)),
    L1Ball(0.9),
    L1Ball(0.9, positive=True),
    ErrorBound(0.3),
    Ridge(0.5),
]


def objective(coder, X, D, codes, known=1.0):
    """What each row minimises; for a bound on the error, the length alone."""
    codes = codes.toarray() if sparse.issparse(codes) else codes
    if isinstance(coder, ErrorBound):
        return np.abs(codes).sum(1)
    fit = 0.5 * (((X - codes @ D) * known) ** 2).sum(1)
    return fit + coder.penalty(sparse.csr_array(codes))


@pytest.mark.parametrize("coder", CONVEX, ids=repr)
@pytest.mark.parametrize("dtype", DTYPES)
def test_codes_have_no_gap(coder, dtype):
    X, D = ordinary(n=40)
    codes, info = encode(X.astype(dtype), D.astype(dtype), coder, return_info=True)
    assert np.all(info.gap < {np.float32: 1e-4, np.float64: 1e-10}[dtype])
    assert info.gap.dtype == np.float64
    assert np.all(info.iterations >= 1)
    np.testing.assert_array_equal(info.nonzeros, (codes.toarray() != 0).sum(1))


@pytest.mark.parametrize("coder", CONVEX, ids=repr)
def test_the_gap_bounds_the_excess(coder):
    X, D = ordinary(n=40)
    best = encode(X, D, coder)
    rng = np.random.default_rng(0)
    for shrink in (0.0, 0.5, 0.9, 0.999):
        worse = best.toarray() * shrink
        if isinstance(coder, ErrorBound):  # further than needed, to stay within the bound
            worse = encode(X, D, ErrorBound(0.3 * (0.1 + 0.9 * shrink))).toarray()
        elif not isinstance(coder, L1Ball):
            worse += 0.1 * (1 - shrink) * rng.random(worse.shape) * (best.toarray() != 0)
        excess = objective(coder, X, D, worse) - objective(coder, X, D, best)
        gap = duality_gap(X, D, worse, coder)
        assert np.all(gap >= excess - 1e-10)
        assert gap.max() > 1e-6


@examples(60)
@given(problems())
def test_gap_of_any_lasso(problem):
    X, D, lam, ridge, positive = problem
    coder = Lasso(max(lam, 0.01), ridge=ridge, positive=positive)
    _codes, info = quiet(X, D, coder, return_info=True)
    assert np.all(info.gap <= 1e-8 * (1 + (X**2).sum(1)))


def test_a_bound_out_of_reach_has_an_infinite_gap():
    X, D = np.eye(3), np.eye(3)[:2]
    with pytest.warns(UserWarning, match="out of reach for 1 of 3"):
        _, info = encode(X, D, ErrorBound(0.1), return_info=True)
    np.testing.assert_array_equal(np.isinf(info.gap), [False, False, True])


def test_greedy_coders_have_no_gap():
    X, D = ordinary()
    for coder in (OMP(max_nonzeros=3), L0(0.1)):
        codes, info = encode(X, D, coder, return_info=True)
        assert np.isnan(info.gap).all()
        np.testing.assert_array_equal(info.iterations, info.nonzeros)
        with pytest.raises(TypeError, match="not a convex problem"):
            duality_gap(X, D, codes, coder)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, D, C: duality_gap(X, D, C, Lasso()), "lam must be decided"),
        (lambda X, D, C: duality_gap(X, D, C[:3], Lasso(0.1)), "codes must have shape"),
        (lambda X, D, C: duality_gap(X, D, C * np.nan, Lasso(0.1)), "NaN"),
        (lambda X, D, C: duality_gap(X, D, C * 1j, Lasso(0.1)), "codes must hold real numbers"),
    ],
)
def test_bad_input(call, message):
    X, D = ordinary()
    with pytest.raises((ValueError, TypeError), match=message):
        call(X, D, encode(X, D, Lasso(0.1)).toarray())


@pytest.mark.parametrize("coder", CONVEX, ids=repr)
@pytest.mark.parametrize("masked", [False, True])
def test_against_a_generic_solver(coder, masked):
    cp = pytest.importorskip("cvxpy")
    X, D = ordinary(n=3)
    known = 1.0 - holes(X, 0.25) if masked else np.ones(X.shape)
    codes = encode(X, D, coder, mask=known == 0)
    for x, hole, ours in zip(X, known, codes.toarray(), strict=True):
        a = cp.Variable(len(D), nonneg=getattr(coder, "positive", False))
        error = cp.sum_squares(cp.multiply(hole, x - a @ D))
        constraints = []
        if isinstance(coder, Lasso):
            weights = (
                np.ones(len(D))
                if coder.penalty_weights is None
                else np.asarray(coder.penalty_weights)
            )
            length = coder.lam * cp.norm1(cp.multiply(weights, a))
            goal = 0.5 * error + length + 0.5 * coder.ridge * cp.sum_squares(a)
        elif isinstance(coder, Ridge):
            goal = 0.5 * error + 0.5 * coder.lam * cp.sum_squares(a)
        elif isinstance(coder, L1Ball):
            goal, constraints = 0.5 * error, [cp.norm1(a) <= coder.radius]
        else:
            goal, constraints = cp.norm1(a), [error <= coder.eps]
        least = cp.Problem(cp.Minimize(goal), constraints).solve(solver=cp.CLARABEL)
        found = objective(coder, x[None], D, ours[None], hole)[0]
        assert found == pytest.approx(least, rel=1e-5, abs=1e-6)
        np.testing.assert_allclose(ours, a.value, atol=2e-3)


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize(
    ("coder", "sign"),
    [(Lasso(0.0, positive=True), 1), (Lasso(0.0, ridge=0.1), 0), (Lasso(0.0, 0.1, True), 0)],
)
def test_codes_without_an_l1_penalty_are_certified_too(coder, sign, holes):
    rng = np.random.default_rng(0)
    X, D = rng.standard_normal((30, 12)), rng.standard_normal((5, 12))
    if sign:
        X, D = abs(X), abs(D)
    D[2] = 0.0  # which no code needs
    mask = rng.random(X.shape) < 0.2 if holes else None
    known = np.ones(X.shape) if mask is None else ~mask

    def costs(codes):
        left = known * (X - codes @ D)
        return 0.5 * (left**2).sum(axis=1) + 0.5 * coder.ridge * (codes**2).sum(axis=1)

    exact = encode(X, D, coder, mask=mask).toarray()
    assert duality_gap(X, D, exact, coder, mask=mask).max() < 1e-10
    for size in (1e-6, 1e-2, 1.0):
        other = exact + size * rng.standard_normal(exact.shape)
        if coder.positive:
            other = np.maximum(other, 0.0)
        gaps = duality_gap(X, D, other, coder, mask=mask)
        assert (gaps >= costs(other) - costs(exact) - 1e-12).all()
        assert gaps.max() < 1e4 * size * (1 + size)  # not the whole cost


def test_bounds_out_of_reach_of_few_atoms():
    """Where the error is out of reach, all signals use all atoms, and are judged together."""
    rng = np.random.default_rng(0)
    X, D = rng.standard_normal((300, 20)), rng.standard_normal((5, 20))
    with pytest.warns(UserWarning, match="eps is out of reach for 300 of 300 signals"):
        codes, info = encode(X, D, ErrorBound(0.1), return_info=True)
    np.testing.assert_allclose(codes.toarray(), X @ np.linalg.pinv(D), atol=1e-9)
    assert np.isinf(info.gap).all()
