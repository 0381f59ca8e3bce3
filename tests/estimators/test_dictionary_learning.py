"""DictionaryLearning: scikit-learn's contract, and that fit is learn."""

import doctest

import numpy as np
import pytest
from estimator_problems import LASSO, SMALL, K, M, assert_same_state, model, planted, samples
from sklearn.base import clone
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
