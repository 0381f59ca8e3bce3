"""Learning from any source: the same dictionary, the same errors, and nothing left behind."""

import contextlib
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy import sparse
from stored_samples import MAKERS, X

from smalto import DictionaryLearning, encode, learn
from smalto.coders import Lasso
from smalto.learners import Batch, Online
from smalto.learning import OneByOne
from smalto.sources import ChunkedSource, Order, Stream, as_source

SETTINGS = {"coder": Lasso(0.5), "learner": Online(64), "random_state": 3}
FIRST = np.random.default_rng(1).standard_normal((10, X.shape[1])).astype(np.float32)


def dictionary(source, **options):
    return learn(source, 10, **{**SETTINGS, "max_epochs": 2, **options}).D


@pytest.mark.parametrize("make", MAKERS)
def test_every_source_gives_the_dictionary_of_the_array(make, tmp_path):
    np.testing.assert_array_equal(dictionary(make(tmp_path)), dictionary(X))


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("learner", [Online(64), Batch(), Online(50, memory="replace")])
def test_chunk_by_chunk_the_order_is_that_of_the_chunks_alone(make, learner, tmp_path):
    source = as_source(make(tmp_path), buffer_rows=130)
    if not isinstance(source, ChunkedSource):
        pytest.skip("is read as a whole")
    inside = ChunkedSource(lambda a, b: X[a:b], X.shape, X.dtype, source._starts, buffer_rows=130)
    assert inside._per_buffer == source._per_buffer < len(source._starts) - 1
    expected = dictionary(inside, learner=learner)
    np.testing.assert_array_equal(dictionary(source, learner=learner), expected)


@pytest.mark.parametrize("sizes", [[503], [1] * 503, [100] * 6, [7, 200, 296]])
def test_a_stream_in_the_same_order_gives_the_same_dictionary(sizes):
    expected = dictionary(X, init=FIRST)

    def epochs(epoch):
        shuffled = X[Order(len(X), SETTINGS["random_state"]).take(epoch, 0, len(X))]
        return np.split(shuffled, np.cumsum(sizes)[:-1])

    np.testing.assert_array_equal(dictionary(Stream(epochs), init=FIRST), expected)
    one = [batch for epoch in (0,) for batch in epochs(epoch)]
    expected = dictionary(X, init=FIRST, max_epochs=1)
    for source in (iter(one), one, (batch for batch in one)):
        np.testing.assert_array_equal(dictionary(source, init=FIRST, max_epochs=1), expected)


def test_sparse_streams():
    C = sparse.random_array((300, 12), density=0.4, format="csr", rng=0)
    first = np.random.default_rng(0).standard_normal((8, 12))
    options = {"init": first, "max_epochs": 1, "coder": Lasso(0.1), "random_state": 0}
    shuffled = C[Order(300, 0).take(0, 0, 300)]
    expected = learn(C, 8, learner=Online(64), **options).D
    got = learn(iter([shuffled[:100], shuffled[100:]]), 8, learner=Online(64), **options).D
    np.testing.assert_array_equal(got, expected)


def cut(X, size=50):
    yield from (X[a : a + size] for a in range(0, len(X), size))


def test_an_iterator_ends_the_run():
    result = learn(cut(X), 10, max_epochs=None, max_steps=1000, **SETTINGS)
    assert (result.stopped, result.state.epoch, result.state.samples) == ("source", 1, len(X))
    assert learn(cut(X), 10, **SETTINGS).stopped == "epochs"
    with pytest.warns(UserWarning, match="max_epochs=3 was requested, .* read only once"):
        result = learn(cut(X), 10, max_epochs=3, **SETTINGS)
    assert (result.stopped, result.state.epoch) == ("source", 1)
    # A list begins again, and one whose second reading is empty does not go on for ever.
    assert learn(list(cut(X)), 10, max_epochs=3, **SETTINGS).state.samples == 3 * len(X)

    class Once:
        def __init__(self):
            self.batches = cut(X)

        def __iter__(self):
            return self.batches

    assert learn(Once(), 10, max_steps=1000, **SETTINGS).stopped == "source"


LONG = np.tile(X, (6, 1))  # a run begins by looking at 2048 samples


def test_a_run_on_an_iterator_goes_on_where_it_stopped():
    whole = learn(cut(LONG), 10, **SETTINGS)
    stream = Stream(cut(LONG))
    half = learn(stream, 10, max_steps=3, **SETTINGS)
    again = learn(stream, 10, state=half.state)
    np.testing.assert_array_equal(again.D, whole.D)
    for source in (Stream(cut(LONG), from_start=True), list(cut(LONG)), lambda epoch: cut(LONG)):
        anew = learn(source, 10, state=half.state)
        np.testing.assert_array_equal(anew.D, whole.D)
    batches = cut(LONG, 64)
    half = learn(batches, 10, max_steps=40, **SETTINGS)
    again = learn(batches, 10, state=half.state)  # nothing was read ahead of an iterator
    np.testing.assert_array_equal(again.D, whole.D)


