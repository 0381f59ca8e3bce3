"""JointLasso and JointOMP of signals with missing entries, from their definitions."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from missing_entries import holes, quiet
from naive_joint import joint_lasso_holes, joint_omp_holes
from problems import DEGENERATE, DTYPES, examples, ordinary, problems

from smalto import encode
from smalto.coders import OMP, JointLasso, JointOMP, Lasso, duality_gap
from smalto.coders.chunks import Problem
from smalto.coders.joint_with_holes import joint_with_holes

GAP = {np.float32: 2e-5, np.float64: 1e-9}


def cost(X, D, A, lam, mask):
    """``Σ ½‖known ∘ (x − αD)‖² + lam Σ_j ‖A_j‖₂`` of one group."""
    left = np.where(mask, 0.0, X - A @ D)
    return 0.5 * (left**2).sum() + lam * np.linalg.norm(A, axis=0).sum()


def gap_by_definition(X, D, A, lam, mask):
    left = np.where(mask, 0.0, X - A @ D)
    theta = left * min(1.0, lam / max(np.linalg.norm(left @ D.T, axis=0).max(initial=0), 1e-300))
    dual = (np.where(mask, 0.0, X) * theta).sum() - 0.5 * (theta**2).sum()
    return cost(X, D, A, lam, mask) - dual


def some_groups(n):
    """Interleaved groups of sizes 1, 2, 3, ..."""
    sizes = np.repeat(np.arange(n), np.arange(1, n + 1))[:n]
    return np.random.default_rng(0).permutation(sizes)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("share", [0.7, 0.02])
@pytest.mark.parametrize("name", DEGENERATE)
def test_joint_lasso_is_optimal(name, share, dtype):
    X, D = (array.astype(dtype).astype(float) for array in DEGENERATE[name])
    mask, labels = holes(X, 0.3), some_groups(len(X))
    lam = share * max(np.abs(X @ D.T).max(), 1e-3)
    codes = encode(X.astype(dtype), D.astype(dtype), JointLasso(lam), mask=mask, groups=labels)
    assert codes.dtype == dtype
    certified = duality_gap(X, D, codes, JointLasso(lam), mask=mask, groups=labels)
    for label in np.unique(labels):
        rows = labels == label
        A = codes.toarray()[rows].astype(float)
        gap = gap_by_definition(X[rows], D, A, lam, mask[rows])
        half = 0.5 * (np.where(mask, 0.0, X)[rows] ** 2).sum()
        assert (
            gap
            <= GAP[dtype] * cost(X[rows], D, A, lam, mask[rows]) / share
            + 1e-5 * half * (dtype == np.float32)
            + 1e-14 * half
        )
        np.testing.assert_allclose(certified[rows].sum(), max(gap, 0.0), atol=1e-12 * half)


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_joint_lasso_is_its_twin(share):
    X, D = ordinary(11, n=14)
    labels, mask = np.array(list("abacabadabacab")), holes(X, 0.25)
    lam = share * np.abs(X @ D.T).max()
    codes, info = encode(X, D, JointLasso(lam), mask=mask, groups=labels, return_info=True)
    for label in "abcd":
        rows = labels == label
        twin = joint_lasso_holes(X[rows], D, lam, mask[rows])
        np.testing.assert_allclose(codes.toarray()[rows], twin, atol=1e-7)
        assert len(set(info.iterations[rows])) == 1
    assert info.gap.sum() <= 1e-9
    scaled = encode(X, D, JointLasso(lam / 2, by_size=True), mask=mask, groups=labels)
    rows = labels == "b"  # four of them
    np.testing.assert_allclose(scaled.toarray()[rows], codes.toarray()[rows], atol=1e-7)


@pytest.mark.parametrize("look_ahead", [True, False])
@pytest.mark.parametrize(
    "limits", [{"max_nonzeros": 4}, {"eps": 0.1}, {"max_nonzeros": 6, "eps": 0.2}]
)
def test_joint_omp_is_its_twin(limits, look_ahead):
    X, D = ordinary(12, n=14)
    labels, mask = np.array(list("abacabadabacab")), holes(X, 0.25)
    codes = encode(X, D, JointOMP(look_ahead=look_ahead, **limits), mask=mask, groups=labels)
    for label in "abcd":
        rows = labels == label
        twin = joint_omp_holes(
            X[rows],
            D,
            limits.get("max_nonzeros", 99),
            mask[rows],
            limits.get("eps", 0.0),
            look_ahead,
        )
        np.testing.assert_allclose(codes.toarray()[rows], twin, atol=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
def test_groups_of_one_are_single_signals(dtype):
    X, D = ordinary(3)
    X, D, mask, labels = X.astype(dtype), D.astype(dtype), holes(X, 0.4), np.arange(len(X))
    for single, joint in [
        (Lasso(0.1), JointLasso(0.1)),
        (OMP(3), JointOMP(3)),
        (OMP(eps=0.1), JointOMP(eps=0.1)),
        (OMP(3, look_ahead=False), JointOMP(3, look_ahead=False)),
    ]:
        one = quiet(X, D, single, mask=mask).toarray()
        both = quiet(X, D, joint, mask=mask, groups=labels).toarray()
        np.testing.assert_allclose(both, one, atol=2e-4 if dtype == np.float32 else 1e-7)


@pytest.mark.parametrize("coder", [JointLasso(0.2), JointOMP(3), JointOMP(eps=0.1)], ids=repr)
def test_groups_without_holes_keep_their_bits(coder):
    X, D = ordinary(4, n=24)
    labels, mask = np.repeat(np.arange(6), 4), np.zeros(X.shape, bool)
    whole = quiet(X, D, coder, groups=labels).toarray()
    np.testing.assert_array_equal(quiet(X, D, coder, mask=mask, groups=labels).toarray(), whole)
    mask[5, 2] = mask[18, 1] = True
    some = quiet(X, D, coder, mask=mask, groups=labels).toarray()
    touched = np.isin(labels, [1, 4])
    np.testing.assert_array_equal(some[~touched], whole[~touched])
    assert np.abs(some - whole)[touched].max() > 0


@pytest.mark.parametrize("coder", [JointLasso(0.2), JointOMP(3)], ids=repr)
def test_few_holes_change_little(coder):
    X, D = ordinary(5, n=12)
    X = np.hstack([X, np.zeros((12, 1))])
    D = np.hstack([D, np.zeros((24, 1))])  # a feature that no atom has
    mask = np.zeros(X.shape, bool)
    whole = encode(X, D, coder).toarray()
    mask[::2, -1] = True
    np.testing.assert_allclose(encode(X, D, coder, mask=mask).toarray(), whole, atol=1e-7)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "coder", [JointLasso(0.1), JointLasso(0.0), JointOMP(4), JointOMP(eps=0.01)], ids=repr
)
def test_signals_without_known_entries_have_zero_codes(coder, dtype):
    X, D = ordinary(6, n=6)
    mask = holes(X, 0.3)
    mask[2] = True
    codes = quiet(X.astype(dtype), D.astype(dtype), coder, mask=mask)
    assert np.diff(codes.indptr)[2] == 0
    assert codes.nnz > 0
    mask[:] = True
    assert quiet(X.astype(dtype), D.astype(dtype), coder, mask=mask).nnz == 0
    nan = np.where(holes(X, 0.3), np.nan, X).astype(dtype)
    assert quiet(nan, D.astype(dtype), coder, missing="nan").nnz > 0


def test_few_known_entries_are_fitted_and_no_more():
    """Each signal takes what does not depend, on its known entries, on the atoms that it has."""
    X, D = ordinary(7, n=5, k=12, m=8)
    mask = np.zeros(X.shape, bool)
    mask[0, 1:] = True  # one known entry
    mask[1, 3:] = True
    codes = encode(X, D, JointOMP(6), mask=mask).toarray()
    assert np.count_nonzero(codes[0]) == 1
    assert np.count_nonzero(codes[1]) == 3
    left = np.where(mask, 0.0, X - codes @ D)
    assert np.abs(left[:2]).max() < 1e-12
    whole = encode(X, D, JointLasso(0.0), mask=mask).toarray()  # least squares
    assert np.abs(np.where(mask, 0.0, X - whole @ D)).max() < 1e-9


def test_error_bounds_count_known_entries():
    X, D = ordinary(8, n=30)
    labels, mask = np.repeat(np.arange(10), 3), holes(X, 0.4)
    codes = encode(X, D, JointOMP(eps=0.05), mask=mask, groups=labels).toarray()
    errors = (np.where(mask, 0.0, X - codes @ D) ** 2).sum(axis=1)
    assert (np.bincount(labels, errors) <= 0.05 * 3 * (1 + 1e-9)).all()
    short = D[:4]  # atoms that cannot do it
    with pytest.warns(UserWarning, match="eps is out of reach for 10 of 10 groups"):
        codes = encode(X, short, JointOMP(eps=1e-3), mask=mask, groups=labels).toarray()
    left = np.where(mask, 0.0, X - codes @ short)
    assert np.abs(left @ short.T).max() < 1e-9  # least squares


@st.composite
def masked_problems(draw):
    X, D, lam, _, look_ahead = draw(problems())
    share = draw(st.sampled_from([0.1, 0.3, 0.7]))
    labels = np.array(draw(st.lists(st.integers(0, 2), min_size=len(X), max_size=len(X))))
    return X, D, lam, look_ahead, holes(X, share, draw(st.integers(0, 99))), labels


@pytest.mark.parametrize("dtype", DTYPES)
@examples(80)
@given(masked_problems())
def test_any_joint_lasso(dtype, problem):
    X, D, lam, _, mask, labels = problem
    X, D = X.astype(dtype), D.astype(dtype)
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", ".*codes are not proven optimal")
        codes = quiet_of_zeros(X, D, JointLasso(lam), mask, labels)
    X, D = X.astype(float), D.astype(float)
    for label in np.unique(labels):
        rows = labels == label
        A, known = codes[rows].astype(float), np.where(mask, 0.0, X)[rows]
        half, value = 0.5 * (known**2).sum(), cost(X[rows], D, A, lam, mask[rows])
        assert value <= half * (1 + 1e-6)
        if lam == 0.0:
            left = np.where(mask[rows], 0.0, X[rows] - A @ D)
            tolerance = 1e-3 if dtype == np.float32 else 1e-7
            assert np.abs(left @ D.T).max() <= tolerance * (1 + np.abs(known @ D.T).max())
            continue
        gap = gap_by_definition(X[rows], D, A, lam, mask[rows])
        if dtype == np.float64:
            assert not caught
            assert gap <= 2e-10 * value + 1e-14 * half
        elif not caught:
            assert gap <= 2e-3 * value + 1e-5 * half


def quiet_of_zeros(X, D, coder, mask, labels):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "every code is zero|eps is out|max_nonzeros=")
        return encode(X, D, coder, mask=mask, groups=labels).toarray()


@pytest.mark.parametrize("dtype", DTYPES)
@examples(80)
@given(masked_problems(), st.integers(0, 5))
def test_any_joint_omp(dtype, problem, most):
    """Each signal has least squares on its atoms, at most so many; the twin's error is no lower."""
    X, D, _, look_ahead, mask, labels = problem
    coder = JointOMP(most, look_ahead=look_ahead)
    codes = quiet_of_zeros(X.astype(dtype), D.astype(dtype), coder, mask, labels).astype(float)
    X, D = (array.astype(dtype).astype(float) for array in (X, D))
    for label in np.unique(labels):
        rows = labels == label
        A, hidden = codes[rows], mask[rows]
        assert A.any(axis=0).sum() <= most
        left = np.where(hidden, 0.0, X[rows] - A @ D)
        assert (left**2).sum() <= (np.where(hidden, 0.0, X[rows]) ** 2).sum() * (1 + 1e-9)
        tolerance = 1e-4 if dtype == np.float32 else 1e-9
        scale = 1 + np.abs(X).max() * np.abs(D).max() * D.shape[1]
        assert np.abs((left @ D.T)[A != 0]).max(initial=0.0) <= tolerance * scale
        if most == 1:  # ties do not matter
            twin = joint_omp_holes(X[rows], D, most, hidden, 0.0, look_ahead)
            error = (np.where(hidden, 0.0, X[rows] - twin @ D) ** 2).sum()
            if look_ahead:
                assert (left**2).sum() == pytest.approx(error, abs=tolerance * scale)


