"""`smalto.compat.spams` against SPAMS: signatures and decompositions."""

import inspect

import numpy as np
import pytest
import scipy
from spams_problems import DTYPES, ROUNDING, columns, dense, fit, problems, unit

import smalto.compat.spams as ours
from smalto.compat.spams.elsewhere import WAYS_OUT

L1COEFFS, L2ERROR, PENALTY = range(3)
LEVELS = {L1COEFFS: 0.8, L2ERROR: 0.2, PENALTY: 0.1}


@pytest.fixture
def spams():
    return pytest.importorskip("spams")


def not_above(mine, theirs, dtype, unit=1.0):
    assert (mine <= theirs + ROUNDING[dtype] * unit).all(), (mine - theirs).max()


def same_kind(mine, theirs):
    assert type(mine) is type(theirs)
    assert mine.dtype == theirs.dtype
    assert mine.shape == theirs.shape
    if isinstance(mine, np.ndarray):
        assert mine.flags.f_contiguous


def test_every_name_of_spams_is_there(spams):
    public = [
        name
        for name in dir(spams)
        if not name.startswith("_") and not inspect.ismodule(getattr(spams, name))
    ]
    missing = set(public) - set(ours.__all__)
    assert missing <= {"absolute_import"}


@pytest.mark.parametrize("name", sorted(set(ours.__all__) - set(WAYS_OUT)))
def test_signatures_are_those_of_spams(spams, name):
    if name.isupper():
        assert getattr(ours, name) == getattr(spams, name)
        return

    def parameters(module):
        listed = inspect.signature(getattr(module, name)).parameters.values()
        return [(each.name, each.default) for each in listed]

    assert parameters(ours) == parameters(spams)


@pytest.mark.parametrize("name", sorted(WAYS_OUT))
def test_what_is_not_there_says_what_to_use(name):
    with pytest.raises(NotImplementedError, match=name):
        getattr(ours, name)(1, some=2)


@pytest.mark.filterwarnings("ignore:(eps is out of reach|every code is zero)")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", LEVELS)
@pytest.mark.parametrize("pos", [False, True])
def test_lasso_is_never_above_spams(spams, dtype, mode, pos):
    for _, X, D in problems(dtype):
        options = {"lambda1": LEVELS[mode], "mode": mode, "pos": pos}
        mine, theirs = ours.lasso(X, D, **options), spams.lasso(X, D, **options)
        same_kind(mine, theirs)
        check_mode(mode, X, D, mine, theirs, LEVELS[mode], dtype)
        if pos:
            assert mine.min() >= 0


def check_mode(mode, X, D, mine, theirs, lambda1, dtype, known=None, share=1.0, weights=1.0):
    """No objective is above that of SPAMS where SPAMS respects the constraint, which we always do."""
    size = {code: np.abs(weights * dense(alpha)).sum(axis=0) for code, alpha in
            (("mine", mine), ("theirs", theirs))}  # fmt: skip
    fits = fit(X, D, mine, known), fit(X, D, theirs, known)
    whole = fit(X, D, 0.0 * mine, known)  # what rounding is relative to
    slack = 1e-4 if dtype == np.float32 else 1e-8
    if mode == PENALTY:
        lam = lambda1 * share
        not_above(fits[0] + lam * size["mine"], fits[1] + lam * size["theirs"], dtype, whole)
    elif mode == L1COEFFS:
        assert (size["mine"] <= lambda1 * (1 + slack)).all()
        kept = size["theirs"] <= lambda1 * (1 + slack)
        not_above(fits[0][kept], fits[1][kept], dtype, whole[kept])
    else:
        bound = lambda1 * share
        kept = (2 * fits[1] <= bound * (1 + slack)) & np.isfinite(size["theirs"])
        rounding = slack + ROUNDING[dtype] * whole
        assert (2 * fits[0] <= bound * (1 + slack) + rounding)[kept].all()
        not_above(size["mine"][kept], size["theirs"][kept], dtype, 10.0 * size["theirs"][kept])


