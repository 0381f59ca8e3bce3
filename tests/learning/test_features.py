"""Steps that look at some of the features."""

import numpy as np
import pytest
from scipy import sparse

from smalto import encode, learn
from smalto.coders import Lasso
from smalto.constraints import ElasticNetBall, FusedLassoBall, L2Ball, Simplex
from smalto.learners import Online
from smalto.learning.dictionary.feature_sweep import View, sweep_view, view_at
from smalto.learning.dictionary.sweep import sweep
from smalto.learning.memory.statistics import Stats

SETS = [
    L2Ball(), L2Ball(positive=True), ElasticNetBall(0.3), ElasticNetBall(0.2, positive=True),
    Simplex(),
]  # fmt: skip


def planted(n=3000, m=120, k=8, seed=0):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((k, m)) / np.sqrt(m)
    codes = rng.standard_normal((n, k)) * (rng.random((n, k)) < 0.3)
    return codes @ D + 0.01 * rng.standard_normal((n, m))


def test_every_feature_is_seen_once_a_cycle():
    for share in (0.1, 0.3, 0.34, 1.0):
        parts = -(-50 // max(1, round(share * 50)))
        for cycle in range(3):
            views = [view_at(cycle * parts + i, share, 50, 7) for i in range(parts)]
            seen = np.concatenate([view.features for view in views])
            assert sorted(seen.tolist()) == list(range(50))
            for view in views:
                assert view.scale == pytest.approx(np.sqrt(50 / len(view.features)))
    again = [tuple(view_at(step, 0.1, 50, 7).features) for step in (0, 10, 20)]
    assert len(set(again)) == 3


@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_partial_sweep_is_exact_on_its_features(constraint, dtype):
    rng = np.random.default_rng(0)
    k, m = 70, 30
    codes = rng.standard_normal((200, k)) * (rng.random((200, k)) < 0.1)
    X = rng.standard_normal((200, m))
    stats = Stats(codes.T @ codes, codes.T @ X, 0.0, 200.0, 0.5)
    D = rng.random((k, m))
    for atom in D:
        constraint.project(atom)
    D = D.astype(dtype)
    chosen = np.sort(rng.permutation(m)[:11])
    view = View(chosen, 1.0)
    after = D.copy()
    before = stats.surrogate_sum(D)
    for _ in range(30):
        sweep_view(after, (stats,), constraint, view, 2)
        now = stats.surrogate_sum(after)
        assert now <= before + 1e-4 * abs(before)
        before = now
    others = np.setdiff1d(np.arange(m), chosen)
    np.testing.assert_array_equal(after[:, others], D[:, others])
    assert max(constraint.gauge(atom) for atom in after) < 1 + 1e-4
    # No feasible move of the seen features lowers the surrogate, to first order.
    gradient = 0.5 * (stats.A @ after - stats.B)
    for j in range(0, k, 9):
        other = after[j].copy()
        room, inner = constraint.divided(np.where(np.isin(np.arange(m), chosen), 0, after[j]))
        for _ in range(20):
            z = 3 * rng.standard_normal(len(chosen)).astype(dtype)
            inner.project(z)
            other[chosen] = room * z
            assert gradient[j] @ (other - after[j]) > -2e-2 * (1 + np.linalg.norm(gradient[j]))


def test_seeing_everything_is_the_usual_sweep():
    rng = np.random.default_rng(1)
    codes, X = rng.standard_normal((100, 20)), rng.standard_normal((100, 15))
    stats = Stats(codes.T @ codes, codes.T @ X, 0.0, 100.0)
    D = rng.standard_normal((20, 15))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    mine, usual = D.copy(), D.copy()
    sweep_view(mine, (stats,), L2Ball(), View(np.arange(15), 1.0), 1)
    sweep(usual, (stats,), L2Ball(), 1)
    np.testing.assert_allclose(mine, usual, atol=1e-10)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_learning_from_shares_of_the_features_comes_close(make):
    X = planted()
    lam = Lasso(0.02)

    def cost(D):
        codes = encode(X[2500:], D, lam)
        left = X[2500:] - codes @ D
        return 0.5 * np.sum(left**2) + 0.02 * abs(codes).sum()

    options = {"init": X[:8], "random_state": 0, "max_epochs": 8, "n_threads": 2}
    start = learn(X[:2500], 8, lam, max_steps=0, init=X[:8], random_state=0).D
    whole = learn(make(X[:2500]), 8, lam, learner=Online(100), **options)
    share = learn(make(X[:2500]), 8, lam, learner=Online(100, features=0.25), **options)
    assert cost(share.D) < cost(whole.D) + 0.1 * (cost(start) - cost(whole.D))
    assert share.history[-1].surrogate is None
    again = learn(
        make(X[:2500]), 8, lam, learner=Online(100, features=0.25), **{**options, "n_threads": 1}
    )
    np.testing.assert_array_equal(again.D, share.D)
    half = learn(
        make(X[:2500]), 8, lam, learner=Online(100, features=0.25), **{**options, "max_epochs": 3}
    )
    on = learn(make(X[:2500]), 8, max_epochs=8, state=half.state)
    np.testing.assert_array_equal(on.D, share.D)


def test_bad_settings():
    X = planted(300)
    for wrong in (0.0, 1.5, -1):
        with pytest.raises(ValueError, match="features must be in"):
            Online(features=wrong)
    with pytest.raises(
        TypeError, match=r"needs a constraint that can be divided .* got FusedLassoBall"
    ):
        learn(X, 8, constraint=FusedLassoBall(0.1, 0.1), learner=Online(features=0.5))
