"""What DictionaryLearning refuses, and what it leaves as it was."""

from dataclasses import dataclass

import numpy as np
import pytest
from estimator_problems import K, M, model, samples
from sklearn.exceptions import NotFittedError

from smalto.coders import Lasso


@dataclass
class Stranger:
    lam: float = 0.1


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n_components": 0}, ValueError, "n_components must be >= 1, got 0"),
        ({"n_components": 2.5}, TypeError, "n_components must be an integer, got 2.5"),
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
        (bad, r"1 such value, the first \(NaN\) at \(3, 2\)"),
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
    with pytest.raises(TypeError, match="X must hold real numbers, got dtype datetime64"):
        fitted.fit(np.zeros((50, M), "datetime64[s]"))
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


def test_a_failing_callback_undoes_the_update():
    def fail(state, record):
        raise RuntimeError("stop")

    X = samples(60)
    estimator = model(callbacks=[fail])
    with pytest.raises(RuntimeError, match="stop"):
        estimator.partial_fit(X)
    assert not hasattr(estimator, "components_")
    estimator.set_params(callbacks=[]).partial_fit(X)
    np.testing.assert_array_equal(estimator.components_, model().partial_fit(X).components_)


def test_a_useless_lam_is_named():
    with pytest.warns(UserWarning, match="every code is zero: lam=1e"):
        model(coder=Lasso(1e6)).fit(samples())
