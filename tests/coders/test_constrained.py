"""L1Ball and ErrorBound: exact on everything, by either road."""

import warnings

import naive
import numpy as np
import pytest
from hypothesis import given
from naive_coders import by_bisection
from problems import DEGENERATE, DTYPES, examples, ordinary, problems
from scipy import sparse

from smalto import DictionaryLearning, encode, learn
from smalto.coders import ErrorBound, L1Ball, Lasso
from smalto.coders.constrained_solver import follow_rows
from smalto.kernels.coding.active_set import make_active_set
from smalto.kernels.coding.arguments import SparseRows
from smalto.kernels.coding.lars import AT_ERROR, AT_LAM, AT_RADIUS, Bounds

TOLERANCE = {np.float32: 2e-4, np.float64: 1e-9}


def quiet(X, D, coder, **kwargs):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "eps is out of reach|.*codes are not proven optimal")
        return encode(X, D, coder, **kwargs)


def seen(X, D, dtype):
    """The numbers that the coder has seen: those rounded to its dtype."""
    return X.astype(dtype).astype(float), D.astype(dtype).astype(float)


def violation(X, D, codes, positive):
    """Distance from the conditions of a lasso at the lam that the code itself tells."""
    c = (X - codes @ D) @ D.T
    on = codes != 0
    lam = np.array([
        np.mean(row[at] * np.sign(code[at])) if at.any() else np.max(row if positive else abs(row))
        for row, code, at in zip(c, codes, on, strict=True)
    ])  # fmt: skip
    lam = np.maximum(lam, 0.0)
    return np.array([
        naive.lasso_violation(X[[i]], D, codes[[i]], lam[i], 0.0, positive)[0]
        for i in range(len(X))
    ]), lam  # fmt: skip


def check_radius(X, D, codes, radius, dtype, positive=False):
    X, D = seen(X, D, dtype)
    codes = codes.toarray().astype(float)
    missed, lam = violation(X, D, codes, positive)
    size = np.abs(codes).sum(1)
    scale = np.linalg.norm(X, axis=1) * np.linalg.norm(D, axis=1).max()
    scale = scale + size * np.abs(D @ D.T).max() + 1e-300
    tolerance = TOLERANCE[dtype]
    assert np.all(missed <= tolerance * scale)
    assert np.all(size <= radius * (1 + tolerance) + 1e-300)
    # The constraint is tight, or its multiplier is zero.
    assert np.all((size >= radius * (1 - tolerance)) | (lam <= tolerance * scale))
    if positive:
        assert codes.min(initial=0.0) >= 0


def check_error(X, D, codes, eps, dtype, positive=False):
    X, D = seen(X, D, dtype)
    codes = codes.toarray().astype(float)
    missed, lam = violation(X, D, codes, positive)
    error = ((X - codes @ D) ** 2).sum(1)
    norms = (X**2).sum(1)
    tolerance = TOLERANCE[dtype]
    scale = np.sqrt(norms) * np.linalg.norm(D, axis=1).max()
    scale = scale + np.abs(codes).sum(1) * np.abs(D @ D.T).max() + 1e-300
    small = norms <= eps
    assert np.all(codes[small] == 0)
    assert np.all((missed <= tolerance * scale)[~small])
    # The bound is met with equality, or it is out of reach and this is least squares.
    rounding = 16 * np.finfo(dtype).eps * np.abs(codes).sum(1) ** 2 * np.abs(D @ D.T).max()
    gap = np.abs(error - eps) <= tolerance * (norms + eps) + rounding
    least_squares = (lam <= tolerance * scale) & (error >= eps - tolerance * norms)
    assert np.all((gap | least_squares)[~small])
    if positive:
        assert codes.min(initial=0.0) >= 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("positive", [False, True])
def test_degenerate_problems(name, dtype, positive):
    X, D = DEGENERATE[name]
    x, d = X.astype(dtype), D.astype(dtype)
    reach = float(np.abs(quiet(X, D, ErrorBound(0.0)).toarray()).sum(1).max(initial=0.0)) or 1.0
    for share in (0.0, 0.01, 0.3, 0.9, 2.0):
        codes = quiet(x, d, L1Ball(share * reach, positive=positive))
        assert codes.dtype == dtype
        check_radius(X, D, codes, share * reach, dtype, positive)
    norm = float((X**2).sum(1).max(initial=0.0)) or 1.0
    for share in (0.01, 0.3, 0.999, 1.5):
        codes = quiet(x, d, ErrorBound(share * norm, positive=positive))
        assert codes.dtype == dtype
        check_error(X, D, codes, share * norm, dtype, positive)


@pytest.mark.parametrize("dtype", DTYPES)
@examples(150)
@given(problem=problems())
def test_any_problem(dtype, problem):
    X, D, bound, _, positive = problem
    x, d = X.astype(dtype), D.astype(dtype)
    check_radius(X, D, encode(x, d, L1Ball(bound, positive)), bound, dtype, positive)
    check_error(X, D, quiet(x, d, ErrorBound(bound, positive)), bound, dtype, positive)


