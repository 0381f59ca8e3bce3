"""Pursuits over atoms that nearly depend on each other: they go on, or say why not."""

import warnings

import numpy as np
import pytest
import scipy
from problems import DTYPES

from smalto import encode
from smalto.coders import L0, OMP, ErrorBound, JointOMP


def nearly_one_direction(dtype, eta, n=40):
    """Atoms that differ by ``eta``, and signals that have nothing to do with them."""
    rng = np.random.default_rng(0)
    D = rng.standard_normal(20) + eta * rng.standard_normal((50, 20))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    return rng.standard_normal((n, 20)).astype(dtype), D.astype(dtype)


def errors(X, D, codes):
    """The squared errors of codes, in float64."""
    return ((X.astype(float) - codes.toarray().astype(float) @ D.astype(float)) ** 2).sum(axis=1)


def greedy_errors(X, D, count):
    """Squared errors of an order-recursive pursuit, after each atom, by QR factorizations."""
    found = np.empty((len(X), count))
    X, D = X.astype(float), D.astype(float)
    for row, x in enumerate(X):
        chosen, left = [], x
        for step in range(count):
            basis = np.linalg.qr(D[chosen].T)[0]
            rest = D - (D @ basis) @ basis.T
            rest -= (rest @ basis) @ basis.T
            outside = (rest * rest).sum(axis=1)
            outside[chosen] = np.inf
            chosen.append(int(np.argmax((D @ left) ** 2 / outside)))
            left = x - np.linalg.lstsq(D[chosen].T, x, rcond=None)[0] @ D[chosen]
            found[row, step] = left @ left
    return found


@pytest.mark.parametrize(("dtype", "eta"), [(np.float32, 1e-3), (np.float64, 1e-6)])
def test_omp_takes_as_many_atoms_as_it_may(dtype, eta):
    X, D = nearly_one_direction(dtype, eta)
    expected = greedy_errors(X, D, 8)
    for count in (1, 2, 5, 8):
        codes = encode(X, D, OMP(max_nonzeros=count))
        assert np.all(np.diff(codes.indptr) == count)
        assert errors(X, D, codes).mean() <= 1.05 * expected[:, count - 1].mean()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("eta", [1e-2, 1e-3, 1e-6, 1e-8, 1e-12])
@pytest.mark.parametrize("look_ahead", [True, False])
def test_more_atoms_are_never_worse(dtype, eta, look_ahead):
    X, D = nearly_one_direction(dtype, eta, 12)
    before = (X.astype(float) ** 2).sum(axis=1)
    for count in (1, 2, 5, 8, 15):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*codes are not proven optimal")
            codes = encode(X, D, OMP(max_nonzeros=count, look_ahead=look_ahead))
        now = errors(X, D, codes)
        # The choice is greedy, and so are its rounding errors: means fall, single errors nearly so.
        assert now.mean() <= before.mean() * (1 + 1e-6)
        before = now


