"""Data frames of pandas: text, missing values, column names."""

import numpy as np
import pandas as pd
import pytest

from smalto import NMF, DictionaryLearning, SparseCCA, encode, learn
from smalto.coders import Lasso

VALUES = np.abs(np.random.default_rng(0).standard_normal((40, 3)))
CODER = Lasso(0.1)


def _frame(**columns):
    return pd.DataFrame({**dict(zip("abc", VALUES.T, strict=True)), **columns})


TEXT = _frame(b=["x", *["1.0"] * 39])
DOORS = {
    "encode": lambda X: encode(X, np.eye(3), CODER),
    "learn": lambda X: learn(X, 3, CODER),
    "fit": lambda X: DictionaryLearning(3, coder=CODER).fit(X),
    "partial_fit": lambda X: DictionaryLearning(3, coder=CODER).partial_fit(X),
    "NMF": lambda X: NMF(2).fit(X),
    "CCA": lambda X: SparseCCA().fit(X, VALUES),
    "CCA's y": lambda X: SparseCCA().fit(VALUES, X),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_column_of_text_is_named(door):
    with pytest.raises(TypeError, match=r"column 'b' has 'x': drop the column"):
        DOORS[door](TEXT)


def test_text_in_an_array_is_shown_with_its_place():
    table = np.array([[1.0, 2.0], [3.0, "four"]], object)
    with pytest.raises(TypeError, match=r"got 'four' at \(1, 1\)"):
        encode(table, np.eye(2), CODER)


@pytest.mark.parametrize("kind", ["Float64", "Int64", "boolean"])
def test_values_that_are_not_available_are_missing(kind):
    values = pd.array([True, None, *[False, True] * 19], dtype=kind)
    plain = _frame(b=[1.0, np.nan, *[0.0, 1.0] * 19])
    frame = _frame(b=values)
    wanted = encode(plain.to_numpy(), np.eye(3), CODER, missing="nan")
    got = encode(frame, np.eye(3), CODER, missing="nan")
    np.testing.assert_array_equal(got.toarray(), wanted.toarray())
    with pytest.raises(ValueError, match=r"contains NaN or infinity: 1 such value.*\(1, 1\)"):
        encode(frame, np.eye(3), CODER)
    settings = {"coder": CODER, "missing": "nan", "random_state": 0}
    fits = [DictionaryLearning(3, **settings).fit(table) for table in (frame, plain)]
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)


def test_single_precision_is_kept():
    frame = pd.DataFrame(VALUES.astype(np.float32))
    assert encode(frame, np.eye(3), CODER).dtype == np.float32


def test_names_that_occur_twice_are_refused_in_one_line():
    frame = pd.DataFrame(VALUES, columns=["a", "b", "a"])
    for door in ("fit", "partial_fit", "NMF", "CCA", "CCA's y"):
        with pytest.raises(ValueError, match="has 2 columns named 'a': names must be unique"):
            DOORS[door](frame)
    assert encode(frame, np.eye(3), CODER).shape == (40, 3)  # which has no use for names


@pytest.mark.parametrize("path", ["x.npy", __import__("pathlib").Path("x.npy")])
def test_paths_are_for_learning(path):
    fitted = DictionaryLearning(3, coder=CODER, random_state=0).fit(VALUES)
    for call in (lambda: encode(path, np.eye(3)), lambda: fitted.transform(path)):
        with pytest.raises(TypeError, match=r"got the path 'x.npy': load it first"):
            call()


def test_columns_in_another_order_are_refused():
    frame, other = _frame(), _frame()[["b", "a", "c"]]
    stop = "column 0 of {} is 'b', that of {} is 'a': give the columns of"
    settings = {"coder": CODER, "random_state": 0}
    with pytest.raises(ValueError, match=stop.format("validation", "the data")):
        learn(frame, 3, validation=other, **settings)
    with pytest.raises(ValueError, match=stop.format("validation", "the data")):
        learn([frame, frame], 3, validation=other, **settings)
    with pytest.raises(
        ValueError, match=stop.format("batch 1 of the stream .*", "earlier batches")
    ):
        learn([frame, other], 3, **settings)
    with pytest.raises(
        ValueError, match=stop.format("batch 2 of the stream .*", "earlier batches")
    ):
        learn([VALUES, frame, other], 3, **settings)
    for fine in (frame, VALUES, pd.DataFrame(VALUES)):  # the same names, or none
        learn([frame, fine], 3, validation=fine, **settings)


def test_columns_of_arrow_tables_have_names_too():
    pa = pytest.importorskip("pyarrow")
    table = pa.table(_frame())
    with pytest.raises(ValueError, match="column 0 of validation is 'b', that of the data is 'a'"):
        learn(table, 3, CODER, validation=table.select(["b", "a", "c"]))


@pytest.mark.parametrize("model", [DictionaryLearning(2, coder=CODER), NMF(2), NMF(2, lam=0.1)])
def test_held_out_columns_in_another_order_are_refused(model):
    frame = _frame()
    with pytest.raises(ValueError, match="column 0 of validation is 'c', that of the data is 'a'"):
        model.fit(frame, validation=frame[["c", "b", "a"]])
    model.fit(frame, validation=frame)
