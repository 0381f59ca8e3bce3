"""Signals with missing entries: in coding, and in learning."""

import itertools

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from missing_entries import holes, planted, quiet
from problems import DEGENERATE, DTYPES, examples, ordinary, problems
from scipy import sparse
from sklearn.base import clone

from smalto import NMF, DictionaryLearning, encode, learn, quality
from smalto.coders import L0, OMP, Bridge, ErrorBound, L1Ball, Lasso, Ridge, duality_gap
from smalto.datasets import random_patches, sample_photo
from smalto.kernels.coding.arguments import View
from smalto.kernels.coding.masked_atoms import correlations_of_signal, make_products
from smalto.kernels.coding.masked_gram import (
    LazyGram,
    begin_signal,
    make_block,
    make_row,
    squared_norms,
)
from smalto.learners import SGD, Batch, Online

CODERS = [
    Lasso(0.1),
    Lasso(0.05, ridge=0.1, positive=True),
    ErrorBound(0.1),
    L1Ball(1.0),
    OMP(max_nonzeros=3),
    L0(0.02),
    Ridge(0.1),
    Bridge(0.05, delta=0.05),
]
CONVEX = [coder for coder in CODERS if hasattr(coder, "gap")]
FEW = {np.float32: 1e-5, np.float64: 1e-11}


# --- the lazy Gram matrix


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.6, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("width", [16, 160])
def test_rows_of_a_lazy_gram_matrix(dtype, share, weighted, width):
    rng = np.random.default_rng(0)
    n, m, ridge = 3, 20, 0.5
    D = rng.standard_normal((width, m)).astype(dtype)
    D[1, 5:] = 0.0  # an atom that may lose all it has
    missing = rng.random((n, m)) < share
    missing[:, :5] |= share > 0
    inverse = rng.uniform(0.5, 2, (n if weighted else 0, width)).astype(dtype)
    shared = D @ D.T + ridge * np.eye(width, dtype=dtype)
    lazy = LazyGram(
        shared.reshape(-1),
        np.ascontiguousarray(D.T).reshape(-1),
        missing,
        inverse,
        listed=np.empty((2, m), np.int64),
        counts=np.zeros(4, np.int64),
        made=np.zeros(width, np.bool_),
        ridge=ridge,
        atoms=D.reshape(-1),
        gathered=np.empty(width, np.int8),
        entries=np.full(width * 32, np.nan, dtype),
        scratch=np.full(width + 32, np.nan, dtype),
    )
    G, fast = np.full(width * width, np.nan, dtype), np.full(width * width, np.nan, np.float32)
    fast = G if dtype == np.float32 else fast
    for row in range(n):
        begin_signal(lazy, row)
        known = np.where(missing[row], 0, D.astype(float))
        expected = known @ known.T + ridge * np.eye(width)
        if weighted:
            expected *= inverse[row].astype(float) * inverse[row].astype(float)[:, None]
        tolerance = 50 * np.finfo(dtype).eps * np.abs(D).max() ** 2 * m
        for j in (1, 0, 7, 1):
            make_row(lazy, j, G, fast)
            np.testing.assert_allclose(G.reshape(width, -1)[j], expected[j], atol=tolerance)
            np.testing.assert_allclose(fast.reshape(width, -1)[j], expected[j], atol=1e-3)
        diagonal = np.empty(width, dtype)
        squared_norms(lazy, diagonal)
        np.testing.assert_allclose(diagonal, np.diagonal(expected), atol=tolerance)
        assert np.isnan(G.reshape(width, -1)[3]).all()  # nobody has asked for it
        begin_signal(lazy, row)
        atoms, code = np.array([9, 1, 4, 0, 7]), rng.standard_normal(5)
        for s in range(5):
            make_products(lazy, atoms[s], atoms, s, G)
            products = G.reshape(width, -1)[atoms[s], atoms[: s + 1]]
            np.testing.assert_allclose(products, expected[atoms[s], atoms[: s + 1]], atol=tolerance)
        q = rng.standard_normal(3 * width).astype(dtype)
        c = np.concatenate([np.full(width, np.nan), code]).astype(dtype)
        view = View(shared.reshape(-1), q, width, c, lazy)
        for positive in (False, True):
            c[width:] = code
            largest = correlations_of_signal(lazy, view, width, atoms, 5, positive)
            left = q[width : 2 * width] - code @ expected[atoms]
            np.testing.assert_allclose(c[:width], left, atol=10 * tolerance)
            assert largest == pytest.approx(max(left if positive else abs(left)), abs=1e-4)
        atoms, stride = np.array([9, 1, 4, 0, 7, 2, 8, 3, 5, 6]), 24
        work = np.full((len(atoms) + 1) * stride, np.nan)
        make_block(lazy, atoms, len(atoms), work, stride, stride, 0)
        block = work.reshape(-1, stride)[1:, : len(atoms)]
        np.testing.assert_allclose(
            np.triu(block), np.triu(expected[np.ix_(atoms, atoms)]), atol=tolerance
        )


