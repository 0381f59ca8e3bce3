"""The clock, the callbacks and the records that all ways of learning share."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from watching import Watch

from smalto import NMF, DictionaryLearning, State, learn, quality
from smalto.coders import Lasso
from smalto.constraints import Constraint
from smalto.kernels import compiling
from smalto.learners import SGD, Batch, Continuation, Online, Replacement
from smalto.learning import Checkpoint, EarlyStopping, OneByOne, clock
from smalto.learning.callbacks.base import Callbacks
from smalto.learning.memory.record import Record, history_from_array, history_to_array
from smalto.sources import Stream

X = np.random.default_rng(0).standard_normal((600, 12))
COMPILATION = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=learn)})  # an event


class Clock:
    """A clock that only moves when it is told to."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr(clock.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(compiling, "PATIENCE", 600.0)  # nothing is mentioned


def slow_batches(ticking, seconds):
    """A stream that takes some seconds for each batch."""

    def batches(epoch):
        for i in range(0, 600, 100):
            ticking.now += seconds
            yield X[i : i + 100]

    return Stream(batches, read_ahead=0)


def ways(callbacks):
    """Every way of learning, each with these callbacks."""
    lasso, online = Lasso(0.3), Online(100)
    yield lambda: learn(X, 8, lasso, learner=online, callbacks=callbacks, random_state=0)
    yield lambda: learn([X[:300], X[300:]], 8, lasso, callbacks=callbacks, random_state=0)
    yield lambda: DictionaryLearning(8, callbacks=callbacks, random_state=0).fit(X)
    yield lambda: NMF(3, callbacks=callbacks, random_state=0).fit(np.abs(X))
    yield lambda: NMF(3, lam=0.1, callbacks=callbacks, random_state=0).fit(np.abs(X))


@pytest.mark.parametrize("way", range(5))
def test_callbacks_see_the_end_and_are_closed(way):
    watch = Watch()
    list(ways([watch]))[way]()
    assert watch.done[0] == "call"
    assert watch.done[-2:] == ["finish", "close"]
    assert watch.done.count("finish") == watch.done.count("close") == 1


@pytest.mark.parametrize("way", range(5))
@pytest.mark.parametrize("fails", ["call", "finish", "close"])
def test_all_callbacks_are_called_and_closed_whatever_raises(way, fails):
    first, last = Watch(fails), Watch()
    with pytest.raises(ArithmeticError, match=fails):
        list(ways([first, last]))[way]()
    assert first.done == last.done
    assert last.done[-1] == "close"


def test_a_callback_that_stops_does_not_keep_others_from_being_called():
    watch = Watch()
    for way in ways([lambda state, record: True, watch]):
        watch.done.clear()
        way()
        assert watch.done == ["call", "finish", "close"]


def test_partial_fit_closes_callbacks_only_when_it_fails():
    watch = Watch()
    model = DictionaryLearning(8, callbacks=[watch], random_state=0).partial_fit(X[:100])
    model.partial_fit(X[100:200])
    assert watch.done == ["call", "call"]
    with pytest.raises(ValueError, match="X contains NaN"):
        model.partial_fit(np.full((5, 12), np.nan))
    assert watch.done == ["call", "call", "close"]
    watch.fails = "call"
    with pytest.raises(ArithmeticError):
        model.partial_fit(X[200:300])
    assert model.n_iter_ == len(model.history_) == 2  # the step is undone


def test_what_is_no_callback_is_named():
    with pytest.raises(TypeError, match=r"callbacks\[1\] must be callable, got 3"):
        Callbacks([print, 3])


# --- the clock


def test_drawing_is_on_the_clock(monkeypatch):
    ticking = Clock(monkeypatch)
    settings = {"learner": Online(100), "max_epochs": 2, "random_state": 0}
    result = learn(slow_batches(ticking, 2.0), 8, Lasso(0.3), **settings)
    # The first dictionary is made from the whole first epoch, whose first batch shows its shape.
    expected = [10.0] * 6 + [12.0, 14.0, 16.0, 18.0, 20.0, 22.0]
    assert [record.seconds for record in result.history] == expected


def test_evaluation_and_callbacks_are_off_the_clock(monkeypatch):
    ticking = Clock(monkeypatch)

    def slow(state, record):
        ticking.now += 100.0

    settings = {"learner": Online(100), "callbacks": [slow], "random_state": 0}
    result = learn(X, 8, Lasso(0.3), validation=X[:50], **settings)
    assert result.state.seconds == 0.0


