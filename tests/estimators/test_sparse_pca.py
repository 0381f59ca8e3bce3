import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from smalto import SparsePCA, encode
from smalto.coders import Lasso, Ridge
from smalto.constraints import ElasticNetBall, FusedLassoBall, L2Ball
from smalto.estimators.variance import adjusted_variances, principal_components, score_moments
from smalto.learners import SGD, Batch, Online
from smalto.learning.memory.statistics import Stats

DTYPES = [np.float32, np.float64]
BLOCKS = np.kron(np.eye(4), np.ones(5))  # four groups of five features


def blocks(n=600, seed=0, dtype=np.float64, offset=20.0, noise=0.2):
    """Each group of features moves with a hidden variable; far from the origin."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((n, 4)) * [3.0, 2.5, 2.0, 1.5]
    X = hidden @ BLOCKS + noise * rng.standard_normal((n, 20))
    return (X + offset * np.arange(20)).astype(dtype)


def model(k=4, **options):
    return SparsePCA(k, **{"density": 0.25, "max_epochs": 10, "random_state": 0, **options})


@parametrize_with_checks(
    [
        SparsePCA(3, random_state=0),
        SparsePCA(2, gamma=0.2, mean_nonzeros=1, random_state=0),
        SparsePCA(2, density=0.7, lam=0.1, fused=0.1, random_state=0),
        SparsePCA(2, coder=Ridge(0.1), constraint=L2Ball(), learner=Batch(), random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# --- what it finds


@pytest.mark.parametrize("dtype", DTYPES)
def test_planted_blocks_are_found(dtype):
    fitted = model().fit(blocks(dtype=dtype))
    np.testing.assert_array_equal(fitted.components_ > 0, BLOCKS.astype(bool))
    assert fitted.components_.min() == 0
    assert fitted.density_ == 0.25
    assert fitted.components_.dtype == dtype
    assert fitted.explained_variance_ratio_.sum() > 0.98
    assert (np.diff(fitted.explained_variance_) < 0).all()


def test_planted_blocks_are_found_in_a_stream():
    stream = model()
    X = blocks(3000)
    for begin in range(0, 3000, 100):
        stream.partial_fit(X[begin : begin + 100])
    np.testing.assert_array_equal(stream.components_ > 0, BLOCKS.astype(bool))
    np.testing.assert_allclose(stream.mean_, X.mean(axis=0), rtol=1e-12)


def test_fused_components_are_piecewise_constant():
    rng = np.random.default_rng(0)
    steps = np.zeros((2, 60))
    steps[0, 10:25], steps[1, 35:50] = 1, 1
    X = rng.standard_normal((500, 2)) * [3, 2] @ steps + rng.standard_normal((500, 60))
    options = {"gamma": 0.1, "max_epochs": 10, "random_state": 0}
    plain, fused = (SparsePCA(2, fused=f, **options).fit(X) for f in (None, 0.5))
    jumps = [np.count_nonzero(np.abs(np.diff(m.components_)) > 1e-6) for m in (plain, fused)]
    assert jumps[1] < 0.5 * jumps[0]
    for component, step in zip(fused.components_, steps, strict=True):
        assert component @ step / (np.linalg.norm(component) * np.linalg.norm(step)) > 0.99


@pytest.mark.parametrize("density", [0.1, 0.3, 0.8])
def test_the_density_asked_for_is_reached(density):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 30)) @ rng.standard_normal((30, 30))
    fitted = SparsePCA(6, density=density, max_epochs=20, random_state=0).fit(X)
    assert fitted.density_ == pytest.approx(density, abs=0.04)
    assert fitted.density_ == np.mean(fitted.components_ != 0)
    for component in fitted.components_:
        assert fitted.state_.constraint.gauge(component) <= 1 + 1e-6


def test_components_do_not_depend_on_units_or_origin():
    X = blocks()
    one, other = model().fit(X), model().fit(1000 * X - 7e4)
    np.testing.assert_allclose(other.components_, one.components_, atol=1e-6)
    np.testing.assert_allclose(other.coder_.lam, 1000 * one.coder_.lam)
    np.testing.assert_allclose(other.explained_variance_, 1e6 * one.explained_variance_, rtol=1e-6)


def test_any_coder_and_any_set():
    X = blocks()
    positive = model(
        density=None, constraint=ElasticNetBall(density=0.25, positive=True),
        coder=Lasso(0.5, positive=True),
    ).fit(X)  # fmt: skip
    assert positive.components_.min() >= 0
    assert positive.transform(X).min() >= 0
    assert positive.coder_ == Lasso(0.5, positive=True)
    given = model(density=None, gamma=0.3, lam=0.7).fit(X)
    assert given.state_.constraint == ElasticNetBall(0.3)
    assert given.coder_ == Lasso(0.7)
    assert model(density=None, gamma=0.3, fused=0.2).fit(X).state_.constraint == FusedLassoBall(
        0.3, 0.2
    )
    few = model(mean_nonzeros=1.0).fit(X)
    assert np.mean(np.count_nonzero(few.transform(X), axis=1)) == pytest.approx(1.0, abs=0.2)


# --- explained variance, order, signs


def test_adjusted_variances_are_those_of_the_qr_decomposition():
    rng = np.random.default_rng(0)
    X = blocks(200) @ rng.standard_normal((20, 20))
    D = rng.standard_normal((6, 20))
    mean = X.mean(axis=0)
    moments, total = score_moments(X, D, mean)
    order, variances = adjusted_variances(moments)
    Z = (X - mean) @ (D / np.linalg.norm(D, axis=1, keepdims=True)).T
    R = np.linalg.qr(Z[:, order])[1]
    np.testing.assert_allclose(variances, np.diag(R) ** 2 / len(X), rtol=1e-8)
    assert sorted(order) == list(range(6))
    assert (np.diff(variances) <= 0).all()
    assert total == pytest.approx(np.var(X, axis=0).sum())
    pca = PCA(6).fit(X)
    assert variances.sum() <= pca.explained_variance_.sum()
    exact = adjusted_variances(score_moments(X, pca.components_, mean)[0])[1]
    np.testing.assert_allclose(exact, pca.explained_variance_ * 199 / 200, rtol=1e-8)


def test_components_that_add_nothing_explain_nothing():
    X = blocks(200)
    mean = X.mean(axis=0)
    D = np.vstack([np.zeros(20), BLOCKS[1], BLOCKS[0], -2 * BLOCKS[1], BLOCKS[0] + BLOCKS[1]])
    order, variances = adjusted_variances(score_moments(X, D, mean)[0])
    assert list(order) == [2, 1, 0, 3, 4]
    np.testing.assert_array_equal(variances[2:], 0)
    assert variances[1] > 0
    assert sorted(order) == list(range(5))


def test_order_and_signs_are_canonical():
    X = blocks(noise=1.0)
    one = model(k=3, density=0.6).fit(X)
    rows = np.arange(3)
    assert (one.components_[rows, np.argmax(np.abs(one.components_), axis=1)] > 0).all()
    turned = model(k=3, density=0.6, init=-one.components_[::-1], max_epochs=20).fit(X)
    straight = model(k=3, density=0.6, init=one.components_, max_epochs=20).fit(X)
    np.testing.assert_allclose(turned.components_, straight.components_, atol=0.05)


def test_components_keep_their_sign_where_codes_have_one():
    X = blocks()
    fitted = model(k=8, coder=Lasso(0.5, positive=True)).fit(X)
    assert sorted({*map(tuple, fitted.components_)}) == sorted(
        {*map(tuple, fitted.state_.feasible_D())}
    )
    assert fitted.components_.min() < 0
    free = model(k=8, coder=Lasso(0.5)).fit(X)
    assert not np.signbit(free.components_[free.components_ == 0]).any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(50, 8), (8, 50)])
def test_principal_components(dtype, shape):
    X = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    X -= X.mean(axis=0)
    found = principal_components(X, 4)
    expected = np.linalg.svd(X.astype(np.float64), full_matrices=False)[2][:4]
    np.testing.assert_allclose(np.abs(np.sum(found * expected, axis=1)), 1, rtol=1e-4)
    assert found.dtype == dtype
    assert principal_components(X, 9) is None
    assert principal_components(X[:, :1] * np.ones(8, dtype), 2) is None


# --- centring


@pytest.mark.parametrize("rho", [0.0, 2.0])
@pytest.mark.parametrize("memory", ["all", "two-epochs"])
def test_statistics_of_a_stream_are_those_of_samples_centred_by_the_last_mean(rho, memory):
    X = blocks(500)
    eta = 50
    lam = Lasso(0.4)
    stream = SparsePCA(
        4, gamma=0.2, coder=lam, learner=Online(batch_size=eta, rho=rho, memory=memory),
        init=BLOCKS + 0.1, random_state=0,
    )  # fmt: skip
    D = np.array(BLOCKS + 0.1)
    for atom in D:
        ElasticNetBall(0.2).project(atom)
    codes, weights, seen = np.zeros((0, 4)), np.zeros(0), 0
    for n in (7, 50, 1, 120, 33, 200):
        batch = X[seen : seen + n]
        mean = X[: seen + n].mean(axis=0)
        new = encode(batch - mean, D, lam).toarray()
        beta = (seen / (seen + n)) ** rho if seen >= eta else 1.0
        codes = np.vstack([codes, new])
        weights = np.concatenate([beta * weights, np.full(n, 1 / eta)])
        seen += n
        stream.partial_fit(batch)
        D = stream.state_.D.copy()
        np.testing.assert_allclose(stream.mean_, mean, rtol=1e-12)
        past = stream.state_.stats[0].copy()
        for part in stream.state_.stats[1:]:
            past.add(part, 1.0)
        rest = X[:seen] - mean
        A, B = codes.T @ (weights[:, None] * codes), codes.T @ (weights[:, None] * rest)
        np.testing.assert_allclose(past.scale * past.A, A, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(past.scale * past.B, B, rtol=1e-7, atol=1e-7)
        cost = 0.5 * np.sum((rest - codes @ D) ** 2, axis=1) + 0.4 * np.abs(codes).sum(axis=1)
        assert stream.state_.surrogate == pytest.approx(weights @ cost, rel=1e-6)


def test_the_mean_of_a_stream_does_not_depend_on_its_batches():
    X = blocks(300)
    whole = model().partial_fit(X)
    pieces = model()
    for part in np.split(X, [2, 5, 90, 91, 250]):
        pieces.partial_fit(part)
    np.testing.assert_allclose(pieces.mean_, whole.mean_, rtol=1e-12)
    after = model().fit(X[:200]).partial_fit(X[200:])
    assert after.state_.samples == 10 * 200 + 100
    weighted = (10 * 200 * X[:200].mean(axis=0) + X[200:].sum(axis=0)) / 2100
    np.testing.assert_allclose(after.mean_, weighted, rtol=1e-12)


def test_moving_the_origin_of_statistics_is_exact():
    rng = np.random.default_rng(0)
    X, codes, by = rng.standard_normal((30, 5)), rng.standard_normal((30, 3)), np.arange(5.0)
    w = rng.random(30)

    def stats(X):
        return Stats(
            codes.T @ (w[:, None] * codes), codes.T @ (w[:, None] * X), 0.5 * w @ (X**2).sum(1),
            w.sum(), 1.0, w @ codes, w @ X,
        )  # fmt: skip

    moved, expected = stats(X), stats(X - by)
    moved.decay(0.5)
    moved.move_origin(by)
    expected.decay(0.5)
    for name in ("A", "B", "constant", "weight", "code_sum", "sample_sum"):
        np.testing.assert_allclose(getattr(moved, name), getattr(expected, name), atol=1e-12)


def test_transform_codes_what_is_left_of_the_mean():
    X = blocks()
    fitted = model().fit(X)
    np.testing.assert_allclose(fitted.mean_, X.mean(axis=0), rtol=1e-12)
    expected = encode(X - fitted.mean_, fitted.components_, fitted.coder_).toarray()
    codes = fitted.transform(X)
    np.testing.assert_allclose(codes, expected, atol=1e-9)
    np.testing.assert_allclose(clone(fitted).fit_transform(X), codes, atol=1e-9)
    np.testing.assert_allclose(fitted.transform(X[5:6]), codes[5:6], atol=1e-9)
    restored = fitted.inverse_transform(codes)
    assert np.mean((X - restored) ** 2) < 0.1 * np.var(X, axis=0).mean()
    cost = 0.5 * np.sum((X - restored) ** 2, axis=1) + fitted.coder_.lam * np.abs(codes).sum(1)
    assert fitted.score(X) == pytest.approx(-cost.mean(), rel=1e-9)
    recorded = model().fit(X, validation=X, validate_every=5).history_
    assert recorded[-1].test_cost == pytest.approx(cost.mean(), rel=1e-3)


def test_sparse_input_and_memory_maps_are_centred_too(tmp_path):
    X = blocks(offset=0.0) * (np.random.default_rng(1).random((600, 20)) < 0.3)
    dense = model().fit(X)
    other = model().fit(sparse.csr_array(X))
    np.testing.assert_allclose(other.components_, dense.components_, atol=1e-9)
    np.testing.assert_allclose(
        other.explained_variance_, dense.explained_variance_, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(other.transform(sparse.csr_array(X)), dense.transform(X), atol=1e-9)
    mapped = np.memmap(tmp_path / "X", np.float64, "w+", shape=X.shape)
    mapped[:] = X
    np.testing.assert_array_equal(model().fit(mapped).components_, dense.components_)
    mapped[7, 3] = np.nan
    with pytest.raises(ValueError, match=r"NaN.*\(7, 3\)"):
        model().fit(mapped)


# --- a good citizen


@pytest.mark.parametrize("options", [{}, {"learner": SGD()}, {"fused": 0.1}])
def test_threads_and_pickles_give_the_same_bits(options):
    X = blocks()
    one, two = (model(n_threads=t, **options).fit(X) for t in (1, 2))
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.explained_variance_, two.explained_variance_)
    copy = pickle.loads(pickle.dumps(one))
    for each in (one, copy, two):
        each.partial_fit(X[:50])
    np.testing.assert_array_equal(one.components_, copy.components_)
    np.testing.assert_array_equal(one.components_, two.components_)


def test_a_stream_may_begin_with_fewer_samples_than_components():
    X = blocks()
    stream = model()
    gammas = []
    for begin in range(0, 600, 3):
        stream.partial_fit(X[begin : begin + 3])
        gammas.append(stream.state_.constraint.gamma)
    assert stream.state_.learner.t0 == 0
    assert np.isfinite(stream.explained_variance_).all()
    moments, total = score_moments(X, stream.components_, stream.mean_)
    assert adjusted_variances(moments)[1].sum() > 0.95 * total
    # The set waits for the atoms to follow.
    assert np.count_nonzero(np.diff(gammas)) <= 600 // 64


def test_inputs_are_left_alone():
    X = blocks()
    X.flags.writeable = False
    init = BLOCKS.copy()
    fitted = model(init=init).fit(X).partial_fit(X[:20])
    fitted.transform(X)
    np.testing.assert_array_equal(init, BLOCKS)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"density": 0.0}, ValueError, r"density must be in \(0, 1\], got 0.0"),
        ({"density": 1.5}, ValueError, r"density must be in \(0, 1\], got 1.5"),
        ({"density": "half"}, TypeError, "density must be a number"),
        ({"density": None, "gamma": -1.0}, ValueError, "gamma must be >= 0, got -1.0"),
        ({"gamma": 0.1}, ValueError, "give one of gamma, density and constraint"),
        ({"constraint": L2Ball()}, ValueError, "give one of gamma, density and constraint"),
        (
            {"density": None, "constraint": L2Ball(), "fused": 0.1},
            ValueError,
            "fused only without a constraint",
        ),
        ({"lam": 0.1, "mean_nonzeros": 2}, ValueError, "give one of lam, mean_nonzeros and coder"),
        ({"lam": 0.1, "coder": Lasso(0.1)}, ValueError, "give one of lam, mean_nonzeros and coder"),
        ({"lam": 0.0}, ValueError, "lam must be > 0, got 0.0"),
        ({"mean_nonzeros": 0}, ValueError, "mean_nonzeros must be > 0, got 0"),
        ({"fused": -0.1}, ValueError, "fused must be >= 0, got -0.1"),
        ({"coder": Lasso}, TypeError, "did you mean Lasso"),
        ({"n_components": 0}, ValueError, "n_components must be >= 1, got 0"),
        ({"init": np.eye(3, 20)}, ValueError, "init has 3 atoms, expected 4"),
    ],
)
def test_wrong_settings(options, error, message):
    estimator = model().set_params(**options)
    for method in ("fit", "partial_fit"):
        with pytest.raises(error, match=message):
            getattr(estimator, method)(blocks())
        assert not hasattr(estimator, "mean_")
        assert not hasattr(estimator, "n_features_in_")


def test_wrong_data():
    X = blocks()
    fitted = model().fit(X)
    mean = fitted.mean_
    bad = X[:30].copy()
    bad[3, 2] = np.nan
    for method in ("fit", "partial_fit", "transform", "score"):
        with pytest.raises(ValueError, match=r"1 such values, the first \(NaN\) at \(3, 2\)"):
            getattr(fitted, method)(bad)
        with pytest.raises(TypeError, match="without missing entries, got a masked array"):
            getattr(fitted, method)(np.ma.masked_invalid(bad))
    with pytest.raises(ValueError, match="all of the 30 samples looked at are the same"):
        fitted.fit(np.full((30, 20), 7.0))
    with pytest.raises(ValueError, match="only 1 sample is given"):
        model().partial_fit(X[:1])
    with pytest.raises(ValueError, match="fewer than the 4 atoms"):
        fitted.fit(X[:3])
    assert fitted.mean_ is mean
    fitted.set_params(density=0.5)
    with pytest.raises(ValueError, match=r"constraint was .* partial_fit cannot change it"):
        fitted.partial_fit(X)
    with pytest.raises(TypeError, match="a stream can be read only once: pass its batches to"):
        model().fit(batch for batch in np.split(X, 4))
    with pytest.raises(TypeError, match="partial_fit takes one batch in memory"):
        model().partial_fit("x.npy")
    with pytest.raises(NotFittedError):
        model().transform(X)
    with pytest.raises(AttributeError):
        model(learner=Online(memory="replace")).partial_fit(X)


def test_files_are_learned_from_as_arrays_are(tmp_path):
    X = blocks()
    np.save(tmp_path / "x.npy", X)
    here, there = model().fit(X), model().fit(tmp_path / "x.npy")
    np.testing.assert_array_equal(here.components_, there.components_)
    np.testing.assert_array_equal(here.explained_variance_, there.explained_variance_)
    np.testing.assert_array_equal(here.transform(X), there.transform(X))


def test_constant_features_get_no_weight():
    X = blocks()
    X[:, [0, 7]] = 3.7
    fitted = model().fit(X)
    assert np.abs(fitted.components_[:, [0, 7]]).max() == 0
