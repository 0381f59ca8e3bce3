"""Learning on a cluster: the same as here, whatever happens to the workers."""

import gc
import os
import signal
import threading
import time

import numpy as np
import pytest
from scipy import sparse

from smalto import DictionaryLearning, State, encode, learn
from smalto.coders import OMP, Lasso
from smalto.learners import SGD, Batch, Online, Replacement
from smalto.learning import Checkpoint

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

from smalto import distributed as cluster

X = np.random.default_rng(0).standard_normal((1200, 12))
SETTINGS = {"coder": Lasso(0.5), "learner": Online(128), "random_state": 0}

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module", autouse=True)
def on_any_machine():
    """A busy machine is waited for, and what Dask leaves to the garbage collector ends here."""
    waits = ("distributed.comm.timeouts.connect", "distributed.comm.timeouts.tcp")
    with dask.config.set(dict.fromkeys(waits, "600s")):
        yield
    gc.collect()  # else a warning of an open socket would meet some other test


@pytest.fixture(scope="module")
def client():
    """Workers that are threads of this process: quick to start."""
    with distributed.Client(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as client:
        yield client


PROBLEMS = [
    {},
    {"learner": Online(128, memory="replace")},
    {"learner": Batch(sweeps=2)},
    {"learner": SGD(2000.0, 2000.0, 128)},
    {"coder": Lasso(mean_nonzeros=3)},
    {"coder": OMP(max_nonzeros=3)},
]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_cluster_learns_what_one_machine_learns(problem, client):
    options = {**SETTINGS, "max_epochs": 2, "validation": X[:50], **problem}
    here = learn(X, 20, **options)
    there = cluster.learn(da.from_array(X, chunks=(200, 5)), 20, client=client, **options)
    np.testing.assert_allclose(there.D, here.D, atol=1e-8)
    assert there.state.step == here.state.step
    for mine, yours in zip(here.history, there.history, strict=True):
        assert yours.batch_cost == pytest.approx(mine.batch_cost, nan_ok=True)
        assert yours.surrogate == (
            None if mine.surrogate is None else pytest.approx(mine.surrogate)
        )
        assert yours.test_cost == (
            None if mine.test_cost is None else pytest.approx(mine.test_cost)
        )


@pytest.mark.parametrize("staleness", [0, 3])
@pytest.mark.parametrize("chunk", [200, 60])
def test_the_number_of_workers_changes_nothing(staleness, chunk, client):
    data = da.from_array(X, chunks=(chunk, 12))
    options = {"staleness": staleness, "max_epochs": 2, **SETTINGS}
    two = cluster.learn(data, 20, client=client, **options)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=3, processes=False, dashboard_address=":0"
    ) as single:
        one = cluster.learn(data, 20, client=single.scheduler_address, **options)
    np.testing.assert_array_equal(one.D, two.D)
    assert (two.history[-1].surrogate is None) == (staleness > 0)


def test_statistics_or_codes_are_the_same(client, monkeypatch):
    data = da.from_array(X, chunks=(200, 12))
    codes = cluster.learn(data, 8, client=client, **SETTINGS)
    monkeypatch.setattr(
        "smalto.distributed.worker_batches.statistics_are_cheaper", lambda new: True
    )
    stats = cluster.learn(data, 8, client=client, **SETTINGS)
    np.testing.assert_allclose(stats.D, codes.D, atol=1e-8)
    np.testing.assert_array_equal(stats.state.worst, codes.state.worst)


def test_random_new_atoms_are_samples_also_where_statistics_would_be_sent(client, monkeypatch):
    monkeypatch.setattr(
        "smalto.distributed.worker_batches.statistics_are_cheaper", lambda new: True
    )
    result = cluster.learn(
        da.from_array(X, chunks=(200, 12)), 20, client=client, max_epochs=2,
        replacement=Replacement(correlation=0.4, every=2, random=True), **SETTINGS,
    )  # fmt: skip
    assert sum(record.replaced for record in result.history) > 0
    kept = result.state.worst[result.state.worst_cost > 0]
    assert len(kept) > 0
    assert all((row == X).all(axis=1).any() for row in kept)


def test_staleness_learns_too(client):
    options = {**SETTINGS, "max_epochs": 6, "validation": X[:200]}
    fresh = cluster.learn(da.from_array(X, chunks=(200, 12)), 20, client=client, **options)
    stale = cluster.learn(
        da.from_array(X, chunks=(200, 12)), 20, client=client, staleness=2, **options
    )
    first, last = fresh.history[0].test_cost, fresh.history[-1].test_cost
    assert stale.history[-1].test_cost < last + 0.1 * (first - last)
    for learner in (Batch(), Online(memory="replace")):
        with pytest.raises(ValueError, match="staleness must be 0 with"):
            cluster.learn([X], 20, learner=learner, client=client, staleness=1)


