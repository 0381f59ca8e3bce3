"""Penalty weights of zero: atoms without a penalty, from the definition of the problem."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from missing_entries import holes, quiet
from problems import DEGENERATE, DTYPES, examples, ordinary, problems
from scipy import optimize, sparse

from smalto import DictionaryLearning, encode, learn
from smalto.coders import ErrorBound, L1Ball, Lasso, duality_gap

CODERS = [Lasso(0.1), Lasso(0.1, ridge=0.2), L1Ball(0.6), ErrorBound(0.2)]


def lasso_violation(x, D, code, lams, ridge=0.0):
    """How far a code is from the optimality conditions; the gradient of a free atom is zero."""
    c = D @ (x - code @ D) - ridge * code
    off = np.maximum(np.abs(c) - lams, 0.0)
    return np.where(code != 0, np.abs(c - lams * np.sign(code)), off).max(initial=0.0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("name", DEGENERATE)
def test_optimal_on_degenerate_problems(name, ridge, dtype):
    X, D = (array.astype(dtype) for array in DEGENERATE[name])
    lam = 0.1 * float(np.abs(X @ D.T).max()) if np.any(X @ D.T) else 0.1
    weights = np.random.default_rng(0).choice([0.0, 1.0, 2.0], len(D), p=[0.2, 0.6, 0.2])
    weights[0] = 0.0
    codes, info = quiet(X, D, Lasso(lam, ridge), penalty_weights=weights, return_info=True)
    assert codes.dtype == dtype
    wide, atoms = X.astype(float), D.astype(float)
    size = max(lam, np.abs(wide @ atoms.T).max()) + np.abs(codes).sum(axis=1).max() * (
        np.abs(atoms @ atoms.T).max() + ridge
    )
    for x, code in zip(wide, codes.toarray().astype(float), strict=True):
        missed = lasso_violation(x, atoms, code, lam * weights, ridge)
        assert missed <= {np.float32: 1e-4, np.float64: 1e-9}[dtype] * size
    half = 0.5 * (wide**2).sum(axis=1)
    assert np.all(info.gap <= {np.float32: 1e-3, np.float64: 1e-8}[dtype] * half)


@examples(60)
@given(problems(), st.integers(0, 9), st.booleans(), st.booleans())
def test_optimal_on_any_problem(problem, seed, each, masked):
    X, D, lam, ridge, _ = problem
    rng, lam = np.random.default_rng(seed), max(lam, 0.01)
    weights = rng.choice([0.0, 0.5, 1.0, np.inf], (len(X) if each else 1, len(D)))
    mask = holes(X, 0.3, seed) if masked else np.zeros(X.shape, bool)
    given_weights = weights if each else weights[0]
    codes = quiet(X, D, Lasso(lam, ridge), penalty_weights=given_weights, mask=mask)
    gaps = duality_gap(X, D, codes, Lasso(lam, ridge), penalty_weights=given_weights, mask=mask)
    every = np.broadcast_to(weights, (len(X), len(D)))
    for row, code in enumerate(codes.toarray()):
        known, use = ~mask[row], np.isfinite(every[row])
        assert not code[~use].any()
        missed = lasso_violation(
            X[row, known], D[use][:, known], code[use], lam * every[row, use], ridge
        )
        assert missed <= 1e-8 * (1 + 16 * np.abs(code).sum())
        assert gaps[row] <= 1e-9


@pytest.mark.parametrize("coder", CODERS, ids=repr)
@pytest.mark.parametrize("masked", [False, True])
def test_gaps_are_what_a_general_solver_finds(coder, masked):
    """The value plus the gap of bad codes is no bound below what is possible, and zero at best."""
    X, D = ordinary(2, n=8, k=8, m=6)
    weights, mask = np.ones(8), holes(X, 0.2) if masked else np.zeros(X.shape, bool)
    weights[[1, 4]] = 0.0
    best, info = quiet(X, D, coder, penalty_weights=weights, mask=mask, return_info=True)
    value = cost(X, D, best.toarray(), coder, weights, mask)
    assert info.gap.max() <= 1e-9
    np.testing.assert_allclose(
        duality_gap(X, D, best, coder, penalty_weights=weights, mask=mask), info.gap, atol=1e-9
    )
    rng = np.random.default_rng(0)
    for _ in range(20):
        codes = best.toarray() + 0.05 * rng.standard_normal(best.shape)
        if isinstance(coder, L1Ball):
            codes[:, weights > 0] *= 0.5
        gaps = duality_gap(X, D, codes, coder, penalty_weights=weights, mask=mask)
        possible = np.isfinite(gaps)
        if not isinstance(coder, ErrorBound):
            assert possible.all()
        worse = cost(X, D, codes, coder, weights, mask) - value
        assert np.all(worse[possible] <= gaps[possible] + 1e-10)
        assert np.all(worse[possible] >= -1e-9)
    found = general(X[0], D, coder, weights, ~mask[0])
    assert value[0] <= found + 1e-5


def cost(X, D, codes, coder, weights, mask):
    lengths = (np.abs(codes) * weights).sum(axis=1)
    if isinstance(coder, ErrorBound):
        return lengths
    fit = 0.5 * (np.where(mask, 0.0, X - codes @ D) ** 2).sum(axis=1)
    if isinstance(coder, L1Ball):
        return fit
    return fit + coder.lam * lengths + 0.5 * coder.ridge * (codes**2).sum(axis=1)


def general(x, D, coder, weights, known):
    """The optimum by sequential quadratic programming, with α = p − n, p ≥ 0 and n ≥ 0."""
    k, x, D = len(D), x[known], D[:, known]

    def fit(v):
        return 0.5 * ((x - (v[:k] - v[k:]) @ D) ** 2).sum()

    def length(v):
        return weights @ (v[:k] + v[k:])

    limits, value = [], fit
    if isinstance(coder, ErrorBound):
        limits, value = [{"type": "ineq", "fun": lambda v: coder.eps - 2 * fit(v)}], length
    elif isinstance(coder, L1Ball):
        limits = [{"type": "ineq", "fun": lambda v: coder.radius - length(v)}]
    else:

        def value(v):
            square = ((v[:k] - v[k:]) ** 2).sum()
            return fit(v) + coder.lam * length(v) + 0.5 * coder.ridge * square

    first = np.full(2 * k, 0.01)
    options = {"maxiter": 2000, "ftol": 1e-12}
    found = optimize.minimize(
        value, first, bounds=[(0, None)] * (2 * k), constraints=limits, method="SLSQP",
        options=options,
    )  # fmt: skip
    assert found.success
    return found.fun


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("coder", [Lasso(0.3), L1Ball(1.0), ErrorBound(3.0)], ids=repr)
def test_a_constant_atom_makes_the_mean_free(coder, dtype):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((40, 12)) + 20.0).astype(dtype)
    D = np.vstack([np.ones((1, 12)) / np.sqrt(12), rng.standard_normal((20, 12))]).astype(dtype)
    weights = np.ones(21)
    weights[0] = 0.0
    A, info = encode(X, D, coder, penalty_weights=weights, return_info=True)
    center = np.eye(12) - np.full((12, 12), 1 / 12)
    rest = encode(X.astype(float) @ center, D[1:].astype(float) @ center, coder)
    close = {np.float32: 2e-2, np.float64: 1e-9}[dtype]
    np.testing.assert_allclose(A.toarray()[:, 1:], rest.toarray(), atol=close)
    mean = (X - A @ D).mean(axis=1)
    assert np.abs(mean).max() < {np.float32: 1e-4, np.float64: 1e-12}[dtype]
    assert info.gap.max() < {np.float32: 1e-3, np.float64: 1e-8}[dtype]
    if dtype == np.float64:
        tiny = np.where(weights == 0, 1e-6, weights)
        limit = encode(X, D, coder, penalty_weights=tiny).toarray()
        np.testing.assert_allclose(A.toarray(), limit, atol=1e-4)


def test_bounds_of_each_signal_and_sparse_signals():
    X, D = ordinary(3, n=300)
    rng = np.random.default_rng(0)
    weights = rng.choice([0.0, 1.0, 3.0], (300, len(D)), p=[0.02, 0.9, 0.08])
    eps = rng.uniform(0.05, 0.3, 300)
    codes = encode(X, D, ErrorBound(eps), penalty_weights=weights, n_threads=1)
    errors = ((X - codes @ D) ** 2).sum(axis=1)
    assert np.all(errors <= eps * (1 + 1e-9))
    binding = (np.abs(codes) * weights).sum(axis=1) > 0
    np.testing.assert_allclose(errors[binding], eps[binding], rtol=1e-8)
    two = encode(X, D, ErrorBound(eps), penalty_weights=weights, n_threads=2)
    np.testing.assert_array_equal(two.toarray(), codes.toarray())
    as_csr = encode(sparse.csr_array(X), D, ErrorBound(eps), penalty_weights=weights)
    np.testing.assert_allclose(as_csr.toarray(), codes.toarray(), atol=1e-9)


def test_weights_of_coder_and_call():
    X, D = ordinary(4)
    own, call = np.ones(len(D)), np.ones((len(X), len(D)))
    own[2], call[:, 5], call[3, 2] = 0.0, 0.0, 7.0
    call[0, 2] = np.inf  # excluded, whatever the coder says
    both = encode(X, D, Lasso(0.1, penalty_weights=own), penalty_weights=call).toarray()
    product = np.where(np.isinf(call), np.inf, own * np.where(np.isinf(call), 1.0, call))
    expected = encode(X, D, Lasso(0.1), penalty_weights=product).toarray()
    np.testing.assert_allclose(both, expected, atol=1e-10)
    assert both[0, 2] == 0.0
    coder = Lasso(0.1, penalty_weights=own)
    codes, info = encode(X, D, coder, return_info=True)
    cheap = np.abs(codes.toarray()) @ own
    np.testing.assert_allclose(coder.penalty(codes), 0.1 * cheap, atol=1e-12)
    assert info.gap.max() < 1e-10
    assert duality_gap(X, D, codes, coder).max() < 1e-10
    bad = codes.toarray()
    bad[:, 2] += 1.0
    rise = 0.5 * ((X - bad @ D) ** 2).sum(axis=1) - 0.5 * ((X - codes @ D) ** 2).sum(axis=1)
    np.testing.assert_allclose(duality_gap(X, D, bad, coder), rise, atol=1e-9)


def test_no_penalty_at_all_is_least_squares():
    X, D = ordinary(5, k=10)
    codes, info = encode(X, D, Lasso(0.1), penalty_weights=np.zeros(10), return_info=True)
    np.testing.assert_allclose(codes.toarray(), X @ np.linalg.pinv(D), atol=1e-10)
    assert info.gap.max() < 1e-12
    for scale in (1e-100, 1e100):
        large = encode(scale * X, D, Lasso(0.1 * scale), penalty_weights=np.arange(10) % 3)
        small = encode(X, D, Lasso(0.1), penalty_weights=np.arange(10) % 3)
        np.testing.assert_allclose(large.toarray() / scale, small.toarray(), atol=1e-9)


def test_learning_keeps_a_free_atom():
    rng = np.random.default_rng(0)
    atoms = rng.standard_normal((8, 20))
    atoms -= atoms.mean(axis=1, keepdims=True)
    X = (rng.random((600, 8)) < 0.2) * rng.standard_normal((600, 8)) @ atoms
    X += 5.0 + rng.standard_normal((600, 1))  # a mean of its own in each sample
    coder = Lasso(0.5, penalty_weights=(0.0, *np.ones(8)))
    settings = {"max_epochs": 8, "random_state": 0}
    result = learn(X, 9, coder, validation=X[:100], **settings)
    assert result.history[-1].test_cost < 0.8 * result.history[0].test_cost
    codes = encode(X[:100], result.D, coder)
    value = cost(
        X[:100], result.D, codes.toarray(), coder, np.array(coder.penalty_weights), X[:100] > 1e9
    )
    assert result.history[-1].test_cost == pytest.approx(value.mean(), rel=1e-9)
    plain = learn(X, 9, Lasso(0.5), **settings)
    dear = encode(X[:100], plain.D, Lasso(0.5))
    dear = cost(X[:100], plain.D, dear.toarray(), Lasso(0.5), np.ones(9), X[:100] > 1e9)
    assert value.mean() < 0.8 * dear.mean()
    for threads in (1, 2):
        again = learn(X, 9, coder, n_threads=threads, **settings)
        np.testing.assert_array_equal(again.D, learn(X, 9, coder, **settings).D)
    model = DictionaryLearning(9, coder=coder, **settings).fit(X)
    np.testing.assert_array_equal(model.components_, again.D)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.transform(X[:5])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("off", [1e-3, 1e-5, 1e-8])
@pytest.mark.parametrize("coder", [Lasso(0.05), L1Ball(0.3)], ids=repr)
def test_similar_atoms_without_a_penalty(coder, off, dtype):
    """Their coefficients may be large: rounding is kept small, constraints are kept."""
    rng = np.random.default_rng(0)
    X, D = ordinary(6, n=30)
    D[1:4] = D[0] + off * rng.standard_normal((3, 16))
    X, D = X.astype(dtype), D.astype(dtype)
    weights = np.ones(len(D))
    weights[:4] = 0.0
    codes, info = encode(X, D, coder, penalty_weights=weights, return_info=True)
    A, wide, atoms = codes.toarray().astype(float), X.astype(float), D.astype(float)
    if isinstance(coder, L1Ball):
        assert (np.abs(A[:, 4:]).sum(axis=1) <= 0.3 * (1 + 1e-6)).all()
    value = cost(wide, atoms, A, coder, weights, np.zeros(X.shape, bool))
    half = 0.5 * (wide**2).sum(axis=1)
    assert (value <= half * (1 + 1e-6)).all()
    assert (info.gap <= {np.float32: 1e-3, np.float64: 1e-8}[dtype] * half).all()


@pytest.mark.parametrize("seed", range(5))
def test_bounds_that_rounding_misses_are_not_called_out_of_reach(seed):
    rng = np.random.default_rng(seed)
    first, others = rng.standard_normal(5), rng.standard_normal((3, 5))
    D, x = np.vstack([first, first + 1e-10 * others]), rng.standard_normal((1, 5))
    span = np.linalg.qr(np.vstack([first, others]).T)[0]
    eps = float(np.sum((x - (x @ span) @ span.T) ** 2)) + 1e-3  # in reach, by huge coefficients
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        codes = encode(x, D, ErrorBound(eps), penalty_weights=np.array([0.0, 1.0, 1.0, 1.0]))
    said = " / ".join(str(each.message) for each in caught)
    assert "out of reach" not in said
    assert "not proven optimal" in said or np.sum((x - codes @ D) ** 2) <= eps * (1 + 1e-9)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("off", [1e-12, 1e-13])
def test_directions_that_only_huge_coefficients_reach_are_counted(count, off):
    """The gap bounds what they would gain, and it is said."""
    rng = np.random.default_rng(3)
    D, X = rng.standard_normal((12, 10)), rng.standard_normal((6, 10))
    others = rng.standard_normal((count - 1, 10))
    D[1:count] = D[0] + off * others
    weights = np.where(np.arange(12) < count, 0.0, 1.0)
    with pytest.warns(RuntimeWarning, match="6 of 6 codes are not proven optimal"):
        codes, info = encode(X, D, Lasso(0.5), penalty_weights=weights, return_info=True)
    value = cost(X, D, codes.toarray(), Lasso(0.5), weights, np.zeros(X.shape, bool))
    span = np.linalg.qr(np.vstack([D[0], D[1:count] - D[0]]).T / [1.0, *[off] * (count - 1)])[0]
    X, D = (rows - (rows @ span) @ span.T for rows in (X, D))
    D[:count] = 0.0
    rest = encode(X, D, Lasso(0.5))
    best = cost(X, D, rest.toarray(), Lasso(0.5), np.ones(12), np.zeros(X.shape, bool))
    above = value - best
    assert above.max() > 0.1  # much is lost
    assert np.all(above <= info.gap * (1 + 1e-3))


@pytest.mark.parametrize("off", [1e-5, 4e-6, 2e-6, 1.5e-6])
def test_atoms_that_differ_by_more_than_the_rounding_of_float32(off):
    D = np.array([[1, 0, 0], [1, off, 0], [0, 0, 1]], np.float32)
    x, weights = np.array([[1, 1, 0]], np.float32), np.array([0.0, 0.0, 1.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        codes, info = encode(x, D, Lasso(0.5), penalty_weights=weights, return_info=True)
    value = 0.5 * float(np.sum((x - codes.toarray().astype(float) @ D.astype(float)) ** 2))
    assert value <= info.gap[0] * (1 + 1e-3) + 1e-12  # the minimum is 0
    assert value <= 1e-3 or any("not proven optimal" in str(each.message) for each in caught)


def test_coefficients_beyond_float32_are_refused():
    """Of an atom of which hardly anything is known, nothing but its coefficient is huge."""
    X, D = np.array([[1e15, 1.0]], np.float32), np.array([[1e-25, 1.0], [0.0, 1.0]], np.float32)
    options = {"penalty_weights": [0.0, 1.0], "mask": np.array([[False, True]])}
    with pytest.raises(ValueError, match="codes of X over D overflow float32"):
        encode(X, D, Lasso(0.1), **options)
    wide = encode(X.astype(np.float64), D.astype(np.float64), Lasso(0.1), **options)
    np.testing.assert_allclose(wide.toarray(), [[1e40, 0.0]], rtol=1e-6)