@pytest.mark.parametrize("coder", [JointLasso(0.1), JointOMP(3), JointOMP(eps=0.05)], ids=repr)
def test_threads_and_order_of_rows_do_not_matter(coder):
    X, D = ordinary(9, n=300)
    mask, labels = holes(X, 0.2), np.random.default_rng(1).integers(0, 60, 300)
    one = quiet(X, D, coder, mask=mask, groups=labels, n_threads=1).toarray()
    two = quiet(X, D, coder, mask=mask, groups=labels, n_threads=2).toarray()
    np.testing.assert_array_equal(one, two)
    back = quiet(X[::-1], D, coder, mask=mask[::-1], groups=labels[::-1]).toarray()[::-1]
    np.testing.assert_allclose(back, one, atol=1e-7)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
@pytest.mark.parametrize("coder", [JointLasso(0.1), JointOMP(3)], ids=repr)
def test_any_size(coder, scale):
    X, D = ordinary(10, n=8)
    mask, labels = holes(X, 0.3), np.repeat([0, 1], 4)
    known = encode(X, D, coder, mask=mask, groups=labels).toarray()
    scaled = JointLasso(0.1 * scale) if isinstance(coder, JointLasso) else coder
    codes = encode(scale * X, D, scaled, mask=mask, groups=labels).toarray()
    np.testing.assert_allclose(codes / scale, known, rtol=1e-9, atol=1e-9)