@pytest.mark.parametrize(("dtype", "eta"), [(np.float32, 1e-3), (np.float64, 1e-6)])
def test_groups_take_as_many_atoms_as_they_may(dtype, eta):
    X, D = nearly_one_direction(dtype, eta)
    codes = encode(X, D, JointOMP(max_nonzeros=8), groups=np.arange(40) // 4)
    easy, atoms = nearly_one_direction(np.float64, 1e-2)
    other = encode(easy, atoms, JointOMP(max_nonzeros=8), groups=np.arange(40) // 4)
    assert np.all(np.diff(codes.indptr) == 8)
    assert errors(X, D, codes).mean() <= 1.1 * errors(easy, atoms, other).mean()


@pytest.mark.parametrize(("dtype", "eta"), [(np.float32, 1e-3), (np.float64, 1e-6)])
def test_a_penalty_on_nonzeros_is_worth_as_much_as_for_other_atoms(dtype, eta):
    X, D = nearly_one_direction(dtype, eta)
    easy, atoms = nearly_one_direction(np.float64, 1e-2)
    costs = [
        0.5 * errors(x, d, codes) + 0.1 * np.diff(codes.indptr)
        for x, d in ((X, D), (easy, atoms))
        for codes in [encode(x, d, L0(0.1))]
    ]
    assert costs[0].mean() <= 1.1 * costs[1].mean()


def test_similar_atoms_and_sparse_signals():
    """In float32 all atoms have the same correlations, and then none is left with the residual."""
    rng = np.random.default_rng(0)
    D = np.abs(rng.standard_normal(6)) + 5e-8 * rng.standard_normal((7, 6))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    X = rng.standard_normal((40, 1)) * D[:1] + 0.1 * rng.standard_normal((40, 6))
    for lam in (1e-3, 3e-3):
        dense, held = (encode(part, D, L0(lam)) for part in (X, scipy.sparse.csr_array(X)))
        assert min(dense.nnz, held.nnz) > 2.4 * len(X)


def most_left_to_gain(x, D, code, cost):
    """What another atom would gain, beyond its cost, as a share of ‖x‖², by QR factorizations."""
    used = code != 0
    basis = np.linalg.qr(D[used].T)[0]
    rest = D - (D @ basis) @ basis.T
    rest -= (rest @ basis) @ basis.T
    outside = (rest * rest).sum(axis=1)
    able = outside > 1e-16
    gains = np.where(able, (rest @ (x - code @ D)) ** 2 / np.where(able, outside, 1.0), 0.0)
    return (gains.max() - cost) / (x @ x)


def bumps(seed, width, n=60):
    """Atoms that overlap, and signals that have nothing to do with them."""
    rng = np.random.default_rng(seed)
    centers = np.sort(rng.uniform(0, 35, 27))
    D = np.exp(-0.5 * ((np.arange(36) - centers[:, None]) / width) ** 2)
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    return rng.integers(-2, 3, (n, 36)).astype(float), D


@pytest.mark.parametrize(
    ("seed", "width"),
    [
        *((0, 2.0), (3, 2.0), (4, 1.2), (4, 1.6), (5, 2.0)),  # a new pursuit ends earlier
        *((33, 1.2), (2, 1.2)),  # the errors of float32 are off
        *((1, 2.0), (10, 1.6), (18, 2.0), (28, 2.4)),  # correlations are nearly rounding
    ],
)
def test_a_pursuit_goes_on_while_an_atom_gains_something(seed, width):
    X, D = bumps(seed, width)
    codes = encode(X, D, L0(0.05)).toarray()
    left = [most_left_to_gain(x, D, code, 0.1) for x, code in zip(X, codes, strict=True)]
    assert max(left) <= 5e-5


@pytest.mark.parametrize("coder", [L0(0.005), OMP(eps=15.0), OMP(max_nonzeros=20)], ids=repr)
def test_errors_that_rounding_makes_negative_end_no_pursuit(coder):
    X, D = (part.astype(np.float32) for part in bumps(117, 2.4, 40))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "eps is out of reach")
        code = encode(X[[17]], D, coder).toarray()[0]
    assert most_left_to_gain(X[17].astype(float), D.astype(float), code, 0.0) <= 1e-2


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_depends_exactly_is_not_asked_for(dtype):
    """Duplicates and atoms of low rank: the pursuit ends with the rank, quickly and unsaid."""
    rng = np.random.default_rng(1)
    D = rng.integers(-2, 3, (3, 12))[np.arange(30) % 3].astype(dtype)
    X = rng.standard_normal((50, 12)).astype(dtype)
    for coder in (OMP(max_nonzeros=8), OMP(max_nonzeros=8, positive=True), L0(1e-3)):
        codes = encode(X, D, coder)
        assert np.diff(codes.indptr).max() <= 3
    best = np.linalg.lstsq(D.T.astype(float), X.T.astype(float), rcond=None)[0].T
    least = ((X - best @ D) ** 2).sum(axis=1)
    np.testing.assert_allclose(errors(X, D, encode(X, D, OMP(max_nonzeros=8))), least, rtol=1e-4)


@pytest.mark.parametrize("share", [1e-3, 1e-5, 1e-6, 1e-8])
@pytest.mark.parametrize("condition", [1.0, 100.0])
def test_small_errors_are_reached_in_float32(share, condition):
    rng = np.random.default_rng(2)
    D = rng.standard_normal((96, 48)) * np.geomspace(1, 1 / condition, 48)
    D = (D / np.linalg.norm(D, axis=1, keepdims=True)).astype(np.float32)
    X = rng.standard_normal((120, 48)).astype(np.float32)
    eps = share * (X.astype(float) ** 2).sum(axis=1)
    for coder in (OMP(eps=eps), ErrorBound(eps)):
        assert np.all(errors(X, D, encode(X, D, coder)) <= 1.02 * eps)
    codes = encode(X, D, JointOMP(eps=float(eps.mean())), groups=np.arange(120) // 8)
    assert np.all(errors(X, D, codes).reshape(-1, 8).mean(axis=1) <= 1.02 * eps.mean())


def test_the_warning_says_what_helps():
    X, D = nearly_one_direction(np.float32, 1e-4, 20)
    with pytest.warns(RuntimeWarning, match=r"errors above eps.* use float64, .*a larger eps"):
        encode(X, D, OMP(eps=1e-8))


@pytest.mark.parametrize(
    ("dtype", "x"), [(np.float32, [1, 3e-4, 2e-4, 1e-4]), (np.float64, [0.3, 1e-9, 1e-9, 1e-9])]
)
@pytest.mark.parametrize(
    "coder",
    [
        OMP(max_nonzeros=4),
        OMP(max_nonzeros=4, positive=True),
        OMP(max_nonzeros=4, look_ahead=False),
        JointOMP(max_nonzeros=4),
    ],
)
def test_small_entries_are_coded_beside_large_ones(coder, dtype, x):
    """The error, a difference of squares, is rounded to zero long before."""
    codes = encode(np.array([x], dtype), np.eye(4, dtype=dtype), coder)
    np.testing.assert_allclose(codes.toarray()[0], x, rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "coder", [OMP(6), OMP(6, positive=True), OMP(eps=0.0), L0(0.1), L0(0.0), JointOMP(6)], ids=repr
)
def test_signals_that_are_zero_have_no_atoms(coder, dtype):
    rng = np.random.default_rng(0)
    X, D = np.zeros((5, 8), dtype), rng.standard_normal((20, 8)).astype(dtype)
    X[1] = rng.standard_normal(8)
    codes = encode(X, D, coder, groups=np.arange(5) if isinstance(coder, JointOMP) else None)
    counts = np.diff(codes.indptr)
    assert counts[1] <= 8
    assert counts.sum() == counts[1] > 0


def test_a_small_error_is_met_before_the_number_of_nonzeros():
    rng = np.random.default_rng(4)
    D = np.linalg.qr(rng.standard_normal((64, 64)))[0]
    X = np.zeros((60, 64))
    for x in X:
        some = rng.choice(64, 10, replace=False)
        x[:] = (10.0 ** rng.uniform(-6, 0, 10) * rng.choice([-1, 1], 10)) @ D[some]
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X, D = X.astype(np.float32), D.astype(np.float32)
    codes = encode(X, D, OMP(max_nonzeros=39, eps=1e-8))
    assert np.all(np.diff(codes.indptr) < 39)
    assert np.all(errors(X, D, codes) <= 1.02e-8)
    codes = encode(X, D, JointOMP(max_nonzeros=60, eps=1e-8), groups=np.arange(60) // 3)
    assert np.all(np.diff(codes.indptr) < 60)
    assert np.all(errors(X, D, codes).reshape(-1, 3).mean(axis=1) <= 1.02e-8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_where_neither_limit_is_reached_it_is_said(dtype):
    D, X = np.repeat(np.eye(3, 8, dtype=dtype), 2, axis=0), np.ones((4, 8), dtype)
    with pytest.warns(UserWarning, match="neither max_nonzeros nor eps is reached for 1 of 4 sig"):
        encode(X, D, OMP(max_nonzeros=[1, 2, 3, 4], eps=0.1))
    with pytest.warns(
        UserWarning, match="neither max_nonzeros nor eps is reached for 2 of 2 groups"
    ):
        encode(X, D, JointOMP(max_nonzeros=4, eps=0.1), groups=[0, 0, 1, 1])
    encode(X, D, OMP(max_nonzeros=4, eps=5.1))


def test_non_negative_codes_in_reach_are_found():
    rng = np.random.default_rng(0)
    D, X = rng.standard_normal((128, 64)), rng.standard_normal((40, 64))
    D, X = ((a / np.linalg.norm(a, axis=1, keepdims=True)).astype(np.float32) for a in (D, X))
    for coder in (OMP(eps=1e-9, positive=True), ErrorBound(1e-9, positive=True)):
        assert np.all(errors(X, D, encode(X, D, coder)) <= 1.2e-9)


@pytest.mark.parametrize("share", [1e-4, 1e-6, 1e-8])
def test_gaps_of_small_error_bounds_in_float32(share):
    rng = np.random.default_rng(5)
    D, X = rng.standard_normal((64, 32)).astype("f"), rng.standard_normal((30, 32)).astype("f")
    codes, info = encode(X, D, ErrorBound(32 * share), return_info=True)
    assert np.all(info.gap <= 1e-3 * abs(codes).sum(axis=1))


@pytest.mark.parametrize(("dtype", "eta"), [(np.float32, 1e-4), (np.float64, 1e-7)])
def test_errors_out_of_reach_are_as_small_as_they_can_be(dtype, eta):
    X, D = nearly_one_direction(dtype, eta, 20)
    D = D[:10]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "eps is out of reach|.*codes are not proven optimal")
        codes = encode(X, D, OMP(eps=1e-6))
    best = greedy_errors(X, D, 8)[:, -1]
    assert errors(X, D, codes).mean() <= 1.1 * best.mean()
