"""Runs that are stopped, killed or out of disk, and go on."""

import contextlib
import errno
import os
import random
import time

import numpy as np
import pytest
from children import child

from smalto import State, learn
from smalto.coders import Lasso
from smalto.constraints import ElasticNetBall
from smalto.learners import SGD, Batch, Continuation, Online, Replacement
from smalto.learning import Checkpoint
from smalto.sources import as_source

X = np.random.default_rng(0).standard_normal((1200, 10))

PROBLEMS = {
    "two-epochs": {"coder": Lasso(mean_nonzeros=3), "constraint": ElasticNetBall(density=0.5)},
    "stored codes": {"coder": Lasso(0.5), "learner": Online(64, memory="replace")},
    "replacement": {
        "coder": Lasso(0.5), "learner": Online(50, first_batch_size=20), "replacement": Replacement(correlation=0.7, every=1),
    },
    "continuation": {"coder": Lasso(0.5), "continuation": Continuation(0.1, 30)},
    "batch": {"coder": Lasso(0.5), "learner": Batch()},
    "sgd": {"coder": Lasso(0.5), "learner": SGD(2000.0, 4000.0, batch_size=60)},
}  # fmt: skip


class Stop(Exception):
    pass


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("chunked", [False, True])
def test_a_run_goes_on_bit_for_bit_from_its_file(name, chunked, tmp_path):
    np.save(tmp_path / "x.npy", X)

    def data():
        return as_source(tmp_path / "x.npy", buffer_rows=200) if chunked else X

    settings = {"n_atoms": 30, **PROBLEMS[name], "random_state": 0}
    whole = learn(data(), max_epochs=3, **settings)
    path = tmp_path / "run.safetensors"
    rng = random.Random(name)
    state, steps = None, 0
    while state is None or state.epoch < 3:
        stop = steps + rng.randint(1, max(2, len(whole.history) // 3))

        def fail(state, record, stop=stop):
            if record.step == stop:
                raise Stop

        saver = Checkpoint(path, every_steps=rng.randint(1, 2))
        first = settings if state is None else {"n_atoms": 30, "state": state}
        with contextlib.suppress(Stop):
            learn(data(), max_epochs=3, callbacks=[saver, fail], **first)
        if path.exists():
            state = State.load(path)
            steps = state.step
    # Only the time differs.
    with pytest.warns(UserWarning, match="max_epochs=3 counts from .* has 3 epochs already"):
        again = learn(data(), 30, max_epochs=3, state=state)
    np.testing.assert_array_equal(again.D, whole.D)
    np.testing.assert_array_equal(again.state.last_used, whole.state.last_used)
    assert again.state.coder == whole.state.coder
    assert again.state.constraint == whole.state.constraint
    assert again.state.mean_surrogate() == pytest.approx(
        whole.state.mean_surrogate(), rel=0, nan_ok=True
    )
    if name == "replacement":
        assert sum(record.replaced for record in whole.history) > 0


def test_settings_of_a_run_come_from_its_state():
    half = learn(X, 20, replacement=Replacement(every=3), max_steps=2, random_state=0).state
    assert half.replacement == Replacement(every=3)
    learn(X, 20, replacement=Replacement(every=3), state=half)
    with pytest.raises(
        ValueError, match=r"state was created with replacement=.*every=3.*every=4.* was given"
    ):
        learn(X, 20, replacement=Replacement(every=4), state=half)
    with pytest.raises(ValueError, match="state was created with continuation=None"):
        learn(X, 20, continuation=Continuation(), state=half)


def test_when_files_are_written_and_kept(tmp_path):
    path = tmp_path / "run.safetensors"
    seen = []

    def look(state, record):
        seen.append(State.load(path).step if path.exists() else None)

    saver = Checkpoint(path, every_steps=3, keep=3)
    learn(X, 20, learner=Online(100), callbacks=[saver, look], max_steps=8, random_state=0)
    assert seen == [None, None, 3, 3, 3, 6, 6, 6]
    kept = {file.name: State.load(file).step for file in tmp_path.iterdir()}
    assert kept == {"run.safetensors": 8, "run.safetensors.1": 6, "run.safetensors.2": 3}
    # The last state is written whatever ends the run, and written once.
    before = path.stat().st_mtime_ns
    saver = Checkpoint(path, every_seconds=0.0, keep=1)
    learn(X, 20, learner=Online(100), callbacks=[saver], max_steps=2, random_state=0)
    assert State.load(path).step == 2
    assert path.stat().st_mtime_ns > before
    # Another run with the same callback is another run.
    learn(X, 20, learner=Online(100), callbacks=[saver], max_steps=1, random_state=0)
    assert State.load(path).step == 1


def test_a_source_that_fails_leaves_its_state_in_the_file(tmp_path):
    def failing():
        yield from [X] * 2
        message = "the network is down"
        raise ConnectionError(message)

    path = tmp_path / "run.safetensors"
    options = {"learner": Online(100), "random_state": 0, "init": X[:20]}
    with pytest.raises(ConnectionError, match="the network is down") as caught:
        learn(failing(), 20, callbacks=[Checkpoint(path, every_steps=1000)], **options)
    assert State.load(path).step == caught.value.state.step == 24
    from smalto.sources import Stream

    again = learn(Stream([X] * 3), 20, state=State.load(path))
    np.testing.assert_array_equal(again.D, learn(Stream([X] * 3), 20, **options).D)


def test_bad_settings(tmp_path):
    with pytest.raises(ValueError, match="every_steps must be >= 1, got 0"):
        Checkpoint(tmp_path / "x", every_steps=0)
    with pytest.raises(ValueError, match="keep must be >= 1, got 0"):
        Checkpoint(tmp_path / "x", keep=0)
    with pytest.raises(ValueError, match="on_error must be 'raise' or 'warn', got 'ignore'"):
        Checkpoint(tmp_path / "x", on_error="ignore")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        Checkpoint(tmp_path / "no" / "x")
    with pytest.raises(IsADirectoryError, match="a checkpoint is a file"):
        Checkpoint(tmp_path)


RUN = """
import sys
import time
import numpy as np
from pathlib import Path
from smalto import State, learn
from smalto.coders import Lasso
from smalto.learners import Online, Replacement
from smalto.learning import Checkpoint

folder = Path(sys.argv[1])
path = folder / "run.safetensors"
saver = Checkpoint(path, every_steps=1)


def wait_to_be_killed(state, record):
    while sys.argv[2] == "wait" and record.step == 200:
        time.sleep(1)


options = dict(max_epochs=4, callbacks=[saver, wait_to_be_killed], n_threads=1)
if path.exists():
    result = learn(folder / "x.npy", 30, state=State.load(path), **options)
else:
    print("begun", flush=True)
    result = learn(
        folder / "x.npy", 30, Lasso(0.5), learner=Online(20, memory="replace"),
        replacement=Replacement(correlation=0.7, every=2), random_state=0, **options
    )
np.save(folder / "D.npy", result.D)
"""


def test_a_killed_run_ends_with_the_same_dictionary(tmp_path):
    """The small form of `benchmarks/crashes.py`, which kills twenty times."""
    np.save(tmp_path / "x.npy", X)
    options = {"learner": Online(20, memory="replace"), "random_state": 0, "max_epochs": 4}
    expected = learn(
        X, 30, Lasso(0.5), replacement=Replacement(correlation=0.7, every=2), **options
    ).D  # fmt: skip
    path, rng, kills = tmp_path / "run.safetensors", random.Random(0), 0
    while not (tmp_path / "D.npy").exists():
        before = State.load(path).step if path.exists() else 0
        with child(RUN, tmp_path, "wait" if kills < 2 else "finish") as process:
            if kills == 2:
                assert process.wait() == 0
                continue
            # Wait until it has got somewhere, then kill it at any moment of a step.
            while not path.exists() or State.load(path).step <= before + rng.randint(0, 5):
                assert process.poll() is None
                time.sleep(0.005)
            time.sleep(0.02 * rng.random())
            process.kill()
            kills += 1
        if path.exists():
            State.load(path)
    assert kills == 2
    np.testing.assert_array_equal(np.load(tmp_path / "D.npy"), expected)
    assert sorted(f.name for f in tmp_path.iterdir()) == [
        "D.npy", "run.safetensors", "run.safetensors.1", "x.npy",
    ]  # fmt: skip


def test_a_full_disk(tmp_path, monkeypatch):
    path, full, sync = tmp_path / "run.safetensors", [], os.fsync

    def no_room(handle):
        """What the system says when nothing more fits on the disk."""
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    monkeypatch.setattr(os, "fsync", no_room)
    options = {"learner": Online(64, memory="replace"), "random_state": 0, "max_epochs": 2}

    def fill(state, record):
        if record.step == 4:
            full.append("to the brim")

    expected = learn(X, 30, Lasso(0.5), **options)
    saver = Checkpoint(path, every_steps=2, keep=1)
    with pytest.raises(OSError, match="No space left") as caught:
        learn(X, 30, Lasso(0.5), callbacks=[saver, fill], **options)
    assert "the previous one is intact" in "".join(caught.value.__notes__)
    assert State.load(path).step == 4
    assert [file.name for file in tmp_path.iterdir()] == ["run.safetensors"]
    full.clear()
    again = learn(X, 30, state=State.load(path), max_epochs=2)
    np.testing.assert_array_equal(again.D, expected.D)
    # Who says so goes on learning without checkpoints.
    saver = Checkpoint(path, every_steps=2, keep=1, on_error="warn")
    with pytest.warns(RuntimeWarning, match=r"could not be written .*No space left"):
        result = learn(X, 30, Lasso(0.5), callbacks=[saver, fill], **options)
    np.testing.assert_array_equal(result.D, expected.D)
    assert State.load(path).step == 4


TWO_WRITERS = """
import sys
import numpy as np
from smalto import learn
from smalto.coders import Lasso
from smalto.learners import Online
from smalto.learning import Checkpoint
X = np.random.default_rng(0).standard_normal((400, 8))
for _ in range(10):
    saver = Checkpoint(sys.argv[1], every_steps=1, keep=3)
    learn(X, 6, Lasso(0.5), learner=Online(20), max_epochs=2, random_state=0, callbacks=[saver])
"""


def test_two_writers_of_one_checkpoint_do_not_remove_each_others_files(tmp_path):
    path = tmp_path / "run.safetensors"
    with child(TWO_WRITERS, path) as one, child(TWO_WRITERS, path) as other:
        while one.poll() is None or other.poll() is None:
            if path.exists():
                assert State.load(path).step > 0
            time.sleep(0.01)
        assert (one.returncode, other.returncode) == (0, 0)
    assert not list(tmp_path.glob(".*"))
