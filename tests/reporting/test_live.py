"""Pages that are written while a run goes on, and runs for TensorBoard."""

import pickle
import sys
import threading
import time
import types

import numpy as np
import pytest
from learning_problems import planted
from sklearn.base import clone

from smalto import DictionaryLearning, SparsePCA, learn
from smalto.coders import Lasso
from smalto.learners import Online
from smalto.learning import Callback
from smalto.reporting import Report, TensorBoard, live
from smalto.reporting.number_texts import duration

OPTIONS = {"learner": Online(50), "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return planted(n=500)[0]


class Written:
    """Keeps what is written, in place of files."""

    def __init__(self, monkeypatch):
        self.pages = []
        monkeypatch.setattr(live, "write_text", lambda path, text: self.pages.append(text))

    @property
    def running(self):
        return ['http-equiv="refresh"' in page for page in self.pages]


@pytest.fixture
def written(monkeypatch):
    monkeypatch.setattr(live, "_SHARE", 1e9)  # how long pages take does not matter
    return Written(monkeypatch)


def status(page):
    return page.split('id="status">')[1].split("<")[0]


def test_a_page_at_the_beginning_after_each_step_and_at_the_end(data, written):
    report = Report("run.html", every_seconds=0)
    learn(data, 10, Lasso(0.1), max_epochs=2, callbacks=[report], **OPTIONS)
    assert written.running == [True] * 21 + [False]
    assert [status(page) for page in written.pages] == ["running"] * 21 + ["ended"]
    assert "10 steps" in written.pages[10]
    assert "<progress" in written.pages[10]
    assert 'value="0.5000"' in written.pages[10]
    assert "the number of passes over the data was reached" in written.pages[-1]


def test_the_time_left_counts_from_the_first_step(data, written, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: clock[0])
    report = Report("run.html", every_seconds=40)

    def tick(state, record):
        clock[0] += 500.0 if record.step == 1 else 3.0  # the first step compiles

    learn(data, 10, Lasso(0.1), max_epochs=10, callbacks=[tick, report], **OPTIONS)
    found = [page.split("About ")[1].split(" left")[0] for page in written.pages if "About" in page]
    # A page after steps 1, 15, 29, ... of 100, with 3 seconds for each step that is left.
    assert found == [duration(3.0 * (100 - step)) for step in range(15, 100, 14)]


def test_pages_come_at_intervals(data, written, monkeypatch):
    clock = iter(range(0, 100_000, 2))  # every look at it is two seconds later
    monkeypatch.setattr(live.time, "monotonic", lambda: float(next(clock)))
    learn(data, 10, Lasso(0.1), max_epochs=2, callbacks=[Report("run.html", 12)], **OPTIONS)
    assert 4 <= len(written.pages) <= 8
    assert 'http-equiv="refresh" content="12"' in written.pages[0]


def test_pages_that_take_long_come_less_often(data, written, monkeypatch):
    monkeypatch.setattr(live, "_SHARE", 1e-9)
    learn(data, 10, Lasso(0.1), max_epochs=2, callbacks=[Report("run.html", 0)], **OPTIONS)
    assert len(written.pages) == 2


def test_a_run_that_fails_says_so(data, written):
    def fail(state, record):
        if record.step == 4:
            raise ZeroDivisionError("<b>no</b>")

    with pytest.raises(ZeroDivisionError):
        learn(data, 10, Lasso(0.1), callbacks=[Report("run.html"), fail], **OPTIONS)
    assert written.running == [True, False]
    assert status(written.pages[-1]) == "failed"
    assert "The run has failed: ZeroDivisionError: &lt;b&gt;no&lt;/b&gt;" in written.pages[-1]


def test_a_source_that_fails_says_so(data, written):
    def batches(epoch):
        yield data[:100]
        if epoch == 1:
            raise OSError("the disk is gone")

    options = {"max_epochs": 3, "callbacks": [Report("run.html")], "random_state": 0}
    with pytest.raises(OSError, match="gone"):
        learn(batches, 10, Lasso(0.1), **options)
    assert status(written.pages[-1]) == "failed"
    assert "the disk is gone" in written.pages[-1]


@pytest.mark.parametrize("raises", [True, False])
def test_an_interrupted_run_says_so(data, written, raises, request):
    import signal

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))

    def interrupt(state, record):
        if record.step == 3:
            if raises:
                raise KeyboardInterrupt
            signal.raise_signal(signal.SIGINT)

    options = {"callbacks": [interrupt, Report("run.html")], **OPTIONS}
    if raises:
        with pytest.raises(KeyboardInterrupt):
            learn(data, 10, Lasso(0.1), **options)
    else:
        assert learn(data, 10, Lasso(0.1), **options).stopped == "interrupt"
    assert status(written.pages[-1]) == "interrupted"
    assert not written.running[-1]


