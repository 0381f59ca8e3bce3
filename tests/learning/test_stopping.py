"""Limits, the clock, validation, early stopping, Ctrl-C."""

import os
import signal
import subprocess
import time
import types

import numpy as np
import pytest
from children import child
from learning_problems import planted, small_state

from smalto import learn
from smalto.coders import Lasso
from smalto.learners import Online
from smalto.learning import EarlyStopping, Progress
from smalto.sources import Source


def test_limits_and_why_it_stopped():
    X, _ = planted(n=200)
    settings = {"learner": Online(50), "random_state": 0}
    assert learn(X, 10, Lasso(0.1), **settings).state.step == 4  # one epoch unless said
    result = learn(X, 10, Lasso(0.1), max_steps=3, max_epochs=9, **settings)
    assert (result.stopped, result.state.step) == ("steps", 3)
    result = learn(X, 10, Lasso(0.1), max_seconds=0.05, **settings)
    assert result.stopped == "seconds"
    assert result.state.seconds >= 0.05
    assert result.history[-1].seconds == result.state.seconds
    result = learn(X, 10, Lasso(0.1), max_steps=0, **settings)
    assert (result.stopped, result.history) == ("steps", [])
    result = learn(
        X, 10, Lasso(0.1), max_epochs=5, callbacks=[lambda s, r: r.step == 7], **settings
    )
    assert (result.stopped, result.state.step) == ("callback", 7)


class TimedLasso(Lasso):
    """A lasso that takes 10 seconds for a batch, and 1000 for the validation set (30 rows)."""

    def solver(self, G):
        solve = super().solver(G)

        def timed(chunk):
            CLOCK.now += 1000 if len(chunk.Q) == 30 else 10
            return solve(chunk)

        return timed


class TimedSource(Source):
    """Rows that take a second to be read."""

    n_rows, n_features, dtype = 200, 12, np.dtype(float)

    def rows(self, numbers):
        CLOCK.now += 1
        return planted(n=200)[0][numbers]


CLOCK = types.SimpleNamespace(now=0.0)


def test_the_clock_counts_drawing_and_learning_alone(monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: CLOCK.now)

    def slow(state, record):
        CLOCK.now += 1e6

    result = learn(
        TimedSource(), 10, TimedLasso(0.1), learner=Online(50), max_epochs=1, random_state=0,
        validation=planted(n=30)[0], validate_every=1, callbacks=[slow], n_threads=1,
    )  # fmt: skip
    assert [record.seconds for record in result.history] == [0, 11, 22, 33, 44]
    assert result.state.seconds == 44


class UnsureLasso(Lasso):
    """A lasso whose codes all have to be solved again, which takes 10 seconds each."""

    def delicate(self, chunk, atoms):
        return True

    def safe_norm(self, atoms, dtype):
        return 0.0

    def gap(self, left):
        return np.full(len(left.norms), np.inf)

    def certain(self, problem):
        CLOCK.now += 10
        SOLVED.append(len(problem.X))
        return np.zeros((1, len(problem.D)))


SOLVED = []


@pytest.mark.filterwarnings("ignore:.*not proven optimal|every code is zero")
def test_slow_codes_heed_the_limit(monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: CLOCK.now)
    SOLVED.clear()
    result = learn(
        planted(n=200)[0], 10, UnsureLasso(0.1), learner=Online(50), max_seconds=25,
        max_steps=9, random_state=0, n_threads=1,
    )  # fmt: skip
    assert result.stopped == "seconds"
    assert (len(SOLVED), result.state.seconds, result.state.step) == (3, 30, 1)


@pytest.mark.parametrize(
    ("every", "expected"),
    [(None, {0, 1, 2, 3, 4, 6, 8, 10}), (4, {0, 4, 8, 10}), ([3, 5], {0, 3, 5, 10})],
)
def test_when_the_validation_set_is_evaluated(every, expected):
    X, _ = planted(n=200)
    result = learn(
        X, 10, Lasso(0.1), learner=Online(20), max_epochs=1, random_state=0, validation=X[:50],
        validate_every=every,
    )  # fmt: skip
    assert {r.step for r in result.history if r.test_cost is not None} == expected


