"""Atoms that are replaced or merged."""

import naive
import numpy as np
import pytest
from learning_problems import batches, planted

from smalto import encode, learn
from smalto.coders import Lasso
from smalto.learners import Online, Replacement
from smalto.learning.initial_state import initial_state
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