# --- coding


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("coder", CODERS, ids=repr)
@pytest.mark.parametrize("share", [0.1, 0.7])
def test_missing_entries_might_as_well_not_exist(coder, dtype, share):
    X, D = ordinary(n=12)
    X, D, mask = X.astype(dtype), D.astype(dtype), holes(X, share)
    codes = quiet(X, D, coder, mask=mask).toarray()
    for x, d, hole, code in zip(X, [D] * len(X), mask, codes, strict=True):
        alone = quiet(x[None, ~hole], d[:, ~hole], coder).toarray()[0]
        # Ties are broken by rounding: where one dimension is left, all atoms gain the same.
        ties = dtype == np.float32 or np.count_nonzero(alone) >= np.count_nonzero(~hole)
        if isinstance(coder, OMP | L0) and ties:
            errors = [((x - a @ d)[~hole] ** 2).sum() for a in (code, alone)]
            np.testing.assert_allclose(*errors, atol=1e-4 if dtype == np.float32 else 1e-12)
        else:
            np.testing.assert_allclose(code, alone, atol=100 * FEW[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DEGENERATE)
def test_optimal_with_holes_on_degenerate_problems(name, dtype):
    X, D = DEGENERATE[name]
    X, D, mask = X.astype(dtype), D.astype(dtype), holes(X, 0.3)
    scale = float(np.abs(X @ D.T).max()) or 1.0
    lam, seen = 0.1 * scale, [np.asarray(part, float) for part in (X, D)]
    codes = quiet(X, D, Lasso(lam), mask=mask).toarray()
    for x, hole, code in zip(seen[0], mask, codes, strict=True):
        known = x[None, ~hole], seen[1][:, ~hole]
        missed = naive.lasso_violation(*known, code[None], lam)[0]
        size = lam + np.abs(code).sum() * np.abs(D @ D.T).max()
        assert missed <= {np.float32: 1e-4, np.float64: 1e-10}[dtype] * size


@examples(60)
@given(problems(), st.integers(0, 3))
def test_optimal_with_holes_on_any_problem(problem, seed):
    X, D, lam, ridge, positive = problem
    lam = max(lam, 0.01)
    mask = holes(X, 0.4, seed)
    codes = quiet(X, D, Lasso(lam, ridge=ridge, positive=positive), mask=mask).toarray()
    for x, hole, code in zip(X, mask, codes, strict=True):
        known = x[None, ~hole], D[:, ~hole]
        missed = naive.lasso_violation(*known, code[None], lam, ridge, positive)[0]
        assert missed <= 1e-8 * (1 + np.abs(code).sum() * 16)


@pytest.mark.parametrize("coder", CONVEX, ids=repr)
def test_gap_with_holes(coder):
    X, D = ordinary(n=20)
    mask = holes(X, 0.4)
    codes, info = quiet(X, D, coder, mask=mask, return_info=True)
    reached = np.isfinite(info.gap)
    assert np.all(info.gap[reached] < 1e-8)
    assert reached.mean() > 0.5
    np.testing.assert_allclose(info.gap, duality_gap(X, D, codes, coder, mask=mask))
    assert duality_gap(X, D, 0.9 * codes, coder, mask=mask).max() > 1e-4


@pytest.mark.parametrize("coder", CODERS, ids=repr)
def test_a_code_does_not_depend_on_other_rows(coder):
    X, D = ordinary(n=150)
    mask = holes(X, 0.3)
    mask[::3] = False
    together = quiet(X, D, coder, mask=mask, n_threads=2).toarray()
    for i in (0, 1, 77, 149):
        alone = quiet(X[[i]], D, coder, mask=mask[[i]], n_threads=1).toarray()[0]
        np.testing.assert_allclose(together[i], alone, atol=1e-12)  # products round otherwise


def test_what_stands_in_a_hole_is_not_looked_at():
    X, D = ordinary()
    mask = holes(X, 0.3)
    expected = encode(X, D, Lasso(0.1), mask=mask).toarray()
    nan, infinite = np.where(mask, np.nan, X), np.where(mask, np.inf, X)
    for codes in (
        encode(nan, D, Lasso(0.1), mask=mask),
        encode(infinite, D, Lasso(0.1), mask=mask.astype(int)),
        encode(nan, D, Lasso(0.1), missing="nan"),
        encode(np.ma.MaskedArray(infinite, mask), D, Lasso(0.1)),
    ):
        np.testing.assert_array_equal(codes.toarray(), expected)
    assert np.isnan(nan[mask]).all()  # inputs are left alone


def test_a_signal_without_known_entries_has_the_zero_code():
    X, D = ordinary(n=3)
    mask = np.zeros(X.shape, bool)
    mask[1] = True
    for coder in CODERS:
        codes = quiet(X, D, coder, mask=mask).toarray()
        assert not codes[1].any()
        others = quiet(X[[0, 2]], D, coder).toarray()
        np.testing.assert_allclose(codes[[0, 2]], others, atol=1e-12)  # products round otherwise


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"mask": np.zeros((2, 2), bool)}, ValueError, "mask must have the shape"),
        ({"mask": np.full((20, 16), 0.5)}, TypeError, "mask must hold booleans"),
        ({"missing": "zero"}, ValueError, "missing must be None"),
        (
            {"mask": np.ones((20, 16), bool), "coder": Lasso(mean_nonzeros=3)},
            ValueError,
            "no signal is correlated with any atom",
        ),
    ],
)
def test_bad_masks(arguments, error, message):
    X, D = ordinary()
    with pytest.raises(error, match=message):
        encode(X, D, **{"coder": Lasso(0.1), **arguments})


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_wanted_number_of_nonzeros_with_holes_and_weights(dtype, positive):
    X, D = ordinary(n=100, k=20, m=12)
    X, D, rng = X.astype(dtype), D.astype(dtype), np.random.default_rng(0)
    mask, weights = rng.random(X.shape) < 0.4, rng.uniform(0.5, 2.0, (100, 20))
    coder = Lasso(mean_nonzeros=3, ridge=0.01, positive=positive)
    for some in ({"mask": mask}, {"penalty_weights": weights}, {"penalty_weights": weights[0]}):
        codes, info = encode(X, D, coder, return_info=True, **some)
        assert codes.nnz / 100 == pytest.approx(3, rel=0.02)
        threads = encode(X, D, coder, n_threads=3, return_info=True, **some)[1]
        large = encode(X * dtype(2.0**40), D, coder, return_info=True, **some)[1]
        assert info.coder.lam == threads.coder.lam == large.coder.lam / 2.0**40