def test_bad_data_in_the_middle_is_named_and_the_state_is_whole(tmp_path):
    bad = LONG.copy()
    bad[2431, 2] = np.nan
    np.save(tmp_path / "bad.npy", bad)
    with pytest.raises(ValueError, match=r"\(NaN\) at \(2431, 2\)") as caught:
        learn(cut(bad), 10, **SETTINGS)
    state = caught.value.state
    assert (state.step, state.samples) == (37, 64 * 37)
    good = learn(Stream(cut(LONG), from_start=True), 10, state=state)
    np.testing.assert_array_equal(good.D, learn(cut(LONG), 10, **SETTINGS).D)
    source = as_source(tmp_path / "bad.npy", buffer_rows=60)
    with pytest.raises(ValueError, match=r"\(NaN\) at \(2431, 2\)") as caught:
        learn(source, 10, **SETTINGS)
    # With holes allowed it is no error, whatever it is read from; infinity still is.
    expected = dictionary(bad, missing="nan")
    np.testing.assert_array_equal(dictionary(tmp_path / "bad.npy", missing="nan"), expected)
    holes = np.isnan(bad)
    np.testing.assert_array_equal(dictionary(str(tmp_path / "bad.npy"), mask=holes), expected)
    learn(cut(bad), 10, missing="nan", **SETTINGS)
    bad[7, 1] = np.inf
    np.save(tmp_path / "bad.npy", bad)
    with pytest.raises(ValueError, match=r"\(infinity\) at \(7, 1\)"):
        dictionary(tmp_path / "bad.npy", missing="nan")


def test_what_an_iterator_raises_reaches_the_user():
    class Gone(Exception):
        pass

    def failing():
        yield from cut(LONG)
        raise Gone

    for source in (failing(), lambda epoch: failing(), Stream(failing(), read_ahead=3)):
        with pytest.raises(Gone) as caught:
            learn(source, 10, **SETTINGS)
        assert caught.value.state.step == len(LONG) // 64
        notes = " ".join(caught.value.__notes__)
        assert "of the stream" in notes
        assert "step 47" in notes
    assert no_threads()


def no_threads():
    return not [t for t in threading.enumerate() if t.name == "smalto-read-ahead"]


def test_threads_end_with_the_run(tmp_path):
    source = as_source(MAKERS[0](tmp_path), buffer_rows=60)
    for callback in (lambda s, r: True, lambda s, r: 1 / 0):
        with contextlib.suppress(ZeroDivisionError):
            learn(source, 10, callbacks=[callback], **SETTINGS)
        assert no_threads()
        with contextlib.suppress(ZeroDivisionError):
            learn(Stream(list(cut(X))), 10, callbacks=[callback], **SETTINGS)
        assert no_threads()


def test_an_interpreter_ends_although_a_stream_hangs():
    program = """
import numpy as np, threading
from smalto import learn
from smalto.sources import Stream
X = np.random.default_rng(0).standard_normal((3000, 5))
def hanging(epoch):
    yield X
    threading.Event().wait()
print(learn(Stream(hanging), 6, max_steps=2, random_state=0).stopped)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "steps\n", "")


def test_what_a_stream_cannot_do_is_said():
    with pytest.raises(ValueError, match="Batch draws all samples at each step"):
        learn(cut(X), 10, learner=Batch())
    with pytest.raises(ValueError, match="memory='replace' needs a fixed data set"):
        learn(cut(X), 10, learner=Online(memory="replace"))
    for option in ("mask", "sample_weight", "groups"):
        with pytest.raises(ValueError, match=f"{option} needs data of known length"):
            learn(cut(X), 10, **{option: np.ones(len(X))})
    state = learn(X, 10, **SETTINGS).state
    with pytest.raises(ValueError, match="created from 503 samples, but this data is a stream"):
        learn(cut(X), 10, state=state)


def test_one_by_one():
    rows = X[:400].astype(np.float64)
    model = OneByOne(10, Lasso(0.5), learner=Online(64), init=FIRST, random_state=0)
    with pytest.raises(ValueError, match="nothing has been learned yet"):
        model.encode_one(rows[0])
    records = [model.learn_one(row) for row in rows]
    assert [i for i, record in enumerate(records) if record] == list(range(63, 400, 64))
    assert model.flush().samples == 400
    assert model.flush() is None
    expected = learn(iter([rows]), 10, Lasso(0.5), learner=Online(64), init=FIRST, random_state=0)
    np.testing.assert_array_equal(model.state.D, expected.D)
    code = encode(rows[:1], expected.D, Lasso(0.5))
    assert model.encode_one(rows[0]) == dict(zip(code.indices, code.data, strict=True))
    # Mappings are taken by the names of the features, and a state goes on.
    named = OneByOne(10, Lasso(0.5), learner=Online(64), init=FIRST, random_state=0)
    for row in rows[:192]:
        named.learn_one(dict(zip("fedcba", row[::-1], strict=True)))
    again = OneByOne(10, state=named.state)
    for row in rows[192:]:
        again.learn_one(row)
    again.flush()
    np.testing.assert_array_equal(again.state.D, expected.D)
    for bad, message in [
        ({"a": 1.0}, "has the features"), (rows[:2], "must be a vector"), (rows[0, :3], "3 features"),
        (np.full(6, np.nan), "finite"), ("text", "vector of finite numbers"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            named.learn_one(bad)


def test_the_estimator_learns_from_files_and_streams(tmp_path):
    settings = {"coder": Lasso(0.5), "learner": Online(64), "random_state": 3}
    expected = DictionaryLearning(10, **settings).fit(X).components_
    for make in MAKERS[:4]:
        model = DictionaryLearning(10, **settings).fit(make(tmp_path))
        np.testing.assert_array_equal(model.components_, expected)
        assert model.n_features_in_ == 6
        assert model.transform(X[:5]).shape == (5, 10)
    model = DictionaryLearning(10, **settings).fit(cut(X))
    assert (model.n_features_in_, model.state_.samples) == (6, len(X))
    with pytest.raises(ValueError, match="must end in one of"):
        DictionaryLearning(10).fit("no such thing")
