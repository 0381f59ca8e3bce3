"""The bridge penalty: a local method that never goes up."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from missing_entries import planted, quiet
from naive_coders import weighted_violation
from problems import DEGENERATE, DTYPES, ordinary
from scipy import sparse

from smalto import DictionaryLearning, encode, learn
from smalto.coders import Bridge, Lasso


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DEGENERATE)
def test_the_bridge_never_rises(name, dtype):
    X, D = DEGENERATE[name]
    X, D = X.astype(dtype), D.astype(dtype)
    before = np.inf
    for rounds in (1, 2, 4, 50):
        coder = Bridge(0.1, 0.5, delta=0.05, max_iter=rounds)
        codes = quiet(X, D, coder)
        cost = naive.lasso_cost(X, D, codes.toarray(), 0.0) + coder.penalty(codes)
        assert np.all(cost <= before + {np.float32: 1e-6, np.float64: 1e-12}[dtype] * (1 + cost))
        before = cost


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("positive", [False, True])
def test_the_bridge_ends_where_no_small_move_helps(p, positive):
    X, D = ordinary(n=30)
    coder = Bridge(0.1, p, delta=0.1, positive=positive, max_iter=500)
    codes = encode(X, D, coder).toarray()
    slopes = p * (np.abs(codes) + 0.1) ** (p - 1)
    assert weighted_violation(X, D, codes, 0.1, slopes, positive=positive).max() < 1e-6
    once = encode(X, D, replace(coder, max_iter=1))
    cost = naive.lasso_cost(X, D, codes, 0.0) + coder.penalty(codes)
    assert np.all(cost <= naive.lasso_cost(X, D, once.toarray(), 0.0) + coder.penalty(once))


@pytest.mark.parametrize("signals", [1.0, 255.0, 1e-3])
@pytest.mark.parametrize("atoms", [1.0, 37.0])
@pytest.mark.parametrize("masked", [False, True])
def test_codes_do_not_depend_on_units(signals, atoms, masked):
    """Neither those of the default delta; and they are sparser than the lasso's, not empty."""
    X, D = ordinary(n=60)
    mask = np.random.default_rng(0).random(X.shape) < 0.4 if masked else None
    coder, lam = Bridge(0.08), 0.08 * signals**1.5 * atoms**0.5
    expected = encode(X, D, coder, mask=mask).toarray()
    codes = encode(signals * X, atoms * D, replace(coder, lam=lam), mask=mask).toarray()
    unit = signals / atoms
    np.testing.assert_allclose(codes / unit, expected, atol=1e-7 * np.abs(expected).max())
    lasso = encode(X, D, Lasso(0.08), mask=mask)
    assert len(X) < np.count_nonzero(expected) < lasso.nnz


def test_missing_entries_are_left_out_of_the_first_lasso_too():
    X, D = ordinary(n=20)
    D[:3, 2:] = 0.0  # nothing is left of these atoms
    missing = np.zeros(X.shape, np.bool_)
    missing[:, :2] = True
    coder = Bridge(0.1, delta=0.02)
    codes = encode(X, D, coder, mask=missing).toarray()
    np.testing.assert_allclose(codes, encode(X[:, 2:], D[:, 2:], coder).toarray(), atol=1e-7)


@pytest.mark.parametrize("share", [0.0, 1e-6, 1.0, 1e6])
def test_the_first_weights_are_slopes_of_chords(share):
    coder, size = Bridge(0.1, 0.3, delta=2.0), 2.0 * share
    found = coder._first_weights(np.array([size**2]), np.ones(1))[0]
    if share == 1e-6:  # close to the tangent at zero
        assert found == pytest.approx(0.3 * 2.0**-0.7, rel=1e-5)
    elif share:
        assert found == pytest.approx(((size + 2.0) ** 0.3 - 2.0**0.3) / size, rel=1e-12)
    assert np.isfinite(found)


def test_one_coefficient_by_exhaustive_search():
    grid = np.linspace(-3, 3, 60_001)
    for x in (0.3, 1.0, 2.5):
        coder = Bridge(0.5, 0.5, delta=0.2, max_iter=500)
        (code,) = encode(np.array([[x]]), np.eye(1), coder).toarray()[0]
        cost = 0.5 * (x - grid) ** 2 + 0.5 * ((np.abs(grid) + 0.2) ** 0.5 - 0.2**0.5)
        found = 0.5 * (x - code) ** 2 + coder.penalty(sparse.csr_array([[code]]))[0]
        assert found == pytest.approx(cost.min(), abs=1e-6)


def test_learning_with_the_bridge():
    X, _ = planted(n=500)
    result = learn(X, 12, Bridge(0.3), max_epochs=4, random_state=0, validation=X[:100])
    assert result.history[-1].test_cost < 0.8 * result.history[0].test_cost
    assert result.coder.delta == pytest.approx(0.01 * np.sqrt((X**2).sum(1).mean()), rel=0.2)
    model = DictionaryLearning(12, coder=Bridge(0.3), random_state=0).fit(X)
    assert model.transform(X[:5]).shape == (5, 12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"p": 0.0}, "p must lie strictly between 0 and 1"),
        ({"p": 1.0}, "p must lie strictly between 0 and 1"),
        ({"p": -1}, "p must lie"),
        ({"lam": -1.0}, "lam must be >= 0"),
        ({"lam": np.inf}, "finite"),
        ({"delta": 0.0}, "delta must be > 0"),
        ({"max_iter": 0}, "max_iter must be >= 1"),
    ],
)
def test_bad_bridges(settings, message):
    with pytest.raises(ValueError, match=message):
        Bridge(**{"lam": 0.1, **settings})


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_bridge_is_never_worse_than_zero(dtype):
    """A stationary point may be: it starts from a lasso whose penalty is another one."""
    X = np.linspace(-0.3, 0.3, 61)[:, None].astype(dtype)
    coder = Bridge(0.01, 0.3, delta=1e-4)
    codes = encode(X, np.ones((1, 1), dtype), coder)
    left = X[:, 0].astype(np.float64) - codes.toarray()[:, 0]
    cost = 0.5 * left**2 + coder.penalty(codes)
    assert np.all(cost <= 0.5 * X[:, 0].astype(np.float64) ** 2 + 1e-9)
    assert 0 < codes.nnz < len(X)
