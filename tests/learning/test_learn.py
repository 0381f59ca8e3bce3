"""Learning: the loop, the learners, what they remember, and where they arrive."""

import os
import signal
import subprocess
import threading
import time
import types

import naive
import numpy as np
import pytest
from children import child
from problems import dictionary
from scipy import sparse

from smalto import State, encode, learn
from smalto.coders import Lasso
from smalto.constraints import L2Ball
from smalto.learners import SGD, Batch, Continuation, Online, Replacement
from smalto.learning import EarlyStopping, Progress
from smalto.learning.batches.dataset import DatasetBatches
from smalto.learning.initial import initial_state
from smalto.learning.setup import Setup
from smalto.learning.step import step
from smalto.sources import as_source

LEARNERS = {
    "two-epochs": Online(32),
    "all": Online(32, memory="all", rho=0.0),
    "replace": Online(32, memory="replace"),
    "batch": Batch(),
    "sgd": SGD(a=60.0, b=2000.0, batch_size=32),
}


def planted(seed=0, n=3000, k=20, m=12, nonzeros=3, noise=0.0):
    """Samples that are sparse combinations of planted atoms."""
    rng = np.random.default_rng(seed)
    D = dictionary(rng, k, m)
    codes = np.zeros((n, k))
    for row in codes:
        chosen = rng.permutation(k)[:nonzeros]
        row[chosen] = rng.choice([-1, 1], nonzeros) * (0.5 + rng.random(nonzeros))
    return codes @ D + noise * rng.standard_normal((n, m)), D


def test_cost(X, D, lam):
    return naive.lasso_cost(X, D, encode(X, D, Lasso(lam)).toarray(), lam).mean()


test_cost.__test__ = False


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_lowers_the_held_out_cost(name, dtype):
    X, _ = planted(noise=0.05)
    X = X.astype(dtype)
    before = X[2500:].copy()
    result = learn(
        X[:2500], 20, Lasso(0.1), learner=LEARNERS[name], max_epochs=8, validation=X[2500:],
        random_state=0,
    )  # fmt: skip
    costs = [record.test_cost for record in result.history if record.test_cost is not None]
    assert costs[-1] < 0.8 * costs[0]
    assert result.D.dtype == dtype
    assert result.D.shape == (20, 12)
    assert np.all(np.linalg.norm(result.D, axis=1) <= 1 + 1e-6)
    assert costs[-1] == pytest.approx(test_cost(X[2500:], result.D, 0.1), rel=1e-5)
    assert result.stopped == "epochs"
    assert result.state.epoch == 8
    np.testing.assert_array_equal(X[2500:], before)


@pytest.mark.parametrize(("noise", "share"), [(0.0, 0.95), (0.1, 0.9)])
def test_planted_dictionaries_are_recovered(noise, share):
    found = []
    for seed in range(3):
        X, D = planted(seed, n=4000, noise=noise)
        result = learn(X, 20, Lasso(0.15), learner=Online(64), max_epochs=20, random_state=seed)
        found.append(naive.matched(result.D, D))
    assert np.mean(found) >= share


def test_planted_dictionaries_are_recovered_as_well_as_by_spams():
    spams = pytest.importorskip("spams")
    ours, theirs = [], []
    for seed in range(3):
        X, D = planted(seed, n=4000, noise=0.05)
        result = learn(X, 20, Lasso(0.15), learner=Online(64), max_epochs=10, random_state=seed)
        ours.append(naive.matched(result.D, D))
        first = X[np.random.default_rng(seed).permutation(len(X))[:20]]
        first = np.asfortranarray((first / np.linalg.norm(first, axis=1, keepdims=True)).T)
        learned = spams.trainDL(
            np.asfortranarray(X.T), D=first, lambda1=0.15, batchsize=64, iter=625, mode=2,
            numThreads=1, verbose=False,
        )  # fmt: skip
        theirs.append(naive.matched(learned.T, D))
    assert np.mean(ours) >= np.mean(theirs) - 0.02


@pytest.mark.parametrize("name", LEARNERS)
def test_same_bits_for_any_number_of_threads(name):
    X, _ = planted(n=600)
    results = [
        learn(X, 70, Lasso(0.1), learner=LEARNERS[name], max_epochs=3, random_state=1, n_threads=t)
        for t in (1, 2, 3)
    ]
    for other in results[1:]:
        assert np.array_equal(results[0].D, other.D)
        for ours, theirs in zip(results[0].history, other.history, strict=True):
            assert ours.batch_cost == theirs.batch_cost
            assert ours.surrogate == theirs.surrogate


