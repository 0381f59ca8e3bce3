"""Rounding of codes to float32."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import examples

from smalto import encode
from smalto.coders import Lasso
from smalto.coders.codes import Codes
from smalto.coders.rounding import rounded_together


def similar_atoms(seed, k=8, m=30, width=0.5):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, m)
    D = np.exp(-0.5 * ((t - rng.random((k, 1))) / width) ** 2)
    return rng, D


def errors(codes, D, missing=None):
    """Squared distances of the approximations from those of the exact code, plain and together."""
    known = np.ones(D.shape[1]) if missing is None else ~missing
    exact = codes.values.astype(np.float64)
    both = (exact.astype(np.float32), rounded_together(codes, D, missing).values)
    return [float(np.sum((((value - exact) @ D) * known) ** 2)) for value in both]


@pytest.mark.parametrize("holes", [False, True])
def test_errors_of_large_coefficients_cancel(holes):
    plain = together = 0.0
    for seed in range(20):
        rng, D = similar_atoms(seed)
        x = rng.standard_normal(D.shape[1])
        missing = rng.random((1, len(x))) < 0.3 if holes else None
        known = slice(None) if missing is None else ~missing[0]
        code = np.linalg.lstsq(D[:, known].T, x[known])[0]  # of the order of 1e5
        codes = Codes(np.array([0, 8]), np.arange(8, dtype=np.int32), code)
        one, other = errors(codes, D, missing)
        assert rounded_together(codes, D, missing).values.dtype == np.float32
        plain, together = plain + one, together + other
    assert together < 1e-3 * plain


@examples(50)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 12), m=st.integers(1, 12))
def test_signs_stay_and_nothing_becomes_infinite(seed, k, m):
    rng = np.random.default_rng(seed)
    D, code = rng.standard_normal((k, m)), rng.standard_normal(k) * 10.0 ** rng.integers(-5, 6, k)
    codes = Codes(np.array([0, 0, k]), np.arange(k, dtype=np.int32), code)  # the first row is empty
    rounded = rounded_together(codes, D).values
    assert np.isfinite(rounded).all()
    assert (rounded * code >= 0).all()


@pytest.mark.parametrize("lam", [0.0, 1e-6])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("with_holes", [False, True])
def test_with_hardly_any_penalty_float32_codes_are_rounded_float64_codes(lam, positive, with_holes):
    """They are not searched for in float32 first, to be found wanting one by one."""
    rng = np.random.default_rng(4)
    X, D = rng.random((90, 30)).astype(np.float32), rng.random((12, 30)).astype(np.float32)
    mask = rng.random(X.shape) < 0.1 if with_holes else None
    coder = Lasso(lam, positive=positive)
    narrow, wide = (encode(X.astype(t), D.astype(t), coder, mask=mask) for t in (X.dtype, float))
    if coder.any_atom_scale and positive and not with_holes:  # over atoms not alike float32 will do
        np.testing.assert_allclose(narrow.toarray(), wide.toarray(), atol=1e-5)
        return
    np.testing.assert_array_equal(narrow.toarray(), wide.toarray().astype(np.float32))
