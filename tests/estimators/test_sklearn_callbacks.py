"""scikit-learn's own callbacks, where it has them, and a stand-in for them where it has none."""

import importlib
import sys
import types

import numpy as np
import pytest

from smalto import NMF, DictionaryLearning, SparsePCA
from smalto.estimators import sklearn_callbacks
from smalto.learners import Online
from smalto.learning import Record

X = np.random.default_rng(0).standard_normal((500, 8))
try:
    callback = importlib.import_module("sklearn.callback")
except ImportError:
    callback = None
needs_callbacks = pytest.mark.skipif(callback is None, reason="scikit-learn has no callbacks")


class Notes:
    """A callback of scikit-learn that notes what it is told."""

    def __init__(self, stop_after=None, fails=False):
        self.heard, self.stop_after, self.fails, self.codes = [], stop_after, fails, []

    def setup(self, estimator, context):
        self.heard.append("setup")

    def teardown(self, estimator, context):
        self.heard.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.heard.append(("begin", context.task_name))
        self.steps = context.max_subtasks if context.task_name == "fit" else self.steps

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.heard.append(("end", context.task_name))
        self.codes.append(fitted_estimator.transform(X[:3]))
        if self.fails:
            raise ZeroDivisionError
        return len(self.codes) == self.stop_after


STEP = [("begin", "step"), ("end", "step")]


@needs_callbacks
@pytest.mark.parametrize(
    ("limits", "steps"),
    [({"max_epochs": 3}, 15), ({"max_steps": 7}, 7), ({"max_epochs": 1, "max_steps": 9}, 5)],
)
def test_fit_and_its_steps_are_tasks(limits, steps):
    notes = Notes()
    model = DictionaryLearning(6, learner=Online(120), random_state=0, **limits)
    plain = model.fit(X).components_
    model.set_callbacks(notes).fit(X)
    np.testing.assert_array_equal(model.components_, plain)
    assert model.n_iter_ == steps
    assert notes.steps == steps
    whole = ["setup", ("begin", "fit"), *steps * STEP, ("end", "fit"), "teardown"]
    assert notes.heard == whole
    np.testing.assert_array_equal(notes.codes[-1], model.transform(X[:3]))
    assert np.abs(notes.codes[0] - notes.codes[-1]).max() > 0


@needs_callbacks
def test_one_that_wants_to_stop_ends_the_run():
    model = DictionaryLearning(6, learner=Online(100), max_epochs=3, random_state=0)
    model.set_callbacks(Notes(stop_after=4)).fit(X)
    assert model.n_iter_ == 4
    assert model.stopped_ == "callback"


@needs_callbacks
@pytest.mark.parametrize("model", [NMF(3, max_epochs=4), SparsePCA(3, max_epochs=2)])
def test_other_estimators(model):
    notes = Notes()
    model.set_callbacks(notes).fit(np.abs(X))
    assert notes.heard[:2] == ["setup", ("begin", "fit")]
    assert notes.heard[-2:] == [("end", "fit"), "teardown"]
    assert len(notes.heard) > 6


@needs_callbacks
def test_callbacks_are_ended_when_fit_fails():
    notes = Notes(fails=True)
    model = DictionaryLearning(6, max_epochs=3).set_callbacks(notes)
    with pytest.raises(ZeroDivisionError):
        model.fit(X)
    assert notes.heard[-1] == "teardown"
    assert not hasattr(model, "components_")
    assert not hasattr(model, "_callback_fit_ctx")


@needs_callbacks
def test_the_progress_bar_of_a_pipeline(capsys):
    pytest.importorskip("rich")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), DictionaryLearning(6, max_steps=5, random_state=0))
    model.set_callbacks(callback.ProgressBar()).fit(X)
    shown = capsys.readouterr().out
    assert "DictionaryLearning" in shown
    assert "100%" in shown


# --- where scikit-learn has no callbacks: a small stand-in for what is used of them


class Context:
    """The part of a context that is used."""

    def __init__(self, name, max_subtasks=0):
        self.task_name, self.max_subtasks, self.told = name, max_subtasks, []

    def subcontext(self, task_name):
        self.told.append(Context(task_name))
        return self.told[-1]

    def call_on_fit_task_begin(self, *, estimator, X):
        self.told.append("begin")

    def call_on_fit_task_end(self, *, estimator, X, reconstruction_attributes):
        self.told.append(reconstruction_attributes())
        return self.task_name == "step" and reconstruction_attributes()["components_"][0, 0] > 0


class Estimator:
    _skl_callbacks = ()

    def __init__(self):
        self._skl_callbacks = [1]

    def _init_callback_context(self, max_subtasks):
        self.context = Context("fit", max_subtasks)
        return self.context


def state(first):
    made = DictionaryLearning(3, max_steps=1, random_state=0).fit(X).state_
    made.D[0, 0] = first
    return made


def test_tasks_by_a_stand_in():
    (tasks,) = sklearn_callbacks.tasks_of(estimator := Estimator(), X)
    record = Record(1, 0, 50, 1.0, 1.0, 1.0, None, 2.0, 0, 1.0, 0.1)
    tasks.begin(state(-1), lambda r: r.step / 4)
    assert estimator.context.max_subtasks == 4
    assert not tasks(state(-1), record)
    assert tasks(state(1), record)
    assert not tasks(state(-1), Record(9, 0, 50, 1.0, 1.0, 1.0, None, 2.0, 0, 1.0, 0.1))
    assert estimator.context.max_subtasks == 9  # what was estimated too low is corrected
    tasks.finish(state(-1))
    assert [type(one) for one in estimator.context.told] == [str, Context, Context, Context, dict]
    assert sklearn_callbacks.tasks_of(types.SimpleNamespace(), X) == []


def test_without_scikit_learns_callbacks(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)
    mixin, decorate = sklearn_callbacks._support()
    assert not hasattr(mixin, "set_callbacks")
    assert decorate(len) is len
