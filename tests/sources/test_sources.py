"""Sources, the order of samples, and the thread pool."""

import os
import subprocess
import threading
import time

import numpy as np
import pytest
import threadpoolctl
from children import child
from scipy import sparse

from smalto.sources import Order, as_source
from smalto.threads import resolve_threads, run_tasks, single_threaded_blas


@pytest.mark.parametrize("n", [1, 2, 3, 5, 16, 17, 1000, 4097])
def test_order_is_a_permutation_in_any_pieces(n):
    order = Order(n, seed=3)
    whole = order.take(0, 0, n)
    assert sorted(whole.tolist()) == list(range(n))
    pieces = [order.take(0, a, a + 7) for a in range(0, n, 7)]
    np.testing.assert_array_equal(np.concatenate(pieces), whole)


def test_order_changes_with_epoch_and_seed_only():
    order = Order(1000, seed=3)
    assert np.array_equal(order.take(4, 0, 1000), Order(1000, seed=3).take(4, 0, 1000))
    for other in (order.take(5, 0, 1000), Order(1000, seed=4).take(4, 0, 1000)):
        assert np.mean(order.take(4, 0, 1000) == other) < 0.02


def test_order_is_well_mixed():
    n = 10_000
    taken = np.concatenate([Order(n, seed).take(0, 0, n) for seed in range(10)]).astype(float)
    places = np.tile(np.arange(n), 10)
    assert abs(np.corrcoef(taken, places)[0, 1]) < 0.02
    # Neighbours do not stay neighbours, and each first tenth is spread over everything.
    assert np.mean(np.abs(np.diff(taken)) < 10) < 0.01
    histogram = np.histogram(taken[places < n / 10], bins=10, range=(0, n))[0]
    assert histogram.min() > 0.85 * n / 10
    assert histogram.max() < 1.15 * n / 10


def test_huge_orders_take_no_memory():
    numbers = Order(10**15, 0).take(0, 10**14, 10**14 + 5)
    assert len(set(numbers.tolist())) == 5
    assert numbers.min() >= 0
    assert numbers.max() < 10**15


def test_rows_come_in_the_dtype_of_the_computation(tmp_path):
    X = np.arange(20).reshape(5, 4)
    assert as_source(X).rows(np.array([3, 1])).dtype == np.float64
    assert as_source(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_array_equal(as_source(X).rows(np.array([3, 1])), X[[3, 1]])
    rows = as_source(sparse.csr_array(X)).rows(np.array([3, 1]))
    np.testing.assert_array_equal(rows.toarray(), X[[3, 1]])
    mapped = np.memmap(tmp_path / "x", dtype=np.int16, mode="w+", shape=(5, 4))
    mapped[:] = X
    np.testing.assert_array_equal(as_source(mapped).rows(np.array([4])), X[[4]])


def test_nan_in_a_memory_map_is_found_when_read(tmp_path):
    mapped = np.memmap(tmp_path / "x", dtype=np.float64, mode="w+", shape=(50, 4))
    mapped[31, 2] = np.nan
    source = as_source(mapped)
    source.rows(np.array([1, 2]))
    with pytest.raises(ValueError, match=r"1 such value, the first \(NaN\) at \(31, 2\)"):
        source.rows(np.array([40, 31, 3]))


def test_every_task_runs_once():
    for n_threads in (1, 2, 5):
        done = np.zeros(100, int)

        def task(i, done=done):
            done[i] += 1

        run_tasks(task, 100, n_threads)
        assert np.all(done == 1)
        run_tasks(task, 0, n_threads)
        assert np.all(done == 1)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_error_in_a_task_is_raised_and_ends_the_rest(n_threads):
    started, failing = [], threading.Event()

    def task(i):
        started.append(i)
        if i == 5:
            failing.set()
            message = "five"
            raise RuntimeError(message)
        if i > 5:  # those of the other threads
            failing.wait()
            time.sleep(0.01)

    with pytest.raises(RuntimeError, match="five"):
        run_tasks(task, 1000, n_threads)
    assert len(started) < 100


def test_blas_gets_its_threads_back_when_calls_overlap():
    with single_threaded_blas():  # loads what it limits
        pools = threadpoolctl.threadpool_info()
    # Other packages may have brought a BLAS of their own, which nothing here calls.
    own = [p["filepath"] for p in pools if p["user_api"] == "blas" and p["num_threads"] == 1]
    assert own

    def threads():
        return [p["num_threads"] for p in threadpoolctl.threadpool_info() if p["filepath"] in own]

    before = threads()
    inside = threading.Barrier(3, timeout=600)

    def work(pause):
        with single_threaded_blas():
            inside.wait()
            time.sleep(pause)

    workers = [threading.Thread(target=work, args=(pause,)) for pause in (0.05, 0.0, 0.02)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert threads() == before
    with single_threaded_blas():
        assert all(number == 1 for number in threads())


def test_number_of_threads():
    assert resolve_threads(None) >= 1
    assert resolve_threads(np.int64(2)) == 2
    for wrong in (0, -1):
        with pytest.raises(ValueError, match=f"n_threads must be >= 1, got {wrong}"):
            resolve_threads(wrong)
    with pytest.raises(TypeError, match=r"n_threads must be an integer, got 1.5"):
        resolve_threads(1.5)


LATE = """
import threadpoolctl
from smalto import threads

with threads.single_threaded_blas():
    import scipy.linalg
    pools = [p for p in threadpoolctl.threadpool_info() if p["user_api"] == "blas"]
    print(len(pools), max(pool["num_threads"] for pool in pools))
"""


def test_the_blas_of_scipy_is_limited_before_it_is_used():
    with child(LATE, seconds=120, stdout=subprocess.PIPE, text=True) as process:
        pools, most = map(int, process.communicate()[0].split())
    assert pools >= 1
    assert most == 1


FORKS = """
import os, threading
from smalto import threads

stop = threading.Event()

def busy():
    while not stop.is_set():
        with threads.single_threaded_blas():
            pass

other = threading.Thread(target=busy)
other.start()
for _ in range(50):
    child = os.fork()
    if child == 0:
        with threads.single_threaded_blas():
            os._exit(0)
    os.waitpid(child, 0)
stop.set()
other.join()
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_while_another_thread_is_at_work_does_not_wait_for_it():
    with child("import warnings\nwarnings.simplefilter('ignore')\n" + FORKS, seconds=120,
               stdout=subprocess.PIPE, text=True) as process:  # fmt: skip
        assert process.communicate()[0] == "done\n"
