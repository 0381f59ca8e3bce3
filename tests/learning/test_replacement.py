"""Atoms that are replaced or merged."""

from types import SimpleNamespace

import naive
import numpy as np
import pytest
from learning_problems import batches, planted

from smalto import encode, learn
from smalto.coders import Lasso
from smalto.coders.codes import Codes
from smalto.learners import Online, Replacement
from smalto.learning.dictionary.replacement import candidates
from smalto.learning.initial_state import initial_state
from smalto.learning.memory.contributions import Contribution
from smalto.learning.run_settings import RunSettings
from smalto.learning.step import step


@pytest.mark.parametrize("memory", ["two-epochs", "replace"])
def test_unused_and_duplicate_atoms_are_replaced_and_stay_alive(memory):
    X, D = planted(n=2000)
    D0 = D.copy()
    D0[5] = D0[4]  # a duplicate
    D0[6] = -D0[4]  # and its mirror image
    D0[7] = 0.0  # never used
    result = learn(
        X, 20, Lasso(0.1), learner=Online(64, memory=memory), init=D0, max_epochs=20, random_state=0,
        replacement=Replacement(idle=5, every=4),
    )  # fmt: skip
    assert sum(record.replaced for record in result.history) >= 1
    codes = encode(X, result.D, Lasso(0.1))
    uses = np.bincount(codes.indices, minlength=20)
    assert uses.min() > 10
    cosines = np.abs(result.D @ result.D.T) - np.eye(20)
    assert cosines.max() < 0.999
    assert naive.matched(result.D, D) >= 0.95
    for part in result.state.stats:
        np.testing.assert_allclose(part.A, part.A.T, atol=1e-9)


def test_without_replacement_a_dead_atom_stays_dead():
    X, D = planted(n=500)
    D[7] = 0.0
    settings = {"learner": Online(64), "init": D, "max_epochs": 2, "random_state": 0}
    result = learn(X, 20, Lasso(0.1), replacement=Replacement(idle=1e6), **settings)
    assert not result.D[7].any()
    assert sum(record.replaced for record in result.history) == 0


@pytest.mark.parametrize("memory", ["all", "replace"])
def test_merging_a_duplicate_keeps_what_was_known(memory):
    from smalto.learning.dictionary.replacement import replace_atoms

    X, D = planted(n=300, k=6, m=5)
    D[5] = -D[2]
    learner = Online(300, rho=0.0, memory=memory)
    settings = RunSettings.of(Lasso(0.1), None, learner, Replacement(every=8, correlation=0.99))
    state = initial_state(batches(X), 6, settings, D, 0, 1)
    step(state, batches(X).whole(), 1)
    state.D[:] = D
    # As if both had been in use: half of the samples of the one have the other one instead.
    moved = np.eye(6)
    moved[5, 2], moved[2, 2] = -0.5, 0.5
    part = state.stats[0]
    for table in (part.A, part.B, part.code_sum):
        table[:] = moved @ table
    part.A[:] = part.A @ moved.T
    before, expected = part.copy(), part.surrogate_sum(D)
    assert np.abs(before.A[5]).max() > 0.01
    assert np.abs(before.B[5]).max() > 0.01
    state.step = 8
    assert replace_atoms(state, D @ D.T, 1) == 1
    merged = np.eye(6)
    merged[5, 5], merged[2, 5] = 0.0, -1.0
    np.testing.assert_allclose(part.A, merged @ before.A @ merged.T, atol=1e-12)
    np.testing.assert_allclose(part.B, merged @ before.B, atol=1e-12)
    np.testing.assert_allclose(part.code_sum, merged @ before.code_sum, atol=1e-12)
    assert state.surrogate == pytest.approx(expected)  # the same signals, with other names
    assert part.surrogate_sum(state.D) == pytest.approx(expected)
    assert np.linalg.norm(state.D[5]) == pytest.approx(1)
    assert abs(state.D[5] @ state.D[2]) < 0.99


@pytest.mark.parametrize("n_threads", [1, 3])
def test_random_replacement_takes_samples_of_the_last_batches(n_threads):
    X, D = planted(n=640)
    X[:32] *= 100.0  # the worst coded, which random samples rarely are
    D[7] = 0.0
    found = {}
    for random in (False, True):
        result = learn(
            X, 20, Lasso(0.1), learner=Online(64), init=D, max_steps=8, random_state=0,
            replacement=Replacement(idle=5, every=8, random=random), n_threads=n_threads,
        )  # fmt: skip
        assert result.history[-1].replaced == 1
        found[random] = int(np.argmax(X @ result.D[7] / np.linalg.norm(X, axis=1)))
        cosine = X[found[random]] @ result.D[7] / np.linalg.norm(X[found[random]])
        assert cosine == pytest.approx(1)
    assert found[False] < 32 <= found[True]


def test_random_replacement_draws_every_sample_alike_and_none_of_weight_zero():
    X = np.random.default_rng(0).standard_normal((24, 5))
    weights = np.ones(24)
    weights[5] = 0.0
    none = Codes(np.zeros(25, np.int64), np.zeros(0, np.int32), np.zeros(0))
    squares = np.sum(X * X, axis=1)
    new = Contribution.listed(none, X, 6, squares, squares / 2, np.zeros(24), weights)
    count = np.zeros(24)
    for step_ in range(600):
        state = SimpleNamespace(replacement=Replacement(random=True), seed=3, step=step_)
        rows, ranks = candidates(state, new, 0)
        assert ((ranks >= 0) & (ranks < 1)).all()
        count[[np.flatnonzero((row == X).all(axis=1))[0] for row in rows]] += 1
    assert count[5] == 0
    expected = 600 * 8 / 23
    assert abs(np.delete(count, 5) - expected).max() < 5 * np.sqrt(expected)
