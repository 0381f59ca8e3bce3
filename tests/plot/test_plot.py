import math
import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

from smalto import lasso_path, learn
from smalto.learners import Online
from smalto.plot import (
    atom_use,
    before_after,
    cost_curve,
    dictionary_mosaic,
    mosaic,
    path_curve,
)

figure = pytest.importorskip("matplotlib.figure")


@dataclass(frozen=True)
class Record:
    step: int
    samples: int
    seconds: float
    surrogate: float
    batch_cost: float
    test_cost: float | None


def history(n=5, scale=1.0, test=True):
    return [
        Record(
            i, 512 * i, 0.1 * i, scale / (i + 1), scale / (i + 2), scale / (i + 3) if test else None
        )
        for i in range(n)
    ]


def own_axes():
    return figure.Figure().add_subplot()


# --- the mosaic as a picture


def test_each_atom_is_stretched_over_its_own_range():
    D = np.array([[0.0, 1.0, 2.0, 4.0], [-3.0, -1.0, -1.0, 1.0]])
    picture = mosaic(D)
    assert picture.shape == (4, 7, 3)  # one row of two atoms of 2 x 2 and gaps of one
    assert picture.dtype == np.float32
    np.testing.assert_allclose(picture[1:3, 1:3, 0], [[0.0, 0.25], [0.5, 1.0]])
    np.testing.assert_allclose(picture[1:3, 4:6, 0], [[0.0, 0.5], [0.5, 1.0]])
    np.testing.assert_array_equal(picture[..., 0], picture[..., 1])
    np.testing.assert_array_equal(picture[..., 0], picture[..., 2])
    gaps = np.ones((4, 7), dtype=bool)
    gaps[1:3, 1:3] = gaps[1:3, 4:6] = False
    np.testing.assert_array_equal(picture[gaps], 1.0)


def test_color_atoms_keep_their_channels():
    D = np.zeros((1, 12))
    D[0, :3] = [2.0, 1.0, 0.0]  # the first pixel
    D[0, 9:] = [0.0, 0.5, -2.0]  # the last one
    picture = mosaic(D)
    np.testing.assert_allclose(picture[1, 1], [1.0, 0.75, 0.5])
    np.testing.assert_allclose(picture[2, 2], [0.5, 0.625, 0.0])
    np.testing.assert_allclose(picture[1, 2], 0.5)


def test_signed_colors():
    D = np.array([[0.0, 0.5, 1.0, -0.5], [0.0, -2.0, -1.0, 1.0]])
    picture = mosaic(D, signed=True)
    white, red, blue = [1, 1, 1], [1, 0, 0], [0, 0, 1]
    pale_red, pale_blue = [1, 0.5, 0.5], [0.5, 0.5, 1]
    np.testing.assert_allclose(picture[1:3, 1:3], [[white, pale_red], [red, pale_blue]])
    np.testing.assert_allclose(picture[1:3, 4:6], [[white, blue], [pale_blue, pale_red]])
    np.testing.assert_allclose(picture[0], 0.75)  # the line around them is not white


def test_constant_atoms_have_a_color():
    np.testing.assert_array_equal(mosaic(np.zeros((1, 4)))[1:3, 1:3], 0.5)
    np.testing.assert_array_equal(mosaic(np.zeros((1, 4)), signed=True, gap=0), 1.0)


def test_order_chooses_and_arranges():
    D = np.random.default_rng(0).normal(size=(9, 16))
    np.testing.assert_array_equal(mosaic(D, order=[7, 2, 2]), mosaic(D[[7, 2, 2]]))
    assert mosaic(D, order=np.arange(9)).shape == (16, 16, 3)


def test_zoom_and_gap():
    D = np.array([[0.0, 1.0, 2.0, 4.0]])
    picture = mosaic(D, zoom=3, gap=2)
    assert picture.shape == (10, 10, 3)
    np.testing.assert_allclose(picture[2:5, 5:8, 0], 0.25)
    np.testing.assert_allclose(picture[5:8, 5:8, 0], 1.0)
    assert mosaic(D, gap=0).shape == (2, 2, 3)


