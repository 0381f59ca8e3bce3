"""JointLasso and JointOMP: exact on everything, group by group, whatever the groups look like."""

import warnings

import naive
import numpy as np
import pytest
from hypothesis import given
from naive_joint import (
    joint_gains,
    joint_lasso,
    joint_lasso_cost,
    joint_lasso_violation,
    joint_omp,
    joint_omp_error,
    refit,
)
from problems import DEGENERATE, DTYPES, examples, ordinary, problems
from scipy import sparse

from smalto import encode
from smalto.coders import OMP, JointLasso, JointOMP, Lasso, duality_gap

TOLERANCE = {np.float32: 2e-4, np.float64: 1e-8}
GAP = {np.float32: 2e-5, np.float64: 1e-9}


def quiet(X, D, coder, **kwargs):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "eps is out of reach|max_nonzeros=")
        return encode(X, D, coder, **kwargs)


def seen(X, D, dtype):
    """The numbers that the coder has seen: those rounded to its dtype."""
    return X.astype(dtype).astype(float), D.astype(dtype).astype(float)


def parts(codes, labels):
    """Each group's rows and dense codes in float64."""
    dense = codes.toarray().astype(float)
    return [(labels == label, dense[labels == label]) for label in np.unique(labels)]


def some_groups(n):
    """Interleaved groups of sizes 1, 2, 3, ..."""
    sizes = np.repeat(np.arange(n), np.arange(1, n + 1))[:n]
    return np.random.default_rng(0).permutation(sizes)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("share", [0.7, 0.2, 0.02])
@pytest.mark.parametrize("name", DEGENERATE)
def test_joint_lasso_is_optimal(name, share, dtype):
    X, D = seen(*DEGENERATE[name], dtype)
    labels = some_groups(len(X))
    lam = share * max(np.abs(X @ D.T).max(), 1e-3)
    codes = encode(X.astype(dtype), D.astype(dtype), JointLasso(lam), groups=labels)
    assert codes.dtype == dtype
    gap = duality_gap(X, D, codes, JointLasso(lam), groups=labels)
    for rows, A in parts(codes, labels):
        cost = joint_lasso_cost(X[rows], D, A, lam)
        scale = np.linalg.norm(X[rows] @ D.T, axis=0).max()
        # what float32 codes can express at best
        rounding = np.finfo(dtype).eps * np.abs(A).max(initial=0.0) * np.abs(D @ D.T).max()
        tolerance = TOLERANCE[dtype] * (scale + lam) + 30 * rounding * np.sqrt(rows.sum())
        assert joint_lasso_violation(X[rows], D, A, lam) <= tolerance * (1 + 30 * (share < 0.1))
        floor = 30 * np.finfo(dtype).eps * 0.5 * (X[rows] ** 2).sum()
        assert gap[rows].sum() <= GAP[dtype] * cost / share + floor
        used = np.abs(A).sum(0) > 0
        counts = np.diff(codes.indptr)[rows]
        assert (counts == used.sum()).all()


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_joint_lasso_is_its_twin(share):
    X, D = ordinary(11, n=14)
    labels = np.array(list("abacabadabacab"))
    lam = share * np.abs(X @ D.T).max()
    codes, info = encode(X, D, JointLasso(lam), groups=labels, return_info=True)
    for rows, A in parts(codes, labels):
        np.testing.assert_allclose(A, joint_lasso(X[rows], D, lam), atol=1e-7)
        assert len(set(info.iterations[rows])) == 1
    assert (info.gap >= 0).all()
    assert info.gap.sum() <= 1e-9
    scaled = encode(X, D, JointLasso(lam / 2, by_size=True), groups=labels)
    rows = labels == "b"  # four of them
    np.testing.assert_allclose(scaled.toarray()[rows], codes.toarray()[rows], atol=1e-7)