def test_bags_lists_and_files_are_cut_into_blocks(client, tmp_path):
    np.save(tmp_path / "a.npy", X[:500])
    np.save(tmp_path / "b.npy", X[500:])
    expected = cluster.learn([X], 20, client=client, **SETTINGS)
    np.testing.assert_allclose(expected.D, learn(X, 20, **SETTINGS).D, atol=1e-8)
    bag = pytest.importorskip("dask.bag").from_sequence(list(X), npartitions=3)
    load = dask.delayed(np.load)
    for source in (
        [str(tmp_path / "a.npy"), str(tmp_path / "b.npy")],
        [load(tmp_path / "a.npy"), load(tmp_path / "b.npy")],
        [X[:300], X[300:]],
        bag,
        da.from_array(X, chunks=(1200, 12)),
    ):
        result = cluster.learn(source, 20, client=client, **SETTINGS)
        np.testing.assert_allclose(result.D, expected.D, atol=1e-8)
    C = sparse.random_array((600, 12), density=0.3, format="csr", rng=0)
    there = cluster.learn([C[:200], C[200:]], 15, client=client, **SETTINGS)
    np.testing.assert_allclose(there.D, learn(C, 15, **SETTINGS).D, atol=1e-8)


def test_runs_on_a_cluster_go_on_from_a_file(client, tmp_path):
    data = da.from_array(X, chunks=(60, 12))
    whole = cluster.learn(data, 20, client=client, max_epochs=3, **SETTINGS)
    saver = Checkpoint(tmp_path / "run", every_steps=1)
    cluster.learn(data, 20, client=client, max_steps=13, callbacks=[saver], **SETTINGS)
    state = State.load(tmp_path / "run")
    again = cluster.learn(data, 20, client=client, max_epochs=3, state=state)
    np.testing.assert_array_equal(again.D, whole.D)


def test_the_estimator_on_dask_arrays(client):
    data = da.from_array(X, chunks=(200, 5))
    model = DictionaryLearning(20, coder=Lasso(0.5), learner=Online(128), random_state=0).fit(data)
    assert model.n_features_in_ == 12
    here = DictionaryLearning(20, coder=Lasso(0.5), learner=Online(128), random_state=0).fit(X)
    np.testing.assert_allclose(model.components_, here.components_, atol=1e-8)
    codes = model.transform(data)
    assert isinstance(codes, da.Array)
    assert (codes.shape, codes.chunks[0]) == ((1200, 20), data.chunks[0])
    expected = encode(X, model.components_, model.coder_).toarray()
    np.testing.assert_allclose(codes.compute(), expected, atol=1e-10)
    model.sparse_output = True
    assert sparse.issparse(model.transform(data).blocks[0].compute())
    with pytest.raises(ValueError, match="X has 5 features, but the model was fitted with 12"):
        model.transform(data[:, :5])
    with pytest.raises(ValueError, match="mask, missing and groups are not supported"):
        model.transform(data, mask=X > 0)


def test_bad_data_is_named(client):
    bad = X.copy()
    bad[777, 3] = np.nan
    options = {**SETTINGS, "client": client, "init": X[:20]}
    with pytest.raises(ValueError, match=r"\(NaN\) at \(777, 3\)"):
        cluster.learn(da.from_array(bad, chunks=(60, 12)), 20, **options)
    with pytest.raises(
        ValueError, match=r"must agree in features and dtype, got 11 features .* 12 features"
    ):
        cluster.learn([X, X[:, :11]], 20, **options)
    data = da.from_array(X, chunks=(60, 12))
    with pytest.raises(ValueError, match="unknown sizes"):
        cluster.learn(data[data[:, 0] > 0], 20, **options)
    with pytest.raises(ValueError, match="two-dimensional"):
        cluster.learn(da.from_array(X[0]), 20, **options)
    with pytest.raises(ValueError, match="sample_weight cannot be used with data on a cluster"):
        cluster.learn([X], 20, sample_weight=np.ones(1200), **options)
    with pytest.raises(TypeError, match="a stream has no random access"):
        cluster.learn([[X[:5], X[5:]]], 20, **options)


def test_lost_workers_change_nothing(tmp_path):
    """The small form of `benchmarks/crashes.py`, which kills ten times. Its cluster has nannies."""
    data = da.from_array(X, chunks=(60, 12))
    kills, strikes = [], []
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as local, distributed.Client(local) as client:  # fmt: skip
        whole = cluster.learn(data, 20, client=client, max_epochs=2, **SETTINGS)

        def kill(state, record):
            if record.step in (3, 9):
                victims = list(client.run(os.getpid).values())

                def strike():
                    time.sleep(0.01)
                    os.kill(victims[0], signal.SIGKILL)
                    kills.append(record.step)

                strikes.append(threading.Thread(target=strike))
                strikes[-1].start()

        again = cluster.learn(data, 20, client=client, max_epochs=2, callbacks=[kill], **SETTINGS)
        for strike in strikes:
            strike.join()
    assert kills == [3, 9]
    np.testing.assert_array_equal(again.D, whole.D)
