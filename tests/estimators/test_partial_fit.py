"""partial_fit: one update a call, on and on."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from estimator_problems import LASSO, SMALL, K, M, assert_same_state, model, planted, samples

from smalto import DictionaryLearning, encode, learn
from smalto.coders import Lasso
from smalto.constraints import L2Ball
from smalto.learners import SGD, Batch, Continuation, Online, Replacement
from smalto.learning import Record, State
from smalto.sources import Order


@pytest.mark.parametrize("n", [1, 3, K, 137, 9000])
def test_partial_fit_is_one_update_whatever_the_size(n):
    X = samples(3 * n)
    estimator = model(coder=Lasso(0.05))
    for step in (1, 2, 3):
        before = getattr(estimator, "components_", None)
        estimator.partial_fit(X[(step - 1) * n : step * n])
        assert estimator.n_iter_ == estimator.state_.step == step
        assert estimator.state_.samples == step * n
        assert [r.step for r in estimator.history_] == list(range(1, step + 1))
        assert estimator.components_.shape == (K, M)
        assert before is None or np.any(before != estimator.components_)
    seconds = [r.seconds for r in estimator.history_]
    assert 0 < seconds[0] < seconds[1] < seconds[2]


@pytest.mark.parametrize("learner", [SMALL, SGD(batch_size=50), Batch()])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_partial_fit_is_a_step_of_learn(learner, dtype):
    X = samples(300, dtype)
    init = samples(K, dtype, seed=9)
    init[1] *= 1e-3  # of no use, so that there is something to replace
    settings = {"init": init, "replacement": Replacement(idle=1.0, every=1)}
    settings["continuation"] = Continuation(0.5, 4)
    result = learn(X, K, LASSO, None, learner, random_state=4, **settings)
    stream = model(learner=learner, **settings)
    step = learner.rows_per_step(len(X))
    for begin in range(0, len(X), step):
        stream.partial_fit(X[Order(len(X), 4).take(0, begin, begin + step)])
    np.testing.assert_array_equal(stream.components_, result.D)
    assert stream.components_.dtype == dtype
    ours, theirs = (
        [replace(r, epoch=0, seconds=0.0) for r in h] for h in (stream.history_, result.history)
    )
    assert ours == theirs
    assert sum(r.replaced for r in ours) > 0


def test_the_first_step_of_a_stream_is_that_of_learn():
    X = samples(9000)
    for coder in (Lasso(), LASSO):
        learner = Online(batch_size=9000)
        stream = model(coder=coder, learner=learner).partial_fit(X)
        result = learn(X, K, coder, None, learner, random_state=0)
        np.testing.assert_allclose(stream.components_, result.D, rtol=1e-9, atol=1e-12)
        assert stream.coder_.lam == pytest.approx(result.coder.lam, rel=1e-12)


def test_a_stream_calibrates_its_lam_at_steps_1_2_4():
    X = samples(8 * 40)
    coder = Lasso(mean_nonzeros=3)
    stream = model(coder=coder).partial_fit(X[:40])
    for step in range(1, 8):
        batch = X[40 * step : 40 * (step + 1)]
        if step in (1, 2, 4):
            lam = coder.resolve(batch, stream.components_).lam
            assert lam != stream.coder_.lam
        stream.partial_fit(batch)
        assert stream.coder_ == Lasso(lam)
        assert stream.history_[-1].lam == lam


@pytest.mark.parametrize("rho", [0.0, 3.0])
def test_unequal_batches_are_weighted_by_their_samples(rho):
    X = samples(500)
    eta = 50
    estimator = model(learner=Online(eta, rho=rho, memory="all", slack=0.0), init=X[:K])
    D = X[:K] / np.maximum(1, np.linalg.norm(X[:K], axis=1, keepdims=True))
    A, B, seen = np.zeros((K, K)), np.zeros((K, M)), 0
    for n in (7, 50, 1, 120, 33, 200):
        batch = X[seen : seen + n]
        codes = encode(batch, D, LASSO).toarray()
        beta = (seen / (seen + n)) ** rho if seen >= eta else 1.0
        A = beta * A + codes.T @ codes / eta
        B = beta * B + codes.T @ batch / eta
        seen += n
        D = estimator.partial_fit(batch).components_
        (stats,) = estimator.state_.stats
        np.testing.assert_allclose(stats.scale * stats.A, A, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(stats.scale * stats.B, B, rtol=1e-9, atol=1e-12)
        assert estimator.state_.samples == seen


def test_partial_fit_goes_on_after_fit():
    X, more = samples(), samples(60, seed=1)
    fitted = model(max_epochs=2).fit(X)
    steps, D, history = fitted.n_iter_, fitted.components_, list(fitted.history_)
    kept = D.copy()
    past = sum(part.total_weight() for part in fitted.state_.stats)
    fitted.partial_fit(more)
    assert fitted.n_iter_ == steps + 1
    assert fitted.state_.samples == 2 * len(X) + 60
    assert fitted.history_[:-1] == history
    rho = np.log2(2 * len(X) / len(D))
    beta = (2 * len(X) / (2 * len(X) + 60)) ** rho
    now = sum(part.total_weight() for part in fitted.state_.stats)
    assert now == pytest.approx(beta * past + 60 / 50, rel=1e-9)
    np.testing.assert_array_equal(D, kept)  # what was handed out stays as it was
    # A little new data moves a dictionary that knows much already a little.
    assert 0 < np.abs(fitted.components_ - kept).max() < 0.5
    fitted.fit(X)
    assert fitted.n_iter_ == steps
    np.testing.assert_array_equal(fitted.components_, kept)


def test_a_stream_learns():
    X, other = samples(3000), samples(300, seed=2)
    stream = model(learner=Online(batch_size=50, rho=1.0))
    scores = [
        stream.partial_fit(X[begin : begin + 30]).score(other) for begin in range(0, 3000, 30)
    ]
    best = model(init=planted(), max_steps=0).fit(X).score(other)
    assert best - scores[-1] < 0.2 * (best - scores[0])


@pytest.mark.parametrize("after_fit", [False, True])
def test_a_pickled_model_goes_on_bit_for_bit(after_fit):
    X = samples()
    estimator = model(coder=Lasso(mean_nonzeros=3))
    estimator = estimator.fit(X) if after_fit else estimator.partial_fit(X[:70])
    copy = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(copy.transform(X), estimator.transform(X))
    for begin in range(0, 400, 40):
        for one in (estimator, copy):
            one.partial_fit(X[begin : begin + 40])
    assert_same_state(copy.state_, estimator.state_)
    np.testing.assert_array_equal(copy.components_, estimator.components_)
    assert copy.state_.D is not estimator.state_.D


def test_partial_fit_calls_callbacks_with_the_new_state():
    seen = []

    def look(state, record):
        assert isinstance(state, State)
        assert isinstance(record, Record)
        seen.append((record.step, state.D.copy()))
        return True

    estimator = model(callbacks=[look, look])
    estimator.partial_fit(samples(30)).partial_fit(samples(30))
    assert [step for step, _ in seen] == [1, 1, 2, 2]
    np.testing.assert_array_equal(seen[-1][1], estimator.components_)


def test_partial_fit_keeps_the_precision_it_began_with():
    estimator = model().partial_fit(samples(40, np.float32))
    estimator.partial_fit(samples(40)).partial_fit(np.ones((2, M), np.int8))
    assert estimator.components_.dtype == np.float32
    with pytest.raises(ValueError, match=r"the values of X reach 1e\+140, more than .* float32"):
        estimator.partial_fit(np.full((2, M), 1e140))


def test_partial_fit_does_not_change_the_problem():
    estimator = model().partial_fit(samples(40))
    for name, value in {
        "coder": Lasso(0.4),
        "constraint": L2Ball(positive=True),
        "learner": SGD(),
        "n_components": 7,
    }.items():
        was = getattr(estimator, name)
        estimator.set_params(**{name: value})
        with pytest.raises(ValueError, match=f"^{name} was .* call fit to start again"):
            estimator.partial_fit(samples(40))
        estimator.set_params(**{name: was})
    assert estimator.set_params(coder=Lasso(0.3)).partial_fit(samples(40)).n_iter_ == 2


def test_stored_codes_have_no_stream():
    replacing = model(learner=Online(memory="replace"))
    assert not hasattr(replacing, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit") as error:
        replacing.fit(samples()).partial_fit(samples())
    assert "fixed data set" in str(error.value.__cause__)


def test_values_beyond_the_range_are_refused_before_anything_is_computed(recwarn):
    X = np.random.default_rng(0).standard_normal((50, 8))
    model = DictionaryLearning(4, coder=Lasso(0.1), random_state=0).partial_fit(X)
    D = model.components_.copy()
    with pytest.raises(ValueError, match=r"values of X reach .*, more than"):
        model.partial_fit(1e200 * X)
    assert not recwarn.list
    np.testing.assert_array_equal(model.components_, D)