def test_patch_shape_lays_out_the_pixels():
    D = np.arange(6.0)[None]
    np.testing.assert_allclose(
        mosaic(D, (2, 3), gap=0)[..., 0], np.arange(6).reshape(2, 3) / 5, atol=1e-7
    )
    assert mosaic(D, (1, 2, 3), gap=0).shape == (1, 2, 3)


@pytest.mark.parametrize(
    ("k", "grid"),
    [
        (1, (1, 1)),
        (2, (1, 2)),
        (7, (3, 3)),
        (13, (4, 4)),
        (49, (7, 7)),
        (200, (10, 20)),
        (256, (16, 16)),
        (512, (16, 32)),
    ],
)
def test_the_grid_is_full_where_it_can_be_and_holds_all(k, grid):
    picture = mosaic(np.random.default_rng(1).normal(size=(k, 4)), gap=0)
    assert picture.shape[:2] == (2 * grid[0], 2 * grid[1])
    blank = (picture == 1.0).all(axis=2).sum()
    assert blank == 4 * (grid[0] * grid[1] - k) + k  # empty cells, and one white pixel per atom


def test_the_dictionary_is_not_written_to():
    D = np.random.default_rng(2).normal(size=(4, 9))
    D.flags.writeable = False
    mosaic(D)
    mosaic(D, signed=True)


# --- the mosaic as a plot


def test_mosaic_in_given_axes():
    D = np.random.default_rng(3).normal(size=(6, 16))
    ax = own_axes()
    assert dictionary_mosaic(D, order=[5, 0], ax=ax) is ax
    (image,) = ax.get_images()
    shown = np.asarray(image.get_array())
    zoom, gap = 12, 6
    np.testing.assert_array_equal(shown, mosaic(D[[5, 0]], zoom=zoom, gap=gap))
    assert not ax.axison


def test_mosaic_in_its_own_figure_fits_to_the_dot(tmp_path):
    from PIL import Image

    D = np.random.default_rng(4).normal(size=(64, 3 * 8 * 8))
    fig = dictionary_mosaic(D).figure
    assert isinstance(fig, figure.Figure)
    fig.savefig(tmp_path / "d.png")
    written = np.asarray(Image.open(tmp_path / "d.png").convert("RGB")) / 255
    expected = mosaic(D, zoom=12, gap=6)
    assert written.shape == expected.shape
    np.testing.assert_allclose(written, expected, atol=1.01 / 255)


def test_signed_mosaic_plot():
    D = np.random.default_rng(5).normal(size=(4, 9))
    shown = np.asarray(dictionary_mosaic(D, signed=True).get_images()[0].get_array())
    np.testing.assert_array_equal(shown, mosaic(D, signed=True, zoom=12, gap=6))


@pytest.mark.parametrize(
    ("D", "kind", "message"),
    [
        (np.ones(4), {}, r"got shape \(4,\)"),
        (np.ones((0, 4)), {}, r"\(0, 4\)"),
        (np.full((2, 4), np.nan), {}, "D contains NaN"),
        (np.ones((2, 5)), {}, "atoms of 5 values"),
        (np.ones((2, 6)), {}, "atoms of 6 values"),
        (np.ones((2, 4)), {"patch_shape": (2, 3)}, r"\(2, 3\) has 6 values, an atom of D has 4"),
        (np.ones((2, 4)), {"patch_shape": (4,)}, r"got \(4,\)"),
        (np.ones((2, 4)), {"patch_shape": 2}, r"must be \(height, width\).*, got 2"),
        (np.ones((2, 4)), {"patch_shape": (1, 2, 2)}, r"got \(1, 2, 2\)"),
        (np.ones((2, 4)), {"patch_shape": (-2, -2)}, "got -2"),
        (np.ones((2, 12)), {"signed": True}, r"got patch_shape \(2, 2, 3\)"),
        (np.ones((2, 4)), {"order": [0, 2]}, "from 0 to 1, got 2"),
        (np.ones((2, 4)), {"order": [-1]}, "got -1"),
        (np.ones((2, 4)), {"order": [0.5]}, r"got \[0.5\]"),
        (np.ones((2, 4)), {"order": []}, r"got \[\]"),
    ],
)
@pytest.mark.parametrize("function", [mosaic, dictionary_mosaic])
def test_bad_dictionaries(function, D, kind, message):
    with pytest.raises(ValueError, match=message):
        function(D, **kind)