def test_similar_atoms():
    """Nearly equal atoms: the certain methods, with masks of each signal."""
    rng = np.random.default_rng(0)
    X, D = ordinary(11, n=6, k=6)
    D = np.vstack([D, D + 1e-9 * rng.standard_normal(D.shape)])
    mask, lam = holes(X, 0.3), 1e-6
    codes = encode(X, D, JointLasso(lam), mask=mask).toarray()
    half = 0.5 * (np.where(mask, 0.0, X) ** 2).sum()
    assert gap_by_definition(X, D, codes, lam, mask) <= 1e-8 * half
    problem = Problem(np.where(mask, 0.0, X), D, np.ones(12), None, np.dtype(float), mask)
    certain = JointLasso(lam).certain(problem)
    value = cost(X, D, certain, lam, mask)
    assert JointLasso(lam).lower_bound(problem, certain) == pytest.approx(value, rel=1e-8)
    assert value == pytest.approx(cost(X, D, codes, lam, mask), rel=1e-8)
    pursued = JointOMP(6).certain(problem)
    left = np.where(mask, 0.0, X - pursued @ D)
    assert np.abs(pursued).max() < 100.0
    np.testing.assert_allclose(
        (left**2).sum(),
        (np.where(mask, 0.0, X - encode(X, D, JointOMP(6), mask=mask).toarray() @ D) ** 2).sum(),
    )