def test_learning_reaches_a_wanted_number_of_nonzeros_with_holes():
    X, _ = planted(n=600)
    mask = np.random.default_rng(0).random(X.shape) < 0.3
    result = learn(X, 12, Lasso(mean_nonzeros=3), mask=mask, max_epochs=20, random_state=0)
    assert result.history[-1].mean_nonzeros == pytest.approx(3, rel=0.1)


def test_nan_is_an_error_unless_it_means_missing():
    X, D = ordinary()
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        encode(X, D)
    with pytest.raises(ValueError, match="NaN"):
        learn(X, 4)
    X[4, 1] = np.inf
    with pytest.raises(ValueError, match=r"first \(infinity\)"):
        encode(X, D, missing="nan")


# --- learning


def test_a_planted_dictionary_is_found_through_holes():
    X, D = planted()
    Y = np.where(holes(X, 0.4), np.nan, X)
    result = learn(Y, 20, Lasso(0.15), missing="nan", max_epochs=15, random_state=0)
    assert naive.matched(result.D, D, 0.98) >= 0.95
    by_zeros = learn(np.nan_to_num(Y), 20, Lasso(0.15), max_epochs=15, random_state=0)
    assert naive.matched(by_zeros.D, D, 0.98) < 0.5


def test_better_than_filling_with_means_on_patches():
    photo = sample_photo("flower")
    X = random_patches(photo, 6, 4000, random_state=0).astype(float)
    test = random_patches(photo, 6, 1000, random_state=1).astype(float)
    Y = np.where(holes(X, 0.3), np.nan, X)
    coder, settings = Lasso(0.2), {"max_epochs": 4, "random_state": 0}
    with_holes = learn(Y, 48, coder, missing="nan", **settings).D
    means = np.where(np.isnan(Y), np.nanmean(Y, axis=0), Y)
    filled = learn(means, 48, coder, **settings).D
    whole = learn(X, 48, coder, **settings).D

    def cost(D):
        return naive.lasso_cost(test, D, encode(test, D, coder).toarray(), 0.2).mean()

    assert cost(whole) < cost(with_holes) < 0.97 * cost(filled)