@pytest.mark.parametrize("kind", [{"zoom": 0}, {"gap": -1}])
def test_bad_sizes(kind):
    with pytest.raises(ValueError, match=f"got {next(iter(kind.values()))}"):
        mosaic(np.ones((1, 4)), **kind)


# --- costs


def lines(ax):
    return [np.asarray(line.get_xydata()) for line in ax.get_lines()]


@pytest.mark.parametrize("x", ["seconds", "samples", "step"])
@pytest.mark.parametrize("y", ["test_cost", "batch_cost", "surrogate"])
def test_the_curve_holds_the_records(x, y):
    run = history()
    ax = cost_curve(run, x, y=y)
    expected = [(getattr(r, x), getattr(r, y)) for r in run if getattr(r, x) > 0]
    (line,) = lines(ax)
    np.testing.assert_allclose(line, expected)
    assert len(expected) == 4  # what is at zero has no place on a logarithmic axis
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert ax.get_legend() is None


def test_records_without_a_test_cost_are_left_out():
    run = [r for pair in zip(history(6), history(6, test=False), strict=True) for r in pair]
    np.testing.assert_allclose(lines(cost_curve(run))[0], lines(cost_curve(history(6)))[0])


def test_several_histories():
    runs = [history(), history(scale=2.0)]
    ax = own_axes()
    assert cost_curve(runs, ax=ax) is ax
    np.testing.assert_allclose(2 * lines(ax)[0][:, 1], lines(ax)[1][:, 1])

    def names(ax):
        return [text.get_text() for text in ax.get_legend().get_texts()]

    assert names(ax) == ["run 1", "run 2"]
    assert names(cost_curve(runs, labels=["here", "there"])) == ["here", "there"]
    assert names(cost_curve({"one": runs[0], "two": runs[1]})) == ["one", "two"]
    assert names(cost_curve(runs[0], labels=["alone"])) == ["alone"]


def test_a_curve_can_be_written_without_a_display(tmp_path):
    cost_curve(history()).figure.savefig(tmp_path / "cost.png")
    assert (tmp_path / "cost.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), r"got \[\]"),
        (([[]],), "none of the 0 records of history 0"),
        ((history(), "hours"), "got 'hours'"),
        (
            (history(test=False), "seconds", None, None, "test_cost"),
            "pass a validation set to learn\\(\\)",
        ),
        (([history(), history(1)],), "none of the 1 records of history 1"),
        ((history(), "seconds", None, ["a", "b"]), "got 2 for 1"),
        ((history(), "seconds", None, None, "price"), "got 'price'"),
    ],
)
def test_bad_histories(arguments, message):
    with pytest.raises(ValueError, match=message):
        cost_curve(*arguments)


# --- manners


