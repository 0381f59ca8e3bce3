import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import examples
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from smalto import SparseCCA
from smalto.coders import OMP, Lasso, Ridge
from smalto.constraints import ElasticNetBall, FusedLassoBall, L2Ball
from smalto.estimators.rank_one import Side, codes_of, find_pair, keep_largest

DTYPES = [np.float32, np.float64]


def planted(n=120, p=60, q=50, seed=0, dtype=np.float64, pairs=1, size=2.0):
    """A few columns of X go with a stretch of Y, for each hidden variable."""
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((n, p)), rng.standard_normal((n, q))
    for number in range(pairs):
        hidden = (size - 0.5 * number) * rng.standard_normal((n, 1))
        X[:, 10 * number + 3 : 10 * number + 7] += hidden
        Y[:, 20 * number + 5 : 20 * number + 12] -= hidden
    return (7 + 3 * X).astype(dtype), (0.1 * Y - 2).astype(dtype)


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)


def cost(M, u, v, lam):
    return 0.5 * np.sum((M - np.outer(v, u)) ** 2) + lam * np.abs(u).sum()


@parametrize_with_checks(
    [
        SparseCCA(max_nonzeros_x=2),
        # y has a single column there, and gammas without an effect are warned of.
        SparseCCA(max_nonzeros_x=1, ordered="x", scale=False, gamma1=0, gamma2=0),
        SparseCCA(coder=Lasso(0.1), constraint=ElasticNetBall(0.5)),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("dtype", DTYPES)
def test_planted_pairs_are_found(dtype):
    X, Y = planted(pairs=2, n=300, dtype=dtype)
    model = SparseCCA(2, max_nonzeros_x=4).fit(X, Y)
    for number in range(2):
        columns = np.flatnonzero(model.x_weights_[:, number])
        np.testing.assert_array_equal(columns, 10 * number + np.arange(3, 7))
        large = np.flatnonzero(np.abs(model.y_weights_[:, number]) > 0.2)
        np.testing.assert_array_equal(large, 20 * number + np.arange(5, 12))
    assert (model.correlations_ > 0.85).all()
    assert model.x_weights_.dtype == model.y_weights_.dtype == dtype
    held_out = planted(pairs=2, n=300, seed=1)
    assert model.score(*held_out) > 0.85
    norms = [np.linalg.norm(w, axis=0) for w in (model.x_weights_, model.y_weights_)]
    np.testing.assert_allclose(norms, 1, rtol=1e-5)


def test_either_side_may_be_the_ordered_one():
    X, Y = planted()
    one = SparseCCA(max_nonzeros_x=4).fit(X, Y)
    for settings_ in ({"max_nonzeros_y": 4}, {"max_nonzeros_x": 4}):
        other = SparseCCA(ordered="x", **settings_).fit(Y, X)
        np.testing.assert_array_equal(one.x_weights_, other.y_weights_)
        np.testing.assert_array_equal(one.y_weights_, other.x_weights_)


def test_score_is_the_correlation_of_the_scores():
    X, Y = planted(pairs=2)
    model = SparseCCA(2, max_nonzeros_x=5).fit(X, Y)
    a, b = model.transform(X, Y)
    expected = [np.corrcoef(a[:, j], b[:, j])[0, 1] for j in range(2)]
    np.testing.assert_allclose(model.correlations_, expected)
    assert model.score(X, Y) == pytest.approx(np.mean(expected))
    np.testing.assert_allclose(a, standardised(X) @ model.x_weights_)
    np.testing.assert_allclose(b, standardised(Y) @ model.y_weights_)
    np.testing.assert_array_equal(model.transform(X), a)
    np.testing.assert_array_equal(clone(model).fit_transform(X, Y), a)
    np.testing.assert_allclose(model.transform(X[7:8]), a[7:8])


@given(st.integers(0, 10**6), st.floats(0.0, 2.0), st.floats(0.0, 2.0), st.integers(1, 6))
@examples(25)
def test_neither_side_can_be_improved_alone(seed, gamma1, gamma2, count):
    rng = np.random.default_rng(seed)
    X, Y = standardised(rng.standard_normal((12, 9))), standardised(rng.standard_normal((12, 7)))
    none = np.zeros((12, 0))
    ball = FusedLassoBall(gamma1, gamma2)
    pair = find_pair(Side(X, none), Side(Y, none), keep_largest(count), ball, 3000, 1e-10)
    M, u, v = Y.T @ X, pair.u, pair.v
    assert 1 <= np.count_nonzero(u) <= 9
    # u: the conditions of the lasso over the atom v.
    gradient = M.T @ v - u * (v @ v)
    scale = np.abs(M).max()
    assert np.abs(gradient).max() <= pair.lam + 1e-4 * scale
    np.testing.assert_allclose(gradient[u != 0], pair.lam * np.sign(u[u != 0]), atol=1e-4 * scale)
    # v: no feasible direction leads down.
    assert ball.gauge(v) <= 1 + 1e-6
    downhill = M @ u - v * (u @ u)
    for z in rng.standard_normal((30, 7)):
        ball.project(z)
        assert downhill @ (z - v) <= 1e-3 * scale * np.linalg.norm(u)


def test_the_cost_falls_when_lam_is_fixed():
    X, Y = (standardised(block) for block in planted(40, 30, 20))
    M = Y.T @ X
    none = np.zeros((40, 0))
    sides = Side(X, none), Side(Y, none)
    lam = 0.2 * np.abs(M).max()
    costs = []
    for iterations in range(1, 8):
        codes = codes_of(Lasso(lam), *sides)
        pair = find_pair(*sides, codes, FusedLassoBall(1.0, 1.0), iterations, 0.0)
        costs.append(cost(M, pair.u, pair.v, lam))
    assert np.diff(costs).max() <= 1e-9 * costs[0]
    assert costs[-1] < cost(M, 0 * pair.u, 0 * pair.v, lam)


def test_a_coder_sees_the_columns_of_the_cross_product():
    X, Y = (standardised(block) for block in planted(40, 30, 20))
    none = np.zeros((40, 0))
    sides = Side(X, none), Side(Y, none)
    v = np.random.default_rng(0).standard_normal(20)
    for coder, expected in [
        (Ridge(3.0), lambda c, s: c / (s + 3.0)),
        (Lasso(5.0), lambda c, s: np.sign(c) * np.maximum(np.abs(c) - 5.0, 0) / s),
    ]:
        c, square = X.T @ (Y @ v), v @ v
        u, _ = codes_of(coder, *sides)(c, square, v, 1)
        np.testing.assert_allclose(u, expected(c, square), rtol=1e-9, atol=1e-12)


def test_any_coder_and_any_set():
    X, Y = planted()
    positive = SparseCCA(
        coder=Lasso(60.0, positive=True), constraint=FusedLassoBall(1.0, 1.0, positive=True)
    ).fit(X, -Y)
    assert positive.x_weights_.min() >= 0
    assert positive.y_weights_.min() >= 0
    assert positive.score(X, -Y) > 0.8
    assert positive.lam_ == [60.0]
    dense = SparseCCA(coder=Ridge(1.0), constraint=L2Ball()).fit(X, Y)
    assert np.count_nonzero(dense.x_weights_) == X.shape[1]
    # With neither penalty nor set that bites, it is the singular vectors.
    M = standardised(Y).T @ standardised(X)
    v = np.linalg.svd(M)[0][:, 0]
    assert abs(dense.y_weights_[:, 0] @ v) == pytest.approx(1, abs=1e-6)
    assert np.isnan(SparseCCA(coder=Ridge(1.0)).fit(X, Y).lam_) == [False]
    some = SparseCCA(max_nonzeros_x=4, constraint=ElasticNetBall(density=0.2)).fit(X, Y)
    assert 0.1 <= np.mean(some.y_weights_ != 0) <= 0.3


def test_further_pairs_leave_out_what_is_explained():
    X, Y = planted(pairs=1, n=200)
    model = SparseCCA(2, max_nonzeros_x=4).fit(X, Y)
    assert model.correlations_[0] > 0.85
    # Only one was planted: the second does not find it again.
    again = np.abs(model.x_weights_[3:7, 1]).sum()
    assert again < 0.5 * np.abs(model.x_weights_[:, 1]).sum()


def test_the_side_is_the_matrix_it_stands_for():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9, 30))
    side = Side(X, np.zeros((9, 0)))
    for _ in range(3):
        side = side.without(rng.standard_normal(9))
    Z = X - side.T @ side.T.T @ X
    w, a = rng.standard_normal(30) * (rng.random(30) < 0.1), rng.standard_normal(9)
    np.testing.assert_allclose(side.T.T @ side.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(side.score(w), Z @ w, atol=1e-12)
    np.testing.assert_allclose(side.correlate(a), Z.T @ a, atol=1e-12)
    np.testing.assert_allclose(side.moment()(a), Z @ Z.T @ a, atol=1e-10)
    wide = Side(X[:, :4], side.T)
    np.testing.assert_allclose(wide.moment()(a), Z[:, :4] @ Z[:, :4].T @ a, atol=1e-10)
    same = side.without(side.T @ np.ones(3))
    assert same.T.shape == side.T.shape


def test_constant_columns_get_no_weight():
    X, Y = planted()
    X[:, 4], Y[:, 8] = 1e6 / 3, -1 / 3
    model = SparseCCA(max_nonzeros_x=3).fit(X, Y)
    assert model.x_weights_[4] == 0
    assert model.y_weights_[8] == 0  # although it is in a stretch
    assert model.y_weights_[7] * model.y_weights_[9] > 0
    assert np.linalg.norm(model.y_weights_) == pytest.approx(1)
    assert model.x_scale_[4] == model.y_scale_[8] == 1
    assert np.isfinite(model.transform(X)).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("settings_", [{"max_nonzeros_x": 60}, {"coder": Lasso(0.0)}])
def test_constant_columns_get_no_weight_without_a_penalty(dtype, settings_):
    X, Y = planted(n=3000, dtype=dtype)  # so many that the mean of a constant is not exact
    X[:, 4], Y[:, 8] = 0.1, 1 / 3
    X[::2, 5] = np.nextafter(dtype(0.1), dtype(1))  # constant up to rounding
    X[1::2, 5] = 0.1
    model = SparseCCA(gamma1=0, gamma2=0, **settings_).fit(X, Y)
    np.testing.assert_array_equal(np.flatnonzero(model.x_weights_ == 0), [4, 5])
    np.testing.assert_array_equal(np.flatnonzero(model.y_weights_ == 0), [8])


def test_scale_and_shift_do_not_matter_unless_asked():
    X, Y = planted()
    factors = np.geomspace(0.1, 10, X.shape[1])
    one, other = (SparseCCA(max_nonzeros_x=4).fit(Z, Y) for Z in (X, X * factors + factors))
    np.testing.assert_allclose(one.x_weights_, other.x_weights_, atol=1e-6)
    raw = SparseCCA(max_nonzeros_x=4, scale=False).fit(X * factors, Y)
    assert np.abs(raw.x_weights_ - one.x_weights_).max() > 0.1
    assert (raw.x_scale_ == 1).all()


def test_inputs_are_left_alone_and_fits_repeat():
    X, Y = planted()
    for block in (X, Y):
        block.flags.writeable = False
    one, other = (SparseCCA(2, max_nonzeros_x=4).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(one.x_weights_, other.x_weights_)
    copy = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(copy.transform(X), one.transform(X))


def test_one_column_y_lists_and_pipelines():
    X, Y = planted()
    flat = SparseCCA(max_nonzeros_x=4).fit(X.tolist(), Y[:, 6].tolist())
    assert flat.y_weights_.shape == (1, 1)
    assert flat.score(X, Y[:, 6]) > 0.5
    line = make_pipeline(SparseCCA(max_nonzeros_x=4), LinearRegression()).fit(X, Y)
    assert line.predict(X).shape == Y.shape


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_nonzeros_x": 61}, ValueError, "max_nonzeros_x=61 exceeds the columns of X.*60"),
        ({"max_nonzeros_x": 0}, ValueError, "max_nonzeros_x must be >= 1, got 0"),
        ({"max_nonzeros_x": 2.5}, TypeError, "max_nonzeros_x must be an integer"),
        ({"max_nonzeros_y": 3}, ValueError, "max_nonzeros_y=3 needs ordered='x'"),
        (
            {"ordered": "x", "max_nonzeros_y": 51},
            ValueError,
            "max_nonzeros_y=51 exceeds the columns of y",
        ),
        ({"ordered": "z"}, ValueError, "ordered must be"),
        ({"gamma1": -1.0}, ValueError, "gamma1 must be >= 0, got -1"),
        ({"gamma2": -1.0}, ValueError, "gamma2 must be >= 0, got -1"),
        ({"n_components": 0}, ValueError, "n_components must be >= 1"),
        ({"max_iter": 0}, ValueError, "max_iter must be >= 1"),
        ({"tol": -1}, ValueError, "tol must be >= 0"),
        ({"scale": "yes"}, TypeError, "scale must be True or False"),
        ({"coder": Lasso}, TypeError, "did you mean Lasso"),
        ({"constraint": 1.0}, TypeError, "constraint must be"),
        (
            {"max_nonzeros_x": 2, "coder": Lasso(1.0)},
            ValueError,
            "max_nonzeros_x=2 and coder exclude each other",
        ),
        (
            {"max_nonzeros_y": 2, "ordered": "x", "coder": Lasso(1.0)},
            ValueError,
            "max_nonzeros_y=2 and coder exclude each other",
        ),
        (
            {"max_nonzeros_x": 2, "max_nonzeros_y": 5, "ordered": "x"},
            ValueError,
            "max_nonzeros_x=2 and max_nonzeros_y=5 exclude each other",
        ),
        (
            {"gamma2": 2, "constraint": L2Ball()},
            ValueError,
            "gamma2=2 and constraint exclude each other",
        ),
    ],
)
def test_wrong_settings(options, error, message):
    X, Y = planted()
    model = SparseCCA(**options)
    with pytest.raises(error, match=message):
        model.fit(X, Y)
    assert not hasattr(model, "n_features_in_")


