"""What fails leaves models, states and streams as they were."""

import pickle
import threading

import numpy as np
import pytest
from watching import Watch

from smalto import DictionaryLearning, SparsePCA, learn
from smalto.coders import OMP, Lasso
from smalto.learners import Batch, Continuation, Online, Replacement
from smalto.learning import OneByOne
from smalto.learning.batches.base import MidStep
from smalto.learning.batches.convert import as_batches
from smalto.learning.step import step
from smalto.sources import Source, Stream

X = np.random.default_rng(0).standard_normal((600, 12))


@pytest.mark.parametrize("blocks_before", [1, 3])
def test_a_step_that_is_given_up_leaves_nothing_behind(monkeypatch, blocks_before):
    """Ctrl-C within a step over the whole data set: a resumed run makes this step again."""
    monkeypatch.setattr("smalto.learning.batches.dataset.ROWS_AT_ONCE", 100)
    settings = {"learner": Batch(), "replacement": Replacement(every=1, correlation=0.6)}
    state = learn(X, 8, Lasso(0.3), max_steps=1, random_state=0, **settings).state
    before, calls = state.copy(), iter(range(blocks_before + 1))
    batches = as_batches(X, None, None, None, None, state.coder)
    batches.start(state)
    batch = batches.draw(state, lambda: next(calls) + 1 == blocks_before)
    with pytest.raises(MidStep):
        step(state, batch, 1)
    for name in ("D", "worst", "worst_cost", "last_used"):
        np.testing.assert_array_equal(getattr(state, name), getattr(before, name))
    assert (state.step, state.samples, state.place) == (before.step, before.samples, before.place)
    rest = learn(X, 8, state=state, max_steps=4)
    whole = learn(X, 8, Lasso(0.3), max_steps=4, random_state=0, **settings)
    np.testing.assert_array_equal(rest.D, whole.D)
    np.testing.assert_array_equal(rest.state.worst_cost, whole.state.worst_cost)


class Failing(Source):
    """Rows that cannot be read from some number on."""

    n_rows, n_features, dtype = 600, 12, np.dtype(np.float64)

    def __init__(self, after):
        self.left = after

    def rows(self, numbers):
        self.left -= 1
        if self.left < 0:
            raise OSError("gone")
        return X[numbers]


@pytest.mark.parametrize("learner", [Online(100), Batch()], ids=str)
def test_a_source_that_fails_leaves_a_state_to_go_on_from(monkeypatch, learner):
    monkeypatch.setattr("smalto.learning.batches.dataset.ROWS_AT_ONCE", 100)
    watch = Watch()
    settings = {"learner": learner, "max_epochs": 3, "random_state": 0}
    with pytest.raises(OSError, match="gone") as caught:
        learn(Failing(after=9), 8, Lasso(0.3), callbacks=[watch], **settings)
    assert watch.done[-2:] == ["finish", "close"]
    state = caught.value.state
    assert state.step == (1 if learner == Batch() else 8)
    rest = learn(X, 8, state=state, max_epochs=3)
    np.testing.assert_array_equal(rest.D, learn(X, 8, Lasso(0.3), **settings).D)


def test_the_first_exception_is_the_one_that_is_raised():
    def fail(state, record):
        raise KeyError("first")

    with pytest.raises(KeyError, match="first") as caught:
        learn(X, 8, callbacks=[fail, Watch("close")], random_state=0)
    assert any("ArithmeticError('close')" in note for note in caught.value.__notes__)


def test_reading_ahead_ends_when_a_run_fails_before_it_begins():
    before = threading.active_count()
    stream = Stream([X[:100]] * 50)
    with pytest.raises(ValueError, match="init has 3 features"):
        learn(stream, 3, init=np.ones((3, 3)))
    with pytest.raises(ValueError, match="Batch draws all samples"):
        learn(Stream([X[:100]] * 50), 8, learner=Batch())
    assert threading.active_count() == before


@pytest.mark.parametrize("kind", [DictionaryLearning, SparsePCA])
def test_a_partial_fit_that_fails_leaves_the_model_as_it_was(kind):
    small = X.astype(np.float32)
    model = kind(6, coder=OMP(2), learner=Online(100), random_state=0)
    model.partial_fit(small[:100])
    twin = pickle.loads(pickle.dumps(model))
    with pytest.raises(ValueError, match=r"more than the .* that float32"):
        model.partial_fit(1e30 * small[100:200])
    for one in (model, twin):
        one.partial_fit(small[200:300])
    np.testing.assert_array_equal(model.components_, twin.components_)
    np.testing.assert_array_equal(model.state_.stats[-1].B, twin.state_.stats[-1].B)


def test_single_samples_that_fail_are_dropped():
    model = OneByOne(4, Lasso(), learner=Online(10), random_state=0)
    for _ in range(9):
        model.learn_one(np.zeros(12))
    with pytest.raises(ValueError, match="zero or masked: nothing to learn lam from"):
        model.learn_one(np.zeros(12))
    assert model.state is None
    records = [model.learn_one(x) for x in X[:30]]
    assert sum(record is not None for record in records) == 3


def test_settings_that_partial_fit_cannot_change_are_named():
    model = DictionaryLearning(6, random_state=0).partial_fit(X[:100])
    with pytest.raises(ValueError, match="replacement was None when learning began and is Repl"):
        model.set_params(replacement__every=1).partial_fit(X[:100])
    model = DictionaryLearning(6, random_state=0).partial_fit(X[:100])
    with pytest.raises(ValueError, match="continuation was None"):
        model.set_params(continuation=Continuation()).partial_fit(X[:100])


def test_a_resumed_run_is_refused_what_a_new_one_is():
    learner = Online(100, memory="replace")
    state = learn(X, 8, Lasso(0.3), learner=learner, random_state=0).state
    holes = np.where(np.arange(12) == 3, np.nan, X)
    with pytest.raises(ValueError, match="cannot take back what missing entries were filled with"):
        learn(holes, 8, missing="nan", state=state, max_epochs=2)
    with pytest.raises(ValueError, match="init and state exclude each other"):
        OneByOne(8, init=X[:8], state=learn(X, 8, learner=Online(50), random_state=0).state)
    with pytest.raises(TypeError, match="random_state must be"):
        learn(X, 8, state=state, random_state="nonsense")


@pytest.mark.parametrize("every", ["12", 0.5, [1.5], [-1]])
def test_odd_schedules_are_refused(every):
    with pytest.raises((TypeError, ValueError), match="validate_every must be"):
        learn(X, 8, validation=X, validate_every=every)
