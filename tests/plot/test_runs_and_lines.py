"""Curves of runs from everything that has a history, atoms as lines, weights along chromosomes."""

import numpy as np
import pytest
from learning_problems import planted

from smalto import DictionaryLearning, Model, learn
from smalto.coders import Lasso
from smalto.learners import Online
from smalto.learning import Log
from smalto.plot import (
    along_chromosomes,
    atom_lines,
    cost_curve,
    dictionary_mosaic,
    use_curve,
)

pytest.importorskip("matplotlib.figure")


def points(ax):
    return [np.asarray(line.get_xydata()) for line in ax.get_lines()]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A result with its logs, and an estimator."""
    folder = tmp_path_factory.mktemp("logs")
    X, _ = planted(n=500)
    logs = [Log(folder / "run.jsonl"), Log(folder / "run.csv")]
    options = {"learner": Online(50), "random_state": 0}
    result = learn(X, 10, Lasso(0.1), validation=X[:50], max_epochs=2, callbacks=logs, **options)
    model = DictionaryLearning(10, coder=Lasso(0.1), max_epochs=2, **options).fit(X)
    return result, logs, model


def test_every_history_gives_the_same_curve(run):
    result, logs, _ = run
    wanted = points(cost_curve(result))[0]
    assert len(wanted) > 5
    things = [result.history, result.state, Model.of(result.state), *logs, *(l.path for l in logs)]
    for thing in [*things, str(logs[0].path)]:
        np.testing.assert_allclose(points(cost_curve(thing))[0], wanted)
    several = points(cost_curve({"a": result, "b": logs[1]}))
    assert len(several) == 2
    np.testing.assert_allclose(several[0], several[1])
    assert len(points(cost_curve([result, str(logs[0].path)]))) == 2


def test_the_curve_of_an_estimator(run):
    *_, model = run
    costs = points(cost_curve(model, "step"))[0]
    np.testing.assert_allclose(costs[:, 1], [r.batch_cost for r in model.history_])


def test_a_log_of_a_run_that_goes_on(run, tmp_path):
    whole = run[1][0].path.read_text()
    part = tmp_path / "run.jsonl"
    part.write_text(whole[:-30])  # the last line is being written
    assert len(points(cost_curve(part, y="batch_cost"))[0]) == whole.count("\n") - 2
    part.write_text('{"step": 1}\n')
    with pytest.raises(ValueError, match=r"run.jsonl is not the log of a run"):
        cost_curve(part)
    with pytest.raises(TypeError, match="list of records, got int"):
        cost_curve(3)


def test_the_curve_of_a_file(run, tmp_path):
    result, *_ = run
    wanted = points(cost_curve(result))[0]
    result.state.save(tmp_path / "state.safetensors")
    Model.of(result.state).save(tmp_path / "model.safetensors")
    for name in ("state", "model"):
        found = points(cost_curve(tmp_path / f"{name}.safetensors"))[0]
        np.testing.assert_allclose(found, wanted)
    np.save(tmp_path / "x.npy", np.eye(2))
    with pytest.raises(ValueError, match=r"x.npy is not the log of a run, as Log writes it"):
        cost_curve(tmp_path / "x.npy")


def test_what_has_atoms_is_no_array_of_them(run):
    result, _, model = run
    for draw in (atom_lines, dictionary_mosaic):
        for what, words in ((result, "Result: give its D"), (model, "Learning: give its compon")):
            with pytest.raises(TypeError, match=f"D must be an array, got a .*{words}"):
                draw(what)
    with pytest.raises(ValueError, match="sampling_rate must be > 0, got 0"):
        atom_lines(result.D, sampling_rate=0)


def test_the_use_of_atoms_over_time(run):
    result, logs, _ = run
    ax = use_curve(result)
    used, replaced = points(ax)
    steps = [r for r in result.history if r.step]
    np.testing.assert_array_equal(used, [(r.step, r.used) for r in steps])
    np.testing.assert_array_equal(replaced[:, 1], np.cumsum([r.replaced for r in steps]))
    assert used[:, 1].max() == 10
    np.testing.assert_array_equal(points(use_curve(logs[1].path))[0], used)
    assert len(use_curve({"a": result, "b": result}, "samples").get_legend().get_texts()) == 4
    with pytest.raises(ValueError, match="x must be"):
        use_curve(result, "years")
    with pytest.raises(ValueError, match="none of the 1 records of history 0"):
        use_curve([result.history[:1]])


def test_used_atoms_are_counted_by_definition():
    X, _ = planted(n=60)
    seen = []

    def look(state, record):
        seen.append((state.last_used == state.samples).sum())

    result = learn(X, 10, Lasso(0.4), learner=Online(5), callbacks=[look], random_state=0)
    assert [r.used for r in result.history] == seen
    assert len(set(seen)) > 1


def test_atoms_as_lines():
    D = np.random.default_rng(0).standard_normal((5, 12))
    figure = atom_lines(D, 3, order=[4, 0])
    (ax,) = figure.axes
    assert [text.get_text() for text in ax.texts] == ["4", "0"]
    lines = np.array(ax.collections[0].get_segments())
    assert lines.shape == (6, 4, 2)
    for atom, shown in zip(D[[4, 0]].reshape(2, 3, 4), lines.reshape(2, 3, 4, 2), strict=True):
        heights, step = shown[..., 1], 1.1 * np.ptp(atom)
        wanted = atom - step * np.arange(3)[:, None]
        scale = np.ptp(heights) / np.ptp(wanted)
        np.testing.assert_allclose(heights - heights[0, 0], scale * (wanted - wanted[0, 0]))
    assert lines[:3, :, 0].max() < 1 <= lines[3:, :, 0].min()  # panels do not overlap
    timed = atom_lines(D, sampling_rate=10.0).axes[0]
    assert [label.get_text() for label in timed.get_xticklabels()][:2] == ["0", "1.1"]
    figure.canvas.draw()
    for wrong, message in (({"n_channels": 5}, "divide the 12"), ({"order": [9]}, "from 0 to 4")):
        with pytest.raises(ValueError, match=message):
            atom_lines(D, **wrong)


def test_a_thousand_atoms_share_one_panel():
    D = np.random.default_rng(0).standard_normal((1024, 40))
    D[3] = 1.0  # a constant one
    figure = atom_lines(D, 2)
    assert len(figure.axes) == 1
    drawn = np.array(figure.axes[0].collections[0].get_segments())
    assert drawn.shape == (2048, 20, 2)
    assert np.isfinite(drawn).all()


def test_weights_along_chromosomes():
    weights = np.array([0.0, 2.0, -1.0, 0.5, 0.25])
    chromosomes = np.array(["2", "2", "X", "2", "X"])
    ax = along_chromosomes(weights, chromosomes, [10, 30, 5, 20, 6], names=["a", "$b_{", "c", "d", "e"],
                           n_names=2)  # fmt: skip
    drawn = np.concatenate([lines.get_segments() for lines in ax.collections])
    tops = {round(float(y), 3): float(x) for (_, _), (x, y) in drawn}
    assert set(tops) == {0.0, 2.0, -1.0, 0.5, 0.25}
    assert 0 < tops[0.0] < tops[0.5] < tops[2.0] < 1 < tops[-1.0] < tops[0.25] < 2
    assert [text.get_text() for text in ax.texts] == ["$b_{", "c"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["2", "X"]
    ax.figure.canvas.draw()
    assert along_chromosomes([1.0], [1]).get_xlabel() == "chromosome"
    for given, message in (
        ((weights, ["1"]), "chromosomes must be one for each of 5 weights"),
        ((weights, chromosomes, [1.0]), "positions must be one for each"),
        (([[1.0]], ["1"]), r"one number for each gene, got shape \(1, 1\): draw one row at a time"),
        (
            (weights, [1.0, 1.0, np.nan, 2.0, np.nan]),
            "of 2 of 5 genes are missing, the first is gene 2",
        ),
        ((weights, np.array(["1", None, "1", "2", "2"], object)), "of 1 of 5 genes are missing"),
        ((weights, ["1", np.nan, "1", "2", "2"]), "the first is gene 1: leave these genes out"),
        (([np.nan], ["1"]), "weights"),
    ):
        with pytest.raises(ValueError, match=message):
            along_chromosomes(*given)
    with pytest.raises(TypeError, match="positions must be numbers, got"):
        along_chromosomes(weights, chromosomes, ["p12", "p13", "q1", "q2", "q3"])


def test_hostile_names_of_chromosomes_are_text(tmp_path):
    names = [r"$\frac{1}$", "<b>" * 3000]
    ax = along_chromosomes([1.0, 2.0], names, names=names)
    ax.figure.savefig(tmp_path / "names.png")  # a formula that is none was an error
    assert [label.get_text() for label in ax.get_xticklabels()] == [r"\$\frac{1}\$", names[1][:40]]