@pytest.mark.parametrize("name", LEARNERS)
def test_a_resumed_run_is_the_run_never_stopped(name):
    X, _ = planted(n=500)
    settings = {"learner": LEARNERS[name], "random_state": 3}
    whole = learn(X, 70, Lasso(0.1), max_steps=23, **settings)
    part = learn(X, 70, Lasso(0.1), max_steps=9, **settings)
    kept = part.state.D.copy()
    rest = learn(X, 70, Lasso(0.1), max_steps=23, state=part.state, learner=LEARNERS[name])
    assert np.array_equal(whole.D, rest.D)
    assert len(part.history) == 9
    costs = [[record.batch_cost for record in run.history] for run in (whole, rest)]
    assert costs[0] == costs[1]  # all steps, from the first on
    assert np.array_equal(part.state.D, kept)  # the state given is not the one that goes on
    assert rest.state.samples == whole.state.samples


def test_nonzeros_and_continuation_resume_too():
    X, _ = planted(n=500)
    settings = {"learner": Online(32), "random_state": 3, "continuation": Continuation(0.2, 12)}
    whole = learn(X, 25, Lasso(mean_nonzeros=3), max_steps=20, **settings)
    part = learn(X, 25, Lasso(mean_nonzeros=3), max_steps=7, **settings)
    rest = learn(
        X,
        25,
        Lasso(mean_nonzeros=3),
        max_steps=20,
        state=part.state,
        continuation=Continuation(0.2, 12),
    )
    assert np.array_equal(whole.D, rest.D)


def test_nonzeros_is_kept_while_the_dictionary_changes():
    X, _ = planted(n=3000, noise=0.1)
    result = learn(X, 20, Lasso(mean_nonzeros=3), learner=Online(64), max_epochs=3, random_state=0)
    assert encode(X, result.D, result.coder).nnz / 3000 == pytest.approx(3, rel=0.1)
    assert result.coder.mean_nonzeros is None  # nothing is decided again on other rows
    assert encode(X[:5], result.D, result.coder).nnz == encode(X, result.D, result.coder)[:5].nnz


def test_zero_rows_in_a_batch_do_not_end_a_calibrated_run():
    X = np.zeros((400, 8))
    X[::20] = np.random.default_rng(0).standard_normal((20, 8))
    result = learn(X, 4, Lasso(mean_nonzeros=2), learner=Online(8), max_epochs=2, random_state=0)
    assert result.coder.lam > 0


def replay(X, D0, lam, eta, rho, t0, steps, seed):
    """Algorithm 1 with Section 3.4's decay and t0, the naive way; the dictionaries it visits."""
    from smalto.sources import Order

    order = Order(len(X), seed).take(0, 0, len(X))
    A, B, D = t0 * np.eye(len(D0)), t0 * D0, D0.copy()
    visited = []
    for t in range(1, steps + 1):
        batch = X[order[(t - 1) * eta : t * eta]]
        codes = naive.lasso(batch, D, lam)
        beta = (1 - 1 / t) ** rho if t > 1 else 1.0
        new = naive.statistics(codes, batch, 1 / eta)
        A, B = beta * A + new[0], beta * B + new[1]
        D = naive.sweep(D, A, B, naive.project_l2_ball)
        visited.append(D.copy())
    return visited


@pytest.mark.parametrize(("rho", "t0"), [(0.0, 0.0), (3.0, 0.0), (15.0, 0.001), (0.0, 2.0)])
def test_online_is_the_algorithm_of_the_paper(rho, t0):
    X, _ = planted(n=200, k=6, m=5)
    D0 = dictionary(np.random.default_rng(9), 6, 5)
    expected = replay(X, D0, 0.1, 20, rho, t0, 6, seed=5)
    visited = []
    learn(
        X, 6, Lasso(0.1), learner=Online(20, rho=rho, t0=t0), init=D0, max_steps=6, random_state=5,
        callbacks=[lambda state, record: visited.append(state.D.copy())],
    )  # fmt: skip
    np.testing.assert_allclose(visited, expected, atol=1e-8)


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


def batches(X):
    return DatasetBatches(as_source(X))


