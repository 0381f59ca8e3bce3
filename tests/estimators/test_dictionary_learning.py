import doctest
import pickle
import tracemalloc
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from smalto import encode, learn
from smalto.coders import Lasso
from smalto.constraints import L2Ball
from smalto.estimators import DictionaryLearning, dictionary_learning
from smalto.learners import SGD, Batch, Continuation, Online, Replacement
from smalto.learning import Record, State
from smalto.sources import Order

K, M = 12, 9
LASSO = Lasso(lam=0.3)
SMALL = Online(batch_size=50)


def planted():
    atoms = np.random.default_rng(100).standard_normal((K, M))
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


def samples(n=400, dtype=np.float64, seed=0):
    """Noisy combinations of three planted atoms."""
    rng = np.random.default_rng(seed)
    codes = np.zeros((n, K))
    for row in codes:
        row[rng.choice(K, 3, replace=False)] = rng.normal(0, 2, 3)
    return (codes @ planted() + 0.05 * rng.standard_normal((n, M))).astype(dtype)


def model(**settings):
    return DictionaryLearning(
        **{"n_components": K, "coder": LASSO, "learner": SMALL, "random_state": 0, **settings}
    )


def costs(X, D, codes, lam):
    """The objective, written out."""
    return 0.5 * np.sum((X - codes @ D) ** 2, axis=1) + lam * np.abs(codes).sum(axis=1)


def assert_same_state(a, b):
    np.testing.assert_array_equal(a.D, b.D)
    assert (a.coder, a.step, a.samples) == (b.coder, b.step, b.samples)
    np.testing.assert_equal(a.surrogate, b.surrogate)
    for one, other in zip(a.stats, b.stats, strict=True):
        np.testing.assert_array_equal(one.A, other.A)
        np.testing.assert_array_equal(one.B, other.B)
        assert (one.weight, one.scale) == (other.weight, other.scale)


# --- scikit-learn's own checks, and that it is a good citizen


def expected_failures(estimator):
    # A sample twice and a sample of weight two are not the same to a learner that draws them.
    reason = "samples are drawn at random: repeating one changes the draw"
    kinds = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in kinds}