@pytest.mark.parametrize("nested", [1, 3])
def test_compiling_is_off_the_clock(monkeypatch, nested):
    ticking = Clock(monkeypatch)
    state = learn(X, 8, Lasso(0.3), max_steps=0, random_state=0).state
    events = compiling._watch
    with clock.on_the_clock(state):
        ticking.now += 1.0
        for _ in range(nested):  # a kernel compiles those that it calls
            events.on_start(COMPILATION)
            ticking.now += 10.0
        for _ in range(nested):
            events.on_end(COMPILATION)
        ticking.now += 1.0
        compiling.count_as_compiling(0.5)  # by another process
    assert state.seconds == 1.5


def test_numba_tells_the_clock_what_it_compiles():
    import numba

    before = compiling.seconds_of_compiling()

    @numba.njit
    def kernel(x):
        return x + 1

    assert kernel(1) == 2
    assert compiling.seconds_of_compiling() > before


@pytest.mark.parametrize("way", ["stream", "array", "batch", "nmf", "nnsc"])
def test_max_seconds_is_kept_within_one_step(monkeypatch, way):
    ticking = Clock(monkeypatch)

    class Slow(Constraint):
        positive = True

        def project(self, atom):
            ticking.now += 0.125  # each of the 4 atoms, at each sweep
            np.maximum(atom, 0.0, out=atom)
            atom /= max(1.0, float(np.linalg.norm(atom)))

        def gauge(self, atom):
            return float(np.linalg.norm(atom)) if atom.min() >= 0 else float("inf")

    lasso = Lasso(0.3, positive=True)
    settings = {"max_seconds": 5.0, "random_state": 0}
    if way == "stream":
        source = slow_batches(ticking, 1.5)
        state = learn(source, 4, lasso, learner=Online(100), **settings).state
    elif way in ("nmf", "nnsc"):
        model = NMF(4, lam=0.3 if way == "nnsc" else 0.0, constraint=Slow(), **settings)
        model.fit(np.abs(X))
        assert model.stopped_ == "seconds"
        state = model.state_
    else:
        learner = Batch(sweeps=1) if way == "batch" else Online(100)
        state = learn(np.abs(X), 4, lasso, Slow(), learner, **settings).state
    steps = np.diff([record.seconds for record in state.history], prepend=0.0)
    last = state.history[-1].seconds
    assert last >= 5.0
    assert last - steps[-1] < 5.0


def test_compiling_in_any_thread_is_off_the_clock(monkeypatch):
    ticking = Clock(monkeypatch)
    state = learn(X, 8, Lasso(0.3), max_steps=0, random_state=0).state
    with clock.on_the_clock(state):
        ticking.now += 1.0
        for notify in (compiling._watch.on_start, compiling._watch.on_end):
            thread = threading.Thread(target=notify, args=(COMPILATION,))
            thread.start()
            thread.join()
            ticking.now += 2.0  # of which the first two are those of the compiler
    assert state.seconds == 3.0


# --- records


def test_the_history_of_a_resumed_run_has_all_steps(tmp_path):
    path = tmp_path / "run.safetensors"
    settings = {"learner": Online(100), "validation": X[:50], "random_state": 0}
    whole = learn(X, 8, Lasso(0.3), max_epochs=3, **settings)
    learn(X, 8, Lasso(0.3), max_steps=8, callbacks=[Checkpoint(path)], **settings)
    del settings["random_state"]
    rest = learn(X, 8, Lasso(0.3), max_epochs=3, state=State.load(path), **settings)
    assert [record.step for record in rest.history] == list(range(19))
    for ours, theirs in zip(rest.history, whole.history, strict=True):
        assert (ours.samples, ours.surrogate) == (theirs.samples, theirs.surrogate)
        np.testing.assert_equal(ours.batch_cost, theirs.batch_cost)
    assert all(np.diff([record.seconds for record in rest.history]) >= 0)


