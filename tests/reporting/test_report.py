"""Pages about results, models, checkpoints and estimators."""

import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from learning_problems import planted
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from smalto import (
    NMF,
    DictionaryLearning,
    Model,
    Result,
    SparseCCA,
    SparsePCA,
    State,
    learn,
    quality,
)
from smalto.coders import JointLasso, Lasso
from smalto.constraints import L2Ball
from smalto.learners import Online
from smalto.learning import Log
from smalto.reporting import Report, small_report, write_report
from smalto.reporting.atom_facts import nearest_atoms
from smalto.reporting.data_facts import code_samples, hash_of_array, some_samples
from smalto.reporting.facts import facts_of
from smalto.reporting.html import Html, element, join
from smalto.reporting.lines import line_path
from smalto.reporting.number_texts import (
    brief,
    compact,
    duration,
    in_bytes,
    log_ticks,
    percent,
    ticks,
)

OPTIONS = {"learner": Online(50), "random_state": 0}
HOSTILE = ["<script>alert(1)</script>", "\"'&quot;</td>", "]]><!--", "a" * 10_000]


class Tags(HTMLParser):
    """Collects the tags and the text of a page, and checks that tags close in order."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.open = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.text.append(text)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def read(path):
    tags = Tags(path.read_text(encoding="utf-8"))
    assert not tags.open
    return tags


@pytest.fixture(scope="module")
def data():
    return planted(n=600)[0]


@pytest.fixture(scope="module")
def result(data):
    return learn(data, 20, Lasso(0.1), validation=data[:50], max_epochs=3, **OPTIONS)


# --- pieces of HTML


def test_text_is_escaped_once_and_html_is_not():
    inner = element("b", "<&>\"'", title='"><script>')
    assert inner == '<b title="&quot;&gt;&lt;script&gt;">&lt;&amp;&gt;&quot;&#x27;</b>'
    assert element("p", inner, None, 3, hidden=True, id=None) == f"<p hidden>{inner}3</p>"
    assert (
        element("img", src="x", class_="y", data_v=1.5) == '<img src="x" class="y" data-v="1.5"/>'
    )
    assert isinstance(join("a", inner), Html)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (brief(0.0123456), "0.01235"),
        (brief(1234567), "1,234,567"),
        (brief(float("nan")), "–"),
        (brief(1.5e-9), "1.50e-09"),
        (compact(20_000), "20k"),
        (compact(2_500), "2500"),
        (compact(3e6), "3M"),
        (compact(1e-14), "1e-14"),
        (percent(0.1234), "12.3 %"),
        (percent(1.0), "100 %"),
        (percent(0.0), "0 %"),
        (duration(5.04), "5.0 s"),
        (duration(245), "4:05 min"),
        (duration(3599.7), "1:00:00 h"),
        (in_bytes(1_234_567), "1.23 MB"),
    ],
)
def test_numbers_as_text(text, wanted):
    assert text == wanted


def test_round_numbers_for_axes():
    assert ticks(0.0, 10.0) == [0, 2.5, 5, 7.5, 10]
    assert ticks(3.0, 3.0) == [3.0]
    assert log_ticks(0.3, 12.0) == [0.5, 1, 2, 5, 10]
    np.testing.assert_allclose(log_ticks(1e-15, 1e-3, 6), [1e-15, 1e-12, 1e-9, 1e-6, 1e-3])
    for low, high in [(1e-9, 1e9), (4.1, 4.2), (1, 1.0001)]:
        assert 1 <= len(log_ticks(low, high)) <= 7


def test_lines_have_the_extremes_of_what_they_leave_out():
    row = np.zeros(5000)
    row[1234], row[3210] = 1.0, -1.0
    path = line_path(row, 1, 40)
    numbers = [int(n) for n in re.findall(r"-?\d+", path)]
    y = np.cumsum([numbers[1], *numbers[3::2]])
    assert len(y) <= 80
    assert y.min() == 2
    assert y.max() == 38
    assert line_path(np.arange(6.0), 2).count("M") == 2


def test_nearest_atoms_by_definition():
    D = np.random.default_rng(0).standard_normal((30, 7))
    D[5], D[11] = -3 * D[4], 0.0
    nearest, cosine = nearest_atoms(D)
    for j in range(30):
        others = [0.0 if i == j or 11 in (i, j) else
                  abs(D[i] @ D[j]) / np.linalg.norm(D[i]) / np.linalg.norm(D[j])
                  for i in range(30)]  # fmt: skip
        assert cosine[j] == pytest.approx(max(others))
        assert others[nearest[j]] == pytest.approx(max(others))
    assert nearest[4] == 5


# --- samples


def test_the_quality_of_codes_by_definition(data, result):
    samples = some_samples(data, data.shape[1])
    coded = code_samples(samples, result.D, result.coder)
    from smalto import encode

    codes = encode(data, result.D, result.coder)
    after = codes @ result.D
    lost = ((data - after) ** 2).sum(axis=1)
    assert coded.n == len(data)
    assert coded.r2 == pytest.approx(1 - lost.sum() / ((data - data.mean(0)) ** 2).sum())
    assert coded.cost == pytest.approx((0.5 * lost + 0.1 * abs(codes).sum(axis=1)).mean())
    np.testing.assert_allclose(coded.uses, (codes != 0).mean(axis=0))
    assert coded.gaps.max() < 1e-6
    shares = lost / (data**2).sum(axis=1)
    assert [number for number, *_ in coded.worst] == np.argsort(-shares)[:6].tolist()
    assert [number for number, *_ in coded.best] == np.argsort(shares)[:6].tolist()
    for number, error, before, restored in coded.worst:
        assert error == pytest.approx(shares[number])
        np.testing.assert_allclose(before, data[number])
        np.testing.assert_allclose(restored, after[number])


def test_samples_with_missing_entries_zeros_and_of_sparse_arrays(data, result, tmp_path):
    holes = data.copy()
    holes[::3, 2] = np.nan
    holes[7] = 0.0
    coded = code_samples(some_samples(holes, data.shape[1]), result.D, result.coder)
    assert 0.5 < coded.r2 < 1
    assert np.isnan(coded.errors[7])
    page = result.report(tmp_path / "a.html", sparse.csr_array(np.where(abs(data) > 1, data, 0)))
    assert "Worst coded" in page.read_text()


def test_the_hash_is_that_of_the_bytes(data, tmp_path):
    whole = hashlib.sha256(f"{data.dtype.str} {data.shape}".encode() + data.tobytes())
    assert hash_of_array(data) == whole.hexdigest()
    assert hash_of_array(np.asfortranarray(data)) == whole.hexdigest()
    path = tmp_path / "x.npy"
    np.save(path, data)
    about = some_samples(path, data.shape[1]).about
    assert about["SHA-256 of the file"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert "SHA-256 of the array" in some_samples(data, data.shape[1]).about


def test_coders_of_groups_are_not_coded(data, tmp_path):
    groups = np.repeat(np.arange(300), 2)
    result = learn(data, 10, JointLasso(0.5), groups=groups, max_steps=3, random_state=0)
    text = result.report(tmp_path / "a.html", data).read_text()
    assert "JointLasso codes groups of samples" in text


# --- pages


LOOKS = {
    "pictures": {"patch_shape": (3, 4)},
    "lines": {},
    "channels": {"n_channels": 3},
    "features": {"names": [*HOSTILE, *map(str, range(8))]},
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("with_data", [True, False])
def test_a_page_is_whole_and_needs_nothing_else(result, data, tmp_path, look, with_data):
    path = result.report(
        tmp_path / "a.html", data if with_data else None, title=HOSTILE[0], **LOOKS[look]
    )
    page = read(path)
    assert list(tmp_path.iterdir()) == [path]
    assert len(page.all("script")) == 1
    assert not page.all("link")
    for _, attributes in page.tags:
        for name in ("src", "href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:"))
    assert not [one for one in page.all("meta") if one.get("http-equiv") == "refresh"]
    assert any("default-src 'none'" in one.get("content", "") for one in page.all("meta"))
    assert len([one for one in page.all("tr") if one.get("id", "").startswith("atom-")]) == 20
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    text = " ".join(page.text)
    for wanted in ("How it went", "Lasso(lam=0.1", "numba", "L2Ball", "held-out", "coherence",
                   "the number of passes over the data was reached", HOSTILE[0]):  # fmt: skip
        assert wanted in text
    assert ("Worst coded" in text) == with_data
    assert ("SHA-256" in text) == with_data
    if look == "features":
        assert text.count("a" * 10_000) == 0
        assert "a" * 40 in text
        assert HOSTILE[1] in text


@pytest.mark.parametrize("look", ["pictures", "lines", "features"])
def test_pages_of_1024_atoms_are_below_5_megabytes(tmp_path, look):
    rng = np.random.default_rng(0)
    D = rng.standard_normal((1024, 32 * 32 * 3))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    options = {
        "pictures": {"patch_shape": (32, 32, 3)},
        "lines": {"n_channels": 4},
        "features": {"names": [f"{i} {HOSTILE[3]}" for i in range(D.shape[1])]},
    }
    model = Model(D, Lasso(0.5), L2Ball(), {"use": rng.random(1024).tolist()})
    X = rng.standard_normal((40, D.shape[1]))
    path = model.report(tmp_path / "a.html", X, **options[look])
    assert path.stat().st_size < 5e6


def test_every_kind_of_thing_has_a_report(result, data, tmp_path):
    estimators = [
        DictionaryLearning(6, max_steps=4, random_state=0).fit(data),
        NMF(3, max_epochs=3, random_state=0).fit(abs(data)),
        SparsePCA(3, max_epochs=1, random_state=0).fit(data),
    ]
    for number, what in enumerate([result, result.state, Model.of(result.state), *estimators]):
        path = write_report(what, tmp_path / f"{number}.html", abs(data))
        assert "How it went" in path.read_text()
        assert "<b>" in small_report(what)
    for what, wrong in ((42, "int"), (data, "ndarray")):
        with pytest.raises(
            TypeError, match=f"fitted estimator .* or the log of a run, got {wrong}"
        ):
            write_report(what, tmp_path / "x.html")


@pytest.mark.parametrize("name", ["run.jsonl", "run.csv"])
def test_a_log_has_a_report(data, tmp_path, name):
    log = Log(tmp_path / name)
    learn(data, 6, Lasso(0.1), max_steps=4, callbacks=[log], random_state=0)
    for what in (log, log.path, str(log.path)):
        text = write_report(what, tmp_path / "a.html").read_text()
        assert "How it went" in text
        assert "Cost against time" in text
        assert name in text
        assert "Dictionary" not in text  # a log has no atoms
        assert "256 samples in" in small_report(what)
    with pytest.raises(ValueError, match="a log has no atoms to code samples with"):
        write_report(log, tmp_path / "b.html", data)
    log.path.write_text("42\n")
    with pytest.raises(ValueError, match="is not the log of a run"):
        write_report(log, tmp_path / "b.html")
    assert not (tmp_path / "b.html").exists()


def test_use_of_components_that_stand_in_another_order(data):
    model = SparsePCA(4, max_epochs=2, random_state=0).fit(data)
    facts = facts_of(model)
    energy = model.state_.energy()
    for component, value in zip(model.components_, facts.energy, strict=True):
        match = [
            j for j, atom in enumerate(model.state_.D) if np.allclose(abs(atom), abs(component))
        ]
        assert value == energy[match[0]]


def test_a_report_of_centered_data_codes_centered_samples(data, tmp_path):
    shifted = data + 50.0
    model = SparsePCA(8, max_epochs=3, random_state=0).fit(shifted)
    samples = some_samples(shifted, data.shape[1])
    facts = facts_of(model)
    coded = code_samples(samples, facts.D, facts.coder, facts.prepare)
    assert 0.2 < coded.r2 <= 1
    assert coded.errors.max() < 1.01


def test_a_model_keeps_its_history_and_its_patches(result, tmp_path):
    info = {"patch": [3, 4], "stopped": "seconds", "use": result.state.energy().tolist()}
    Model.of(result.state, info).save(tmp_path / "m.safetensors")
    model = Model.load(tmp_path / "m.safetensors")
    np.testing.assert_equal([vars(r) for r in model.history], [vars(r) for r in result.history])
    text = model.report(tmp_path / "m.html").read_text()
    assert "the time was up" in text
    assert "data:image/png" in text
    assert "data:image/png" in model._repr_html_()
    old = Model(result.D, result.coder, L2Ball())
    old.save(tmp_path / "old.safetensors")
    assert Model.load(tmp_path / "old.safetensors").history == []
    assert "How it went" not in old.report(tmp_path / "old.html").read_text()


def test_a_long_history_is_thinned(result):
    from dataclasses import replace

    from smalto.learning.memory.record import thinned

    first = result.history[-1]
    records = [
        replace(first, step=i + 1, replaced=i % 3, test_cost=None if i % 1000 else 1.0)
        for i in range(30_000)
    ]
    thin = thinned(records, 2000)
    assert 2000 <= len(thin) <= 2100
    assert thin[0].step == 1
    assert thin[-1].step == 30_000
    assert sum(r.replaced for r in thin) == sum(r.replaced for r in records)
    assert sum(r.test_cost is not None for r in thin) == 30
    assert thinned(records[:5], 2000) == records[:5]


def test_small_reports_have_no_scripts(result, data):
    for text in (small_report(result), result._repr_html_()):
        page = Tags(text)
        assert not page.open
        assert not page.all("script")
        assert "20 atoms of 12 features" in " ".join(page.text)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(data, columns=[*HOSTILE, *map(str, range(8))])
    model = DictionaryLearning(6, max_steps=4, random_state=0).fit(frame)
    page = Tags(small_report(model))
    assert HOSTILE[0] in " ".join(page.text)
    assert not page.all("script")


def test_diagrams_of_estimators_link_to_the_guide_and_show_what_was_learned(data):
    model = DictionaryLearning(6, max_steps=4, random_state=0)
    link = "https://github.com/smalto/smalto/blob/main/docs/guide/learning.md"
    assert link in model._repr_html_()
    assert "6 atoms of 12 features" not in model._repr_html_()
    model.fit(data)
    for text in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert link in text
        assert "6 atoms of 12 features" in text


@pytest.mark.parametrize("estimator", [DictionaryLearning, NMF, SparsePCA, SparseCCA])
def test_links_of_diagrams_have_one_anchor_and_lead_to_a_page(estimator):
    docs = Path(__file__).parents[2] / "docs" / "guide"
    text = make_pipeline(StandardScaler(), estimator(2))._repr_html_()
    links = [link for link in re.findall('href="([^"]*)"', text) if "/smalto/" in link]
    assert len({link.count("#") for link in links} - {0, 1}) == 0
    page, _, section = links[0].rpartition("/")[2].partition("#")
    titles = re.findall("^#+ (.*)$", (docs / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert section in ("", *(title.lower().replace(" ", "-") for title in titles))


def test_columns_of_a_frame_name_features_and_must_be_those_of_the_model(data, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(data, columns=[f"gene {i}" for i in range(12)])
    run = learn(data, 6, max_steps=4, callbacks=[Report(tmp_path / "a.html", X=frame)], **OPTIONS)
    for page in (tmp_path / "a.html", run.report(tmp_path / "b.html", frame)):
        assert "gene 3" in page.read_text()
    model = DictionaryLearning(6, max_steps=4, random_state=0).fit(frame)
    model.report(tmp_path / "c.html", frame)
    turned = frame[frame.columns[::-1]]
    for measure in (
        lambda: model.report(tmp_path / "d.html", turned),
        lambda: quality(model, turned),
    ):
        with pytest.raises(
            ValueError, match="column 0 of X is 'gene 11', that of the model is 'gene 0'"
        ):
            measure()
    assert quality(model, frame).cost == quality(model, data).cost


def test_what_is_no_run_is_said(tmp_path, data):
    with pytest.raises(NotFittedError, match="DictionaryLearning instance is not fitted yet"):
        DictionaryLearning(3).report(tmp_path / "a.html")
    with pytest.raises(ValueError, match=r"is no log: load it first, with smalto\.Model\.load"):
        write_report(tmp_path / "m.safetensors", tmp_path / "a.html")
    log = tmp_path / "run.jsonl"
    log.touch()
    assert "The log has no steps yet." in write_report(log, tmp_path / "a.html").read_text()


def test_runs_that_have_learned_nothing_or_of_one_atom(data, tmp_path):
    nothing = learn(data, 1, Lasso(0.1), max_steps=0, random_state=0)
    assert "1 atoms" in nothing.report(tmp_path / "a.html").read_text()
    same = learn(np.ones((50, 1)), 1, Lasso(0.1), max_steps=2, random_state=0)
    same.report(tmp_path / "b.html", np.ones((50, 1)))
    zero = Model(np.zeros((3, 4)), Lasso(0.1), L2Ball())
    assert "unused" in zero.report(tmp_path / "c.html", np.zeros((5, 4))).read_text()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"path": "report.txt"}, ValueError, r"must be a file \*.html, got 'report.txt'"),
        ({"path": "no/such/a.html"}, FileNotFoundError, "there is no folder"),
        ({"patch_shape": (3, 3)}, ValueError, r"\(3, 3\) has 9 values"),
        ({"names": ["a"]}, ValueError, "names must be one for each of 12 features, got 1"),
        ({"names": "abc"}, TypeError, "names must be a sequence of strings"),
        ({"title": 5}, TypeError, "title must be a text, got 5"),
        ({"patch_shape": 3}, ValueError, r"patch_shape must be \(height, width\).*, got 3"),
        ({"n_channels": 5}, ValueError, "n_channels must divide the 12 features, got 5"),
        ({"n_channels": 3, "patch_shape": (3, 4)}, ValueError, "at most one of"),
        ({"X": np.ones((5, 3))}, ValueError, "X has 3 features, but the atoms have 12"),
        ({"X": iter([np.ones((5, 12))])}, TypeError, "got a stream"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(
    result, tmp_path, monkeypatch, options, error, message
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        result.report(**{"path": "a.html", **options})
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_page(result, tmp_path, monkeypatch):
    from pathlib import Path

    path = result.report(tmp_path / "a.html")
    old = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        result.report(path, title="new")
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


# --- atoms by their features


def test_top_features_by_definition(result):
    pd = pytest.importorskip("pandas")
    names = [f"word{i}" for i in range(12)]
    table = result.top_features(names, n=3)
    assert list(table.columns) == ["atom", "rank", "feature", "weight"]
    assert len(table) == 60
    for (atom, rank), row in table.set_index(["atom", "rank"]).iterrows():
        order = np.argsort(-abs(result.D[atom]), kind="stable")
        assert row["feature"] == names[order[rank]]
        assert row["weight"] == result.D[atom, order[rank]]
    topics = result.topics(names, n=3)
    assert topics == [" ".join(some) for _, some in table.groupby("atom")["feature"]]
    assert isinstance(table, pd.DataFrame)
    assert result.top_features(n=100)["feature"].max() == 11


def test_a_number_given_as_names_is_told_where_to_go(result):
    pytest.importorskip("pandas")
    for method in (result.top_features, result.topics):
        with pytest.raises(TypeError, match=r"names must be .*, got 3: .* give n=3"):
            method(3)
        with pytest.raises(TypeError, match=r"names must be a sequence of strings, got True$"):
            method(True)


def test_features_of_weight_zero_are_left_out():
    D = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, -3.0, 2.0]])
    model = Model(D, Lasso(0.1), L2Ball())
    assert model.topics(["a", "b", "c"]) == ["b", "", "b c a"]
    assert model.topics() == ["1", "", "1 2 0"]
    assert model.topics(["a", "b", "c"], n=1) == ["b", "", "b"]


def test_names_that_were_seen_in_fit(data):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(data, columns=[f"gene {i}" for i in range(12)])
    model = NMF(3, max_epochs=3, random_state=0).fit(frame.abs())
    assert model.top_features(n=1)["feature"].str.startswith("gene ").all()
    assert model.topics(n=1)[0].startswith("gene ")


def test_results_made_by_hand_and_loaded_states(result, tmp_path):
    result.state.save(tmp_path / "s.safetensors")
    state = State.load(tmp_path / "s.safetensors")
    again = Result(state.D, state.coder, state, "interrupt")
    assert "interrupted" in again.report(tmp_path / "a.html").read_text()


def test_a_name_cannot_turn_the_numbers_beside_it():
    shown = element("td", "\u202egen\u2066e")
    assert shown == "<td>\ufffdgen\ufffde</td>"
    assert element("td", "é‖x‖") == "<td>é‖x‖</td>"


@pytest.mark.parametrize("coder", [Lasso(0.1), Lasso(mean_nonzeros=3)], ids=str)
def test_costs_of_different_penalties_are_said_to_be_so(tmp_path, coder):
    X = np.random.default_rng(0).standard_normal((400, 12))
    result = learn(X, 20, coder, learner=Online(50), max_steps=20, random_state=0)
    text = result.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert ("Cost, of a λ that changes, against time" in text) == (coder.lam is None)
    assert ("Cost against time" in text) == (coder.lam is not None)