def run_python(code):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_matplotlib_is_imported_late_and_pyplot_never():
    run_python(
        "import sys, numpy as np\n"
        "from smalto.plot import dictionary_mosaic, mosaic\n"
        "mosaic(np.eye(4))\n"
        "assert 'matplotlib' not in sys.modules\n"
        "dictionary_mosaic(np.eye(4))\n"
        "assert 'matplotlib' in sys.modules\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    for name in list(sys.modules):
        if name.split(".")[0] == "matplotlib":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "smalto\[plot\]"'):
        dictionary_mosaic(np.eye(4))
    with pytest.raises(ImportError, match=r'pip install "smalto\[plot\]"'):
        cost_curve(history())
    assert math.isfinite(mosaic(np.eye(4)).sum())


# --- paths, the use of atoms, before and after


def test_a_path_has_a_line_for_each_atom_it_uses():
    D = np.eye(4)[:3]
    path = lasso_path(np.array([3.0, -1.0, 0.0, 2.0]), D)
    ax = path_curve(path, n_labels=1)
    curves = [line for line in ax.lines if len(line.get_xdata()) == len(path.lams)]
    assert len(curves) == 2
    np.testing.assert_allclose(curves[0].get_ydata(), path.codes.toarray()[:, 0])
    assert [text.get_text().strip() for text in ax.texts] == ["0"]
    assert ax.xaxis_inverted()
    own = figure.Figure().add_subplot()
    assert path_curve(path, ax=own) is own


def test_the_use_of_atoms_falls():
    codes = sparse.csr_array(np.array([[1.0, 0, 0, 2], [0, 0, 0, 1], [0, 0, 0, -1]]))
    ax = atom_use(codes)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [1, 1 / 3, 0, 0])
    assert ax.get_title() == "2 of 4 atoms not used"
    with pytest.raises(ValueError, match="codes must be"):
        atom_use(np.zeros((0, 3)))
    with pytest.raises(ValueError, match="NaN"):
        atom_use(np.full((2, 2), np.nan))


@pytest.mark.parametrize("shape", [(60, 90), (60, 90, 3), (1500, 1300)])
def test_before_and_after_enlarge_the_same_piece(shape):
    rng = np.random.default_rng(0)
    after = rng.integers(0, 256, shape, dtype=np.uint8)
    before = after.copy()
    before[40:50, 60:80] = 0
    drawn = before_after(before, after, after / 255.0)
    assert len(drawn.axes) == 6
    zooms = [ax.images[0].get_array() for ax in drawn.axes[1::2]]
    side = max(48, max(shape) // 8)
    assert {zoom.shape[:2] for zoom in zooms} == {(side, side)}
    np.testing.assert_allclose(zooms[1], zooms[2], atol=1e-6)
    assert (np.asarray(zooms[0]) != np.asarray(zooms[1])).any()
    assert max(drawn.axes[0].images[0].get_array().shape[:2]) <= 1200
    drawn = before_after(before, after, window=(0, 0), side=20)
    assert drawn.axes[1].images[0].get_array().shape[:2] == (20, 20)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((5, 5)), np.zeros((6, 5))), "the same size"),
        ((np.zeros(5), np.zeros(5)), "height, width"),
    ],
)
def test_pictures_that_cannot_be_compared(arguments, message):
    with pytest.raises(ValueError, match=message):
        before_after(*arguments)
    with pytest.raises(ValueError, match="does not lie"):
        before_after(np.zeros((60, 60)), np.zeros((60, 60)), window=(50, 0))
    with pytest.raises(ValueError, match="titles"):
        before_after(np.zeros((60, 60)), np.zeros((60, 60)), titles=("one",))


def test_curves_of_results_and_without_a_validation_set():
    X = np.random.default_rng(0).standard_normal((200, 6))
    plain = learn(X, 4, max_steps=4, learner=Online(50), random_state=0)
    watched = learn(X, 4, max_steps=4, learner=Online(50), random_state=0, validation=X)
    np.testing.assert_array_equal(lines(cost_curve(plain))[0], lines(cost_curve(plain.history))[0])
    assert cost_curve(plain).get_ylabel() == "cost on the batch"
    assert cost_curve(watched).get_ylabel() == "cost on the validation set"
    assert len(lines(cost_curve([plain, watched]))) == 2
    assert len(lines(cost_curve({"one": plain, "two": watched.history}))) == 2
    with pytest.raises(ValueError, match='or plot y="batch_cost"'):
        cost_curve(plain, y="test_cost")