def test_a_reader_never_sees_half_a_file(data, tmp_path, monkeypatch):
    monkeypatch.setattr(live, "_SHARE", 1e9)
    path, seen, over = tmp_path / "run.html", [], threading.Event()

    def read():
        while not over.is_set():
            if path.exists():
                seen.append(path.read_text(encoding="utf-8"))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        report = Report(path, 0, X=data[:50], patch_shape=(3, 4))
        learn(data, 10, Lasso(0.1), max_epochs=2, callbacks=[report], **OPTIONS)
    finally:
        over.set()
        reader.join()
    assert len(set(seen)) > 3
    assert all(page.startswith("<!doctype") and page.endswith("</html>\n") for page in seen)
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_does_not_end_the_run(data, tmp_path, monkeypatch):
    monkeypatch.setattr(live, "_SHARE", 1e9)
    count = []

    def write(path, text):
        count.append(text)
        if len(count) > 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(live, "write_text", write)
    with pytest.warns(RuntimeWarning, match=r"run.html could not be written: .*No space left"):
        result = learn(data, 10, Lasso(0.1), callbacks=[Report("run.html", 0)], **OPTIONS)
    assert result.stopped == "epochs"
    count.extend("xxx")
    with pytest.raises(OSError, match="No space left"):
        learn(data, 10, Lasso(0.1), callbacks=[Report("run.html", 0)], **OPTIONS)


def test_samples_are_coded_while_the_run_goes_on(data, written):
    learn(data, 10, Lasso(0.1), callbacks=[Report("run.html", X=data)], **OPTIONS)
    assert all("Worst coded" in page for page in written.pages)


def test_what_is_wrong_ends_the_run_before_it_begins(data, tmp_path):
    with pytest.raises(ValueError, match=r"must be a file \*.html"):
        Report("run.txt")
    with pytest.raises(ValueError, match="every_seconds must be >= 0"):
        Report("run.html", -1)
    steps = []
    for wrong in ({"patch_shape": (5, 5)}, {"X": np.ones((4, 3))}, {"names": ["a"]}):
        report = Report(tmp_path / "run.html", **wrong)
        with pytest.raises(ValueError, match=r"values|features"):
            learn(data, 10, Lasso(0.1), callbacks=[report, lambda s, r: steps.append(r)])
    assert not steps


def test_single_batches_and_copies(data, written):
    model = DictionaryLearning(6, callbacks=[Report("run.html", 0)], random_state=0)
    for _ in range(3):
        model.partial_fit(data[:100])
    assert len(written.pages) == 3
    assert all(written.running)
    clone(model).fit(data)
    pickle.loads(pickle.dumps(model)).partial_fit(data[:100])
    assert status(written.pages[-2]) == "ended"


def test_the_state_is_let_go(data, written):
    report = Report("run.html")
    learn(data, 10, Lasso(0.1), callbacks=[report], **OPTIONS)
    assert report._state is None


def test_callbacks_hear_why_a_run_has_ended(data):
    class Ends(Callback):
        def __init__(self):
            self.heard = []

        def __call__(self, state, record):
            self.heard.append("step")

        def finish(self, state):
            self.heard.append("finish")

        def end(self, stopped, error):
            self.heard.append((stopped, error))

        def close(self):
            self.heard.append("close")

    for limit, why in ((2, "steps"), (3, "callback")):
        ends, stop = Ends(), lambda state, record: record.step == 2
        learn(data, 10, Lasso(0.1), max_steps=limit, callbacks=[ends, stop][: limit - 1], **OPTIONS)
        assert ends.heard == ["step", "step", "finish", (why, None), "close"]
    ends = Ends()
    with pytest.raises(ZeroDivisionError) as caught:
        learn(data, 10, Lasso(0.1), callbacks=[ends, lambda state, record: 1 / 0], **OPTIONS)
    assert ends.heard == ["step", ("error", caught.value), "close"]


# --- TensorBoard


