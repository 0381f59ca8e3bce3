"""What learning refuses, and what it leaves as it was."""

import numpy as np
import pytest
from learning_problems import X0, small_state

from smalto import State, learn
from smalto.coders import Lasso
from smalto.constraints import L2Ball
from smalto.learners import SGD, Batch, Continuation, Online, Replacement
from smalto.learning import Log, Progress


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: learn(np.full((30, 3), np.nan), 3), ValueError, "X contains NaN or infinity: 90"),
        (lambda: learn(np.zeros((0, 3)), 3), ValueError, "X has no samples"),
        (lambda: learn(np.ones(5), 3), ValueError, "two-dimensional"),
        (lambda: learn([["a"]], 1), TypeError, "real numbers"),
        (lambda: learn(X0, 0), ValueError, "n_atoms must be >= 1, got 0"),
        (lambda: learn(X0, 2.5), TypeError, "n_atoms must be an integer, got 2.5"),
        (
            lambda: learn(np.zeros((20, 4)), 2),
            ValueError,
            "all of the 20 samples looked at are zero",
        ),
        (lambda: learn(X0, 5, 0.1), TypeError, "coder must be a coder such as Lasso"),
        (lambda: learn(X0, 5, constraint=L2Ball), TypeError, r"did you mean L2Ball\(...\)"),
        (lambda: learn(X0, 5, learner="online"), TypeError, "learner must be a learner"),
        (
            lambda: learn(X0, 5, init=np.ones((4, 12))),
            ValueError,
            "init has 4 atoms, expected 5",
        ),
        (lambda: learn(X0, 5, init=np.ones((5, 3))), ValueError, "init has 3 features"),
        (lambda: learn(X0, 5, max_epochs=0), ValueError, "max_epochs must be >= 1, got 0"),
        (lambda: learn(X0, 5, max_steps=-1), ValueError, "max_steps must be >= 0, got -1"),
        (lambda: learn(X0, 5, max_seconds="soon"), TypeError, "max_seconds must be a number"),
        (
            lambda: learn(X0, 5, validation=np.ones((3, 4))),
            ValueError,
            r"12 features, got shape \(3, 4\)",
        ),
        (lambda: learn(X0, 5, validate_every=0), ValueError, "validate_every must be >= 1, got 0"),
        (lambda: learn(X0, 5, random_state=-1), ValueError, "random_state must be >= 0, got -1"),
        (lambda: learn(X0, 5, random_state="x"), TypeError, "random_state must be None"),
        (
            lambda: learn(X0, 5, replacement=3),
            TypeError,
            r"replacement must be None or Replacement\(...\), got 3",
        ),
        (lambda: learn(X0, 5, continuation=3), TypeError, "continuation must be None or"),
        (lambda: learn(X0, 5, callbacks=print), TypeError, "callbacks must be a sequence"),
        (lambda: learn(X0, 5, callbacks=[print, 3]), TypeError, r"callbacks\[1\] must be callable"),
        (lambda: learn(X0, 5, callbacks=[Progress]), TypeError, r"did you mean Progress\(...\)"),
        (lambda: learn(X0, 5, callbacks=Progress()), TypeError, "give a list"),
        (
            lambda: learn(X0, 5, callbacks=[Log("no/such/run.csv")]),
            FileNotFoundError,
            "there is no folder no/such for run.csv: create it first",
        ),
        (lambda: learn(X0, 8, state="x"), TypeError, "state must be a State"),
        (
            lambda: learn(X0, 9, state=small_state()),
            ValueError,
            "state has 8 atoms of 12 features, expected 9",
        ),
        (
            lambda: learn(X0[:, :5], 8, state=small_state()),
            ValueError,
            "expected 8 atoms of 5 features",
        ),
        (
            lambda: learn(X0.astype("f4"), 8, state=small_state()),
            ValueError,
            "created from float64 data, but this data is float32",
        ),
        (
            lambda: learn(X0, 8, Lasso(0.3), state=small_state()),
            ValueError,
            "the state was created with coder=Lasso",
        ),
        (
            lambda: learn(X0, 8, learner=Batch(), state=small_state()),
            ValueError,
            "the state was created with learner=Online",
        ),
        (lambda: learn(X0, 8, state=small_state(), init=X0[:8]), ValueError, "exclude each other"),
        (lambda: Online(0), ValueError, "batch_size must be >= 1, got 0"),
        (
            lambda: Online(9, first_batch_size=10),
            ValueError,
            "first_batch_size must be .*9, got 10",
        ),
        (lambda: Online(slack=-0.1), ValueError, "slack must be in .*, got -0.1"),
        (lambda: Online(rho=-1), ValueError, "rho must be >= 0, got -1"),
        (lambda: Online(t0=-1), ValueError, "t0 must be >= 0, got -1"),
        (lambda: Online(memory="some"), ValueError, "memory must be .* got 'some'"),
        (lambda: Online(memory="replace", rho=2), ValueError, "rho must be 0 or None, got 2"),
        (lambda: Online(memory="replace", keep=0.9), ValueError, "keep must be 0, got 0.9"),
        (lambda: SGD(a=0), ValueError, "a must be > 0, got 0"),
        (lambda: SGD(a=np.inf), ValueError, "a must be finite, got inf"),
        (lambda: Online(rho=np.inf), ValueError, "rho must be finite, got inf"),
        (lambda: Online(keep=1.5), ValueError, r"keep must be in \[0, 1\], got 1.5"),
        (lambda: Online(kappa1=-1), ValueError, "kappa1 must be >= 0, got -1"),
        (lambda: Replacement(random=1), TypeError, "random must be True or False, got 1"),
        (lambda: Batch(sweeps=0), ValueError, "sweeps must be >= 1, got 0"),
        (
            lambda: Replacement(correlation=1.5),
            ValueError,
            r"correlation must be in \(0, 1\], got 1.5",
        ),
        (lambda: Continuation(start=0), ValueError, "start must be"),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_state_of_other_data_is_refused():
    state = learn(X0, 8, Lasso(0.1), learner=Online(20, memory="replace"), max_steps=1).state
    with pytest.raises(ValueError, match="created from 60 samples, but this data has 40"):
        learn(X0[:40], 8, state=state)
    assert isinstance(state, State)


