"""`smalto.compat.sklearn` beside scikit-learn: signatures, codes, options, estimators."""

import doctest
import importlib
import inspect
import pickle
import pkgutil
import warnings

import numpy as np
import pytest
import sklearn.decomposition as theirs
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn_tests import INSTALLED, MADE_FOR

import smalto.compat.sklearn as ours

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 12))
POSITIVE = RNG.random((60, 12))
D = RNG.standard_normal((20, 12))
D /= np.linalg.norm(D, axis=1, keepdims=True)

ESTIMATORS = [
    ours.SparseCoder(D, transform_algorithm="lasso_lars"),
    ours.DictionaryLearning(5, max_iter=10, random_state=0),
    ours.MiniBatchDictionaryLearning(5, max_iter=3, batch_size=20, random_state=0),
    ours.SparsePCA(3, max_iter=10, random_state=0),
    ours.MiniBatchSparsePCA(3, max_iter=3, random_state=0),
    ours.NMF(3, max_iter=1000, tol=1e-2, random_state=0),
    ours.MiniBatchNMF(3, tol=1e-2, random_state=0),
]
LEARNING = ESTIMATORS[1:]


def name(estimator):
    return type(estimator).__name__


def data_for(estimator):
    return POSITIVE if "NMF" in name(estimator) else X


@pytest.mark.skipif(not INSTALLED.startswith(f"{MADE_FOR}."), reason="another scikit-learn")
@pytest.mark.parametrize("public", ours.__all__)
def test_parameters_and_defaults_are_those_of_scikit_learn(public):
    def parameters(function):
        every = inspect.signature(function).parameters.values()
        return [(each.name, each.kind, each.default) for each in every]

    mine, original = getattr(ours, public), getattr(theirs, public)
    assert parameters(mine) == parameters(original)
    for method in ("fit", "fit_transform", "transform", "inverse_transform", "partial_fit"):
        assert hasattr(mine, method) == hasattr(original, method)


def test_examples_in_docstrings():
    for module in pkgutil.iter_modules(ours.__path__, f"{ours.__name__}."):
        assert doctest.testmod(importlib.import_module(module.name)).failed == 0
    assert doctest.testmod(ours).failed == 0


# Not `SparseCoder`, whose dictionary decides which data fit: scikit-learn's own tests check it.
@parametrize_with_checks(
    [
        ours.DictionaryLearning(max_iter=20, transform_algorithm="lasso_lars"),
        ours.MiniBatchDictionaryLearning(batch_size=10, max_iter=5),
        ours.SparsePCA(max_iter=20),
        ours.MiniBatchSparsePCA(max_iter=5),
        ours.NMF(max_iter=500),
        ours.MiniBatchNMF(max_iter=500, batch_size=10),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:every code is zero")
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name)
def test_estimators_are_cloned_set_and_pickled(estimator):
    data = data_for(estimator)
    twin = clone(estimator).set_params(**estimator.get_params())
    expected = clone(estimator).fit(data).transform(data)
    np.testing.assert_array_equal(twin.fit(data).transform(data), expected)
    again = pickle.loads(pickle.dumps(twin))
    np.testing.assert_array_equal(again.transform(data), expected)
    np.testing.assert_array_equal(clone(again).fit(data).transform(data), expected)


@pytest.mark.parametrize("estimator", LEARNING, ids=name)
def test_learning_leaves_its_input_alone(estimator):
    data = data_for(estimator)
    for order in "CF":
        given = np.array(data, order=order)
        estimator = clone(estimator).fit(given)
        estimator.transform(given)
        np.testing.assert_array_equal(given, data)


@pytest.mark.parametrize("estimator", LEARNING, ids=name)
def test_results_do_not_depend_on_the_number_of_threads(estimator):
    if not hasattr(estimator, "n_jobs"):
        pytest.skip("it has no n_jobs, as in scikit-learn")
    first, *others = [
        clone(estimator).set_params(n_jobs=jobs).fit(X).components_ for jobs in (1, 2, -1, -2, None)
    ]
    for other in others:
        np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("lasso_lars", {"alpha": 0.3}), ("lasso_cd", {"alpha": 0.3}), ("lasso_cd", {}),
        ("lasso_lars", {"alpha": 0.3, "positive": True}), ("omp", {}),
        ("omp", {"n_nonzero_coefs": 4}), ("lars", {"n_nonzero_coefs": 2}), ("threshold", {}),
        ("threshold", {"alpha": 0.2, "positive": True}),
    ],
)  # fmt: skip
def test_codes_are_those_of_scikit_learn(algorithm, options, dtype):
    x, d = X.astype(dtype), D.astype(dtype)
    found = ours.sparse_encode(x, d, algorithm=algorithm, **options)
    assert found.dtype == dtype
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # theirs, in float32
        expected = theirs.sparse_encode(x, d, algorithm=algorithm, **options)
    np.testing.assert_allclose(found, expected, atol=3e-3 if dtype == np.float32 else 1e-6)
    model = ours.SparseCoder(
        d,
        transform_algorithm=algorithm,
        transform_alpha=options.get("alpha"),
        transform_n_nonzero_coefs=options.get("n_nonzero_coefs"),
        positive_code=options.get("positive", False),
        split_sign=True,
    )
    np.testing.assert_allclose(
        model.transform(x),
        np.hstack([np.maximum(expected, 0), np.maximum(-expected, 0)]),
        atol=3e-3,
    )


