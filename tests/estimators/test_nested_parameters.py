"""``coder__lam`` and the like: in get_params, set_params, clone and grid searches."""

from dataclasses import fields

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from smalto import NMF, DictionaryLearning, SparseCCA, SparsePCA
from smalto.coders import OMP, Lasso
from smalto.constraints import ElasticNetBall, FusedLassoBall, L2Ball
from smalto.learners import Continuation, Online, Replacement

X = np.random.default_rng(0).standard_normal((120, 10))

ESTIMATORS = [
    DictionaryLearning(5, random_state=0),
    NMF(5, random_state=0),
    NMF(5, lam=0.2, random_state=0),
    SparsePCA(3, random_state=0),
    SparsePCA(3, gamma=0.3, fused=0.1, random_state=0),
    SparseCCA(1, max_nonzeros_x=4),
    DictionaryLearning(
        5, coder=OMP(2), constraint=ElasticNetBall(0.3), continuation=Continuation(), random_state=0
    ),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_all_parameters_can_be_read_and_set(estimator):
    params = estimator.get_params()
    nested = {name: value for name, value in params.items() if "__" in name}
    assert nested
    assert estimator.get_params(deep=False).keys() == params.keys() - nested.keys()
    for name, value in nested.items():
        other = clone(estimator).set_params(**{name: value})  # what is there already
        assert other.get_params()[name] == value
        if isinstance(value, bool):
            assert clone(estimator).set_params(**{name: not value}).get_params()[name] != value


def test_defaults_have_the_parameters_of_the_problem_that_is_solved():
    params = DictionaryLearning(5).get_params()
    for name, part in {"coder": Lasso(), "constraint": L2Ball(), "learner": Online()}.items():
        for field in fields(part):
            assert params[f"{name}__{field.name}"] == getattr(part, field.name)
    assert params["replacement__every"] == Replacement().every
    assert not any(name.startswith("continuation__") for name in params)


def test_parts_are_replaced_never_changed():
    coder = Lasso(0.5)
    model = DictionaryLearning(5, coder=coder)
    other = clone(model).set_params(coder__lam=0.1, learner__rho=3.0, n_components=7)
    assert other.coder == Lasso(0.1)
    assert other.learner == Online(rho=3.0)
    assert other.n_components == 7
    assert coder == model.coder == Lasso(0.5)
    assert model.learner is None
    both = clone(model).set_params(coder=OMP(3), coder__eps=0.5)
    assert both.coder == OMP(3, eps=0.5)
    assert clone(other).get_params()["coder__lam"] == 0.1


def test_what_is_not_there_is_named():
    model = DictionaryLearning(5)
    with pytest.raises(ValueError, match=r"Invalid parameter 'alpha' for the coder Lasso\(.*'lam'"):
        model.set_params(coder__alpha=1)
    with pytest.raises(ValueError, match="Invalid parameter 'start' for the continuation None"):
        model.set_params(continuation__start=0.5)
    with pytest.raises(ValueError, match="lam must be >= 0, got -1"):
        model.set_params(coder__lam=-1)


def test_nmf_hands_its_lam_to_the_coder():
    model = NMF(4, lam=0.2, random_state=0).set_params(coder__ridge=0.1)
    assert model.coder == Lasso(0.2, ridge=0.1, positive=True)
    assert model.lam == 0.0
    assert model.fit(np.abs(X)).coder_.ridge == 0.1


def test_sparse_pca_hands_its_settings_to_the_parts():
    model = SparsePCA(3, gamma=0.3, random_state=0).set_params(constraint__gamma=0.5)
    assert model.constraint == ElasticNetBall(0.5)
    assert model.gamma is None
    assert model.fit(X).state_.constraint == ElasticNetBall(0.5)
    model = SparsePCA(3, random_state=0).set_params(coder__ridge=0.2).fit(X)
    plain = SparsePCA(3, random_state=0).fit(X)
    assert model.coder_ == Lasso(plain.coder_.lam, ridge=0.2)
    assert SparseCCA(1).set_params(constraint__gamma2=0.7).constraint == FusedLassoBall(
        SparseCCA(1).gamma1, 0.7
    )
    pairs = SparseCCA(1, gamma1=0.5, gamma2=2.0).set_params(constraint__gamma2=0.7)
    assert pairs.constraint == FusedLassoBall(0.5, 0.7)
    pairs.fit(X, X[:, :4])  # gamma1 and gamma2 are in the constraint now


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (DictionaryLearning(5, random_state=0), {"coder__lam": [0.1, 0.5], "learner__rho": [1, 5]}),
        (NMF(3, random_state=0), {"coder__lam": [0.0, 0.1]}),
        (SparsePCA(3, random_state=0), {"constraint__density": [0.3, 0.6]}),
        (
            DictionaryLearning(5, constraint=ElasticNetBall(0.1), random_state=0),
            {"constraint__gamma": [0.1, 0.2]},
        ),
    ],
    ids=str,
)
def test_grid_search(estimator, grid):
    search = GridSearchCV(estimator, grid, cv=2, error_score="raise").fit(np.abs(X))
    assert search.best_params_.keys() == grid.keys()
    for name, value in search.best_params_.items():
        assert search.best_estimator_.get_params()[name] == value


def test_in_a_pipeline():
    pipeline = make_pipeline(FunctionTransformer(), DictionaryLearning(5, random_state=0))
    grid = {"dictionarylearning__coder__lam": [0.2, 0.4]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X)
    assert search.best_estimator_[-1].coder.lam in (0.2, 0.4)