def test_records_as_an_array_and_back():
    records = [
        Record(0, 0, 0, 0.0, float("nan"), None, 1.5, float("nan"), 0, 1.0, None),
        Record(
            1, 0, 2**52 + 1, 0.25, 2.0, 3.0, None, 4.5, 2, 0.5, 0.1, short=7, slack=0.05, used=5
        ),
    ]
    back = history_from_array(history_to_array(records))
    np.testing.assert_equal([vars(r) for r in back], [vars(r) for r in records])
    assert history_from_array(history_to_array([])) == []
    with pytest.raises(ValueError, match=r"expected \(n, 14\)"):
        history_from_array(np.zeros((3, 5)))
    table = history_to_array(records)
    table[0, 0] = -1
    with pytest.raises(ValueError, match="not integers"):
        history_from_array(table)


def test_every_way_of_learning_keeps_its_settings_in_the_state():
    replacement, continuation = Replacement(every=3), Continuation(0.5, 4)
    settings = {"replacement": replacement, "continuation": continuation, "random_state": 0}
    states = [learn(X, 8, Lasso(0.3), max_steps=1, **settings).state]
    model = DictionaryLearning(8, coder=Lasso(0.3), **settings)
    states.append(model.partial_fit(X[:100]).state_)
    single = OneByOne(8, Lasso(0.3), learner=Online(50), **settings)
    for x in X[:50]:
        single.learn_one(x)
    states.append(single.state)
    for state in states:
        assert (state.replacement, state.continuation) == (replacement, continuation)
        assert state.history[0].lam == pytest.approx(0.15)
        assert len(state.history) == 1


def test_what_is_known_of_the_last_step_is_in_the_last_file(tmp_path):
    path = tmp_path / "run.safetensors"
    settings = {"validation": X[:50], "validate_every": 100, "random_state": 0}
    result = learn(
        X, 8, learner=Online(100), callbacks=[Checkpoint(path, every_steps=1)], **settings
    )
    assert State.load(path).history[-1] == result.history[-1]
    assert result.history[-1].test_cost is not None


def test_the_start_is_recorded_once():
    settings = {"validation": X[:50], "random_state": 0}
    start = learn(X, 8, Lasso(0.3), max_steps=0, **settings).state
    rest = learn(X, 8, state=start, max_steps=2, validation=X[:50], learner=None)
    assert [record.step for record in rest.history][:2] == [0, 1]


# --- early stopping


@pytest.mark.parametrize("learner", [Online(50), SGD(1.0, 100.0, 50)], ids=str)
@pytest.mark.parametrize("validation", [None, X[:60]], ids=["alone", "validated"])
def test_early_stopping_ends_a_run_that_gains_nothing(learner, validation):
    stop = EarlyStopping(patience=3, tol=0.5)
    settings = {"validation": validation, "callbacks": [stop], "random_state": 0}
    result = learn(X, 8, Lasso(0.3), learner=learner, max_epochs=50, **settings)
    assert result.stopped == "callback"
    assert result.state.step <= 24


def test_early_stopping_without_held_out_samples_waits_for_the_cost():
    rng = np.random.default_rng(0)
    Y = rng.gamma(0.5, size=(300, 6)) @ rng.gamma(0.3, size=(6, 60)) + 0.1 * rng.random((300, 60))
    settings = {"learner": Online(50), "max_epochs": 100, "random_state": 0}
    costs = []
    for callbacks in ([], [EarlyStopping(tol=0.02)]):
        result = learn(Y, 64, Lasso(0.1), callbacks=callbacks, **settings)
        costs.append(quality(result, Y).cost)
    assert result.stopped == "callback"
    assert costs[1] < 1.1 * costs[0]


def test_early_stopping_does_not_compare_costs_of_parts_of_the_data():
    Y = np.abs(np.random.default_rng(0).standard_normal((2000, 40)))
    records = []
    NMF(6, callbacks=[lambda state, record: records.append(record)], random_state=0).fit(Y)
    parts = [record for record in records if record.surrogate is None]
    whole = [record for record in records if record.surrogate is not None]
    assert parts
    assert whole
    assert [record.epoch for record in whole][:3] == [0, 1, 2]


def test_early_stopping_lets_a_run_go_on_that_still_gains():
    def fall(state, record):
        # As if each step halved the cost.
        state.history[-1] = Record(
            **{**vars(record), "batch_cost": 0.5**record.step, "test_cost": None}
        )

    callbacks = [fall, EarlyStopping(patience=1, tol=0.1)]
    settings = {"learner": Online(50), "callbacks": callbacks, "random_state": 0}
    assert learn(X, 8, Lasso(0.3), max_epochs=4, **settings).stopped == "epochs"
