"""OMP and L0: the greedy choice at every step, exact coefficients, every limit."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from naive_coders import best_subset, gains, omp, refit
from problems import DEGENERATE, DTYPES, examples, ordinary, problems
from scipy import sparse

from smalto import DictionaryLearning, encode, learn
from smalto.coders import L0, OMP

TOLERANCE = {np.float32: 2e-3, np.float64: 1e-8}


def quiet(X, D, coder, **kwargs):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "eps is out of reach|max_nonzeros=")
        return encode(X, D, coder, **kwargs)


def seen(X, D, dtype):
    return X.astype(dtype).astype(float), D.astype(dtype).astype(float)


def errors(X, D, codes):
    codes = codes.toarray() if sparse.issparse(codes) else codes
    return ((X - codes.astype(float) @ D) ** 2).sum(1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("look_ahead", [True, False])
@pytest.mark.parametrize("nonzeros", [1, 2, 5, 12])
def test_agrees_with_its_definition(nonzeros, look_ahead, dtype):
    X, D = ordinary(n=40, k=30, m=16)
    D *= np.random.default_rng(1).uniform(0.5, 2.0, (30, 1))
    codes = encode(X.astype(dtype), D.astype(dtype), OMP(nonzeros, look_ahead=look_ahead))
    expected = np.array([omp(x, D, nonzeros, look_ahead=look_ahead) for x in X])
    np.testing.assert_allclose(
        codes.toarray(), expected, atol=1e-9 if dtype == np.float64 else 1e-3
    )
    assert codes.dtype == dtype
    assert codes.has_sorted_indices


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("positive", [False, True])
def test_degenerate_problems(name, dtype, positive):
    X, D = DEGENERATE[name]
    x, d = seen(X, D, dtype)
    norms = (x**2).sum(1)
    before = norms
    for nonzeros in (0, 1, 3, 16):
        codes = quiet(X.astype(dtype), D.astype(dtype), OMP(nonzeros, positive=positive)).toarray()
        assert np.all((codes != 0).sum(1) <= nonzeros)
        assert np.all(np.isfinite(codes))
        error = errors(x, d, codes)
        assert np.all(error <= before + TOLERANCE[dtype] * norms)
        before = error
        for i in range(len(x)):  # least squares on its atoms, within the sign
            S = np.flatnonzero(codes[i])
            c = d[S] @ (x[i] - codes[i] @ d)
            size = np.abs(codes[i]).sum() * np.abs(d @ d.T).max() + np.sqrt(norms[i])
            assert np.all(np.abs(c) <= TOLERANCE[dtype] * (size + 1e-300))
        if positive:
            assert codes.min(initial=0.0) >= 0
    codes = quiet(X.astype(dtype), D.astype(dtype), OMP(eps=2.0 * norms.max(initial=1.0)))
    assert codes.nnz == 0


@pytest.mark.parametrize("dtype", DTYPES)
@examples(150)
@given(problem=problems())
def test_any_problem(dtype, problem):
    X, D, lam, _, positive = problem
    x, d = seen(X, D, dtype)
    scale = (x**2).sum(1) + 1e-300
    codes = encode(X.astype(dtype), D.astype(dtype), L0(lam, positive=positive)).toarray()
    for i in range(len(x)):
        S = list(np.flatnonzero(codes[i]))
        if not positive:  # no single further atom is worth its price
            gain = gains(x[i], d, S).max(initial=0.0)
            assert gain <= 2 * lam + TOLERANCE[dtype] * scale[i]
            np.testing.assert_allclose(
                errors(x[[i]], d, codes[[i]])[0], (refit(x[i], d, S)[1] ** 2).sum(),
                atol=TOLERANCE[dtype] * scale[i],
            )  # fmt: skip
    cost = 0.5 * errors(x, d, codes) + lam * (codes != 0).sum(1)
    assert np.all(cost <= 0.5 * scale * (1 + TOLERANCE[dtype]))
    eps = lam + 0.01
    codes = quiet(X.astype(dtype), D.astype(dtype), OMP(eps=eps)).toarray()
    every = list(range(len(d)))
    rcond = TOLERANCE[dtype]  # atoms that differ by rounding are the same
    reach = np.array([(refit(row, d, every, rcond)[1] ** 2).sum() for row in x])
    assert np.all(errors(x, d, codes) <= np.maximum(eps, reach) + TOLERANCE[dtype] * scale)


def test_exhaustive_search_where_greedy_is_exact():
    rng = np.random.default_rng(0)
    D = np.linalg.qr(rng.standard_normal((7, 7)))[0]
    X = rng.standard_normal((10, 7))
    for nonzeros in (1, 3, 5):
        best = [best_subset(x, D, nonzeros) for x in X]
        np.testing.assert_allclose(errors(X, D, encode(X, D, OMP(nonzeros))), best, atol=1e-12)
    C = X @ D.T  # the price of a nonzero: hard thresholding
    codes = encode(X, D, L0(0.4)).toarray()
    np.testing.assert_allclose(codes, np.where(C**2 > 0.8, C, 0.0), atol=1e-12)
    # With one nonzero, look-ahead is exact over any dictionary.
    X, D = ordinary(n=10, k=12, m=6)
    best = [best_subset(x, D, 1) for x in X]
    np.testing.assert_allclose(errors(X, D, encode(X, D, OMP(1))), best, atol=1e-12)


def test_error_limit_is_met_with_no_atom_too_many():
    X, D = ordinary(n=60, k=40)
    codes = encode(X, D, OMP(eps=0.2))
    assert np.all(errors(X, D, codes) <= 0.2 + 1e-12)
    counts = np.diff(codes.indptr)
    for i in range(60):
        shorter = encode(X[[i]], D, OMP(int(counts[i]) - 1))
        assert errors(X[[i]], D, shorter)[0] > 0.2


def test_both_limits_and_one_per_signal():
    X, D = ordinary(n=300, k=40)
    rng = np.random.default_rng(0)
    nonzeros, eps = rng.integers(0, 9, 300), rng.uniform(0.05, 1.2, 300)
    codes = encode(X, D, OMP(nonzeros, eps), n_threads=2).toarray()
    for i in range(0, 300, 17):
        np.testing.assert_allclose(codes[i], omp(X[i], D, nonzeros[i], eps[i]), atol=1e-9)
    alone = encode(X[[7]], D, OMP(int(nonzeros[7]), float(eps[7]))).toarray()[0]
    np.testing.assert_array_equal(codes[7], alone)


def test_small_errors_in_float64():
    rng = np.random.default_rng(0)
    X, D = rng.standard_normal((20, 30)), rng.standard_normal((50, 30))
    codes = encode(X, D, OMP(eps=1e-12))
    assert np.all(errors(X, D, codes) <= 1e-11)


def test_too_many_nonzeros_are_clipped_with_one_warning():
    X, D = ordinary(n=300, k=10, m=6)
    with pytest.warns(UserWarning, match="nonzeros=50 is more than the 10 atoms of 6") as caught:
        codes = encode(X, D, OMP(50))
    assert len(caught) == 1
    assert np.diff(codes.indptr).max() == 6
    np.testing.assert_allclose(codes @ D, X, atol=1e-9)
    with pytest.warns(UserWarning, match="nonzeros=8 is more"):
        encode(X[:2], D, OMP([8, 1]))


def test_an_error_out_of_reach_is_said_once():
    X, D = ordinary(n=300, k=6, m=16)
    with pytest.warns(UserWarning, match="eps is out of reach for 300 of 300 signals") as caught:
        codes = encode(X, D, OMP(eps=1e-3), n_threads=2).toarray()
    assert len(caught) == 1
    np.testing.assert_allclose(codes, np.linalg.lstsq(D.T, X.T, rcond=None)[0].T, atol=1e-9)
    encode(X, D, OMP(2, eps=1e-3))  # stopped by the number of nonzeros: as asked


def test_positive():
    nnls = pytest.importorskip("scipy.optimize").nnls
    X, D = ordinary(n=40, k=30, m=16)
    X = np.abs(X)
    before = (X**2).sum(1)
    for nonzeros in (1, 3, 8):
        codes = encode(X, D, OMP(nonzeros, positive=True)).toarray()
        assert codes.min() >= 0
        for x, code in zip(X, codes, strict=True):
            S = np.flatnonzero(code)
            np.testing.assert_allclose(nnls(D[S].T, x)[0], code[S], atol=1e-9)
        assert np.all(errors(X, D, codes) < before)
        before = errors(X, D, codes)
    full = encode(X, D, OMP(16, positive=True)).toarray()
    for x, code in zip(X, full, strict=True):
        assert ((x - code @ D) ** 2).sum() <= nnls(D.T, x)[1] ** 2 + 1e-9 or (code > 0).sum() == 16


def test_agrees_with_peers():
    spams = pytest.importorskip("spams")
    from sklearn.linear_model import orthogonal_mp_gram

    X, D = ordinary(n=50, k=48, m=24)
    columns, atoms = np.asfortranarray(X.T), np.asfortranarray(D.T)
    theirs = spams.omp(columns, D=atoms, L=5, eps=0.0, numThreads=1).toarray().T
    np.testing.assert_allclose(encode(X, D, OMP(5)).toarray(), theirs, atol=1e-9)
    theirs = spams.omp(columns, D=atoms, L=24, eps=0.2, numThreads=1).toarray().T
    np.testing.assert_allclose(encode(X, D, OMP(eps=0.2)).toarray(), theirs, atol=1e-9)
    theirs = orthogonal_mp_gram(D @ D.T, D @ X.T, n_nonzero_coefs=5).T
    found = encode(X, D, OMP(5, look_ahead=False)).toarray()
    np.testing.assert_allclose(found, theirs, atol=1e-9)


def test_same_bits_for_any_number_of_threads():
    X, D = ordinary(n=700, k=64, m=20)
    for dtype in DTYPES:
        for coder in (OMP(5), OMP(eps=0.1), L0(0.01), OMP(5, positive=True)):
            one = encode(X.astype(dtype), D.astype(dtype), coder, n_threads=1)
            other = encode(X.astype(dtype), D.astype(dtype), coder, n_threads=3)
            assert np.array_equal(one.indices, other.indices)
            assert np.array_equal(one.data, other.data)


@pytest.mark.parametrize("coder", [OMP(3), OMP(3, positive=True), L0(0.02)])
def test_learning(coder):
    shape = np.diag(np.geomspace(1, 0.05, 16))
    X, test = ordinary(n=1000)[0] @ shape, ordinary(seed=9, n=200)[0] @ shape
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    test /= np.linalg.norm(test, axis=1, keepdims=True)

    def cost(D):
        codes = encode(test, D, coder)
        return float((0.5 * errors(test, D, codes) + coder.penalty(codes)).mean())

    first = learn(X, 20, coder, random_state=0, max_steps=1).D
    last = learn(X, 20, coder, random_state=0, max_epochs=4).D
    assert cost(last) < cost(first)
    assert DictionaryLearning(8, coder=coder, random_state=0).fit(X).transform(test).shape[1] == 8


def test_bad_input():
    X, D = ordinary()
    with pytest.raises(ValueError, match="OMP needs a limit"):
        OMP()
    with pytest.raises(ValueError, match="nonzeros must be >= 0, got -1"):
        OMP(-1)
    with pytest.raises(TypeError, match=r"nonzeros must be an integer, got 2\.5"):
        OMP(2.5)
    with pytest.raises(ValueError, match="eps must be >= 0, got -1"):
        OMP(eps=-1)
    with pytest.raises(ValueError, match="lam must be >= 0, got -1"):
        L0(-1)
    with pytest.raises(ValueError, match="nonzeros has 3 numbers, one per signal"):
        encode(X, D, OMP([1, 2, 3]))
    with pytest.raises(ValueError, match="to learn, give one number for all"):
        learn(X, 5, OMP(np.ones(20, int)), random_state=0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("coder", [OMP(4), OMP(4, look_ahead=False), OMP(eps=0.2), OMP(3, positive=True), L0(0.05)])  # fmt: skip
def test_a_signal_with_holes_is_coded_as_if_they_were_not_there(coder, dtype):
    rng = np.random.default_rng(3)
    X, D = ordinary(n=24, k=40, m=20)
    X, D = X.astype(dtype), D.astype(dtype)
    # Never so few known entries that the last atom is any atom.
    mask = rng.permuted(np.arange(20) < rng.choice([0, 6, 12], 24)[:, None], axis=1)
    mask[5] = True
    codes, info = encode(X, D, coder, mask=mask, return_info=True)
    assert codes[[5]].nnz == 0
    for i in range(24):
        known = ~mask[i]
        if not known.any():
            continue
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "max_nonzeros=|eps is out of reach")
            alone = encode(
                np.ascontiguousarray(X[[i]][:, known]), np.ascontiguousarray(D[:, known]), coder
            )
        np.testing.assert_allclose(
            codes[[i]].toarray(), alone.toarray(), atol=1e-9 if dtype == np.float64 else 2e-3
        )
    counts = np.diff(codes.indptr)
    assert np.all(info.iterations >= counts)
    assert np.all(info.iterations <= 2 * counts + 3)


def test_rounds_are_counted():
    X, D = ordinary(n=30, k=40)
    codes, info = encode(X, D, OMP(5), return_info=True)
    np.testing.assert_array_equal(info.iterations, np.full(30, 5))
    np.testing.assert_array_equal(info.nonzeros, np.diff(codes.indptr))
    _, info = encode(np.zeros((2, 16)), D, OMP(5), return_info=True)
    np.testing.assert_array_equal(info.iterations, [0, 0])


def test_more_atoms_than_there_was_room_for():
    rng = np.random.default_rng(0)
    X, D = rng.standard_normal((3, 300)), rng.standard_normal((400, 300))
    for dtype in DTYPES:
        codes = encode(X.astype(dtype), D.astype(dtype), OMP(eps=30.0))
        assert np.diff(codes.indptr).max() > 128
        error = errors(X, D, codes)
        assert np.all(error <= 30.0 * (1 + 1e-4))
        np.testing.assert_allclose(
            (X - codes @ D) @ D.T * (codes.toarray() != 0), 0.0,
            atol=1e-9 if dtype == np.float64 else 2e-2,
        )  # fmt: skip


def test_penalties():
    codes = sparse.csr_array(np.array([[1.0, -2.0], [0.0, 0.0]]))
    np.testing.assert_array_equal(OMP(1).penalty(codes), [0, 0])
    np.testing.assert_array_equal(L0(0.5).penalty(codes), [1, 0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_squares_that_overflow_are_refused(dtype):
    X = np.full((2, 3), 0.9 * np.finfo(dtype).max, dtype)
    with pytest.raises(ValueError, match=rf"more than .* {np.dtype(dtype)} can work with: scale"):
        encode(X, np.eye(3, dtype=dtype), OMP(1))
