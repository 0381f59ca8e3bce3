"""A wanted density of the atoms is reached, or a warning says what was reached."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets
from sklearn.base import clone

from smalto import NMF, Model, SparsePCA, encode, learn
from smalto.coders import Lasso
from smalto.constraints import ElasticNetBall, FusedLassoBall
from smalto.constraints.density import density, find_gamma
from smalto.learners import SGD, Batch, Online
from smalto.learning import Log
from smalto.learning.dictionary.wanted_density import feasible

GENES = Path(os.environ.get("SMALTO_DATA", "")) / "breast_chin2006/breastdata.npz"


def _few_wide(n=60, m=3000):
    """Few samples with many features, correlated in blocks, like expressions of genes."""
    rng = np.random.default_rng(0)
    loadings = rng.standard_normal((8, m)) * (rng.random((8, m)) < 0.3)
    return rng.standard_normal((n, 8)) @ loadings + 0.7 * rng.standard_normal((n, m))


def _many_narrow(n=3000, m=64):
    rng = np.random.default_rng(0)
    t = np.arange(m)
    bumps = np.exp(-0.5 * ((t - rng.integers(0, m, (40, 1))) / rng.uniform(1, 6, (40, 1))) ** 2)
    return (rng.standard_normal((n, 40)) * (rng.random((n, 40)) < 0.2)) @ bumps


@pytest.mark.parametrize("epochs", [1, 10])
@pytest.mark.parametrize("wanted", [0.01, 0.1, 0.3])
def test_few_samples_of_many_features(wanted, epochs):
    X = _few_wide()
    model = SparsePCA(5, density=wanted, max_epochs=epochs, random_state=0).fit(X)
    assert model.density_ == pytest.approx(wanted, rel=0.1)
    assert (model.components_ != 0).any(axis=1).all()
    for d in model.components_:
        assert feasible(model.state_).constraint.gauge(d) <= 1.001


@pytest.mark.skipif(not GENES.exists(), reason="the expressions are not in SMALTO_DATA")
@pytest.mark.parametrize("wanted", [0.01, 0.1, 0.3])
def test_expressions_of_genes(wanted):
    with np.load(GENES) as data:
        X = data["rna_std"].T.astype(np.float64)
    model = SparsePCA(5, density=wanted, random_state=0).fit(X)
    assert model.density_ == pytest.approx(wanted, rel=0.1)


@pytest.mark.parametrize("ball", [ElasticNetBall, FusedLassoBall])
@pytest.mark.parametrize("learner", [Online(), Online(200), Online(200, features=0.4), Batch()])
@pytest.mark.parametrize("wanted", [0.1, 0.4])
def test_every_learner_reaches_it(ball, learner, wanted):
    if ball is FusedLassoBall and learner == Online(200, features=0.4):
        return  # this set cannot be divided between features
    data, epochs = _many_narrow(), 8 if learner == Batch() else 2
    result = learn(
        data, 20, Lasso(0.2), ball(density=wanted), learner, max_epochs=epochs, random_state=0
    )
    assert density(result.D) == pytest.approx(wanted, rel=0.1)
    model = Model.of(result.state)
    assert np.array_equal(model.D, result.D)
    assert all(model.constraint.gauge(d) <= 1.001 for d in model.D)


def test_an_atom_whose_other_features_leave_only_rounding():
    learner, ball = Online(200, features=0.4), ElasticNetBall(density=0.1)
    result = learn(_many_narrow(), 20, Lasso(0.2), ball, learner, max_epochs=2, random_state=7)
    assert density(result.D) == pytest.approx(0.1, rel=0.1)


def test_the_final_search_does_not_change_the_state():
    settings = {"coder": Lasso(0.2), "constraint": ElasticNetBall(density=0.1), "random_state": 0}
    X = _many_narrow()
    half = learn(X, 20, max_epochs=1, **settings)
    rest = learn(X, 20, max_epochs=2, state=half.state)
    np.testing.assert_array_equal(rest.D, learn(X, 20, max_epochs=2, **settings).D)


def test_what_cannot_be_reached_is_said_once():
    with pytest.warns(UserWarning, match="density=0.01 was not reached: .* is 0.0") as caught:
        SparsePCA(4, density=0.01, random_state=0).fit(_many_narrow(m=16))
    assert len([w for w in caught if "density" in str(w.message)]) == 1


def test_a_learner_without_statistics():
    with pytest.warns(UserWarning, match="was not reached"):
        learn(_many_narrow(), 20, Lasso(0.2), ElasticNetBall(density=0.001), SGD(), random_state=0)


@pytest.mark.parametrize("start", [1e-6, 1e-2, 1.0, 1e4])
@pytest.mark.parametrize(
    "curve",
    {
        "smooth": lambda g: 1 / (1 + g),
        "steep": lambda g: 1 / (1 + g**20),
        "slow": lambda g: min(1.0, 0.5 * g**-0.05),
        "steps": lambda g: max(1, round(64 / (1 + g))) / 64,
    }.items(),
    ids=lambda pair: pair[0],
)
def test_the_search_ends_at_the_wanted_density(curve, start):
    tried = []

    def density_at(gamma):
        tried.append(gamma)
        return curve[1](gamma)

    found = find_gamma(start, 0.25, density_at)
    assert curve[1](found) == pytest.approx(0.25, rel=0.051)
    assert tried[-1] == found
    assert len(tried) < 40


def test_the_search_ends_where_nothing_changes_or_at_a_jump():
    assert find_gamma(3.0, 0.1, lambda gamma: 0.5) == 3.0
    jump = find_gamma(1.0, 0.1, lambda gamma: 0.3 if gamma < 7.0 else 0.09)
    assert jump == pytest.approx(7.0, rel=0.5)
    assert jump >= 7.0  # the nearer side
    limited = find_gamma(1.0, 0.1, lambda gamma: 0.3 if gamma < 7.0 else 0.09, reach=0.5)
    assert abs(math.log(limited)) <= 0.5


HELD_OUT = np.random.default_rng(0).gamma(0.5, size=(80, 9))


@pytest.mark.parametrize(
    "model",
    [
        SparsePCA(3, density=0.3, random_state=0),
        SparsePCA(3, density=0.3, max_steps=2, random_state=0),
        NMF(3, lam=0.005, constraint=ElasticNetBall(density=0.2, positive=True), random_state=0),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # other densities may be all there is
def test_the_last_cost_of_held_out_samples_is_that_of_the_components(model):
    model = clone(model).fit(HELD_OUT, validation=HELD_OUT)
    assert model.history_[-1].test_cost == pytest.approx(-model.score(HELD_OUT), rel=1e-9)


@pytest.mark.parametrize("end", [0, 6, 8])  # measured after step 8 anyway
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_last_cost_of_held_out_samples_is_that_of_the_result(end, tmp_path):
    problem = Lasso(0.1), ElasticNetBall(density=0.3), Online(5)
    options = {"validation": HELD_OUT, "validate_every": [4, 8]}

    def run(max_steps, **more):
        callbacks = [Log(tmp_path / "log.jsonl")]
        limits = {"max_steps": max_steps, "callbacks": callbacks}
        return learn(HELD_OUT, 4, *problem, **limits, **options, **more)

    stop = {"max_seconds": 0.0} if end == 0 else {}
    part, whole = run(end or 1, random_state=0, **stop), run(13, random_state=0)
    for result in (part, whole):
        codes = encode(HELD_OUT, result.D, result.coder)
        left = np.sum((HELD_OUT - codes @ result.D) ** 2, axis=1)
        cost = 0.5 * left + 0.1 * abs(codes).sum(axis=1)
        assert result.history[-1].test_cost == pytest.approx(cost.mean(), rel=1e-9)
    assert part.state.step == end
    again = run(13, state=part.state)
    np.testing.assert_array_equal(again.D, whole.D)
    costs = [[(r.step, r.test_cost) for r in each.history] for each in (whole, again)]
    assert costs[0] == costs[1]
    rows = [json.loads(row) for row in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert rows[-1]["test_cost"] == again.history[-1].test_cost


@pytest.mark.parametrize("name", ["iris", "wine", "diabetes", "breast_cancer"])
def test_few_steps_to_a_density_leave_atoms_long_enough_to_be_used(name):
    X = getattr(sklearn.datasets, f"load_{name}")().data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = SparsePCA(1, random_state=0).fit(X)
    ball = ElasticNetBall(model.state_.constraint.gamma)
    assert abs(model.density_ - 0.3) * X.shape[1] <= 2
    np.testing.assert_allclose([ball.gauge(d) for d in model.components_], 1.0, rtol=1e-6)
    assert -model.score(X) < 0.95 * 0.5 * X.shape[1]  # the cost of zero codes