def test_wrong_data():
    X, Y = planted()
    model = SparseCCA(max_nonzeros_x=4).fit(X, Y)
    bad = Y.copy()
    bad[3, 2] = np.nan
    for wrong, message in [
        ((X[:-1], Y), "got 119 in X and 120 in y"),
        ((X, bad), r"y contains NaN.*\(3, 2\)"),
        ((bad, Y), r"X contains NaN.*\(3, 2\)"),
        ((0 * X + 1 / 3, Y), "every column of X is constant"),
        ((X, 0 * Y), "every column of y is constant"),
        ((X[:1], Y[:1]), "1 sample"),
        ((X, None), "requires y"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(*wrong)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        model.fit(sparse.csr_array(X), Y)
    assert model.score(X, Y) > 0.8  # as it was
    with pytest.raises(ValueError, match="50 columns it had in fit, got 3"):
        model.transform(X, Y[:, :3])
    with pytest.raises(ValueError, match="at least two samples, got 1"):
        model.score(X[:1], Y[:1])
    with pytest.raises(NotFittedError):
        SparseCCA().transform(X)


def test_what_is_warned_of():
    X, Y = planted()
    with pytest.warns(ConvergenceWarning, match=r"pairs \[0\] have not converged"):
        SparseCCA(max_nonzeros_x=4, gamma1=0.1, max_iter=1, tol=0).fit(X, Y)
    with pytest.warns(UserWarning, match=r"pairs \[0\] are zero.*too large"):
        model = SparseCCA(coder=Lasso(1e6)).fit(X, Y)
    assert model.score(X, Y) == 0
    with pytest.warns(UserWarning, match=r"pairs \[1\] are zero: .* no correlation left$"):
        SparseCCA(2, max_nonzeros_x=4).fit(X, Y[:, :1])


@pytest.mark.parametrize(
    ("columns", "count"), [(2, 1), (4, 1), (5, 2), (10, 3), (97, 25), (100, 25), (300, 25)]
)
def test_a_quarter_of_the_columns_has_weights_by_default(columns, count):
    X, Y = planted(p=303)
    X = X[:, 3 : 3 + columns]
    model = SparseCCA().fit(X, Y)
    assert model.get_params()["max_nonzeros_x"] is None
    assert np.count_nonzero(model.x_weights_) == count
    explicit = SparseCCA(max_nonzeros_x=count).fit(X, Y)
    np.testing.assert_array_equal(model.x_weights_, explicit.x_weights_)
    # Constant columns do not count.
    more = np.column_stack([X, np.full((len(X), columns), 0.1)])
    np.testing.assert_allclose(
        SparseCCA().fit(more, Y).x_weights_[:columns], model.x_weights_, atol=1e-6
    )
    swapped = SparseCCA(ordered="x").fit(Y, X)
    np.testing.assert_array_equal(swapped.y_weights_, model.x_weights_)


@pytest.mark.parametrize("columns", [6, 20, 25, 40])
def test_gamma_counts_in_narrow_blocks(columns):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((100, columns)), rng.standard_normal((100, 60))
    hidden = 1.5 * rng.standard_normal((100, 1))
    X[:, :5] += hidden
    Y[:, 20:30] += hidden
    dense = SparseCCA(gamma1=0, gamma2=0).fit(X, Y)
    assert np.count_nonzero(dense.y_weights_) == 60
    for gamma in (1, 100):
        model = SparseCCA(gamma1=gamma, gamma2=gamma).fit(X, Y)
        assert model.lam_[0] > 0
        assert set(np.flatnonzero(model.y_weights_)) >= set(range(20, 30))
        assert np.count_nonzero(model.y_weights_) <= 30
        assert np.count_nonzero(np.diff(model.y_weights_[:, 0])) <= 20


UNPENALIZED = [
    ({"max_nonzeros_x": 8}, "gamma1=1 and gamma2=1 have.*smaller max_nonzeros_x"),
    ({"coder": Lasso(0.0), "gamma1": 0.0}, "gamma1=0 and gamma2=1 have.*coder a larger penalty"),
    ({"coder": OMP(1)}, "gamma1=1 and gamma2=1 have.*coder a larger penalty"),
    ({"max_nonzeros_x": 8, "constraint": ElasticNetBall(0.5)}, "the constraint has.*an L2Ball"),
    ({"max_nonzeros_x": 8, "constraint": ElasticNetBall(density=0.2)}, "the constraint has"),
]


@pytest.mark.parametrize(("settings_", "message"), UNPENALIZED)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_set_without_effect_is_warned_of(settings_, message, dtype):
    X, Y = planted(dtype=dtype)
    message = rf"penalty on the weights of X, {message}"
    with pytest.warns(UserWarning, match=message) as caught:
        model = SparseCCA(**settings_).fit(X[:, :8], Y)
    assert len(caught) == 1
    assert "in pairs [0]" in str(caught[0].message)
    # What the warning says: these are the first singular vectors.
    v = np.linalg.svd(standardised(Y).T @ standardised(X[:, :8]))[0][:, 0]
    assert abs(model.y_weights_[:, 0] @ v) == pytest.approx(1, abs=1e-4)


def test_a_set_without_effect_is_warned_of_where_x_is_ordered():
    X, Y = planted()
    with pytest.warns(UserWarning, match="weights of y, gamma1=1.*those of X.*max_nonzeros_y"):
        SparseCCA(ordered="x", max_nonzeros_y=8).fit(Y, X[:, :8])
    with pytest.warns(UserWarning, match="no effect.*or coder=Lasso"):
        SparseCCA().fit(X[:, 3:4], Y)  # of a single column all are kept


@pytest.mark.parametrize(
    "settings_",
    [
        {"max_nonzeros_x": 8, "gamma1": 0, "gamma2": 0},
        {"max_nonzeros_x": 8, "constraint": L2Ball()},
        {"max_nonzeros_x": 8, "constraint": L2Ball(positive=True)},
        {"coder": Lasso(0.0, ridge=1.0)},
        {"coder": Lasso(5.0)},
    ],
)
def test_sets_that_have_their_effect_are_not_warned_of(settings_):  # warnings are errors
    X, Y = planted()
    SparseCCA(**settings_).fit(X[:, :8], Y)
    SparseCCA(max_nonzeros_x=8).fit(X[:, :8], Y[:, 5])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 3])