def test_matrices_of_many_signals_are_made_again(monkeypatch):
    """A group too large to keep a matrix for each signal has the same codes."""
    X, D = ordinary(12, n=15)
    mask = holes(X, 0.3)
    X = np.where(mask, 0.0, X)
    A = joint_with_holes(X, D, mask, 0.3, 1e-10)[0]
    for careful in (False, True):
        monkeypatch.setattr("smalto.coders.joint_with_holes._AT_ONCE", 1)
        monkeypatch.setattr("smalto.coders.joint_with_holes._KEPT", 1)
        new, rounds, gap = joint_with_holes(X, D, mask, 0.3, 1e-10, careful=careful)
        np.testing.assert_allclose(new, A, atol=1e-9)
        assert rounds > 0
        assert gap <= 1e-10


@pytest.mark.parametrize("coder", [JointLasso(0.1), JointOMP(3), JointOMP(eps=0.1)])
def test_zero_atoms_are_never_used(coder):
    X = np.random.default_rng(0).standard_normal((6, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the bound is out of reach, and all codes are zero
        codes = encode(X, np.zeros((4, 5)), coder, mask=X > 1.0)
    assert codes.nnz == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tiny_lam_and_duplicate_atoms_take_few_rounds(dtype):
    """The barrier is then larger than the penalty of all atoms, which stay nevertheless."""
    X, D = ordinary(13, n=6, k=1, m=9)
    D = np.vstack([D, D]).astype(dtype)
    lam, mask = 1e-7, holes(X, 0.3)
    codes, info = encode(
        X.astype(dtype), D, JointLasso(lam), mask=mask, groups=np.zeros(6), return_info=True
    )
    assert info.iterations.max() < 20
    half = 0.5 * (np.where(mask, 0.0, X) ** 2).sum()
    gap = gap_by_definition(
        X.astype(dtype).astype(float), D.astype(float), codes.toarray(), lam, mask
    )
    assert gap <= {np.float32: 1e-3, np.float64: 1e-8}[dtype] * half