def check_joint_lasso(X, D, lam, dtype):
    """The duality gap that is promised; in float32 it may be missed, but not unsaid."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", ".*codes are not proven optimal")
        codes = encode(X.astype(dtype), D.astype(dtype), JointLasso(lam)).toarray().astype(float)
    X, D = seen(X, D, dtype)
    cost, zero = joint_lasso_cost(X, D, codes, lam), 0.5 * (X**2).sum()
    gap = duality_gap(X, D, codes, JointLasso(lam)).sum()
    if dtype == np.float64:
        assert not caught
        assert gap <= 2e-10 * cost + 1e-14 * zero
    elif caught:
        assert gap > 1e-4 * cost
        assert cost <= zero
    else:
        assert gap <= 2e-3 * cost + 1e-5 * zero


@pytest.mark.parametrize("dtype", DTYPES)
@examples(80)
@given(problems())
def test_any_joint_lasso(dtype, problem):
    X, D, lam, _, _ = problem
    if lam > 0.0:
        check_joint_lasso(X, D, lam, dtype)
        return
    residual = X - encode(X, D, JointLasso(0.0)).toarray() @ D
    assert np.abs(residual @ D.T).max() <= 1e-7 * (1 + np.abs(X @ D.T).max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("X", "D"),
    [
        ([[0.0], [-0.5], [0.0]], [[-0.3], [-0.5], [-0.5], [0.5], [-0.3]]),
        (
            [[0.1, -1.0], [0.5, 2.0], [0.5, 1.0], [0.0, 1.0]],
            [[0.5, 0.0], [1.0, -1.0], [0.5, 0.1], [1.0, -1.0]],
        ),
        (
            [[1.0, 0.1], [0.5, 2.0], [1.0, 1.0]],
            [[0.5, -0.5], [0.1, 2.0], [1.0, 2.0], [1.0, -0.5], [-0.5, 1.0], [0.1, 2.0]],
        ),
    ],
)
def test_newton_steps_are_not_led_astray_by_dependent_atoms(X, D, dtype):
    """Where atoms depend on each other the curvature of a step is all rounding."""
    X, D = np.array(X), np.array(D)
    check_joint_lasso(X, D, 0.01, dtype)
    codes = encode(X.astype(dtype), D.astype(dtype), JointLasso(0.01))  # without a warning
    gap = duality_gap(*seen(X, D, dtype), codes, JointLasso(0.01)).sum()
    assert gap <= (1e-6 if dtype == np.float32 else 1e-10) * 0.5 * (X**2).sum()


@pytest.mark.parametrize("dtype", DTYPES)
def test_groups_of_one_are_the_lasso(dtype):
    X, D = ordinary(3)
    X, D = X.astype(dtype), D.astype(dtype)
    lam = 0.15
    one = encode(X, D, JointLasso(lam), groups=np.arange(len(X)))
    lasso = encode(X, D, Lasso(lam))
    np.testing.assert_allclose(
        one.toarray(), lasso.toarray(), atol=1e-3 if dtype == np.float32 else 1e-6
    )
    codes = one.toarray().astype(float)
    gap = naive.lasso_gap(X, D, codes, lam)
    assert np.all(gap <= GAP[dtype])
    np.testing.assert_allclose(
        duality_gap(X, D, one, JointLasso(lam), groups=np.arange(len(X))),
        duality_gap(X, D, one, Lasso(lam)), atol=1e-12,
    )  # fmt: skip


def test_joint_lasso_agrees_with_cvxpy():
    cvxpy = pytest.importorskip("cvxpy")
    X, D = ordinary(5, n=6, k=18, m=10)
    A = cvxpy.Variable((6, 18))
    fit = 0.5 * cvxpy.sum_squares(X - A @ D)
    problem = cvxpy.Problem(cvxpy.Minimize(fit + 0.4 * cvxpy.sum(cvxpy.norm(A, 2, axis=0))))
    problem.solve(solver="CLARABEL")
    codes = encode(X, D, JointLasso(0.4)).toarray()
    assert joint_lasso_cost(X, D, codes, 0.4) == pytest.approx(problem.value, rel=1e-6)
    np.testing.assert_allclose(codes, A.value, atol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("look_ahead", [True, False])
@pytest.mark.parametrize("name", DEGENERATE)
def test_joint_omp_is_greedy_and_exact(name, look_ahead, dtype):
    X, D = seen(*DEGENERATE[name], dtype)
    labels = some_groups(len(X))
    nonzeros = min(4, *D.shape)
    coder = JointOMP(nonzeros, look_ahead=look_ahead)
    codes = quiet(X.astype(dtype), D.astype(dtype), coder, groups=labels)
    for rows, A in parts(codes, labels):
        S = np.flatnonzero(np.abs(A).sum(0)).tolist()
        assert len(S) <= nonzeros
        scale = np.linalg.norm(X[rows])
        error = np.linalg.norm(X[rows] - A @ D)
        tolerance = TOLERANCE[dtype] * scale
        assert error <= np.linalg.norm(refit(X[rows], D, S)[1]) + 10 * tolerance
        if len(S) < nonzeros:  # nothing would have helped
            gain = joint_gains(X[rows], D, S, True)
            assert gain.max(initial=0.0) <= (30 * tolerance) ** 2
        if name in ("ordinary", "correlated", "k > m", "k < m", "n = 1", "n < k", "large", "small"):
            twin = joint_omp(X[rows], D, nonzeros, look_ahead=look_ahead)
            assert error <= np.linalg.norm(X[rows] - twin @ D) + tolerance


@pytest.mark.parametrize("look_ahead", [True, False])
def test_joint_omp_is_its_twin(look_ahead):
    X, D = ordinary(9, n=17, k=40)
    labels = some_groups(17)
    eps = 0.2
    codes = encode(X, D, JointOMP(6, eps, look_ahead), groups=labels)
    for rows, A in parts(codes, labels):
        np.testing.assert_allclose(A, joint_omp(X[rows], D, 6, eps, look_ahead), atol=1e-9)
    single = encode(X, D, OMP(5, look_ahead=look_ahead))
    one = encode(X, D, JointOMP(5, look_ahead=look_ahead), groups=np.arange(17))
    np.testing.assert_allclose(one.toarray(), single.toarray(), atol=1e-9)


@pytest.mark.parametrize("look_ahead", [True, False])
@pytest.mark.parametrize(("dtype", "last"), [(np.float32, -5.0), (np.float64, -7.0)])
def test_joint_pursuit_finds_small_coefficients_behind_large_ones(dtype, last, look_ahead):
    D = np.random.default_rng(0).standard_normal((40, 48))
    D /= np.linalg.norm(D, axis=1)[:, None]
    chosen = np.arange(3, 8)  # whose gains fall from 1 to 1e-10 or 1e-14
    A = np.zeros((12, 40))
    A[:, chosen] = np.random.default_rng(1).choice([-1.0, 1.0], (12, 5))
    A[:, chosen] *= np.logspace(0.0, last, 5)
    labels = np.repeat([0, 1], [5, 7])
    X, D = (A @ D).astype(dtype), D.astype(dtype)
    codes = encode(X, D, JointOMP(5, look_ahead=look_ahead), groups=labels).toarray()
    np.testing.assert_array_equal(np.flatnonzero(codes.any(axis=0)), chosen)
    np.testing.assert_allclose(codes, A, atol=1e-6 if dtype == np.float32 else 1e-14)


@pytest.mark.parametrize("kind", [int, float, str])
def test_labels_in_order_and_out_of_order_give_the_same_groups(kind):
    X, D = ordinary(4, n=20, k=24)
    sizes = [3, 1, 9, 7]
    labels = np.repeat([2, 5, 6, 11], sizes)
    expected = encode(X, D, JointOMP(3), groups=labels).toarray()
    for values in ([1, 2, 3, 4], [7, 3, 9, 1]):
        again = encode(X, D, JointOMP(3), groups=np.repeat(np.array(values).astype(kind), sizes))
        np.testing.assert_allclose(again.toarray(), expected, atol=1e-12)
    assert all(A.any(axis=0).sum() == 3 for _, A in parts(sparse.csr_array(expected), labels))


def test_the_mean_error_of_a_group_is_bounded():
    X, D = ordinary(2, n=24, k=40)
    X *= np.geomspace(0.5, 2.0, 24)[:, None]
    labels = some_groups(24)
    codes, info = encode(X, D, JointOMP(eps=0.3), groups=labels, return_info=True)
    errors = ((X - codes @ D) ** 2).sum(1)
    for rows, A in parts(codes, labels):
        assert errors[rows].mean() <= 0.3
        S = np.flatnonzero(np.abs(A).sum(0))
        if len(S):  # one atom fewer would not have done
            fewer = joint_omp(X[rows], D, len(S) - 1)
            assert ((X[rows] - fewer @ D) ** 2).sum(1).mean() > 0.3
    assert (errors > 0.3).any()
    np.testing.assert_array_equal(info.iterations, np.diff(codes.indptr))
    assert np.isnan(info.gap).all()
    with pytest.warns(UserWarning, match=r"eps is out of reach for 1 of 2 groups"):
        encode(np.eye(3)[[0, 0, 2]], np.eye(3)[:2], JointOMP(eps=0.1), groups=[0, 0, 1])


def test_zero_nonzeros_and_more_than_there_are():
    X, D = ordinary(n=4)
    assert encode(X, D, JointOMP(0)).nnz == 0
    with pytest.warns(UserWarning, match="nonzeros=99 is more than the 24 atoms of 16 features"):
        codes = encode(X, D, JointOMP(99))
    np.testing.assert_allclose(codes @ D, X, atol=1e-9)
    assert encode(X[:0], D, JointOMP(2), groups=[]).shape == (0, 24)
    assert encode(X[:0], D, JointLasso(0.1), groups=[]).shape == (0, 24)


@pytest.mark.parametrize("coder", [JointLasso(0.3), JointOMP(3)], ids=repr)
def test_labels_of_any_kind_in_any_order(coder):
    X, D = ordinary(4, n=60)
    numbers = np.repeat(np.arange(12), 5)
    shuffled = np.random.default_rng(1).permutation(60)
    plain = encode(X, D, coder, groups=numbers)
    words = np.array([f"group {number}" for number in numbers])
    for labels in (numbers, words, list(words), 0.5 * numbers, -numbers):
        labels = np.asarray(labels)[shuffled]
        codes = encode(X[shuffled], D, coder, groups=labels)
        np.testing.assert_allclose(codes.toarray(), plain.toarray()[shuffled], atol=1e-12)
    alone = encode(X[:5], D, coder)  # by default all signals are one group
    np.testing.assert_allclose(alone.toarray(), plain.toarray()[:5], atol=1e-12)
    rows = encode(sparse.csr_array(X), D, coder, groups=numbers)
    np.testing.assert_allclose(rows.toarray(), plain.toarray(), atol=1e-9)


@pytest.mark.parametrize("coder", [JointLasso(2.0), JointOMP(4)], ids=repr)
def test_groups_larger_than_a_chunk_and_any_number_of_threads(coder):
    X, D = ordinary(8, n=3000)
    sizes = [1500, 1, 700, 3, 1, 128, 128, 500, 39]
    labels = np.random.default_rng(2).permutation(np.repeat(np.arange(9), sizes))
    one = encode(X, D, coder, groups=labels, n_threads=1)
    for threads in (2, 3):
        other = encode(X, D, coder, groups=labels, n_threads=threads)
        np.testing.assert_array_equal(one.data, other.data)
        np.testing.assert_array_equal(one.indices, other.indices)
    for label in (0, 2, 4):
        rows = labels == label
        alone = encode(X[rows], D, coder)
        np.testing.assert_allclose(alone.toarray(), one.toarray()[rows], atol=1e-8)
    if isinstance(coder, JointLasso):
        gap = duality_gap(X, D, one, coder, groups=labels)
        assert gap.sum() <= 1e-9 * 0.5 * (X**2).sum()


def test_more_atoms_than_there_was_room_for():
    X, D = ordinary(6, n=8, k=160, m=150)
    labels = np.repeat([0, 1], 4)
    for coder in (JointLasso(1e-3), JointOMP(140)):
        codes = encode(X, D, coder, groups=labels)
        assert np.diff(codes.indptr).min() > 128
        if isinstance(coder, JointLasso):
            assert duality_gap(X, D, codes, coder, groups=labels).max() <= 1e-9
        else:
            for rows, A in parts(codes, labels):
                error = ((X[rows] - A @ D) ** 2).sum()
                assert error == pytest.approx(joint_omp_error(X[rows], D, 140), abs=1e-12)


def test_penalties_and_gaps_are_shared_by_a_group():
    codes = sparse.csr_array(np.array([[3.0, 0.0], [4.0, 1.0], [0.0, 2.0]]))
    groups = np.array([0, 2, 3])
    np.testing.assert_allclose(JointLasso(0.5).penalty(codes, groups), [1.5, 1.5, 1.0])
    np.testing.assert_allclose(JointLasso(0.5).penalty(codes), 0.5 * (5 + np.sqrt(5)) / 3)
    scaled = JointLasso(0.5, by_size=True).penalty(codes, groups)
    np.testing.assert_allclose(scaled, [1.5 * np.sqrt(2), 1.5 * np.sqrt(2), 1.0])
    np.testing.assert_array_equal(JointOMP(1).penalty(codes, groups), [0, 0, 0])
    X, D = ordinary(n=3, k=2, m=4)
    gap = duality_gap(X, D, codes, JointLasso(0.5), groups=["a", "a", "b"])
    assert gap[0] == gap[1]
    best = encode(X[:2], D, JointLasso(0.5)).toarray()
    dense = codes.toarray()
    excess = joint_lasso_cost(X[:2], D, dense[:2], 0.5) - joint_lasso_cost(X[:2], D, best, 0.5)
    assert 2 * gap[0] >= excess > 0


def test_bad_input():
    X, D = ordinary()
    for lam in (-1, np.nan):
        with pytest.raises(ValueError, match="lam must be >= 0"):
            JointLasso(lam)
    with pytest.raises(ValueError, match="lam must be finite"):
        JointLasso(np.inf)
    with pytest.raises(TypeError, match="lam must be a number, got '1'"):
        JointLasso("1")
    with pytest.raises(ValueError, match="JointOMP needs a limit"):
        JointOMP()
    with pytest.raises(TypeError, match="nonzeros must be an integer"):
        JointOMP([1, 2])
    with pytest.raises(ValueError, match="nonzeros must be >= 0, got -1"):
        JointOMP(-1)
    with pytest.raises(ValueError, match="eps must be >= 0"):
        JointOMP(eps=-0.5)
    with pytest.raises(ValueError, match="one label for each of the 20 rows"):
        encode(X, D, JointOMP(2), groups=[1, 2])
    with pytest.raises(ValueError, match="groups must not contain NaN"):
        encode(X, D, JointOMP(2), groups=np.full(20, np.nan))
    with pytest.raises(ValueError, match="Lasso codes each signal by itself"):
        encode(X, D, Lasso(0.1), groups=np.zeros(20))
    with pytest.raises(ValueError, match="weights are for"):
        encode(X, D, JointLasso(0.1), penalty_weights=np.ones(24))
    with pytest.raises(TypeError, match="JointOMP is not a convex problem"):
        duality_gap(X, D, np.zeros((20, 24)), JointOMP(2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("look_ahead", [True, False])
def test_pursuit_of_signals_of_any_size_ends(dtype, look_ahead):
    X, D = ordinary(n=6)
    for power in range(-16, 17, 4) if dtype == np.float32 else range(-144, 145, 16):
        scaled = (X * 10.0**power).astype(dtype)
        codes = encode(scaled, D.astype(dtype), JointOMP(3, look_ahead=look_ahead))
        assert codes.nnz == 3 * len(X)
    huge = (X / np.abs(X).max() * 0.9 * np.finfo(dtype).max).astype(dtype)
    with pytest.raises(ValueError, match=rf"more than .* {np.dtype(dtype)} can work with: scale"):
        encode(huge, D.astype(dtype), JointOMP(3))


def test_groups_with_small_coefficients_need_more_than_float32_to_choose_atoms():
    rng = np.random.default_rng(0)
    D = rng.standard_normal((20, 30))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    C = np.zeros((12, 20))
    C[:, [3, 8, 15]] = rng.uniform(0.5, 1.0, (12, 3)) * [1.0, 1e-4, 1e-7]
    C[:6] = 0.0
    C[:6, [2, 4, 6]] = rng.uniform(0.5, 1.0, (6, 3))  # a group for which float32 is enough
    groups = np.repeat([0, 1], 6)
    codes, info = encode(C @ D, D, JointOMP(3), groups=groups, return_info=True)
    np.testing.assert_allclose(codes.toarray(), C, atol=1e-13)
    np.testing.assert_array_equal(info.iterations, 3)
    assert codes.nnz == 36


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([None] * 4, ValueError, "missing labels, got None for row 0: give every row a label"),
        ([1, None, 1, 2], ValueError, "got None for row 1"),
        (["a", "b", np.nan, None], ValueError, "missing labels, got nan for row 2"),
        (np.array(["a", "b", np.nan, "a"], object), ValueError, "got nan for row 2"),
        (np.array([0, 1, "NaT", 1], "M8[D]"), ValueError, "got NaT for row 2"),
        (np.array([0, 1, 2, "NaT"], "m8[s]"), ValueError, "got NaT for row 3"),
        ([0.0, 1.0, np.inf, 1.0], ValueError, "NaN or infinity.*got inf for row 2"),
        (np.array([1, "a", 1, "b"], object), TypeError, "of one kind .* got int, str: give"),
        (np.ma.masked_equal([1, 1, 2, 2], 2), TypeError, "groups is a masked array"),
    ],
)
def test_labels_that_are_missing_or_mixed_are_refused(labels, error, message):
    X = np.random.default_rng(0).standard_normal((4, 3))
    with pytest.raises(error, match=message):
        encode(X, np.eye(3), JointOMP(1), groups=labels)


@pytest.mark.parametrize("labels", [["b", "a", "b", "a"], [True, False, True, False]])
def test_labels_may_be_objects(labels):
    X = np.random.default_rng(0).standard_normal((4, 3))
    got = encode(X, np.eye(3), JointOMP(1), groups=np.array(labels, object))
    wanted = encode(X, np.eye(3), JointOMP(1), groups=[1, 0, 1, 0])
    np.testing.assert_array_equal(got.toarray(), wanted.toarray())
