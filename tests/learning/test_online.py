"""The online algorithm against the paper: statistics, memories, surrogate."""

import naive
import numpy as np
import pytest
from learning_problems import LEARNERS, batches, mean_cost, planted
from problems import dictionary

from smalto import learn
from smalto.coders import OMP, Lasso
from smalto.learners import SGD, Batch, Continuation, Online, Replacement
from smalto.learning.initial_state import initial_state
from smalto.learning.run_settings import RunSettings
from smalto.learning.step import step


def replay(X, D0, lam, eta, rho, t0, steps, seed, keep=0.0, kappa1=0.0):
    """Algorithm 1 with Section 3.4's decay and t0, the naive way; the dictionaries it visits."""
    from smalto.sources import Order

    order = Order(len(X), seed).take(0, 0, len(X))
    A, B, D, weight = t0 * np.eye(len(D0)), t0 * D0, D0.copy(), 0.0
    visited = []
    for t in range(1, steps + 1):
        batch = X[order[(t - 1) * eta : t * eta]]
        codes = naive.lasso(batch, D, lam)
        power = np.log2(max((t - 1) * eta / len(D0), 1.0)) if rho is None else rho
        beta = max(keep, (1 - 1 / t) ** power) if t > 1 else 1.0
        weight = beta * weight + 1.0
        new = naive.statistics(codes, batch, 1 / eta)
        A, B = beta * A + new[0], beta * B + new[1]
        penalized = A + kappa1 * weight * np.diag(A.diagonal() > 0)
        D = naive.sweep(D, penalized, B, naive.project_l2_ball)
        visited.append(D.copy())
    return visited


@pytest.mark.parametrize(
    ("rho", "t0", "keep", "kappa1"),
    [
        (0.0, 0.0, 0.0, 0.0),
        (3.0, 0.0, 0.0, 0.0),
        (15.0, 0.001, 0.0, 0.0),
        (0.0, 2.0, 0.0, 0.0),
        (None, 0.0, 0.0, 0.0),
        (15.0, 0.001, 0.95, 0.0),
        (15.0, 0.0, 0.3, 0.0),
        (3.0, 0.0, 0.0, 0.02),
    ],
)
def test_online_is_the_algorithm_of_the_paper(rho, t0, keep, kappa1):
    X, _ = planted(n=200, k=6, m=5)
    D0 = dictionary(np.random.default_rng(9), 6, 5)
    expected = replay(X, D0, 0.1, 20, rho, t0, 6, 5, keep, kappa1)
    learner = Online(20, rho=rho, t0=t0, slack=0.0, keep=keep, kappa1=kappa1)
    visited = []
    result = learn(
        X, 6, Lasso(0.1), learner=learner, init=D0, max_steps=6, random_state=5,
        callbacks=[lambda state, record: visited.append(state.D.copy())],
    )  # fmt: skip
    np.testing.assert_allclose(visited, expected, atol=1e-8)
    surrogate = sum(part.surrogate_sum(result.D) for part in result.state.stats)
    assert result.state.surrogate == pytest.approx(surrogate)  # kappa1 is not in it


def test_the_floor_keeps_what_a_large_rho_forgets_at_first():
    X, _ = planted(n=400)
    D0 = dictionary(np.random.default_rng(9), 20, 12)

    def weight(steps, **how):
        learner = Online(50, rho=15.0, **how)
        result = learn(X, 20, Lasso(0.1), learner=learner, init=D0, max_steps=steps, random_state=0)
        return sum(part.total_weight() for part in result.state.stats)

    assert weight(2) == pytest.approx(1 + 0.5**15)
    assert weight(2, keep=0.95) == pytest.approx(1.95)
    assert weight(3, keep=0.95) == pytest.approx(1 + 0.95 * 1.95)
    assert weight(3, keep=0.001) == pytest.approx(1 + (2 / 3) ** 15 * 1.001)


def test_kappa1_shrinks_used_atoms_and_leaves_unused_ones():
    X, _ = planted(n=400)
    D0 = dictionary(np.random.default_rng(9), 20, 12)
    D0[3] = 0.01 * D0[3]  # too small to be used
    learner = Online(50, kappa1=10.0, first_batch_size=50)
    settings = {"replacement": Replacement(idle=np.inf), "init": D0, "random_state": 0}
    D = learn(X, 20, Lasso(0.3), learner=learner, max_steps=1, **settings).D
    norms = np.linalg.norm(D, axis=1)
    np.testing.assert_array_equal(D[3], D0[3])
    assert np.median(norms) < 0.2
    with pytest.raises(ValueError, match="kappa1 needs all features"):
        Online(kappa1=0.1, features=0.5)


