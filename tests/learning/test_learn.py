"""Learning: the learners, what resumes them, and what they learn from."""

import threading

import naive
import numpy as np
import pytest
from learning_problems import LEARNERS, mean_cost, planted
from scipy import sparse

from smalto import encode, learn
from smalto.coders import L0, OMP, Bridge, GroupLasso, Lasso, Ridge
from smalto.constraints import L2Ball
from smalto.learners import Continuation, Online


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
    assert costs[-1] == pytest.approx(mean_cost(X[2500:], result.D, 0.1), rel=1e-5)
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
    settings = {"learner": Online(8), "max_epochs": 2, "random_state": 0}
    with pytest.warns(UserWarning, match="mean_nonzeros=2 was not reached"):  # most are zero
        result = learn(X, 4, Lasso(mean_nonzeros=2), **settings)
    assert result.coder.lam > 0


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
    X = np.abs(planted(n=500)[0])
    coder, ball = Lasso(0.1, positive=True), L2Ball(positive=True)
    result = learn(X, 15, coder, ball, Online(50), max_epochs=3, random_state=0)
    assert result.D.min() >= 0
    assert encode(X, result.D, coder).data.min() > 0
    # Samples on the wrong side still give atoms to begin with.
    result = learn(-X, 15, Lasso(0.1), ball, Online(50), max_epochs=2, random_state=0)
    assert np.linalg.norm(result.D, axis=1).min() > 0.5
    assert mean_cost(-X, result.D, 0.1) < 0.5 * (X**2).sum(1).mean() / 2


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
    assert Online().resolve(100, None).batch_size == 4096
    assert Online().resolve(100, 30_000).batch_size == 3000
    assert Online().resolve(100, 1000).batch_size == 100
    assert Online(77).resolve(100, 10).batch_size == 77
    assert Online().resolve(8000, None).batch_size == 16_000
    assert Online().resolve(100, 2**40).batch_size == 4096
    assert Online().resolve(100, 100).batch_size == 64


def test_the_first_batch_size_follows_the_number_of_atoms():
    assert Online().resolve(100, None).first_batch_size == 768
    assert Online().resolve(1000, None).first_batch_size == 1000
    assert Online().resolve(100, 1000).first_batch_size == 100
    assert Online(77).resolve(100, None).first_batch_size == 77
    assert Online(first_batch_size=30).resolve(100, None).first_batch_size == 30
    assert Online(first_batch_size=5000).resolve(100, None).first_batch_size == 4096


def test_batches_grow_with_what_was_seen():
    X = np.random.default_rng(0).standard_normal((1200, 5))
    learner = Online(40, first_batch_size=10)

    def sizes(source, **limits):
        result = learn(source, 6, Lasso(0.3), learner=learner, random_state=0, **limits)
        return np.diff([0, *(record.samples for record in result.history)]).tolist()

    expected, seen = [], 0
    while seen < 1200:
        expected.append(min(40, max(10, int((10 * seen) ** 0.5 / 2)), 1200 - seen))
        seen += expected[-1]
    assert {10, 40} < set(expected)
    assert any(10 < size < 20 for size in expected)
    assert any(20 < size < 40 for size in expected)
    assert sizes(X) == expected
    assert sizes(iter(np.split(X, 30))) == expected
    assert set(sizes(X, max_epochs=2)[len(expected) : -1]) == {40}  # also in the next epoch
    assert Online().resolve(10, None).rho is None  # it grows
    assert Online(memory="replace").resolve(10, 10).rho == 0
    X, _ = planted(n=1000)
    first = learn(X, 12, max_steps=2, random_state=0)
    second = learn(X, 12, max_steps=4, state=first.state, coder=Lasso(), learner=Online())
    assert second.state.step == 4


def test_default_lam_comes_from_the_samples():
    X, _ = planted(n=1000)
    result = learn(10 * X, 12, max_steps=1, random_state=0)
    assert result.coder.lam == pytest.approx(1.2 * 10 * np.sqrt((X**2).mean()), rel=0.05)


@pytest.mark.parametrize(
    "coder",
    [Lasso(0.4), L0(0.4), Ridge(0.4), Bridge(0.4, delta=0.1), GroupLasso(0.4, [0] * 6, l1=0.2)],
    ids=repr,
)
def test_continuation_raises_every_lam(coder):
    X = np.random.default_rng(0).standard_normal((60, 5))
    result = learn(
        X, 6, coder, learner=Online(10), continuation=Continuation(0.25, 2), max_steps=3,
        random_state=0,
    )  # fmt: skip
    np.testing.assert_allclose([record.lam for record in result.history], [0.1, 0.2, 0.4])
    if isinstance(coder, GroupLasso):
        assert Continuation(0.25, 2).at(coder, 0).l1 == pytest.approx(0.05)


def test_continuation_needs_a_lam():
    X = np.random.default_rng(0).standard_normal((60, 5))
    with pytest.raises(TypeError, match="continuation needs a coder with a lam to raise, got OMP"):
        learn(X, 6, OMP(2), continuation=Continuation())
