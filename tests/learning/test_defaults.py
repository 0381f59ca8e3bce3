"""Defaults that are safe on small and hard data."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from smalto import NMF, DictionaryLearning, SparsePCA, encode, learn
from smalto.coders import Lasso
from smalto.coders.coding import mean_cost
from smalto.coders.signals import Signals
from smalto.learners import Batch, Online
from smalto.learning import _learn
from smalto.sources import Stream

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 12))


def _ratings(n=300, m=400, share=0.08):
    """Ratings from 1 to 5, most of them unknown; returned with all ratings and held-out places."""
    rng = np.random.default_rng(0)
    tastes = 0.2 * rng.standard_normal((n, 5)) @ rng.standard_normal((5, m))
    ratings = 3.5 + 0.4 * rng.standard_normal((n, 1)) + 0.5 * rng.standard_normal((1, m)) + tastes
    ratings = np.clip(np.round(ratings + 0.8 * rng.standard_normal((n, m))), 1, 5)
    known = rng.random((n, m)) < share
    held = known & (rng.random((n, m)) < 0.1)
    return np.where(known & ~held, ratings, np.nan), ratings, held


@pytest.mark.parametrize("k", [2, 5, 20])
def test_ratings_are_predicted_better_than_by_their_mean(k):
    table, ratings, held = _ratings()
    by_mean = np.sqrt(np.mean((ratings[held] - np.nanmean(table)) ** 2))
    model = NMF(k, missing="nan", random_state=0)
    predicted = model.fit_transform(table) @ model.components_
    assert np.sqrt(np.mean((predicted - ratings)[held] ** 2)) < 0.95 * by_mean
    holes = np.isnan(table)
    same = [
        NMF(k, random_state=0).fit(np.nan_to_num(table), mask=holes),
        NMF(k, random_state=0).fit(np.ma.masked_invalid(table)),
    ]
    for other in same:
        np.testing.assert_allclose(other.components_, model.components_, atol=1e-10)


def test_the_penalty_for_missing_entries_gives_way_to_those_that_are_set():
    table = _ratings()[0]
    assert NMF(2, missing="nan", random_state=0, max_epochs=1).fit(table).coder_.ridge > 0
    kept = NMF(2, missing="nan", lam=0.1, random_state=0, max_epochs=1).fit(table).coder_
    assert (kept.lam, kept.ridge) == (0.1, 0.0)
    assert NMF(2, missing="nan", random_state=0).fit(np.abs(X)).coder_.ridge == 0.0


@pytest.mark.parametrize(
    "model",
    [
        DictionaryLearning(20, coder=Lasso(0.1), random_state=0),
        DictionaryLearning(20, coder=Lasso(0.1), max_epochs=2, random_state=0),
        SparsePCA(4, random_state=0),
        NMF(20, random_state=0),
    ],
)
def test_fewer_samples_than_atoms(model):
    few = np.abs(X[:3])
    components = model.fit(few).components_
    assert np.isfinite(components).all()
    assert np.isfinite(model.transform(few)).all()


def test_few_samples_are_learned_from_as_well_as_by_batch_learning():
    digits = StandardScaler().fit_transform(load_digits().data)

    def cost(**settings):
        result = learn(digits, 32, Lasso(1.0), random_state=0, **settings)
        return mean_cost(Signals(digits), result.D, result.coder, 2), result.state

    by_default, state = cost()
    assert state.learner == Batch()
    assert (state.epoch, state.step) == (50, 50)
    assert by_default <= cost(learner=Batch(), max_epochs=50)[0]
    assert by_default < 0.95 * cost(learner=Online())[0]


def test_when_batch_learning_is_the_default(monkeypatch, tmp_path):
    monkeypatch.setattr(_learn, "BATCH_EPOCHS", 3)

    def learner(data, **settings):
        return learn(data, 5, Lasso(0.3), random_state=0, **settings).state.learner

    assert learner(X) == Batch()
    for settings in ({"max_epochs": 1}, {"max_steps": 4}, {"max_seconds": 0.1}):
        assert isinstance(learner(X, **settings), Online)
    assert isinstance(learner(X, learner=Online()), Online)
    assert isinstance(learner(Stream([X])), Online)
    np.save(tmp_path / "x.npy", X)
    assert isinstance(learner(tmp_path / "x.npy"), Online)
    monkeypatch.setattr(_learn, "FEW_SAMPLES", 299)
    assert isinstance(learner(X), Online)


def test_a_model_of_batch_learning_goes_on_online():
    model = DictionaryLearning(16, coder=Lasso(0.3), random_state=0).fit(X)
    assert model.state_.learner == Batch()
    before = model.components_.copy()
    cost = -model.score(X)
    model.partial_fit(X[:20])
    assert isinstance(model.state_.learner, Online)
    moved = np.linalg.norm(model.components_ - before) / np.linalg.norm(before)
    assert 0 < moved < 0.2  # 20 samples more than 300
    assert -model.score(X) < 1.02 * cost


def test_first_atoms_that_nothing_uses_are_given_up_soon():
    """As in a stream of single samples whose first atoms are far from them."""
    rng = np.random.default_rng(0)
    samples = np.abs(rng.standard_normal((100, 20))) * (np.arange(20) < 10)
    init = np.eye(20)[8:20]  # 10 of these 12 atoms are orthogonal to all samples
    model = DictionaryLearning(12, coder=Lasso(0.1), learner=Online(1), init=init, random_state=0)
    for x in samples:
        model.partial_fit(x[None])
    used = (model.transform(samples) != 0).any(axis=0)
    assert used.sum() >= 9


def test_single_precision_is_not_mistaken_for_convergence():
    rng = np.random.default_rng(0)
    table = rng.random((200, 7)) @ rng.random((7, 50))
    runs = [
        NMF(7, init="nndsvda", tol=0, max_epochs=60, random_state=0).fit(table.astype(dtype))
        for dtype in (np.float32, np.float64)
    ]
    assert [run.stopped_ for run in runs] == ["epochs", "epochs"]
    assert runs[0].reconstruction_err_ == pytest.approx(runs[1].reconstruction_err_, rel=0.05)
    assert runs[0].components_.dtype == np.float32
    exact = NMF(2, tol=0, max_epochs=100, random_state=0)
    small = (rng.random((50, 2)) @ rng.random((2, 30))).astype(np.float32)
    assert exact.fit(small).reconstruction_err_ < 2e-5 * np.linalg.norm(small)


def test_a_number_of_nonzeros_that_is_not_reached_is_said():
    flat = X * (np.arange(12) < 2)  # in a plane
    coder = Lasso(mean_nonzeros=8)
    with pytest.warns(UserWarning, match=r"mean_nonzeros=8 was not reached: codes have [12]"):
        encode(flat, np.eye(12), coder)
    with pytest.warns(UserWarning, match="mean_nonzeros=8 was not reached"):
        learn(flat, 12, coder, max_steps=3, random_state=0)
    with pytest.warns(UserWarning, match=r"was not reached: codes have [1-9]"):
        learn(flat, 12, coder, max_steps=3, validation=flat[:20], random_state=0)
    encode(X, np.eye(12), coder)  # warnings are errors


def test_how_many_epochs_there_are_by_default(monkeypatch):
    monkeypatch.setattr(_learn, "FEW_SAMPLES", 100)
    monkeypatch.setattr(_learn, "ONLINE_SAMPLES", 1000)

    def epochs(data, **settings):
        return learn(data, 5, Lasso(0.3), random_state=0, **settings).state.epoch

    assert epochs(X) == 4  # 300 samples each
    assert epochs(np.vstack([X] * 4)) == 1
    assert epochs(X, learner=Online()) == 1
    assert epochs(Stream([X])) == 1
