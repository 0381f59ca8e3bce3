"""Streams of batches, and reading ahead."""

import gc
import threading
import time

import numpy as np
import pytest
from scipy import sparse

from smalto import learn
from smalto.coders import Lasso
from smalto.sources import ReadAhead, Stream, as_source

X = np.random.default_rng(0).standard_normal((500, 6))


def cut(X, sizes):
    begin = 0
    for size in sizes:
        yield X[begin : begin + size]
        begin += size


def test_how_rows_are_cut_does_not_matter():
    for sizes in ([500], [1] * 500, [0, 499, 0, 1, 0], [100] * 5, [7, 93, 400]):
        stream = Stream(list(cut(X, sizes)))
        np.testing.assert_array_equal(stream.peek(30), X[:30])
        np.testing.assert_array_equal(stream.peek(130), X[:130])
        taken = [stream.take(64) for _ in range(8)]
        assert [len(rows) for rows in taken] == [64] * 7 + [52]
        np.testing.assert_array_equal(np.concatenate(taken), X)
        assert len(stream.take(64)) == 0
        assert stream.next_epoch()
        np.testing.assert_array_equal(stream.take(600), X)
        stream.close()


def slowly(rows, seconds):
    while True:
        time.sleep(seconds)
        yield np.random.default_rng(0).standard_normal((rows, 6))


def test_the_time_limit_of_a_run_includes_waiting_for_samples():
    _ = learn(X, 4, Lasso(0.5), max_steps=2)  # compile
    began = time.perf_counter()
    result = learn(slowly(5, 0.05), 4, Lasso(0.5), max_seconds=0.5, random_state=0)
    assert time.perf_counter() - began < 2.0
    assert result.stopped == "seconds"
    assert 0.5 <= result.state.seconds < 2.0
    assert 5 <= result.state.samples < 100


def test_patience():
    stream = Stream(slowly(5, 0.05))
    assert stream.peek(1000, 0.0).shape == (5, 6)
    assert 5 < len(stream.take(1000, 0.12)) < 30
    assert stream.take(10).shape == (10, 6)


def test_a_stream_of_empty_batches_only():
    with pytest.raises(ValueError, match="the stream has no samples: all of its batches are empty"):
        learn([np.ones((0, 6))] * 2, 3, Lasso(0.1))


