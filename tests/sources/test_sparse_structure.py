"""Sparse arrays whose indices are wrong, out of order or repeated, wherever they enter."""

import numpy as np
import pytest
from scipy import sparse

from smalto import NMF, DictionaryLearning, Model, encode, learn
from smalto.checks import as_csr, as_rows
from smalto.coders import Bridge, Lasso, Ridge, duality_gap
from smalto.compat.sklearn import NMF as ScikitNMF
from smalto.compat.sklearn import MiniBatchNMF as ScikitMiniBatchNMF
from smalto.compat.sklearn import non_negative_factorization
from smalto.constraints import L2Ball
from smalto.plot import atom_use
from smalto.sources import Stream, as_source

CODER = Lasso(0.1)
D = np.eye(4)
FAR = 10**9


def _csr(shape=(12, 4)):
    return sparse.csr_array(np.random.default_rng(0).random(shape))


def _far(kind):
    X = getattr(sparse, f"{kind}_array")(_csr())
    if kind == "coo":
        X.col[0] = FAR
    else:
        X.indices = X.indices.copy()
        X.indices[0] = FAR
    return X


def _negative():
    X = _csr()
    X.indices[3] = -1
    return X


def _falling():
    X = _csr()
    X.indptr[1] = 40
    return X


def _falling_to_nothing():
    X = sparse.csr_array((2, 4))
    X.indptr[:] = [0, 3, 0]
    return X


def _too_long():
    X = _csr()
    X.indptr[-1] += 5
    return X


def _short_of_values():
    X = _csr()
    X.data = X.data[:-2]
    return X


def _far_row():
    X = sparse.coo_array(_csr())
    X.row[0] = FAR
    return X


DAMAGED = {
    "far row": _far_row,
    **{f"far {kind}": lambda kind=kind: _far(kind) for kind in ("csr", "csc", "coo", "bsr")},
    "negative": _negative,
    "falling": _falling,
    "falling to nothing": _falling_to_nothing,
    "too long": _too_long,
    "short of values": _short_of_values,
}
FITTED = DictionaryLearning(4, coder=CODER, random_state=0).fit(_csr().toarray())
SCIKIT_NMF = ScikitNMF(4, random_state=0).fit(_csr().toarray())
DOORS = {
    "encode": lambda X: encode(X, D, CODER),
    "dictionary": lambda X: encode(np.ones((2, 4)), X, CODER),
    "start": lambda X: encode(np.ones((X.shape[0], 4)), D, CODER, start=X),
    "codes": lambda X: duality_gap(np.ones((X.shape[0], 4)), D, X, CODER),
    "learn": lambda X: learn(X, 2, CODER),
    "init": lambda X: learn(np.ones((20, 4)), X.shape[0], CODER, init=X),
    "validation": lambda X: learn(np.ones((20, 4)), 2, CODER, validation=X),
    "source": as_source,
    "stream": lambda X: Stream([X]).take(2),
    "fit": lambda X: DictionaryLearning(2, coder=CODER).fit(X),
    "partial_fit": lambda X: DictionaryLearning(2, coder=CODER).partial_fit(X),
    "transform": FITTED.transform,
    "score": FITTED.score,
    "inverse_transform": FITTED.inverse_transform,
    "NMF": lambda X: NMF(2).fit(X),
    "Model": lambda X: Model(D, CODER, L2Ball()).encode(X),
    "atom_use": atom_use,
    "NMF as in scikit-learn": lambda X: ScikitNMF(2).fit(X),
    "its partial_fit": lambda X: ScikitMiniBatchNMF(2).partial_fit(X),
    "its transform": SCIKIT_NMF.transform,
    "its inverse_transform": SCIKIT_NMF.inverse_transform,
    "its function": lambda X: non_negative_factorization(X, n_components=2),
    "its function of H": lambda X: non_negative_factorization(X, H=D, update_H=False),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("damage", DAMAGED)
def test_invalid_indices_are_refused(door, damage):
    with pytest.raises(ValueError, match="is not a valid sparse array of format"):
        DOORS[door](DAMAGED[damage]())


def test_files_with_invalid_indices_are_refused(tmp_path):
    sparse.save_npz(tmp_path / "x.npz", _far("csr"))
    with pytest.raises(ValueError, match="is not a valid sparse array"):
        learn(tmp_path / "x.npz", 2, CODER)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_every_format_is_read_like_the_dense_array(kind):
    X = getattr(sparse, f"{kind}_array")(_csr())
    assert np.array_equal(as_rows("X", X).toarray(), X.toarray())
    wanted = encode(X.toarray(), D, CODER).toarray()
    np.testing.assert_allclose(encode(X, D, CODER).toarray(), wanted, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.bool_])