class Writer:
    """What TensorBoard's writers do, as far as it is needed."""

    def __init__(self, folder=None):
        self.folder, self.scalars, self.histograms, self.images = folder, [], [], []
        self.flushed = self.closed = False

    def add_scalar(self, tag, value, step):
        assert isinstance(value, int | float)
        self.scalars.append((tag, value, step))

    def add_histogram(self, tag, values, step):
        self.histograms.append((tag, values, step))

    def add_image(self, tag, pixels, step, dataformats):
        assert dataformats == "HWC"
        assert pixels.dtype == np.uint8
        self.images.append((tag, pixels.shape, step))

    def flush(self):
        self.flushed = True

    def close(self):
        self.closed = True


def test_a_run_for_tensorboard(data):
    writer = Writer()
    board = TensorBoard("runs", 4, patch_shape=(3, 4), writer=writer)
    result = learn(
        data, 9, Lasso(0.1), max_steps=10, validation=data[:50], callbacks=[board], **OPTIONS
    )
    costs = [(value, step) for tag, value, step in writer.scalars if tag == "cost/batch"]
    assert costs == [(r.batch_cost, r.step) for r in result.history if r.step]
    held_out = {step: value for tag, value, step in writer.scalars if tag == "cost/held-out"}
    assert held_out == {r.step: r.test_cost for r in result.history if r.test_cost is not None}
    assert 0 in held_out
    assert 10 in held_out
    assert [step for *_, step in writer.histograms] == [4, 8, 10]
    assert writer.histograms[-1][1].sum() == pytest.approx(1.0)
    assert [step for *_, step in writer.images] == [4, 8, 10]
    assert writer.flushed
    assert not writer.closed


def test_the_writer_of_an_installed_package(data, monkeypatch):
    made = []
    module = types.ModuleType("tensorboardX")
    module.SummaryWriter = lambda folder: made.append(Writer(folder)) or made[-1]
    monkeypatch.setitem(sys.modules, "tensorboardX", module)
    board = pickle.loads(pickle.dumps(TensorBoard("some/runs")))
    learn(data, 9, Lasso(0.1), max_steps=3, callbacks=[board], **OPTIONS)
    (writer,) = made
    assert writer.folder == "some/runs"
    assert writer.closed
    assert len(writer.histograms) == 1
    assert not writer.images


def test_without_tensorboard(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'pip install "smalto\[tensorboard\]"'):
        TensorBoard("runs")


def test_a_wrong_shape_ends_the_run_before_it_begins(data):
    board = TensorBoard("runs", patch_shape=(5, 5), writer=Writer())
    with pytest.raises(ValueError, match="25 values"):
        learn(data, 9, Lasso(0.1), callbacks=[board])


def test_a_file_that_tensorboard_reads(data, tmp_path):
    pytest.importorskip("tensorboardX")
    board = TensorBoard(tmp_path / "runs", 2, patch_shape=(3, 4))
    learn(data, 9, Lasso(0.1), max_steps=4, callbacks=[board], **OPTIONS)
    (file,) = (tmp_path / "runs").iterdir()
    content = file.read_bytes()
    for tag in (b"cost/batch", b"atoms/use", b"atoms/mosaic", b"PNG"):
        assert tag in content


def test_writing_is_not_on_the_clock(data, tmp_path, monkeypatch):
    slow = live.write_text
    monkeypatch.setattr(live, "write_text", lambda *args: (time.sleep(0.05), slow(*args)))
    monkeypatch.setattr(live, "_SHARE", 1e9)
    report = Report(tmp_path / "run.html", 0)
    result = learn(data, 10, Lasso(0.1), max_steps=10, callbacks=[report], **OPTIONS)
    assert result.state.seconds < 0.5


def test_samples_of_sparse_pca_are_centered(data, tmp_path, monkeypatch):
    found = []

    def spy(*arguments):
        found.append(live_code_samples(*arguments))
        return found[-1]

    live_code_samples = live.code_samples
    monkeypatch.setattr(live, "code_samples", spy)
    X = data + 100.0
    report = Report(tmp_path / "run.html", X=X)
    SparsePCA(4, callbacks=[report], max_epochs=5, random_state=0).fit(X)
    assert found[-1].r2 > 0.1
    learn(data, 4, Lasso(0.1), callbacks=[report], max_steps=2, random_state=0)  # nothing is left
    assert found[-1].r2 < 0.0