@pytest.mark.parametrize("dtype", DTYPES)
def test_elastic_net_and_gram_input_as_in_spams(spams, dtype):
    rng = np.random.default_rng(0)
    X, D = unit(rng, 20, 30, dtype), unit(rng, 20, 40, dtype)
    mine, theirs = (each.lasso(X, D, lambda1=0.1, lambda2=0.05) for each in (ours, spams))
    costs = [
        fit(X, D, codes) + 0.1 * np.abs(dense(codes)).sum(0) + 0.025 * (dense(codes) ** 2).sum(0)
        for codes in (mine, theirs)
    ]
    not_above(*costs, dtype)
    Q, q = columns(D.T @ D, dtype), columns(D.T @ X, dtype)
    for mode, level in LEVELS.items():
        plain = ours.lasso(X, D, lambda1=level, mode=mode)
        gram = ours.lasso(X, Q=Q, q=q, lambda1=level, mode=mode)
        assert abs(gram - plain).max() < (1e-3 if dtype == np.float32 else 1e-9)
        theirs = spams.lasso(X, Q=Q, q=q, lambda1=level, mode=mode)
        check_mode(mode, X, D, gram, theirs, level, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", LEVELS)
def test_limited_lasso_and_path_as_in_spams(spams, dtype, mode):
    rng = np.random.default_rng(1)
    X, D = unit(rng, 20, 30, dtype), unit(rng, 20, 40, dtype)
    level = {L1COEFFS: 1.5, L2ERROR: 0.1, PENALTY: 0.05}[mode]
    for L in (-1, 5):
        options = {"lambda1": level, "mode": mode, "L": L, "return_reg_path": True}
        (mine, path), (theirs, their_path) = (each.lasso(X, D, **options) for each in (ours, spams))
        same_kind(path, their_path)
        penalty = level if mode == PENALTY else 0.0
        costs = [fit(X, D, a) + penalty * np.abs(dense(a)).sum(0) for a in (mine, theirs)]
        if mode == L1COEFFS or L > 0:
            not_above(*costs, dtype)
        assert np.diff(mine.indptr).max() <= (5 if L > 0 else 20)
        used = np.flatnonzero(path.any(axis=0))
        assert used.tolist() == list(range(1, len(used) + 1))  # zero first, then the kinks
        np.testing.assert_allclose(path[:, used[-1]], dense(mine)[:, 0], atol=1e-5)
        first = min(len(used), 4)
        np.testing.assert_allclose(path[:, :first], their_path[:, :first], atol=1e-4)


def test_limited_ridge_regression():
    rng = np.random.default_rng(1)
    X, D = unit(rng, 20, 3), unit(rng, 20, 10)
    alpha, path = ours.lasso(X, D, lambda1=0.0, lambda2=0.1, L=3, return_reg_path=True)
    assert np.diff(alpha.indptr).tolist() == [3, 3, 3]
    np.testing.assert_allclose(path[:, path.any(axis=0)][:, -1], dense(alpha)[:, 0], atol=1e-12)
    whole = dense(ours.lasso(X, D, lambda1=0.0, lambda2=0.1))
    np.testing.assert_allclose(whole, np.linalg.solve(D.T @ D + 0.1 * np.eye(10), D.T @ X))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", LEVELS)
def test_masked_and_weighted_lasso_as_in_spams(spams, dtype, mode):
    rng = np.random.default_rng(2)
    X, D = unit(rng, 20, 30, dtype), unit(rng, 20, 25, dtype)
    known = np.asfortranarray(rng.random(X.shape) < 0.7)
    known[:, 0], known[:, 1] = True, False
    level = {L1COEFFS: 1.5, L2ERROR: 0.4, PENALTY: 0.05}[mode]
    options = {"lambda1": level, "mode": mode}
    damaged = np.where(known, X, np.nan)
    mine, theirs = (
        ours.lassoMask(damaged, D, known, **options),
        spams.lassoMask(X, D, known, **options),
    )
    same_kind(mine, theirs)
    check_mode(mode, X, D, mine, theirs, level, dtype, known, known.mean(axis=0))
    assert mine[:, [1]].nnz == 0
    few = ours.lassoMask(X, D, known, L=3, **options)
    assert np.diff(few.indptr).max() == 3
    W = columns(rng.random((25, 30)) + 0.1, dtype)
    mine, theirs = ours.lassoWeighted(X, D, W, **options), spams.lassoWeighted(X, D, W, **options)
    same_kind(mine, theirs)
    check_mode(mode, X, D, mine, theirs, level, dtype, weights=W.astype(float))
    mine, theirs = (each.lassoWeighted(X, D, W, L=4, **options) for each in (ours, spams))
    assert np.diff(mine.indptr).max() == 4
    penalty = level * W if mode == PENALTY else 0.0 * W
    costs = [fit(X, D, a) + (penalty * np.abs(dense(a))).sum(0) for a in (mine, theirs)]
    not_above(*costs, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", [L2ERROR, PENALTY])
def test_coordinate_descent_as_in_spams(spams, dtype, mode):
    rng = np.random.default_rng(3)
    X, D = unit(rng, 20, 30, dtype), unit(rng, 20, 25, dtype)
    start = scipy.sparse.csc_matrix((25, 30), dtype=dtype)
    level = {L2ERROR: 0.3, PENALTY: 0.05}[mode]
    mine, theirs = (each.cd(X, D, start, lambda1=level, mode=mode) for each in (ours, spams))
    same_kind(mine, theirs)
    check_mode(mode, X, D, mine, theirs, level, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_greedy_codes_as_in_spams(spams, dtype):
    for name, X, D in problems(dtype):
        if name in ("ordinary", "correlated", "k > m", "k < m"):
            options = {"L": 4, "eps": 0.05}
            mine, theirs = ours.omp(X, D, **options), spams.omp(X, D, **options)
            same_kind(mine, theirs)
            assert np.diff(mine.indptr).max() <= 4
            assert fit(X, D, mine).mean() <= fit(X, D, theirs).mean() + ROUNDING[dtype]
    rng = np.random.default_rng(4)
    X, D = unit(rng, 20, 30, dtype), unit(rng, 20, 25, dtype)
    options = {"L": 5, "eps": 0.1, "lambda1": 0.02, "return_reg_path": True}
    (mine, path), (theirs, their_path) = (each.omp(X, D, **options) for each in (ours, spams))
    same_kind(path, their_path)
    np.testing.assert_allclose(dense(mine), dense(theirs), atol=1e-4)
    np.testing.assert_allclose(path, their_path, atol=1e-4)
    known = np.asfortranarray(rng.random(X.shape) < 0.7)
    mine, theirs = (each.ompMask(X, D, known, L=5, eps=0.1) for each in (ours, spams))
    same_kind(mine, theirs)
    assert fit(X, D, mine, known).mean() <= fit(X, D, theirs, known).mean()


def test_limits_of_omp_for_each_signal():
    rng = np.random.default_rng(5)
    X, D = unit(rng, 20, 6), unit(rng, 20, 25)
    limits = np.array([1, 2, 3, 3, 2, 1])
    assert np.diff(ours.omp(X, D, L=limits).indptr).tolist() == limits.tolist()
    costs = np.array([0.1, 0.01, 0.1, 0.01, 0.1, 0.01])
    found = ours.omp(X, D, lambda1=costs)
    for i, cost in enumerate(costs):
        alone = ours.omp(X[:, [i]], D, lambda1=cost)
        np.testing.assert_allclose(found[:, [i]].toarray(), alone.toarray(), atol=1e-12)
    both = np.diff(ours.omp(X, D, L=2, lambda1=costs).indptr)
    assert both.tolist() == np.minimum(np.diff(found.indptr), 2).tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_joint_codes_as_in_spams(spams, dtype):
    rng = np.random.default_rng(6)
    X, D = unit(rng, 20, 30, dtype), unit(rng, 20, 25, dtype)
    groups = np.array([0, 1, 10, 22], np.int32)
    mine, theirs = (each.somp(X, D, groups, L=5, eps=0.1) for each in (ours, spams))
    same_kind(mine, theirs)
    np.testing.assert_allclose(dense(mine), dense(theirs), atol=1e-4)
    start = np.zeros((25, 30), dtype, order="F")
    mine, theirs = (each.l1L2BCD(X, D, start, groups, lambda1=0.3) for each in (ours, spams))
    same_kind(mine, theirs)
    for part in np.split(np.arange(30), groups[1:]):
        cost = [
            fit(X[:, part], D, a[:, part]).sum()
            + 0.15 * np.sqrt(len(part)) * np.sqrt((a[:, part].astype(float) ** 2).sum(1)).sum()
            for a in (mine, theirs)
        ]
        assert cost[0] <= cost[1] * (1 + ROUNDING[dtype])


def test_sparse_data_and_masks():
    rng = np.random.default_rng(0)
    X, D = unit(rng, 8, 10), unit(rng, 8, 12)
    B = rng.random(X.shape) < 0.8
    wanted = ours.lassoMask(X, D, B, lambda1=0.1).toarray()
    for x, b in ((X, scipy.sparse.csc_matrix(B)), (scipy.sparse.csc_matrix(X), B)):
        np.testing.assert_array_equal(ours.lassoMask(x, D, b, lambda1=0.1).toarray(), wanted)