def test_codes_of_steps_become_exact_and_records_say_how_exact_they_are():
    X, _ = planted(n=2000, k=6, m=5)
    result = learn(
        X, 6, Lasso(0.1), learner=Online(50, slack=0.4), validation=X[:100], validate_every=1,
        random_state=0,
    )  # fmt: skip
    before = np.array([0, *(record.samples for record in result.history[1:-1])])
    shares = np.array([record.slack for record in result.history[1:]])
    expected = 0.4 * np.minimum(1.0, np.sqrt(10 * 6 / np.maximum(before, 1)))
    np.testing.assert_allclose(shares, expected)
    assert shares[0] == 0.4
    assert shares[-1] < 0.08
    held_out = mean_cost(X[:100], result.D, 0.1)
    np.testing.assert_allclose(result.history[-1].test_cost, held_out, rtol=1e-12)


@pytest.mark.parametrize(
    ("coder", "learner"),
    [
        (Lasso(0.1), Online(50, slack=0.0)),
        (Lasso(0.1), Online(50, memory="replace")),
        (Lasso(0.1), Batch()),
        (Lasso(0.1), SGD(batch_size=50)),
        (OMP(2), Online(50)),
    ],
)
def test_exact_codes_are_recorded_as_exact(coder, learner):
    X, _ = planted(n=200, k=6, m=5)
    result = learn(X, 6, coder, learner=learner, max_steps=3, random_state=0)
    assert [record.slack for record in result.history] == [0.0] * 3


def test_rough_codes_cost_more_in_the_batch_and_nothing_in_the_end():
    X, _ = planted(n=4000)
    costs = {}
    for slack in (0.0, 0.1, 1.0):
        result = learn(
            X, 20, Lasso(0.1), learner=Online(100, slack=slack), validation=X[:500],
            max_epochs=3, random_state=0,
        )  # fmt: skip
        costs[slack] = result.history[1].batch_cost, result.history[-1].test_cost
    assert costs[0.0][0] < costs[0.1][0] < costs[1.0][0]
    np.testing.assert_allclose(costs[0.1][1], costs[0.0][1], rtol=2e-3)


def test_t0_slows_the_first_steps_also_with_decay():
    X, _ = planted(n=500)
    D0 = dictionary(np.random.default_rng(9), 20, 12)

    def moved(t0, steps):
        learner = Online(50, rho=15.0, t0=t0)
        result = learn(X, 20, Lasso(0.1), learner=learner, init=D0, max_steps=steps, random_state=0)
        return np.linalg.norm(result.D - D0)

    assert moved(10.0, 1) < 0.2 * moved(0.0, 1)
    # With decay from the first step on the prior would be gone by now.
    assert moved(1e5, 2) < 0.2 * moved(0.0, 2)


def test_batches_of_any_size_weigh_by_their_samples():
    X, _ = planted(n=100)
    D0 = dictionary(np.random.default_rng(9), 20, 12)

    def past(sizes):
        settings = RunSettings.of(Lasso(0.1), None, Online(64, rho=0.0, memory="all"))
        state = initial_state(batches(X), 20, settings, D0, 0, 1, stream=True)
        at = 0
        for size in sizes:
            step(state, batches(X[at : at + size]).whole(), 1)
            state.D[:] = D0  # the same codes whatever the cut
            at += size
        return state.stats[0]

    whole, cut = past([100]), past([1, 70, 29])
    np.testing.assert_allclose(whole.A, cut.A, atol=1e-12)
    np.testing.assert_allclose(whole.B, cut.B, atol=1e-12)
    assert whole.weight == pytest.approx(cut.weight)
    assert whole.weight == pytest.approx(100 / 64)


def test_a_short_last_batch_counts_for_what_it_is():
    X, _ = planted(n=70)
    learner = Online(64, rho=0.0, memory="all")
    result = learn(X, 10, Lasso(0.1), learner=learner, max_epochs=1, random_state=0)
    assert [record.samples for record in result.history] == [64, 70]
    assert result.state.stats[0].weight == pytest.approx(70 / 64)


def test_two_epochs_forgets_what_is_older():
    X, _ = planted(n=128)
    weights = []
    learn(
        X, 10, Lasso(0.1), learner=Online(32, rho=0.0), max_epochs=4, random_state=0,
        callbacks=[lambda s, r: weights.append(sum(part.total_weight() for part in s.stats))],
    )  # fmt: skip
    # Four steps an epoch: the past is the last epoch and this one.
    assert weights == pytest.approx([1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4])