def test_early_stopping_and_progress(capsys):
    X, _ = planted(n=1000)
    stop, bar = EarlyStopping(patience=2, tol=0.02), Progress()
    steps = []
    for _ in range(2):  # callbacks can be used again
        result = learn(
            X, 20, Lasso(0.1), learner=Online(50), max_epochs=100, random_state=0,
            validation=X[:200], validate_every=5, callbacks=[stop, bar],
        )  # fmt: skip
        assert result.stopped == "callback"
        steps.append(result.state.step)
    assert steps[0] == steps[1] < 1000
    shown = capsys.readouterr().err
    assert shown.count("\n") == 2  # one line at the end of each
    assert "cost 0." in shown
    assert "nonzeros" in shown


def test_early_stopping_waits_while_the_cost_falls():
    from smalto.learning import Record

    def record(step, cost):
        return Record(step, 0, step, 0.0, 1.0, 1.0, cost, 1.0, 0, 1.0, 0.1)

    stop = EarlyStopping(patience=2, tol=0.01)
    costs = [1.0, 0.9, 0.8, None, 0.795, 0.7, 0.695, 0.694, 0.5]
    state, answers = small_state().copy(), []
    state.history.clear()
    for number, cost in enumerate(costs, 1):
        state.history.append(record(number, cost))
        answers.append(stop(state, state.history[-1]))
    assert answers == [False, False, False, False, False, False, False, True, False]


@pytest.mark.parametrize("held_out", [True, False])
def test_early_stopping_compares_costs_of_the_same_lam_only(held_out):
    from smalto.learning import Record

    stop = EarlyStopping(patience=2, tol=0.01)
    state, steps = small_state().copy(), []
    state.history.clear()
    costs = {8: 1.0, 12: 2.0, 16: 1.9, 24: 3.0, 32: 2.9, 48: 4.0, 64: 4.0, 96: 5.0, 128: 5.0}
    lams = {8: 1.0, 12: 2.0, 16: 2.0, 24: 3.0, 32: 3.0, 48: 4.0, 64: 4.0, 96: 5.0, 128: 5.0}
    for step in range(1, 129):
        at = min(due for due in costs if due >= step)
        test_cost = costs[step] if held_out and step in costs else None
        record = Record(step, 0, step, 0.0, costs[at], 1.0, test_cost, 1.0, 0, 1.0, lams[at])
        state.history.append(record)
        if stop(state, record):
            steps.append(step)
    assert steps == [128]  # no progress at 64 and at 128: none of the rises is one


def test_early_stopping_while_lam_is_being_found():
    X, _ = planted(n=600)
    result = learn(
        X, 20, Lasso(mean_nonzeros=4), learner=Online(50), max_epochs=3, random_state=0,
        validation=X[:100], callbacks=[EarlyStopping()],
    )  # fmt: skip
    assert len({record.lam for record in result.history}) > 2
    assert result.state.step > 8  # it was 4: the first values of lam differ most


CTRL_C = """
import sys, numpy as np
from smalto import learn
from smalto.coders import Lasso
from smalto.learners import {learner}
X = np.random.default_rng(0).standard_normal((40_000, 32))
print("ready", flush=True)
result = learn(X, 64, Lasso(0.5), learner={learner}(), max_epochs=10_000, random_state=0,
               callbacks=[lambda s, r: print("step", flush=True) if r.step == 1 else None])
print(result.stopped, result.state.step, np.isfinite(result.D).all(), flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("learner", ["Online", "Batch"])
def test_ctrl_c_leaves_a_result(learner):
    with child(CTRL_C.format(learner=learner), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        assert process.stdout.readline() == "step\n"
        process.send_signal(signal.SIGINT)
        output = process.stdout.read()
        assert process.wait() == 0
    stopped, steps, finite = output.split()
    assert stopped == "interrupt"
    assert int(steps) >= 1
    assert finite == "True"
