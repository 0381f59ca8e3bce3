"""By how much codes of pursuits fit worse than least squares on their atoms, told roughly and fast."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import DTYPES
from scipy import sparse

from smalto import encode
from smalto.coders import L0, OMP, doubts
from smalto.coders.codes import Codes
from smalto.coders.off_least_squares import off_roughly, squares_in_span
from smalto.coders.preparing import prepare
from smalto.coders.signals import Signals


def problem(seed, k, m, s, likeness):
    """Signals, atoms that are more or less alike, and the best codes on s random ones each."""
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((k, m)) + likeness * rng.standard_normal(m)
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    X, codes = rng.standard_normal((5, m)), np.zeros((5, k))
    for x, code in zip(X, codes, strict=True):
        used = rng.choice(k, s, replace=False)
        code[used] = np.linalg.lstsq(D[used].T, x, rcond=None)[0]
    return rng, X, D, codes


def as_codes(dense):
    csr = sparse.csr_array(dense)
    return Codes(csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data)


@given(
    seed=st.integers(0, 999),
    s=st.integers(0, 8),
    likeness=st.sampled_from([0.0, 1.0, 10.0]),
    dtype=st.sampled_from(DTYPES),
    is_sparse=st.booleans(),
)
@settings(deadline=None, max_examples=60)
def test_it_is_the_part_of_the_residual_in_the_span(seed, s, likeness, dtype, is_sparse):
    rng, X, D, codes = problem(seed, 16, 12, s, likeness)
    codes *= 1.0 + 1e-3 * rng.standard_normal(codes.shape)
    expected = [
        0.5 * squares_in_span((x - code @ D)[None], D[code != 0.0])[0]
        for x, code in zip(X, codes, strict=True)
    ]
    rows = sparse.csr_array(X) if is_sparse else X
    squares, off = off_roughly(as_codes(codes), rows, D, (D @ D.T).astype(dtype))
    np.testing.assert_allclose(squares, np.sum((X - codes @ D) ** 2, axis=1), rtol=1e-9)
    np.testing.assert_allclose(off, expected, rtol=2e-2, atol=1e-20)


@pytest.mark.parametrize("dtype", DTYPES)
def test_it_is_infinite_where_atoms_depend_on_each_other(dtype):
    _, X, D, codes = problem(0, 16, 12, 4, 0.0)
    first, second = np.flatnonzero(codes[0])[:2]
    D[second] = D[first]
    off = off_roughly(as_codes(codes), X, D, (D @ D.T).astype(dtype))[1]
    assert off[0] == np.inf


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "spoilt", [None, "rough", "NaN", "infinite", "negative", "worse than zero"]
)
def test_codes_are_sure_only_if_they_keep_what_is_promised(dtype, spoilt):
    _, _, D, codes = problem(1, 16, 12, 4, 0.0)
    codes = np.abs(codes)
    first = np.flatnonzero(codes[0])[0]
    if spoilt == "negative":
        codes[0, first] *= -1.0
    X, D = (codes @ D).astype(dtype), D.astype(dtype)  # which these codes fit exactly
    if spoilt == "rough":
        codes[0] *= 1.1
    elif spoilt in ("NaN", "infinite"):
        codes[0, first] = {"NaN": np.nan, "infinite": np.inf}[spoilt]
    norms = np.sum(X.astype(np.float64) ** 2, axis=1)
    coder = (
        L0(0.3 * norms.min(), positive=True)
        if spoilt == "worse than zero"
        else OMP(4, positive=True)
    )
    if spoilt == "worse than zero":  # four atoms cost more than these signals
        norms[1:] *= 1e3
    prepared = prepare(D, coder, 1)
    sure = doubts._are_sure(as_codes(codes.astype(dtype)), norms, Signals(X), prepared)
    assert sure.tolist() == [spoilt is None, True, True, True, True]


def test_large_coefficients_alone_are_not_looked_at_twice(monkeypatch):
    rng = np.random.default_rng(0)
    base = rng.standard_normal(60)
    D = (base + 0.05 * rng.standard_normal((100, 60))).astype(np.float32)
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    X = rng.standard_normal((40, 60)).astype(np.float32)
    seen = []
    plain = doubts.cancelling

    def cancelling(*given):
        found = plain(*given)
        seen.append(np.count_nonzero(found))
        return found

    monkeypatch.setattr(doubts, "cancelling", cancelling)
    monkeypatch.setattr("smalto.coders.coding._mended", None)  # is not called
    codes = encode(X, D, OMP(max_nonzeros=20), n_threads=1)
    assert seen == [40]
    for x, code in zip(X.astype(float), codes.toarray().astype(float), strict=True):
        atoms = D[code != 0.0].astype(float)
        off = squares_in_span((x - code @ D)[None], atoms)[0]
        assert off < 1e-3 * (x @ x)