def test_an_error_in_the_middle_leaves_the_state_given_as_it_was(tmp_path):
    X = np.memmap(tmp_path / "x", dtype=np.float64, mode="w+", shape=(60, 12))
    X[:] = X0
    part = learn(X, 8, Lasso(0.1), learner=Online(20), max_steps=1, random_state=0)
    before = part.state.copy()
    X[:] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        learn(X, 8, state=part.state, max_epochs=3)
    assert np.array_equal(before.D, part.state.D)
    assert np.array_equal(before.stats[0].A, part.state.stats[0].A)


def test_a_useless_lam_is_named_once():
    with pytest.warns(UserWarning, match="every code is zero: lam=1e\\+04") as caught:
        learn(X0, 5, Lasso(1e4), learner=Online(20), max_epochs=3, random_state=0)
    assert len(caught) == 1


def test_a_run_is_resumed_with_its_own_seed():
    state = learn(X0, 6, max_steps=1, random_state=0).state
    with pytest.raises(ValueError, match="with random_state=0, but random_state=5 was given"):
        learn(X0, 6, state=state, random_state=5, max_steps=2)
    seeds = None, 0, np.int64(0), np.random.default_rng(5)
    runs = [learn(X0, 6, state=state, random_state=seed, max_steps=2).D for seed in seeds]
    assert all(np.array_equal(D, runs[0]) for D in runs)


def test_held_out_samples_that_float32_cannot_hold_are_refused():
    for size in (1e30, 1e60):
        with pytest.raises(ValueError, match=r"values of validation reach .* scale them down"):
            learn(X0.astype(np.float32), 6, validation=size * X0)