def test_the_best_columns_may_be_tied(dtype, count):
    rng = np.random.default_rng(0)
    S = rng.integers(0, 3, (200, 300)).astype(dtype)
    Y = rng.standard_normal((200, 40)).astype(dtype)
    Y[:, 10:20] += dtype(1.5) * (S[:, :1] - 1)
    # Copies, also of the opposite sign and up to the rounding of a scale.
    for factors in ([1, 1, 1], [-1, 3, 7.3]):
        S[:, 1:4] = S[:, :1] * np.array(factors, dtype)
        expected = SparseCCA(max_nonzeros_x=4).fit(S, Y)
        assert set(np.flatnonzero(expected.x_weights_)) == {0, 1, 2, 3}
        with pytest.warns(UserWarning, match=rf"\[0\] have more .*x={count}: .*tied") as caught:
            model = SparseCCA(max_nonzeros_x=count).fit(S, Y)
        assert len(caught) == 1
        assert model.correlations_[0] > 0.96
        np.testing.assert_allclose(np.abs(model.x_weights_[:4]), 0.5, rtol=1e-4)
        np.testing.assert_array_equal(model.x_weights_, expected.x_weights_)
        with pytest.warns(UserWarning, match=f"max_nonzeros_y={count}: .*tied"):
            swapped = SparseCCA(ordered="x", max_nonzeros_y=count).fit(Y, S)
        np.testing.assert_array_equal(swapped.y_weights_, model.x_weights_)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_are_kept_or_left_out_together(dtype):
    eps = np.finfo(dtype).eps
    c = np.array([1, -4, 3, 3 + 6 * eps, -3, 2, 0], dtype)
    for count, kept in [(1, [1]), (2, [1]), (3, [1]), (4, [1, 2, 3, 4]), (5, [1, 2, 3, 4, 5])]:
        u, _ = keep_largest(count)(c, 1.0, c, 1)
        np.testing.assert_array_equal(np.flatnonzero(u), kept)
    for count in (1, 2, 3):
        u, lam = keep_largest(count)(c[2:], 1.0, c, 1)
        np.testing.assert_array_equal(np.flatnonzero(u), [0, 1, 2])
        assert lam == 2
    u, lam = keep_largest(1)(np.full(3, -5, dtype), 1.0, c, 1)
    np.testing.assert_array_equal(u, np.full(3, -5))
    assert lam == 0


