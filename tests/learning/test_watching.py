"""What shows and records how a run goes: `Progress` and `Log`."""

import csv
import json
import os
import pickle
import sys

import numpy as np
import pytest
from learning_problems import planted

from smalto import NMF, learn
from smalto.coders import Lasso
from smalto.learners import Online
from smalto.learning import Log, Progress
from smalto.learning.callbacks import log as log_callback
from smalto.learning.callbacks import progress
from smalto.learning.memory.record import Record
from smalto.learning.stopping import Limits

OPTIONS = {"learner": Online(50), "random_state": 0}


def record(step=1, samples=50, seconds=1.0):
    return Record(step, 0, samples, seconds, 1.0, 1.0, None, 2.0, 0, 1.0, 0.1)


@pytest.mark.parametrize(
    ("limits", "n_rows", "share"),
    [
        (Limits.of(4, None, None), 100, 0.125),
        (Limits.of(4, 5, None), 100, 0.2),
        (Limits.of(4, 5, 2.0), 100, 0.5),
        (Limits.of(1, None, None), 10, 1.0),
        (Limits.of(None, None, 10.0), None, 0.1),
        (Limits.of(4, None, None), None, None),
    ],
)
def test_the_share_that_is_done_is_that_of_the_nearest_limit(limits, n_rows, share):
    assert limits.share(record(), n_rows) == share


def test_lines_where_there_is_no_terminal(capsys, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    shown = Progress(every_seconds=30)
    shown.begin(None, lambda r: r.samples / 1000)
    for step in range(1, 11):
        clock[0] += 10.0
        shown(None, record(step, 100 * step, float(step)))
    shown.close()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4  # every 30 seconds, and at the end
    assert lines[0].startswith("learning: 30 %, 1:10 left")
    assert lines[0].endswith("left, 300 samples, cost 1, 2.0 nonzeros, 100 samples/s")
    assert lines[-1].startswith("learning: 100 %, 0:00 left, 1,000 samples")


@pytest.mark.parametrize("has_bar", [False, True])
def test_the_time_left_is_that_of_the_steps_without_compiling(capsys, monkeypatch, has_bar):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(progress, "_has_bar", lambda: has_bar)
    shown = Progress(every_seconds=0)
    shown.begin(None, lambda r: r.step / 100)
    clock[0] = 500.0  # the first step compiles
    for step in range(1, 21):
        clock[0] += 3.0
        shown(None, record(step))
    shown.close()
    assert "20%|" in (last := capsys.readouterr().err.replace(" %,", "%|").rstrip())
    assert " 4:00 left" in last.replace("\n", "\r").split("\r")[-1]


def test_a_bar_in_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_has_bar", lambda: True)
    X, _ = planted(n=500)
    learn(X, 10, Lasso(0.1), max_epochs=4, callbacks=[Progress(label="work")], **OPTIONS)
    last = capsys.readouterr().err.rstrip().splitlines()[-1].split("\r")[-1]
    assert last.startswith("work 100%|")
    assert "left, 2,000 samples, cost" in last


@pytest.mark.skipif(os.name == "nt", reason="terminals")
@pytest.mark.parametrize("size", [(0, 0), (24, 0), (24, 120)], ids=str)
def test_a_bar_in_a_terminal_that_may_not_know_its_size(monkeypatch, size):
    import fcntl
    import struct
    import termios

    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        shown = Progress()
        shown.show(0.5, "half of it")
        shown.close()
        terminal.write("end")
        terminal.flush()
        text = b""
        while b"end" not in text:
            text += os.read(ours, 4096)
    assert b"learning  50%|" in text
    os.close(ours)


@pytest.mark.parametrize("has_bar", [False, True])
def test_no_time_is_left_when_a_run_has_ended_early(capsys, monkeypatch, has_bar):
    monkeypatch.setattr(progress, "_has_bar", lambda: has_bar)
    X, _ = planted(n=500)
    stop = [Progress(), lambda state, record: record.step == 4]
    learn(X, 10, Lasso(0.1), max_steps=40, callbacks=stop, **OPTIONS)
    last = capsys.readouterr().err.rstrip().splitlines()[-1].split("\r")[-1]
    assert "10 %, ended, " in last or ("10%|" in last and "| ended, " in last)
    assert "left" not in last


def test_nothing_is_known_of_the_end_of_a_stream(capsys):
    X, _ = planted(n=200)
    learn((X[i : i + 50] for i in range(0, 200, 50)), 10, Lasso(0.1), callbacks=[Progress()])
    assert capsys.readouterr().err.startswith("learning: 200 samples, cost")


def test_without_a_standard_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    shown = Progress(0)
    shown(None, record())
    shown.close()


def read(path):
    lines = path.read_text().splitlines()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in lines]
    return [{k: json.loads(v or "null") for k, v in row.items()} for row in csv.DictReader(lines)]