@pytest.mark.parametrize(
    "learner", [Batch(), Online(rho=0.0, memory="all"), SGD(10, 1000)], ids=repr
)
def test_the_surrogate_bounds_the_cost_over_known_entries(learner):
    X, _ = planted(n=400)
    mask = holes(X, 0.3)
    result = learn(X, 12, Lasso(0.1), learner=learner, mask=mask, max_epochs=3, random_state=0)
    codes = encode(X, result.D, Lasso(0.1), mask=mask).toarray()
    left = np.where(mask, 0, X - codes @ result.D)
    cost = (0.5 * (left**2).sum(1) + 0.1 * np.abs(codes).sum(1)).mean()
    surrogate = result.history[-1].surrogate
    if isinstance(learner, SGD):
        assert surrogate is None
    else:
        assert surrogate >= cost - 1e-9
    fresh = learn(X, 12, Lasso(0.1), learner=learner, mask=mask, max_steps=1, random_state=0)
    assert result.history[-1].batch_cost < fresh.history[0].batch_cost


def test_costs_are_those_of_known_entries():
    X, _ = planted(n=300)
    mask, D0 = holes(X, 0.4), planted(seed=1)[1]
    codes = encode(X, D0, Lasso(0.1), mask=mask).toarray()
    known = np.where(mask, 0, X - codes @ D0)
    cost = (0.5 * (known**2).sum(1) + 0.1 * np.abs(codes).sum(1)).mean()
    nan = np.where(mask, np.nan, X)
    first = learn(
        nan, 20, Lasso(0.1), learner=Batch(), init=D0, max_steps=1, missing="nan", validation=nan
    ).history
    assert first[0].test_cost == pytest.approx(cost, rel=1e-9)  # before the first step
    assert first[1].batch_cost == pytest.approx(cost, rel=1e-9)
    model = DictionaryLearning(20, coder=Lasso(0.1), init=D0, max_steps=0, random_state=0).fit(X)
    assert model.score(X, mask=mask) == pytest.approx(-cost, rel=1e-9)


def test_a_bound_on_the_error_is_one_on_that_of_known_entries():
    X, D = ordinary(n=8, k=5)
    mask = np.zeros(X.shape, bool)
    mask[:, 4:] = True  # four entries are left, which five atoms can match
    error = np.where(mask, 0, X - encode(X, D, ErrorBound(1e-3), mask=mask).toarray() @ D)
    assert (error**2).sum(1).max() <= 1e-3 * (1 + 1e-9)  # and nothing is said to be out of reach


def test_holes_in_batch_learning_never_raise_the_cost():
    X, _ = planted(n=300)
    result = learn(
        X, 10, Lasso(0.1), learner=Batch(), mask=holes(X, 0.4), max_epochs=12, random_state=0
    )
    costs = [record.batch_cost for record in result.history]
    assert all(b <= a + 1e-12 for a, b in itertools.pairwise(costs))


