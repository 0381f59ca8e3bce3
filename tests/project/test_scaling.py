"""The simulation of a cluster: what can be known of it without running it."""

import pytest

from benchmarks.scaling.simulate import Costs, Links, efficient_batch, throughput

FREE = Links(latency=0.0, bandwidth=1e18, per_task=0.0)
COSTS = Costs(50e-6, 5e-3, 5e-6, 10e-3, 1300.0, 10e6, 1e6)


def test_without_overhead_workers_add_up():
    costs = Costs(50e-6, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for workers in (1, 10, 1000):
        rate = throughput(costs, FREE, workers, 10_000)
        assert rate == pytest.approx(workers / 50e-6, rel=1e-6)


def test_nothing_is_faster_than_all_workers_together():
    for workers in (1, 3, 100):
        for batch in (512, 100_000):
            for staleness in (0, 1, 8):
                rate = throughput(COSTS, Links(), workers, batch, staleness=staleness)
                # What is under way at the beginning costs nothing but itself.
                assert rate <= 1.0001 * workers / COSTS.code


def test_one_synchronous_worker_takes_the_sum_of_its_parts():
    links = Links(latency=1e-3, bandwidth=1e9, per_task=1e-3)
    batch = 100
    parts = [
        1e-3 + COSTS.dictionary_bytes / 1e9,  # the dictionary
        1e-3,  # the task
        COSTS.prepare + batch * COSTS.code,
        1e-3 + batch * COSTS.sample_bytes / 1e9,  # the way back
        batch * COSTS.add + COSTS.sweep,
    ]
    assert throughput(COSTS, links, 1, batch) == pytest.approx(batch / sum(parts), rel=1e-6)


def test_staleness_and_larger_batches_help():
    rates = [throughput(COSTS, Links(), 10, 4096, staleness=s) for s in (0, 1, 4)]
    assert rates == sorted(rates)
    rates = [throughput(COSTS, Links(), 10, batch) for batch in (1024, 8192, 65_536)]
    assert rates == sorted(rates)
    assert efficient_batch(COSTS, Links(), 10, 4) <= efficient_batch(COSTS, Links(), 10, 0)