@pytest.mark.parametrize("kind", [".jsonl", ".csv"])
@pytest.mark.parametrize("together", [0.0, 1e9])
def test_a_log_has_the_history(tmp_path, kind, together, monkeypatch):
    monkeypatch.setattr(log_callback, "_TOGETHER", together)
    path = tmp_path / f"run{kind}"
    X, _ = planted(n=500)
    seen = []

    def look(state, record):
        seen.append(len(read(path)))

    log = pickle.loads(pickle.dumps(Log(path)))
    result = learn(
        X, 10, Lasso(0.1), validation=X[:50], max_epochs=2, callbacks=[log, look], **OPTIONS
    )
    if together == 0.0:
        assert seen == list(range(2, len(seen) + 2))  # each step is there when it is done
    else:
        assert seen == [1] * 20  # they wait
    rows = read(path)
    assert len(rows) == len(result.history)
    for row, entry in zip(rows, result.history, strict=True):
        for name, value in row.items():
            there = getattr(entry, name)
            assert value == there or (value is None and (there is None or np.isnan(there)))
    assert rows[-1]["test_cost"] is not None
    assert list(tmp_path.iterdir()) == [path]


def test_what_waits_is_written_when_a_run_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(log_callback, "_TOGETHER", 1e9)
    X, _ = planted(n=500)
    path = tmp_path / "run.jsonl"

    def fail(state, record):
        if record.step == 6:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        learn(X, 10, Lasso(0.1), max_epochs=2, callbacks=[Log(path), fail], **OPTIONS)
    assert [row["step"] for row in read(path)] == [1, 2, 3, 4, 5, 6]


def test_a_resumed_run_has_a_whole_log(tmp_path):
    path = tmp_path / "run.jsonl"
    X, _ = planted(n=500)
    first = learn(X, 10, Lasso(0.1), max_steps=7, callbacks=[Log(path)], **OPTIONS)
    path.write_text(path.read_text() + '{"step": 8}\n')  # a step after the last checkpoint
    learn(X, 10, Lasso(0.1), max_steps=12, state=first.state, callbacks=[Log(path)])
    assert [row["step"] for row in read(path)] == list(range(1, 13))


def test_logs_of_single_batches_and_of_nmf(tmp_path):
    X = np.abs(planted(n=500)[0])
    model = NMF(4, max_epochs=5, callbacks=[Log(tmp_path / "nmf.csv")], random_state=0).fit(X)
    assert len(read(tmp_path / "nmf.csv")) == len(model.history_)
    model = NMF(4, callbacks=[Log(tmp_path / "parts.csv")], random_state=0)
    for _ in range(3):
        model.partial_fit(X)
    assert [row["step"] for row in read(tmp_path / "parts.csv")] == [1, 2, 3]


def test_other_kinds_of_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"a log must be a file \*.jsonl or \*.csv, got run.txt"):
        Log(tmp_path / "run.txt")


def test_a_cost_that_was_measured_at_an_interruption_does_not_stop_a_run_early():
    X, _ = planted(n=500)
    options = {"validation": X[:50], "validate_every": 4}
    stop = {"callbacks": [lambda state, record: record.step == 7]}
    whole = learn(X, 10, Lasso(0.1), max_steps=12, **options, **OPTIONS)
    part = learn(X, 10, Lasso(0.1), max_steps=12, **options, **stop, **OPTIONS)
    assert part.history[-1].test_cost is not None
    again = learn(X, 10, Lasso(0.1), max_steps=12, state=part.state, **options)
    costs = [[(r.step, r.test_cost) for r in each.history] for each in (whole, again)]
    assert costs[0] == costs[1]