def test_the_surrogate_bounds_the_cost_and_they_approach():
    """Proposition 2: f̂_t(D_t) ≥ f_t(D_t), and their difference goes to zero."""
    X, _ = planted(n=2000, noise=0.1)
    gaps = {}
    lam = 0.1

    def compare(state, record):
        if record.step in (5, 200):
            seen = X[np.arange(min(record.samples, 2000))] if record.samples >= 2000 else None
            if seen is None:
                from smalto.sources import Order

                seen = X[Order(2000, state.seed).take(0, 0, record.samples)]
            gaps[record.step] = record.surrogate - mean_cost(seen, state.D, lam)

    learn(
        X, 20, Lasso(lam), learner=Online(50, rho=0.0, memory="all"), max_steps=200, random_state=0,
        callbacks=[compare],
    )  # fmt: skip
    assert gaps[5] > 0
    assert 0 < gaps[200] < 0.2 * gaps[5]


@pytest.mark.parametrize("name", ["two-epochs", "all", "replace", "batch"])
def test_the_recorded_surrogate_is_that_of_the_statistics(name):
    X, _ = planted(n=300, noise=0.1)

    def check(state, record):
        if state.place == 0:
            return  # an epoch has ended, and its past has been dropped since
        total = sum(part.surrogate_sum(state.D) for part in state.stats)
        weight = sum(part.total_weight() for part in state.stats)
        assert record.surrogate == pytest.approx(total / weight, rel=1e-9)

    learner = LEARNERS[name]
    if name == "two-epochs":
        learner = Online(32, t0=0.5)
    learn(X, 40, Lasso(0.1), learner=learner, max_epochs=4, random_state=0, callbacks=[check],
          replacement=Replacement(idle=1, every=2))  # fmt: skip


def test_replace_is_descent_on_the_joint_cost():
    """With stored codes each step lowers Eq. (4), block coordinate descent."""
    X, _ = planted(n=300, noise=0.1)
    lam, costs = 0.1, []

    def joint(state, record):
        if state.epoch >= 1:  # every sample has a code
            codes = state.store.fetch(np.arange(300)).as_csr(25).toarray()
            costs.append(naive.lasso_cost(X, state.D, codes, lam).sum())

    result = learn(
        X, 25, Lasso(lam), learner=Online(32, memory="replace"), max_epochs=15, random_state=0,
        callbacks=[joint],
    )  # fmt: skip
    assert len(costs) > 100
    assert np.all(np.diff(costs) <= 1e-9 * costs[0])
    assert costs[-1] < 0.98 * costs[0]
    # No drift: the statistics are still those of the stored codes.
    codes = result.state.store.fetch(np.arange(300)).as_csr(25).toarray()
    A, B = naive.statistics(codes, X, 1 / 32)
    stats = result.state.stats[0]
    np.testing.assert_allclose(stats.A, A, atol=1e-10)
    np.testing.assert_allclose(stats.B, B, atol=1e-10)
    assert result.history[-1].surrogate == pytest.approx(
        naive.lasso_cost(X, result.D, codes, lam).mean(), rel=1e-9
    )


def test_replace_accounts_rightly_for_a_lam_that_changes():
    X, _ = planted(n=200)
    result = learn(
        X, 20, Lasso(0.2), learner=Online(40, memory="replace"), max_epochs=3, random_state=0,
        continuation=Continuation(0.1, 4),
    )  # fmt: skip
    codes = result.state.store.fetch(np.arange(200)).as_csr(20).toarray()
    expected = naive.lasso_cost(X, result.D, codes, 0.2).mean()
    assert result.history[-1].surrogate == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("seen", "rho"), [(6, 0.0), (6 * 100, np.log2(100)), (6 * 256, 8.0), (6 * 10_000, 50.0)]
)
def test_the_past_is_forgotten_faster_and_faster(seen, rho):
    X, _ = planted(n=200, k=6, m=5)
    state = learn(X, 6, Lasso(0.1), learner=Online(20), max_steps=3, random_state=0).state
    before, state.samples = sum(part.total_weight() for part in state.stats), seen
    state.learner.forget(state, 20)
    after = sum(part.total_weight() for part in state.stats)
    assert after == pytest.approx(before * (seen / (seen + 20)) ** rho, rel=1e-12)