def test_repeated_small_integers_do_not_wrap(dtype):
    places = np.zeros(300, int), np.arange(300) % 2
    coo = sparse.coo_array((np.ones(300, dtype), places), shape=(1, 2))
    csr = sparse.csr_array((coo.data, places[1], [0, 300]), shape=(1, 2))
    for X in (coo, csr):
        assert np.array_equal(as_rows("X", X).toarray(), [[150, 150]])
        np.testing.assert_allclose(encode(X, np.eye(2), Ridge(1e-12)).toarray(), [[150, 150]])


@pytest.mark.parametrize("coder", [Lasso(), Bridge(0.1)], ids=repr)
def test_what_is_chosen_from_the_data_does_not_depend_on_repeated_entries(coder):
    X, rng = _csr((60, 6)), np.random.default_rng(1)
    halves = np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr
    again = sparse.csr_array(halves, shape=X.shape)
    atoms = rng.standard_normal((5, 6))
    one, two = (encode(rows, atoms, coder).toarray() for rows in (X, again))
    np.testing.assert_allclose(one, two, atol=1e-12)


def test_indices_that_lost_their_order_after_it_was_checked():
    # SciPy remembers that the indices were in order; their change is not noticed.
    X = _csr((6, 4))
    assert X.has_canonical_format
    X.indices[:] = np.tile([3, 1, 1, 0], 6)
    dense = np.zeros((6, 4))
    np.add.at(dense, (np.repeat(np.arange(6), 4), X.indices), X.data)
    before = X.indices.copy(), X.data.copy()
    codes, info = encode(X, D, CODER, return_info=True)
    wanted, wanted_info = encode(dense, D, CODER, return_info=True)
    np.testing.assert_allclose(codes.toarray(), wanted.toarray(), atol=1e-12)
    np.testing.assert_allclose(info.gap, wanted_info.gap, atol=1e-12)
    learned = [learn(rows, 3, CODER, random_state=0, init=D[:3]).D for rows in (X, dense)]
    np.testing.assert_allclose(*learned, atol=1e-12)
    assert np.array_equal(X.indices, before[0])
    assert np.array_equal(X.data, before[1])


def test_what_is_given_is_shared_and_not_changed():
    X = sparse.csr_matrix(_csr())
    checked = as_csr("X", X)
    assert np.shares_memory(checked.data, X.data)
    assert np.shares_memory(checked.indices, X.indices)


def test_codes_written_by_scipy_are_a_source(tmp_path):
    X = _csr((20, 6))
    sparse.save_npz(tmp_path / "codes.npz", X)
    source = as_source(tmp_path / "codes.npz")
    assert (source.n_rows, source.n_features) == X.shape
    assert np.array_equal(source.rows(np.arange(20)).toarray(), X.toarray())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_entries_cannot_be_missing_from_a_sparse_array(bad):
    X = np.random.default_rng(0).random((40, 6))
    X[3, 2] = bad
    X = sparse.csr_array(X)
    doors = [
        lambda: encode(X, np.eye(6), missing="nan"),
        lambda: learn(X, 4, missing="nan"),
        lambda: learn([X, X], 4, missing="nan"),
        lambda: DictionaryLearning(4, missing="nan").fit(X),
        lambda: DictionaryLearning(4, missing="nan").partial_fit(X),
        lambda: NMF(4, missing="nan").fit(X),
    ]
    way_out = "give a dense array and say missing" if np.isnan(bad) else ""
    for door in doors:
        with pytest.raises(ValueError, match=rf"contains NaN or infinity.*\(3, 2\).*{way_out}"):
            door()