@parametrize_with_checks(
    [
        DictionaryLearning(3, random_state=0),
        DictionaryLearning(
            3, coder=Lasso(positive=True), constraint=L2Ball(positive=True), random_state=0
        ),
        DictionaryLearning(3, sparse_output=True, random_state=0),
        DictionaryLearning(3, learner=Batch(), max_epochs=3, random_state=0),
        DictionaryLearning(3, learner=SGD(), random_state=0),
        DictionaryLearning(3, learner=Online(memory="replace"), max_epochs=2, random_state=0),
        DictionaryLearning(3, coder=Lasso(mean_nonzeros=1), random_state=0),
        DictionaryLearning(3, learner=Online(batch_size=4, memory="all"), random_state=0),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_clone_keeps_settings_and_drops_what_was_learned():
    settings = {
        "coder": Lasso(0.2, ridge=0.1),
        "constraint": L2Ball(positive=True),
        "learner": Online(batch_size=64, rho=2.0),
        "continuation": Continuation(0.5, 4),
        "replacement": Replacement(every=3),
        "init": np.eye(K, M),
        "callbacks": (len,),
    }
    original = model(**settings)
    copy = clone(original)
    for name, value in original.get_params().items():
        np.testing.assert_equal(copy.get_params()[name], value)
    fitted = model().fit(samples())
    assert not hasattr(clone(fitted), "components_")


def test_parameters_can_be_set_and_shown():
    estimator = model().set_params(coder=Lasso(0.7), n_components=5)
    assert estimator.get_params()["coder"] == Lasso(0.7)
    assert "n_components=5" in repr(estimator)
    assert "Lasso(lam=0.7" in repr(estimator)
    assert estimator.fit(samples()).coder_ == Lasso(0.7)
    assert len(estimator.components_) == 5


def test_grid_search_over_coders():
    X = samples()
    grid = {"coder": [Lasso(0.5), Lasso(0.1)], "n_components": [4, K]}
    search = GridSearchCV(model(), grid, cv=2).fit(X)
    assert search.best_params_ == {"coder": Lasso(0.1), "n_components": K}
    assert search.best_estimator_.coder_ == Lasso(0.1)
    first = model(coder=Lasso(0.5), n_components=4).fit(X[200:]).score(X[:200])
    assert search.cv_results_["split0_test_score"][0] == first


@pytest.mark.parametrize("sparse_output", [False, True])
def test_pipeline_to_a_classifier(sparse_output):
    X = samples()
    y = np.abs(encode(X, model().fit(X).components_, LASSO)[:, [0]]).toarray().ravel() > 0.5
    steps = (
        StandardScaler(),
        model(sparse_output=sparse_output),
        LogisticRegression(solver="liblinear"),
    )
    assert np.mean(cross_val_score(make_pipeline(*steps), X, y, cv=3)) > y.mean()


def test_feature_names_and_data_frames():
    pandas = pytest.importorskip("pandas")
    X = samples()
    frame = pandas.DataFrame(X, columns=[f"pixel{i}" for i in range(M)], index=np.arange(400) + 7)
    estimator = model().set_output(transform="pandas").fit(frame)
    assert list(estimator.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(estimator.components_, model().fit(X).components_)
    codes = estimator.transform(frame)
    names = [f"dictionarylearning{i}" for i in range(K)]
    assert list(codes.columns) == list(estimator.get_feature_names_out()) == names
    assert list(codes.index) == list(frame.index)
    np.testing.assert_array_equal(codes, model().fit(X).transform(X))
    np.testing.assert_allclose(
        estimator.inverse_transform(codes), codes.to_numpy() @ estimator.components_
    )
    with pytest.raises(ValueError, match="feature names"):
        estimator.partial_fit(frame[frame.columns[::-1]])


def test_the_example_in_the_documentation():
    finder = doctest.DocTestFinder(recurse=False)
    (example,) = finder.find(DictionaryLearning, globs={}, module=dictionary_learning)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


# --- fit is learn


@pytest.mark.parametrize(
    "learner", [SMALL, Online(batch_size=50, memory="replace"), Batch(), SGD(batch_size=50)]
)
def test_fit_is_learn(learner):
    X, validation = samples(), samples(100, seed=3)
    init = samples(K, seed=9)
    init[1] *= 1e-3  # of no use, so that there is something to replace
    settings = {"max_epochs": 3, "max_steps": 17, "init": init}
    settings["replacement"] = Replacement(idle=1.0, every=1)
    ours = model(learner=learner, continuation=Continuation(0.5, 5), **settings)
    ours.fit(X, validation=validation, validate_every=[3])
    result = learn(
        X, K, LASSO, None, learner, continuation=Continuation(0.5, 5), random_state=0,
        validation=validation, validate_every=[3], **settings,
    )  # fmt: skip
    np.testing.assert_array_equal(ours.components_, result.D)
    assert_same_state(ours.state_, result.state)
    assert ours.n_iter_ == result.state.step > 1
    assert ours.stopped_ == result.stopped
    assert [r.batch_cost for r in ours.history_[1:]] == [r.batch_cost for r in result.history[1:]]
    assert [r.test_cost for r in ours.history_] == [r.test_cost for r in result.history]
    assert [r.replaced for r in ours.history_] == [r.replaced for r in result.history]
    assert ours.history_[1].replaced > 0
    assert ours.history_[3].test_cost is not None
    assert ours.history_[2].test_cost is None


def test_fit_finds_what_was_planted():
    X, other = samples(2000), samples(seed=5)
    best = model(init=planted(), max_steps=0).fit(X).score(other)
    start = model(max_steps=0).fit(X).score(other)
    assert best - model(max_epochs=20).fit(X).score(other) < 0.1 * (best - start)


@pytest.mark.parametrize("settings", [{}, {"coder": Lasso(mean_nonzeros=3)}, {"learner": Batch()}])
def test_fitting_again_and_other_threads_give_the_same_bits(settings):
    X = samples(1000)
    estimators = [model(n_threads=t, max_epochs=3, **settings) for t in (1, 1, 2, 3)]
    once = estimators[0].fit(X)
    estimators[1].fit(X[:100])
    for other in estimators[1:]:
        other.fit(X)
        assert_same_state(other.state_, once.state_)
        np.testing.assert_array_equal(other.transform(X), once.transform(X))
        assert other.score(X) == once.score(X)
    for estimator in estimators:
        estimator.partial_fit(X[:300])
        assert_same_state(estimator.state_, once.state_)


def test_the_seed_matters():
    X = samples()
    assert np.any(model().fit(X).components_ != model(random_state=1).fit(X).components_)


def test_limits_and_why_it_ended():
    X = samples()
    assert model(max_epochs=2).fit(X).stopped_ == "epochs"
    by_steps = model(max_epochs=None, max_steps=11).fit(X)
    assert (by_steps.stopped_, by_steps.n_iter_, len(by_steps.history_)) == ("steps", 11, 11)
    assert model(max_epochs=None, max_seconds=0.05).fit(X).stopped_ == "seconds"
    ended = model(max_epochs=9, callbacks=[lambda state, record: record.step == 3]).fit(X)
    assert (ended.stopped_, ended.n_iter_) == ("callback", 3)


def test_first_dictionary_is_taken_and_left_alone():
    X, init = samples(), np.eye(K, M)
    fitted = model(init=init, max_steps=0).fit(X)
    np.testing.assert_array_equal(fitted.components_, np.eye(K, M))
    fitted = model(init=init).fit(X)
    np.testing.assert_array_equal(init, np.eye(K, M))
    assert np.any(fitted.components_ != init)
    assert clone(fitted).init is not init


def test_positive_atoms_and_codes():
    X = np.abs(samples())
    fitted = model(coder=Lasso(0.3, positive=True), constraint=L2Ball(positive=True)).fit(X)
    codes = fitted.transform(X)
    assert fitted.components_.min() >= 0
    assert codes.min() == 0
    assert codes.max() > 0


# --- partial_fit is one update


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
    estimator = model(learner=Online(batch_size=eta, rho=rho, memory="all"), init=X[:K])
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
    beta = (2 * len(X) / (2 * len(X) + 60)) ** 5.0
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
    with pytest.raises(ValueError, match="infinity"), np.errstate(over="ignore"):
        estimator.partial_fit(np.full((2, M), 1e300))


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


# --- codes


@pytest.mark.parametrize("coder", [None, LASSO, Lasso(0.2, ridge=0.1), Lasso(mean_nonzeros=3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transform_is_the_training_problem(coder, dtype):
    X, other = samples(dtype=dtype), samples(150, dtype, seed=1)
    fitted = model(coder=coder, max_epochs=5).fit(X)
    codes = fitted.transform(other)
    assert fitted.coder_.lam == fitted.state_.coder.lam
    expected = encode(other, fitted.components_, fitted.coder_)
    np.testing.assert_array_equal(codes, expected.toarray())
    assert codes.dtype == fitted.components_.dtype == dtype
    given = encode(other, fitted.components_, Lasso(fitted.coder_.lam, fitted.coder_.ridge))
    np.testing.assert_array_equal(codes, given.toarray())
    if coder == Lasso(mean_nonzeros=3):
        assert 2 < np.count_nonzero(codes) / len(codes) < 4


def test_codes_are_optimal():
    X = samples()
    fitted = model().fit(X)
    D, codes = fitted.components_, fitted.transform(X)
    gradient = (X - codes @ D) @ D.T
    assert np.abs(gradient).max() <= LASSO.lam * (1 + 1e-6)
    used = codes != 0
    np.testing.assert_allclose(gradient[used], LASSO.lam * np.sign(codes[used]), rtol=1e-6)


@pytest.mark.parametrize("coder", [LASSO, Lasso(mean_nonzeros=3)])
def test_a_code_depends_on_its_row_alone(coder):
    X = samples()
    fitted = model(coder=coder).fit(X)
    codes = fitted.transform(X)
    tolerance = {"rtol": 1e-9, "atol": 1e-12}
    for rows in (slice(0, 1), slice(3, 10), slice(130, 271), slice(None, None, -1), [5, 5, 300]):
        np.testing.assert_allclose(fitted.transform(X[rows]), codes[rows], **tolerance)


def test_fit_transform_is_fit_then_transform():
    X = samples()
    estimator = model()
    np.testing.assert_array_equal(estimator.fit_transform(X), estimator.transform(X))


def test_a_signal_too_weak_to_code_is_no_reason_to_warn():
    fitted = model().fit(samples())
    assert not fitted.transform(np.full((1, M), 1e-3)).any()


def test_sparse_output():
    X = samples()
    dense, csr = model().fit(X), model(sparse_output=True).fit(X)
    codes = csr.transform(X)
    assert isinstance(codes, sparse.csr_array)
    assert codes.indices.dtype == codes.indptr.dtype == np.int32
    assert codes.has_sorted_indices
    np.testing.assert_array_equal(codes.toarray(), dense.transform(X))
    assert isinstance(csr.fit_transform(X), sparse.csr_array)
    assert type(dense.transform(X)) is np.ndarray


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverse_transform(dtype):
    X = samples(dtype=dtype)
    fitted = model(coder=Lasso(0.01), max_epochs=30).fit(X)
    codes = fitted.transform(X)
    for given in (
        codes,
        sparse.csr_array(codes),
        sparse.csr_matrix(codes),
        sparse.coo_array(codes),
    ):
        back = fitted.inverse_transform(given)
        assert type(back) is np.ndarray
        assert back.dtype == dtype
        np.testing.assert_allclose(back, codes @ fitted.components_, rtol=1e-4, atol=1e-5)
    assert np.mean((X - back) ** 2) < 0.01 * np.mean(X**2)
    with pytest.raises(ValueError, match=rf"each of the {K} atoms, got shape \(400, {K - 1}\)"):
        fitted.inverse_transform(codes[:, :-1])


def test_score_is_minus_the_mean_cost():
    X, other = samples(), samples(9000, seed=1)
    fitted = model().fit(X)
    by_hand = costs(other, fitted.components_, fitted.transform(other), LASSO.lam)
    assert fitted.score(other) == pytest.approx(-by_hand.mean(), rel=1e-9)
    assert fitted.score(sparse.csr_array(other)) == pytest.approx(-by_hand.mean(), rel=1e-9)
    assert isinstance(fitted.score(other), float)


# --- kinds of data


def test_float32_stays_float32():
    X = samples(dtype=np.float32)
    fitted = model(max_epochs=2).fit(X)
    assert fitted.components_.dtype == fitted.transform(X).dtype == np.float32
    assert fitted.transform(X.astype(np.float64)).dtype == np.float64
    assert model().fit(X.astype(np.float16)).components_.dtype == np.float64
    reference = model(max_epochs=2).fit(X.astype(np.float64))
    assert fitted.score(X) == pytest.approx(reference.score(X), rel=1e-3)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
def test_sparse_input(kind):
    X = samples()
    X[np.abs(X) < 1] = 0
    dense, other = model(max_epochs=2).fit(X), model(max_epochs=2).fit(kind(X))
    np.testing.assert_allclose(other.components_, dense.components_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(other.transform(kind(X)), dense.transform(X), rtol=1e-6, atol=1e-9)
    dense.partial_fit(X[:33])
    other.partial_fit(kind(X[:33]))
    np.testing.assert_allclose(other.components_, dense.components_, rtol=1e-6, atol=1e-9)


def test_sparse_input_out_of_order_and_twice():
    X = sparse.csr_array(
        (np.array([1.0, 2, 3, 4, 5, 6]), np.array([2, 0, 2, 1, 1, 0]), np.array([0, 3, 4, 6])),
        shape=(3, 3),
    )
    before = X.copy()
    ours = DictionaryLearning(2, coder=LASSO, random_state=0).fit(X).partial_fit(X)
    dense = DictionaryLearning(2, coder=LASSO, random_state=0).fit(X.toarray())
    dense.partial_fit(X.toarray())
    np.testing.assert_allclose(ours.components_, dense.components_, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(X.data, before.data)
    np.testing.assert_array_equal(X.indices, before.indices)


@pytest.mark.parametrize("make", [np.array, np.asfortranarray, sparse.csr_array])
def test_input_is_never_changed(make):
    X = make(samples())
    arrays = [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    fitted = model(max_epochs=2).fit(X).partial_fit(X)
    fitted.transform(X)
    fitted.score(X)
    for array, was in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, was)


def test_integers_and_lists():
    X = np.rint(10 * samples()).astype(np.int16)
    ours = model().fit(X)
    assert ours.components_.dtype == np.float64
    np.testing.assert_array_equal(ours.components_, model().fit(X.astype(float)).components_)
    np.testing.assert_array_equal(ours.components_, model().fit(X.tolist()).components_)


def test_a_memory_map_is_not_loaded(tmp_path):
    n, m = 10_000_000, 32
    X = np.memmap(tmp_path / "X", np.uint8, "w+", shape=(n, m))
    X[:] = np.random.default_rng(0).integers(0, 255, (1, m), np.uint8)
    X[::2, ::3] = 7
    X.flush()
    X = np.memmap(tmp_path / "X", np.uint8, "r", shape=(n, m))
    settings = {"n_components": 2, "coder": Lasso(50.0), "learner": Online(), "max_steps": 5}
    reference = model(**settings).fit(np.array(X[: n // 100]))  # compiles what is needed
    tracemalloc.start()
    try:
        fitted = model(**settings).fit(X)
        score = fitted.score(X[: n // 100])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < X.nbytes / 2  # what is shuffled together is 64 MB at most
    assert score == pytest.approx(reference.score(X[: n // 100]), rel=0.1)
    np.testing.assert_array_equal(fitted.transform(X[:9]), fitted.transform(np.array(X[:9])))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_a_memory_map_is_as_good_as_an_array(tmp_path, dtype):
    X = np.memmap(tmp_path / "X", dtype, "w+", shape=(4000, M))
    X[:] = np.random.default_rng(0).integers(0, 255, X.shape, np.uint8)
    expected = model(coder=Lasso(50.0)).fit(np.array(X)).components_
    np.testing.assert_array_equal(model(coder=Lasso(50.0)).fit(X).components_, expected)


def test_of_a_memory_map_only_what_is_drawn_is_read(tmp_path):
    X = np.memmap(tmp_path / "X", np.float64, "w+", shape=(200_000, M))
    X[:400] = samples()
    X[400:] = X[0]
    X[777, 4] = np.nan
    with pytest.raises(ValueError, match=r"NaN.*\(777, 4\)"):
        model(learner=Online()).fit(X)
    assert model(max_steps=1).fit(X).n_iter_ == 1  # one row in a hundred is drawn


# --- what is refused


@dataclass
class Stranger:
    lam: float = 0.1


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n_components": 0}, ValueError, "n_components must be >= 1, got 0"),
        ({"n_components": 2.5}, TypeError, "n_components must be an integer, got 2.5"),
        ({"n_components": 401}, ValueError, "n_samples=400 is fewer than the 401"),
        ({"coder": Stranger()}, TypeError, r"coder must be .*got Stranger\(lam=0.1\)"),
        ({"coder": Lasso}, TypeError, "did you mean Lasso"),
        ({"coder": 0.1}, TypeError, "coder must be .* got 0.1"),
        ({"constraint": "l2"}, TypeError, "constraint must be .* got 'l2'"),
        ({"learner": "online"}, TypeError, "learner must be .* got 'online'"),
        ({"max_epochs": 0}, ValueError, "max_epochs must be >= 1, got 0"),
        ({"max_steps": 1.5}, TypeError, "max_steps must be an integer, got 1.5"),
        ({"max_seconds": -1}, ValueError, "max_seconds must be >= 0, got -1"),
        ({"init": np.eye(3, M)}, ValueError, f"init has 3 atoms, expected {K}"),
        ({"init": np.eye(K, 4)}, ValueError, f"4 features .*{M}"),
        ({"continuation": 0.1}, TypeError, "continuation must be .* got 0.1"),
        ({"replacement": True}, TypeError, "replacement must be .* got True"),
        ({"callbacks": print}, TypeError, "callbacks must be .* got <built-in function print>"),
        ({"callbacks": [print, 3]}, TypeError, r"callbacks\[1\] must be callable, got 3"),
        ({"n_threads": 0}, ValueError, "n_threads must be .* got 0"),
        ({"random_state": -1}, ValueError, "random_state must be >= 0, got -1"),
        ({"random_state": "x"}, TypeError, "random_state must be .* got 'x'"),
        ({"sparse_output": "yes"}, TypeError, "sparse_output must be True or False, got 'yes'"),
    ],
)
def test_wrong_settings_are_refused_by_fit(settings, error, message):
    estimator = model(**settings)
    before = dict(vars(estimator))
    with pytest.raises(error, match=message):
        estimator.fit(samples())
    assert vars(estimator) == before
    in_a_stream = set(settings) - {"max_epochs", "max_steps", "max_seconds"}
    if in_a_stream and settings.get("n_components") != 401:
        with pytest.raises(error, match=message):
            estimator.partial_fit(samples())
        assert vars(estimator) == before


def test_wrong_data_is_refused_and_leaves_the_model_as_it_was():
    X = samples()
    fitted = model().fit(X)
    codes, steps = fitted.transform(X), fitted.n_iter_
    bad = samples(50)
    bad[3, 2] = np.nan
    for wrong, message in [
        (bad, r"1 such values, the first \(NaN\) at \(3, 2\)"),
        (np.zeros((50, M)), "are zero or masked: nothing to learn from"),
        (np.zeros((0, M)), "0 sample"),
        (X[0], "Reshape your data"),
        (np.ones((50, 4), complex), "Complex data not supported"),
        (np.hstack([bad, bad]), "NaN"),
    ]:
        with pytest.raises(ValueError, match=message):
            fitted.fit(wrong)
        assert fitted.n_features_in_ == M
        np.testing.assert_array_equal(fitted.transform(X), codes)
    for method in ("partial_fit", "transform", "score"):
        with pytest.raises(ValueError, match="NaN"):
            getattr(fitted, method)(bad)
        with pytest.raises(ValueError, match=f"4 features, but .* {M} features"):
            getattr(fitted, method)(X[:, :4])
    assert fitted.n_iter_ == fitted.state_.step == steps
    np.testing.assert_array_equal(fitted.transform(X), codes)


def test_a_failed_first_batch_leaves_nothing_behind():
    stream = model()
    with pytest.raises(ValueError, match="NaN"):
        stream.partial_fit(np.full((3, 5), np.nan))
    assert not hasattr(stream, "n_features_in_")
    assert stream.partial_fit(samples(20)).n_features_in_ == M


@pytest.mark.parametrize("method", ["transform", "score", "inverse_transform"])
def test_not_fitted(method):
    with pytest.raises(NotFittedError):
        getattr(model(), method)(samples())


def test_a_failing_callback_does_not_undo_the_update():
    def fail(state, record):
        raise RuntimeError("stop")

    X = samples(60)
    estimator = model(callbacks=[fail])
    with pytest.raises(RuntimeError, match="stop"):
        estimator.partial_fit(X)
    np.testing.assert_array_equal(estimator.components_, model().partial_fit(X).components_)


def test_a_useless_lam_is_named():
    with pytest.warns(UserWarning, match="every code is zero: lam=1e"):
        model(coder=Lasso(1e6)).fit(samples())