def test_lars_stops_on_the_path_of_the_lasso():
    codes = ours.sparse_encode(X, D, algorithm="lars", n_nonzero_coefs=3)
    for x, code in zip(X, codes, strict=True):
        correlations = np.abs(D @ (x - code @ D))
        used = code != 0
        lam = correlations[used].min()
        np.testing.assert_allclose(correlations[used], lam)
        assert used.sum() == 3
        assert np.isclose(correlations[~used].max(), lam)  # the next atom is about to enter


def test_zero_signals_have_zero_codes():
    for algorithm in ("lasso_lars", "lars", "omp", "threshold"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("smalto.coders._encode.warn_of_zeros", lambda *arguments: None)
            assert not ours.sparse_encode(np.zeros((2, 12)), D, algorithm=algorithm).any()


def test_a_limit_on_rounds_warns_and_changes_nothing():
    exact = ours.sparse_encode(X, D, alpha=0.01)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 is not enough to converge"):
        codes = ours.sparse_encode(X, D, alpha=0.01, max_iter=1)
    np.testing.assert_array_equal(codes, exact)


def test_samples_are_taken_as_they_lie_without_shuffling():
    first = np.r_[np.eye(4), X[:6, :4]]
    settings = {"alpha": 0.1, "dict_init": X[20:23, :4], "tol": 0, "max_no_improvement": None}
    model = ours.MiniBatchDictionaryLearning(3, batch_size=4, shuffle=False, max_iter=2, **settings)
    step_by_step = ours.MiniBatchDictionaryLearning(3, **settings)
    for rows in 2 * [first[:4], first[4:8], first[8:]]:
        step_by_step.partial_fit(rows)
    model.fit(first)
    np.testing.assert_allclose(model.components_, step_by_step.components_)
    assert model.n_steps_ == step_by_step.n_steps_ == 6
    assert model.n_iter_ == 2


def test_partial_fit_goes_on_after_fit():
    model = ours.MiniBatchDictionaryLearning(5, max_iter=2, batch_size=20, random_state=0).fit(X)
    steps, before = model.n_steps_, model.components_.copy()
    model.partial_fit(X[:10])
    assert model.n_steps_ == steps + 1
    assert not np.array_equal(model.components_, before)
    nmf = ours.MiniBatchNMF(3, random_state=0, tol=1e-2).fit(POSITIVE)
    steps = nmf.n_steps_
    assert nmf.partial_fit(POSITIVE[:10]).n_steps_ == steps + 1


def test_a_first_dictionary_may_have_fewer_or_more_atoms():
    for given in (D[:3], D):
        model = ours.DictionaryLearning(6, dict_init=given, max_iter=2, random_state=0).fit(X)
        assert model.components_.shape == (6, 12)
    with pytest.raises(ValueError, match="dict_init has 11 features, expected 12"):
        ours.DictionaryLearning(6, dict_init=D[:, :11]).fit(X)


def test_callbacks_are_called_with_what_is_documented():
    calls = []
    model = ours.DictionaryLearning(4, max_iter=12, tol=0, callback=calls.append, random_state=0)
    model.fit(X)
    assert [call["ii"] for call in calls] == [0, 5, 10]
    assert calls[1]["errors"] is calls[0]["errors"]
    assert model.error_ == calls[0]["errors"]
    assert calls[-1]["current_cost"] == model.error_[10]
    assert calls[-1]["dictionary"].shape == (4, 12)
    assert np.all(np.diff(model.error_) <= 1e-9)
    calls.clear()
    model = ours.MiniBatchDictionaryLearning(
        4, max_iter=2, batch_size=20, tol=0, callback=calls.append, random_state=0
    ).fit(X)
    assert [call["i"] for call in calls] == list(range(6))
    assert {call["n_steps"] for call in calls} == {6}
    np.testing.assert_array_equal(calls[-1]["dictionary"], model.components_)


def test_verbose_prints_a_line_for_each_step(capsys):
    ours.DictionaryLearning(4, max_iter=3, tol=0, verbose=True).fit(X)
    ours.MiniBatchDictionaryLearning(4, max_iter=1, batch_size=20, verbose=1).fit(X)
    ours.NMF(3, max_iter=3, tol=0, verbose=1).fit(POSITIVE)
    ours.MiniBatchNMF(3, max_iter=3, tol=0, verbose=1).fit(POSITIVE)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 12
    assert printed[0].startswith("step 1 of at most 3: cost ")


def test_costs_are_those_of_the_codes():
    codes, dictionary, errors, n_iter = ours.dict_learning(
        X, 8, alpha=0.5, max_iter=500, random_state=0, return_n_iter=True
    )
    assert n_iter == len(errors) < 500
    cost = 0.5 * np.sum((X - codes @ dictionary) ** 2) + 0.5 * np.abs(codes).sum()
    np.testing.assert_allclose(errors[-1], cost, rtol=1e-6)
    assert np.linalg.norm(dictionary, axis=1).max() <= 1 + 1e-9


def test_sparse_pca_of_samples_that_are_all_the_same_is_zero():
    for model in (ours.SparsePCA(2), ours.MiniBatchSparsePCA(2)):
        assert not model.fit_transform(np.ones((4, 3))).any()
        assert not model.components_.any()


@pytest.mark.parametrize("alphas", [(0, 0), (0.01, 0.01), (0.02, 0.005)])
@pytest.mark.parametrize("l1_ratio", [0, 0.5, 1])
def test_nmf_is_stationary_for_the_objective_of_scikit_learn(alphas, l1_ratio):
    alpha_W, alpha_H = alphas
    model = ours.NMF(
        4, alpha_W=alpha_W, alpha_H=alpha_H, l1_ratio=l1_ratio, tol=1e-8, max_iter=20_000
    )
    W = model.fit_transform(POSITIVE)
    H = model.components_
    left = W @ H - POSITIVE
    n, m = POSITIVE.shape
    for factor, gradient, weight in (
        (W, left @ H.T, m * alpha_W),
        (H, W.T @ left, n * alpha_H),
    ):
        gradient = gradient + weight * (l1_ratio + (1 - l1_ratio) * factor)
        np.testing.assert_allclose(gradient[factor > 1e-9], 0, atol=1e-4)
        assert gradient.min() > -1e-4


def test_nmf_of_sparse_data_is_that_of_dense_data():
    holed = POSITIVE * (POSITIVE > 0.5)
    for model in (ours.NMF(3, tol=1e-3), ours.MiniBatchNMF(3, batch_size=20, tol=1e-3)):
        model.set_params(random_state=0, max_iter=1000)
        expected = model.fit(holed).components_
        for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
            np.testing.assert_allclose(model.fit(kind(holed)).components_, expected, rtol=1e-6)
            np.testing.assert_allclose(
                model.transform(kind(holed)), model.transform(holed), atol=1e-9
            )


REFUSED = {
    "sklearn.decomposition": lambda: ours.NMF(solver="mu", beta_loss=1).fit(POSITIVE),
    "beta_loss='itakura-saito'": lambda: ours.MiniBatchNMF(beta_loss="itakura-saito").fit(POSITIVE),
    "beta_loss='kullback-leibler'": lambda: ours.non_negative_factorization(
        POSITIVE, solver="mu", beta_loss="kullback-leibler"
    ),
}
WRONG = {
    "algorithm must be one of 'lasso_lars'": lambda: ours.sparse_encode(X, D, algorithm="ista"),
    "fit_algorithm must be one of 'lars', 'cd'": lambda: ours.DictionaryLearning(
        fit_algorithm="omp"
    ).fit(X),
    "method must be one of": lambda: ours.SparsePCA(method="svd").fit(X),
    "alpha must be >= 0, got -1": lambda: ours.MiniBatchDictionaryLearning(alpha=-1).fit(X),
    "n_components must be >= 1, got 0": lambda: ours.DictionaryLearning(0).fit(X),
    "max_iter must be >= 0": lambda: ours.MiniBatchDictionaryLearning(max_iter=-1).fit(X),
    "max_iter must be >= 1": lambda: ours.NMF(max_iter=0).fit(POSITIVE),
    "batch_size must be >= 1": lambda: ours.MiniBatchNMF(batch_size=0).fit(POSITIVE),
    "n_jobs must be None, -1": lambda: ours.sparse_encode(X, D, n_jobs=0),
    "init must be one of None, 'random'": lambda: ours.NMF(init="svd").fit(POSITIVE),
    "solver must be one of": lambda: ours.NMF(solver="pg").fit(POSITIVE),
    r"l1_ratio must be in \[0, 1\]": lambda: ours.NMF(l1_ratio=2).fit(POSITIVE),
    "n_nonzero_coefs must be >= 1": lambda: ours.sparse_encode(
        X, D, algorithm="omp", n_nonzero_coefs=0
    ),
    "different numbers of features": lambda: ours.sparse_encode(X, D[:, :3]),
    "Input X contains NaN": lambda: ours.SparsePCA().fit(np.where(X > 2, np.nan, X)),
    "Negative values": lambda: ours.MiniBatchNMF().fit(X),
    "nothing to learn": lambda: ours.DictionaryLearning().fit(np.zeros((5, 3))),
}


@pytest.mark.parametrize("message", REFUSED)
def test_other_losses_are_refused_with_the_way_out(message):
    with pytest.raises(NotImplementedError, match=message):
        REFUSED[message]()


@pytest.mark.parametrize("message", WRONG)
def test_wrong_parameters_say_what_is_wrong(message):
    with pytest.raises(ValueError, match=message):
        WRONG[message]()