def test_every_way_to_say_it_learns_the_same():
    X, _ = planted(n=300)
    mask = holes(X, 0.3)
    nan = np.where(mask, np.nan, X)
    settings = {"coder": Lasso(0.1), "max_epochs": 2, "random_state": 0}
    expected = learn(X, 10, mask=mask, **settings).D
    np.testing.assert_array_equal(learn(nan, 10, missing="nan", **settings).D, expected)
    masked = np.ma.MaskedArray(np.nan_to_num(nan), mask)
    np.testing.assert_array_equal(learn(masked, 10, **settings).D, expected)
    model = DictionaryLearning(10, missing="nan", **settings).fit(nan)
    np.testing.assert_array_equal(model.components_, expected)
    model = DictionaryLearning(10, **settings).fit(X, mask=mask)
    np.testing.assert_array_equal(model.components_, expected)
    codes = model.transform(X, mask=mask)
    np.testing.assert_array_equal(codes, encode(X, expected, Lasso(0.1), mask=mask).toarray())
    assert model.score(X, mask=mask) > -np.inf


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_matrix, sparse.lil_array])
@pytest.mark.parametrize("dtype", [bool, np.int8, float])
def test_a_sparse_mask_is_as_good_as_a_dense_one(kind, dtype):
    X, D = planted(n=60)
    mask, settings = holes(X, 0.2), {"coder": Lasso(0.1), "random_state": 0}
    thin = kind(mask.astype(dtype))
    some = np.ma.MaskedArray(X, holes(X, 0.05, 1))
    for signals in (X, some):
        codes = [encode(signals, D, Lasso(0.1), mask=m).toarray() for m in (mask, thin)]
        np.testing.assert_array_equal(*codes)
    np.testing.assert_array_equal(*(learn(X, 5, mask=m, **settings).D for m in (mask, thin)))
    for model in (DictionaryLearning(5, **settings), NMF(5, random_state=0)):
        fitted = [clone(model).fit(abs(X), mask=m).transform(abs(X), mask=m) for m in (mask, thin)]
        np.testing.assert_array_equal(*fitted)
    found = [quality(learn(X, 5, **settings), X, mask=m) for m in (mask, thin)]
    assert found[0] == found[1]
    with pytest.raises(ValueError, match=r"the shape of the signals, \(60, 16\), got \(2, 16\)"):
        encode(some, D, Lasso(0.1), mask=thin.tocsr()[:2])


def test_a_stream_with_holes():
    X, D = planted(n=3000)
    model = DictionaryLearning(20, coder=Lasso(0.15), missing="nan", random_state=0)
    nan = np.where(holes(X, 0.2), np.nan, X)
    for batch in np.array_split(np.concatenate([nan] * 6), 60):
        model.partial_fit(batch)
    assert naive.matched(model.components_, D) > 0.9
    validation = learn(nan, 8, Lasso(0.1), missing="nan", validation=nan[:50], random_state=0)
    assert validation.history[-1].test_cost > 0


def test_memory_that_would_have_to_take_back_what_was_filled():
    X, _ = planted(n=100)
    with pytest.raises(ValueError, match="cannot take back"):
        learn(X, 5, Lasso(0.1), learner=Online(memory="replace"), mask=holes(X, 0.1))


@pytest.mark.parametrize("missing", [0.3, 0.8])
def test_against_spams(missing):
    spams = pytest.importorskip("spams")
    X, D = ordinary(n=30, k=40)
    mask = holes(X, missing)
    theirs = spams.lassoMask(
        np.asfortranarray(X.T), np.asfortranarray(D.T), np.asfortranarray(~mask.T),
        lambda1=0.05, numThreads=1,
    ).toarray().T  # fmt: skip
    for x, hole, code in zip(X, mask, theirs, strict=True):
        lam = 0.05 * float(np.mean(~hole))  # SPAMS shrinks it by the share of known entries
        ours = quiet(x[None], D, Lasso(lam), mask=hole[None]).toarray()[0]
        np.testing.assert_allclose(ours, code, atol=1e-8)


def test_a_mask_given_as_missing_is_told_where_to_go():
    X, D = ordinary(n=3)
    with pytest.raises(ValueError, match="a mask is given as mask="):
        encode(X, D, missing=X > 0)


@pytest.mark.parametrize("coder", [Lasso(0.2), OMP(3), OMP(eps=0.1), L0(0.1)], ids=repr)
def test_signals_without_holes_keep_their_bits(coder):
    X, D = ordinary(4, n=24)
    whole = encode(X, D, coder).toarray()
    mask = np.zeros(X.shape, bool)
    mask[[5, 18], [2, 1]] = True
    some = encode(X, D, coder, mask=mask).toarray()
    touched = mask.any(axis=1)
    np.testing.assert_array_equal(some[~touched], whole[~touched])
    assert np.abs(some - whole)[touched].max() > 0
