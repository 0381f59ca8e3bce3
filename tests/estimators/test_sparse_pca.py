"""SparsePCA: what it finds, scikit-learn's contract, and what it refuses."""

import pickle

import numpy as np
import pytest
from problems import DTYPES
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
from sparse_pca_problems import BLOCKS, blocks, model

from smalto import SparsePCA
from smalto.coders import Lasso, Ridge
from smalto.constraints import ElasticNetBall, FusedLassoBall, L2Ball
from smalto.estimators.variance import adjusted_variances, score_moments
from smalto.learners import SGD, Batch, Online


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
        with pytest.raises(ValueError, match=r"1 such value, the first \(NaN\) at \(3, 2\)"):
            getattr(fitted, method)(bad)
        with pytest.raises(TypeError, match="without missing entries, got a masked array"):
            getattr(fitted, method)(np.ma.masked_invalid(bad))
    with pytest.raises(ValueError, match="all of the 30 samples looked at are the same"):
        fitted.fit(np.full((30, 20), 7.0))
    with pytest.raises(ValueError, match="only 1 sample is given"):
        model().partial_fit(X[:1])
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


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-100, 123456.789])
def test_rounding_of_the_mean_is_nothing_to_learn_from(value):
    X = np.full((51, 8), value)  # whose mean is not exactly the value
    for fit in (SparsePCA(2).fit, SparsePCA(2).partial_fit):
        with pytest.raises(ValueError, match="are the same"):
            fit(X)
    X[0, 0] *= 1 + 1e-9
    SparsePCA(1, random_state=0).fit(X)


def test_constant_features_get_no_weight():
    X = blocks()
    X[:, [0, 7]] = 3.7
    fitted = model().fit(X)
    assert np.abs(fitted.components_[:, [0, 7]]).max() == 0


def test_components_do_not_vanish_for_the_sake_of_a_density():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3)) * [4, 3, 2] @ np.kron(np.eye(3), np.ones(4))
    X += 0.1 * rng.standard_normal(X.shape)
    model = SparsePCA(3, random_state=0).fit(X)  # a density of 0.3, where that of the groups is 1/3
    assert (model.components_ != 0).sum() == 12
    assert np.linalg.norm(model.components_, axis=1).min() > 0.3
    assert model.explained_variance_ratio_.sum() > 0.99