def test_agrees_with_bisection_over_the_slow_lasso():
    X, D = ordinary(n=4, k=10, m=8)

    def lasso(x, D, lam):
        return naive.lasso(x[None], D, lam)[0]

    for x in X:
        top = float(np.abs(D @ x).max())
        expected = by_bisection(x, D, lasso, lambda a: np.abs(a).sum() - 0.8, top)
        found = encode(x[None], D, L1Ball(0.8)).toarray()[0]
        np.testing.assert_allclose(found, expected, atol=1e-7)
        expected = by_bisection(
            x, D, lasso, lambda a, x=x: 0.4 - ((x - a @ D) ** 2).sum(), top
        )  # fmt: skip
        found = encode(x[None], D, ErrorBound(0.4)).toarray()[0]
        np.testing.assert_allclose(found, expected, atol=1e-6)


def homotopy(X, D, stop, bounds, positive=False):
    """Codes by the other road: the path from zero, float64."""
    k, n = len(D), len(X)
    width = -(-k // 16) * 16
    padded = np.vstack([D, np.zeros((width - k, D.shape[1]))])
    indptr, indices = np.zeros(n + 1, np.int64), np.empty((n + 1) * width, np.int32)
    out = SparseRows(indptr, indices, np.empty(indices.size))
    settings = Bounds(stop, np.full(n, bounds, float), (X**2).sum(1), positive)
    G = (padded @ padded.T).reshape(-1)
    done = follow_rows(G, X @ padded.T, 0, n, settings, make_active_set(width), out)
    assert done == n
    return sparse.csr_array((out.values, indices, indptr), shape=(n, width)).toarray()[:, :k]


@pytest.mark.parametrize("positive", [False, True])
def test_both_roads_agree(positive):
    for seed, correlated in ((0, 0.0), (1, 2.0)):
        X, D = ordinary(seed, n=60, k=48, m=24, correlated=correlated)
        for radius in (0.3, 1.0, 2.0):
            codes = encode(X, D, L1Ball(radius, positive)).toarray()
            np.testing.assert_allclose(
                codes, homotopy(X, D, AT_RADIUS, radius, positive), atol=1e-8
            )
        for eps in (0.9, 0.4) if positive else (0.9, 0.4, 0.05):
            codes = quiet(X, D, ErrorBound(eps, positive)).toarray()
            np.testing.assert_allclose(codes, homotopy(X, D, AT_ERROR, eps, positive), atol=1e-8)
        codes = encode(X, D, Lasso(0.1, positive=positive)).toarray()
        np.testing.assert_allclose(codes, homotopy(X, D, AT_LAM, 0.1, positive), atol=1e-8)


def test_one_bound_per_signal():
    X, D = ordinary(n=700, k=32)
    rng = np.random.default_rng(0)
    bounds = rng.uniform(0.05, 1.2, 700)
    for coder in (L1Ball, ErrorBound):
        together = encode(X, D, coder(bounds), n_threads=2).toarray()
        for i in (0, 5, 128, 129, 500, 699):
            alone = encode(X[[i]], D, coder(float(bounds[i]))).toarray()[0]
            np.testing.assert_allclose(together[i], alone, atol=1e-12)
    codes = encode(X, D, L1Ball(bounds)).toarray()
    assert np.all(np.abs(codes).sum(1) <= bounds * (1 + 1e-12))


def test_an_error_out_of_reach_is_said_once():
    X, D = ordinary(n=300, k=6, m=16)
    with pytest.warns(UserWarning, match="eps is out of reach for 300 of 300 signals") as caught:
        codes = encode(X, D, ErrorBound(1e-3), n_threads=2).toarray()
    assert len(caught) == 1
    np.testing.assert_allclose(codes, np.linalg.lstsq(D.T, X.T, rcond=None)[0].T, atol=1e-9)
    eps = np.where(np.arange(300) < 7, 1e-3, 0.99)
    with pytest.warns(UserWarning, match="for 7 of 300 signals"):
        encode(X, D, ErrorBound(eps))


def test_zero_error_is_basis_pursuit():
    X, D = ordinary(n=10, k=40, m=8)
    codes = encode(X, D, ErrorBound(0.0)).toarray()  # within reach: no warning
    np.testing.assert_allclose(((X - codes @ D) ** 2).sum(1), 0, atol=1e-14)
    assert np.all((codes != 0).sum(1) <= 8)
    least_norm = np.linalg.lstsq(D.T, X.T, rcond=None)[0].T
    assert np.all(np.abs(codes).sum(1) < np.abs(least_norm).sum(1))


def test_an_atom_that_only_rounding_lets_join_does_not_stop_the_lasso():
    X, D = ordinary(5, n=60)
    X, D = X[18:19].astype(np.float32), D.astype(np.float32)
    codes = encode(X, D, Lasso(0.006)).toarray()
    assert naive.lasso_violation(X, D, codes, 0.006)[0] < 1e-5


def test_same_bits_for_any_number_of_threads():
    X, D = ordinary(n=700, k=64, m=20)
    for dtype in DTYPES:
        for coder in (L1Ball(0.7), ErrorBound(0.2), ErrorBound(1e-9)):
            one = quiet(X.astype(dtype), D.astype(dtype), coder, n_threads=1)
            other = quiet(X.astype(dtype), D.astype(dtype), coder, n_threads=3)
            assert np.array_equal(one.indices, other.indices)
            assert np.array_equal(one.data, other.data)
            assert one.has_sorted_indices


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_active_sets(dtype):
    rng = np.random.default_rng(0)
    X, D = rng.standard_normal((150, 260)), rng.standard_normal((240, 260))
    codes = encode(X.astype(dtype), D.astype(dtype), L1Ball(15.0))
    assert np.diff(codes.indptr).max() > 150
    check_radius(X, D, codes, 15.0, dtype)
    codes = quiet(X.astype(dtype), D.astype(dtype), ErrorBound(25.0))
    assert np.diff(codes.indptr).max() > 150
    check_error(X, D, codes, 25.0, dtype)


def test_agrees_with_spams():
    spams = pytest.importorskip("spams")
    X, D = ordinary(n=50, k=48, m=24)
    columns, atoms = np.asfortranarray(X.T), np.asfortranarray(D.T)
    for mode, coder, bound in ((0, L1Ball, 0.9), (1, ErrorBound, 0.3)):
        theirs = spams.lasso(columns, D=atoms, lambda1=bound, lambda2=0.0, mode=mode, numThreads=1)
        np.testing.assert_allclose(
            encode(X, D, coder(bound)).toarray(), theirs.toarray().T, atol=1e-6
        )


@pytest.mark.parametrize("coder", [L1Ball(1.0), ErrorBound(0.3), L1Ball(1.0, positive=True)])
def test_learning(coder):
    X, _ = ordinary(n=1000, k=20)
    test, _ = ordinary(seed=9, n=200, k=20)
    X, test = X @ np.diag(np.geomspace(1, 0.05, 16)), test @ np.diag(np.geomspace(1, 0.05, 16))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    test /= np.linalg.norm(test, axis=1, keepdims=True)

    def cost(D):
        codes = quiet(test, D, coder)
        return float((0.5 * ((test - codes @ D) ** 2).sum(1) + coder.penalty(codes)).mean())

    first = learn(X, 20, coder, random_state=0, max_steps=1).D
    last = learn(X, 20, coder, random_state=0, max_epochs=4).D
    assert cost(last) < cost(first)
    model = DictionaryLearning(16, coder=coder, random_state=0).fit(X)
    assert model.transform(test).shape == (200, 16)


def test_one_bound_per_signal_cannot_learn():
    X, _ = ordinary(n=100)
    for n in (100, 7):
        with pytest.raises(ValueError, match="to learn, give one number for all"):
            learn(X, 5, L1Ball(np.ones(n)), random_state=0)


@pytest.mark.parametrize(("coder", "name"), [(L1Ball, "radius"), (ErrorBound, "eps")])
def test_bad_input(coder, name):
    X, D = ordinary()
    with pytest.raises(ValueError, match=f"{name} must be >= 0, got -1"):
        coder(-1)
    with pytest.raises(ValueError, match=f"{name} must be finite, got inf"):
        coder(np.inf)
    with pytest.raises(ValueError, match=f"{name} must be >= 0, got nan"):
        coder(np.nan)
    with pytest.raises(TypeError, match=f"{name} must be a number, got 'much'"):
        coder("much")
    with pytest.raises(ValueError, match=f"{name} must be >= 0 and finite, got -2.0 for signal 1"):
        coder([1.0, -2.0])
    with pytest.raises(TypeError, match="one-dimensional"):
        coder(np.ones((2, 2)))
    with pytest.raises(ValueError, match=f"{name} has 3 numbers, one per signal, but there are 20"):
        encode(X, D, coder(np.ones(3)))


def test_values_compare_and_inputs_stay():
    bounds = np.array([1.0, 2.0])
    coder = L1Ball(bounds)
    bounds[0] = 7.0
    assert coder == L1Ball([1.0, 2.0]) != L1Ball([1.0, 3.0])
    assert hash(coder) == hash(L1Ball([1.0, 2.0]))
    X, D = ordinary()
    X.flags.writeable = D.flags.writeable = False
    encode(X, D, L1Ball(1.0))
    encode(X, D, ErrorBound(0.2))


def test_penalties():
    codes = sparse.csr_array(np.array([[1.0, -2.0], [0.0, 0.0]]))
    np.testing.assert_array_equal(L1Ball(1.0).penalty(codes), [0, 0])
    np.testing.assert_array_equal(ErrorBound(1.0).penalty(codes), [3, 0])