def test_batches_of_any_size_weigh_by_their_samples():
    X, _ = planted(n=100)
    D0 = dictionary(np.random.default_rng(9), 20, 12)

    def past(sizes):
        setup = Setup.of(Lasso(0.1), None, Online(64, rho=0.0, memory="all"))
        state = initial_state(batches(X), 20, setup, D0, 0, 1, stream=True)
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
            gaps[record.step] = record.surrogate - test_cost(seen, state.D, lam)

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
    setup = Setup.of(Lasso(0.1), None, learner, Replacement(every=8, correlation=0.99))
    state = initial_state(batches(X), 6, setup, D, 0, 1)
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


def test_continuation_raises_lam():
    X, _ = planted(n=400)
    result = learn(
        X, 20, Lasso(0.2), learner=Online(40), max_steps=8, random_state=0,
        continuation=Continuation(start=0.1, steps=5),
    )  # fmt: skip
    lams = [record.lam for record in result.history]
    assert lams[0] == pytest.approx(0.02)
    assert np.all(np.diff(lams[:6]) > 0)
    assert lams[5:] == [0.2, 0.2, 0.2]
    assert result.coder.lam == 0.2


def test_csr_and_dense_samples_teach_the_same():
    X, _ = planted(n=400)
    X[np.abs(X) < 0.3] = 0.0
    for memory in ("two-epochs", "replace"):
        settings = {"learner": Online(50, memory=memory), "max_epochs": 2, "random_state": 0}
        dense = learn(X, 15, Lasso(0.1), **settings)
        csr = learn(sparse.csr_array(X), 15, Lasso(0.1), **settings)
        np.testing.assert_allclose(dense.D, csr.D, atol=1e-8)


def test_positive_atoms_and_codes():
    rng = np.random.default_rng(0)
    X = np.abs(planted(n=500)[0])
    coder, ball = Lasso(0.1, positive=True), L2Ball(positive=True)
    result = learn(X, 15, coder, ball, Online(50), max_epochs=3, random_state=0)
    assert result.D.min() >= 0
    assert encode(X, result.D, coder).data.min() > 0
    # Samples on the wrong side still give atoms to begin with.
    result = learn(-X, 15, Lasso(0.1), ball, Online(50), max_epochs=2, random_state=0)
    assert np.linalg.norm(result.D, axis=1).min() > 0.5
    assert test_cost(-X, result.D, 0.1) < 0.5 * (X**2).sum(1).mean() / 2
    assert rng is not None


def test_a_memory_map_is_read_a_buffer_at_a_time(tmp_path, monkeypatch):
    import tracemalloc

    monkeypatch.setattr("smalto.sources.chunked.BUFFER_BYTES", 100_000)
    n, m = 20_000, 64
    X = np.memmap(tmp_path / "x", dtype=np.float32, mode="w+", shape=(n, m))
    rng = np.random.default_rng(0)
    for a in range(0, n, 1000):
        X[a : a + 1000] = rng.standard_normal((1000, m))
    settings = {"learner": Online(256), "random_state": 0, "n_threads": 1}
    learn(X[:4000], 16, Lasso(1.0), max_epochs=1, **settings)

    def peak(rows):
        tracemalloc.start()
        learn(X[:rows], 16, Lasso(1.0), max_epochs=1, **settings)
        _, top = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return top

    small, large = peak(4000), peak(n)
    # A record of the history per step grows, the data (5 MB) does not come in.
    assert large < small + 300_000


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


class TimedSource:
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
    stop, bar = EarlyStopping(patience=2, tol=0.02), Progress(total=100_000)
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
    assert "cost=" in shown
    assert "nonzeros=" in shown


def test_early_stopping_waits_while_the_cost_falls():
    from smalto.learning import Record

    def record(step, cost):
        return Record(step, 0, step, 0.0, 1.0, 1.0, cost, 1.0, 0, 1.0, 0.1)

    stop = EarlyStopping(patience=2, tol=0.01)
    costs = [1.0, 0.9, 0.8, None, 0.795, 0.7, 0.695, 0.694, 0.5]
    state, answers = STATE.copy(), []
    state.history.clear()
    for number, cost in enumerate(costs, 1):
        state.history.append(record(number, cost))
        answers.append(stop(state, state.history[-1]))
    assert answers == [False, False, False, False, False, False, False, True, False]


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


def test_learning_in_another_thread():
    X, _ = planted(n=200)
    results = []

    def work():
        results.append(learn(X, 10, Lasso(0.1), learner=Online(50), random_state=0, n_threads=2))

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 3
    assert np.array_equal(results[0].D, results[2].D)


