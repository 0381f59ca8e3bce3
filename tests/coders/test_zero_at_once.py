"""Signals that are within their error bound have zero codes, and do not disturb those of others."""

import numpy as np
import pytest

from smalto import encode
from smalto.coders import OMP, ErrorBound, JointOMP

EPS = 2.0
CODERS = [
    OMP(eps=EPS),
    OMP(3, eps=EPS),
    OMP(eps=np.linspace(1.9, 2.1, 60)),
    ErrorBound(EPS),
    JointOMP(eps=EPS),
    JointOMP(3, eps=EPS),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("coder", CODERS, ids=str)
@pytest.mark.parametrize("holes", [False, True])
def test_small_signals_among_others(coder, dtype, holes):
    rng = np.random.default_rng(0)
    D = rng.standard_normal((24, 10)).astype(dtype)
    X = rng.standard_normal((60, 10)).astype(dtype)
    X[rng.random(60) < 0.5] *= 0.1
    mask = rng.random(X.shape) < 0.2 if holes else None
    groups = np.repeat(np.arange(20), 3) if isinstance(coder, JointOMP) else None
    if groups is not None:
        X[6:12] *= 0.01
    codes = encode(X, D, coder, mask=mask, groups=groups)
    known = X.astype(np.float64) if mask is None else np.where(mask, 0.0, X)
    squares = np.sum(known**2, axis=1)
    if groups is not None:
        squares = np.repeat(squares.reshape(20, 3).mean(axis=1), 3)
    zero = squares <= (coder.eps if np.ndim(coder.eps) == 0 else np.asarray(coder.eps))
    assert 0 < zero.sum() < 60
    assert np.array_equal(np.diff(codes.indptr) == 0, zero)
    for row in np.flatnonzero(~zero):  # alone, or with its group
        some = slice(row, row + 1) if groups is None else slice(row // 3 * 3, row // 3 * 3 + 3)
        own = coder if np.ndim(coder.eps) == 0 else OMP(eps=coder.eps[row])
        alone = encode(
            X[some], D, own, mask=None if mask is None else mask[some],
            groups=None if groups is None else groups[some],
        )  # fmt: skip
        size = 1e-4 if dtype == np.float32 else 1e-10
        assert np.allclose(codes[some].toarray(), alone.toarray(), atol=size)


@pytest.mark.parametrize("coder", [OMP(eps=EPS), ErrorBound(EPS), JointOMP(eps=EPS)], ids=str)
@pytest.mark.parametrize("mask", [None, np.eye(5, 3, dtype=bool)])
def test_nothing_but_small_signals(coder, mask):
    X = np.full((5, 3), 0.01)
    codes, info = encode(X, np.eye(3), coder, mask=mask, return_info=True)
    assert codes.shape == (5, 3)
    assert codes.nnz == 0
    assert info.iterations.tolist() == [0] * 5