def test_errors_of_a_stream_say_where_they_come_from():
    def breaks(epoch):
        yield X
        raise OSError(28)

    with pytest.raises(OSError, match="28") as caught:
        learn(Stream(breaks), 4, Lasso(0.5), max_steps=9)
    assert "It came from batch 1 of the stream." in caught.value.__notes__
    with pytest.raises(ZeroDivisionError) as caught:
        learn(Stream(lambda epoch: 1 // epoch), 4, Lasso(0.5))
    assert "It came from the function that makes epoch 0." in caught.value.__notes__


def test_sparse_batches():
    C = sparse.random_array((90, 5), density=0.3, format="csr", rng=0)
    stream = Stream([C[:40], C[40:]])
    np.testing.assert_array_equal(stream.take(60).toarray(), C[:60].toarray())
    assert stream.take(60).format == "csr"
    assert stream.take(60).shape == (0, 5)


def test_loaders_have_labels_and_lists_have_batches():
    labelled = [(X[:10], np.arange(10)), [X[10:20], np.arange(10)]]
    np.testing.assert_array_equal(Stream(labelled).take(20), X[:20])
    assert isinstance(as_source([X[:3], X[3:]]), Stream)
    assert isinstance(as_source(iter([X])), Stream)
    assert not isinstance(as_source(X.tolist()), Stream)


def test_an_iterator_ends_and_a_function_begins_again():
    stream = Stream(cut(X, [400, 100]))
    assert not stream.restarts
    assert len(stream.take(1000)) == 500
    assert not stream.next_epoch()
    calls = []

    def epochs(epoch):
        calls.append(epoch)
        return cut(X + epoch, [250, 250])

    stream = Stream(epochs)
    for epoch in range(3):
        np.testing.assert_array_equal(stream.take(1000), X + epoch)
        assert stream.next_epoch()
    assert calls == [0, 1, 2]


def test_seeking():
    stream = Stream(lambda epoch: cut(X + epoch, [90] * 6))
    stream.seek(3, 77)
    np.testing.assert_array_equal(stream.take(10), X[77:87] + 3)
    stream.seek(3, 87)  # is there already
    np.testing.assert_array_equal(stream.take(10), X[87:97] + 3)
    stream.seek(0, 0)
    np.testing.assert_array_equal(stream.take(10), X[:10])
    with pytest.raises(ValueError, match=r"ended after 500 samples of epoch 0, .* had seen 700"):
        stream.seek(0, 700)
    onward = Stream(cut(X, [90] * 6))  # an iterator goes on where it is ...
    onward.peek(10)
    onward.seek(2, 300)
    np.testing.assert_array_equal(onward.take(10), X[:10])
    again = Stream(cut(X, [90] * 6), from_start=True)  # ... unless it is said to start anew
    again.seek(0, 300)
    np.testing.assert_array_equal(again.take(10), X[300:310])


def test_nothing_is_lost_of_an_iterator_that_is_used_again():
    iterator = cut(X, [50] * 10)
    stream = Stream(iterator)
    stream.take(50)
    stream.close()
    np.testing.assert_array_equal(next(iterator), X[50:100])


def test_a_buffer_that_is_filled_again_does_no_harm():
    def reuse():
        buffer = np.empty((10, 6))
        for begin in range(0, 100, 10):
            buffer[:] = X[begin : begin + 10]
            yield buffer

    np.testing.assert_array_equal(Stream(reuse(), read_ahead=0).take(100), X[:100])


def test_bad_batches_are_named():
    with pytest.raises(ValueError, match=r"batch 1 .*from sample 3 on\) has 5 features, .* had 6"):
        Stream([X[:3], X[:3, :5]]).take(10)
    bad = X[:5].copy()
    bad[2, 4] = np.nan
    with pytest.raises(ValueError, match=r"the stream contains NaN .*\(NaN\) at \(102, 4\)"):
        Stream([X[:100], bad]).take(200)
    with pytest.raises(
        TypeError, match=r"batch 1 .* is dense float32, but the first was dense float64"
    ):
        Stream([X[:3], X[:3].astype(np.float32)]).take(10)
    with pytest.raises(TypeError, match="is sparse float64, but the first was dense"):
        Stream([X[:3], sparse.csr_array(X[:3])]).take(10)
    with pytest.raises(ValueError, match="two-dimensional"):
        Stream([X[0]]).take(1)
    with pytest.raises(ValueError, match="the stream has no samples"):
        _ = Stream(iter(())).n_features
    with pytest.raises(TypeError, match="batches must be iterable or a function of the epoch"):
        Stream(3)
    with pytest.raises(TypeError, match="must return an iterable, got 5"):
        Stream(lambda epoch: 5).take(1)


def reading_threads():
    return [t for t in threading.enumerate() if t.name == "smalto-read-ahead"]


def test_read_ahead_keeps_order_and_depth():
    made = []

    def items():
        for i in range(20):
            made.append(i)
            yield i

    with ReadAhead(items(), depth=3) as ahead:
        assert next(ahead) == 0
        time.sleep(0.1)
        assert len(made) <= 5
        assert list(ahead) == list(range(1, 20))
        assert list(ahead) == []
    assert reading_threads() == []


def test_the_error_of_an_iterator_comes_after_what_was_before_it():
    def items():
        yield 1
        yield 2
        message = "the disk is gone"
        raise OSError(message)

    ahead = ReadAhead(items(), depth=5)
    time.sleep(0.05)
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(OSError, match="the disk is gone"):
        next(ahead)
    ahead.close()
    assert reading_threads() == []


def test_threads_end_with_the_stream():
    stream = Stream([X[:50]] * 100)
    stream.take(60)
    assert len(reading_threads()) == 1
    stream.close()
    stream.close()
    gc.collect()
    assert reading_threads() == []