def test_tables_of_scores_and_weights():
    pd = pytest.importorskip("pandas")
    X, Y = planted()
    genes = pd.DataFrame(X, columns=[f"gene {i}" for i in range(X.shape[1])])
    spots = pd.DataFrame(Y, columns=[f"spot {i}" for i in range(Y.shape[1])])
    model = SparseCCA(2, max_nonzeros_x=4).set_output(transform="pandas").fit(genes, spots)
    for scores, weights in zip(model.transform(genes, spots), "xy", strict=True):
        assert list(scores.columns) == ["sparsecca0", "sparsecca1"]
        table = model.weights_table(weights)
        assert list(table.columns) == ["pair", "column", "name", "weight"]
        dense = np.zeros_like(getattr(model, f"{weights}_weights_"))
        dense[table["column"], table["pair"]] = table["weight"]
        np.testing.assert_array_equal(dense, getattr(model, f"{weights}_weights_"))
        first = table[table["pair"] == 0]["weight"].abs()
        assert first.is_monotonic_decreasing
    both = model.weights_table()
    assert list(both.columns) == ["block", "pair", "column", "name", "weight"]
    assert both["block"].value_counts().to_dict() == {
        block: len(model.weights_table(block)) for block in "xy"
    }
    assert list(model.target_names_in_) == list(spots.columns)
    assert model.weights_table("y")["name"][0].startswith("spot ")
    assert model.score(genes, spots) == pytest.approx(
        SparseCCA(2, max_nonzeros_x=4).fit(X, Y).score(X, Y)
    )
    plain = SparseCCA(max_nonzeros_x=4).fit(X, Y)
    assert "name" not in plain.weights_table()
    with pytest.raises(ValueError, match='block must be "x", "y" or None'):
        plain.weights_table("z")