def test_random_states():
    X, _ = planted(n=200)

    def D(random_state):
        return learn(X, 10, Lasso(0.1), learner=Online(50), random_state=random_state).D

    assert np.array_equal(D(3), D(np.int64(3)))
    assert np.array_equal(D(np.random.default_rng(3)), D(np.random.default_rng(3)))
    assert np.array_equal(D(np.random.RandomState(3)), D(np.random.RandomState(3)))
    assert not np.array_equal(D(3), D(4))
    assert not np.array_equal(D(None), D(None))


def test_inputs_are_left_alone():
    X, D0 = planted(n=200, k=10)
    D0 *= 3.0  # outside of the ball: projected in a copy
    before = X.copy(), D0.copy()
    X.flags.writeable = D0.flags.writeable = False
    for layout in (np.asarray, np.asfortranarray):
        learn(layout(X), 10, Lasso(0.1), learner=Online(50), init=layout(D0), max_epochs=2)
    assert np.array_equal(X, before[0])
    assert np.array_equal(D0, before[1])


def test_defaults_depend_on_the_size_of_the_problem():
    assert Online().resolve(100, None).batch_size == 512
    assert Online().resolve(100, 2_097_152).batch_size == 1024
    assert Online().resolve(1000, None).batch_size == 2000
    assert Online().resolve(100, 1000).batch_size == 100
    assert Online(77).resolve(100, 10).batch_size == 77
    assert Online().resolve(10, None).rho > 0
    assert Online(memory="replace").resolve(10, 10).rho == 0
    X, _ = planted(n=1000)
    first = learn(X, 12, max_steps=2, random_state=0)
    second = learn(X, 12, max_steps=4, state=first.state, coder=Lasso(), learner=Online())
    assert second.state.step == 4


def test_default_lam_comes_from_the_samples():
    X, _ = planted(n=1000)
    result = learn(10 * X, 12, max_steps=1, random_state=0)
    assert result.coder.lam == pytest.approx(1.2 * 10 * np.sqrt((X**2).mean()), rel=0.05)


X0 = planted(n=60)[0]
STATE = learn(X0, 8, Lasso(0.1), learner=Online(20), max_steps=1, random_state=0).state


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: learn(np.full((30, 3), np.nan), 3), ValueError, "X contains NaN or infinity: 90"),
        (lambda: learn(np.zeros((0, 3)), 3), ValueError, "X has no samples"),
        (lambda: learn(np.ones(5), 3), ValueError, "two-dimensional"),
        (lambda: learn([["a"]], 1), TypeError, "real numbers"),
        (lambda: learn(X0, 0), ValueError, "n_atoms must be >= 1, got 0"),
        (lambda: learn(X0, 2.5), TypeError, "n_atoms must be an integer, got 2.5"),
        (lambda: learn(X0, 61), ValueError, "n_samples=60 is fewer than the 61 atoms"),
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
        (lambda: learn(X0, 8, state="x"), TypeError, "state must be a State"),
        (
            lambda: learn(X0, 9, state=STATE),
            ValueError,
            "state has 8 atoms of 12 features, expected 9",
        ),
        (
            lambda: learn(X0[:, :5], 8, state=STATE),
            ValueError,
            "expected 8 atoms of 5 features",
        ),
        (
            lambda: learn(X0.astype("f4"), 8, state=STATE),
            ValueError,
            "created from float64 data, but this data is float32",
        ),
        (
            lambda: learn(X0, 8, Lasso(0.3), state=STATE),
            ValueError,
            "the state was created with coder=Lasso",
        ),
        (
            lambda: learn(X0, 8, learner=Batch(), state=STATE),
            ValueError,
            "the state was created with learner=Online",
        ),
        (lambda: learn(X0, 8, state=STATE, init=X0[:8]), ValueError, "exclude each other"),
        (lambda: Online(0), ValueError, "batch_size must be >= 1, got 0"),
        (lambda: Online(rho=-1), ValueError, "rho must be >= 0, got -1"),
        (lambda: Online(t0=-1), ValueError, "t0 must be >= 0, got -1"),
        (lambda: Online(memory="some"), ValueError, "memory must be .* got 'some'"),
        (lambda: Online(memory="replace", rho=2), ValueError, "rho must be 0 or None, got 2"),
        (lambda: SGD(a=0), ValueError, "a must be > 0, got 0"),
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
