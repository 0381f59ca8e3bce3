"""Regression, proximal operators, projections and pictures against SPAMS."""

import numpy as np
import pytest
import scipy
from spams_problems import DTYPES, ROUNDING, columns, penalty, unit

import smalto.compat.spams as ours

WEIGHTS = {"lambda1": 0.5, "lambda2": 0.2, "lambda3": 0.1}
FLAT = ["l0", "l1", "l2", "l2-not-squared", "l1-constraint", "elastic-net", "group-lasso-l2",
        "sparse-group-lasso-l2", "l1l2", "none"]  # fmt: skip
PROX = [*FLAT, "linf", "fused-lasso", "group-lasso-linf"]
# Where SPAMS's operator is another one: it forgets pos, takes the norm before it cuts negative
# entries off, shrinks groups in the wrong order, or forgets the intercept.
OTHER = {("l2-not-squared", True), ("group-lasso-l2", True), ("sparse-group-lasso-l2", True),
         ("sparse-group-lasso-l2", False), ("fused-lasso", True)}  # fmt: skip


@pytest.fixture
def spams():
    return pytest.importorskip("spams")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pos", [False, True])
@pytest.mark.parametrize("regul", PROX)
def test_proximal_operators_as_in_spams(spams, dtype, pos, regul):
    U = columns(np.random.default_rng(0).standard_normal((22, 6)), dtype)
    options = {"regul": regul, "pos": pos, "size_group": 4, **WEIGHTS}
    (mine, value), (theirs, their_value) = (
        each.proximalFlat(U, True, **options) for each in (ours, spams)
    )
    assert mine.dtype == theirs.dtype
    assert mine.flags.f_contiguous
    assert value.shape == np.shape(their_value)
    objective = [
        0.5 * ((U.astype(float) - v) ** 2).sum() + penalty(regul, v, *WEIGHTS.values(), 4)
        for v in (mine, theirs)
    ]
    if pos:
        inner = mine[:20] if "group" in regul else mine  # the rest is in no group
        assert inner.min() >= 0
    if regul == "l1-constraint":
        assert np.abs(mine).sum(axis=0).max() <= 0.5 * (1 + 1e-5)
    if (regul, pos) in OTHER:
        if theirs.min() >= 0 or not pos:
            assert objective[0] <= objective[1] * (1 + ROUNDING[dtype])
        return
    np.testing.assert_allclose(mine, theirs, atol=1e-5)
    np.testing.assert_allclose(value, their_value, rtol=1e-4, atol=1e-5)


def test_intercepts_and_labels_of_groups_as_in_spams(spams):
    U = columns(np.random.default_rng(1).standard_normal((9, 4)), float)
    labels = np.array([1, 2, 1, 2, 3, 3, 3, 1, 2], np.int32)
    for options in (
        {"regul": "l1", "intercept": True},
        {"regul": "l2", "intercept": True},
        {"regul": "group-lasso-l2", "groups": labels},
        {"regul": "l1l2", "intercept": True},
    ):
        mine, theirs = (each.proximalFlat(U, lambda1=0.5, **options) for each in (ours, spams))
        np.testing.assert_allclose(mine, theirs, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pos", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("regul", FLAT)
def test_regression_is_never_above_spams(spams, capfd, dtype, pos, intercept, regul):
    rng = np.random.default_rng(2)
    X, Y = unit(rng, 30, 22, dtype), unit(rng, 30, 5, dtype)
    start = np.zeros((22, 5), dtype, order="F")
    options = {"regul": regul, "loss": "square", "pos": pos, "intercept": intercept}
    options |= {"size_group": 4, "lambda1": 0.5 if regul == "l1-constraint" else 0.05}
    options |= {"lambda2": 0.02, "tol": 1e-9, "max_it": 3000}
    if regul == "l1l2" and pos:
        with pytest.raises(NotImplementedError, match="l1l2"):
            ours.fistaFlat(Y, X, start, **options)
        return
    (mine, info), (theirs, their_info) = (
        each.fistaFlat(Y, X, start, True, **options) for each in (ours, spams)
    )
    assert mine.dtype == theirs.dtype
    assert mine.flags.f_contiguous
    assert info.shape == their_info.shape

    def objective(W):
        left = Y.astype(float) - X.astype(float) @ W
        weights = options["lambda1"], options["lambda2"], 0.0
        return 0.5 * (left**2).sum() + penalty(regul, W[: 22 - intercept], *weights, 4)

    assert objective(mine) <= objective(theirs) * (1 + ROUNDING[dtype])
    np.testing.assert_allclose(info[0].sum(), objective(mine), rtol=1e-5)
    if regul == "l0":
        assert np.isnan(info[2]).all()
    elif regul != "none" and not (regul == "l2" and pos):
        assert info[2].max() < 1e-5


def test_missing_targets_and_sparse_features():
    rng = np.random.default_rng(3)
    X, Y = unit(rng, 30, 12), unit(rng, 30, 4)
    start = np.zeros((12, 4))
    Y[rng.random(Y.shape) < 0.3] = np.nan
    options = {"regul": "l1", "lambda1": 0.02}
    W = ours.fistaFlat(Y, scipy.sparse.csc_matrix(X), start, loss="square-missing", **options)
    for i in range(4):
        known = ~np.isnan(Y[:, i])
        alone = ours.fistaFlat(Y[known][:, [i]], X[known], start[:, :1], loss="square", **options)
        np.testing.assert_allclose(W[:, [i]], alone, atol=1e-10)


TREE = {
    "eta_g": np.array([1.0, 1.0, 1.0, 2.0]),
    "groups": np.array([[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]], bool),
    "own_variables": np.array([0, 0, 3, 5], np.int32),
    "N_own_variables": np.array([0, 3, 2, 3], np.int32),
}
NESTED = [list(range(8)), [0, 1, 2, 3, 4], [3, 4], [5, 6, 7]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_trees_as_in_spams(spams, dtype):
    tree = TREE | {"eta_g": TREE["eta_g"].astype(dtype)}
    tree["groups"] = scipy.sparse.csc_matrix(TREE["groups"])
    rng = np.random.default_rng(4)
    U = columns(rng.standard_normal((8, 6)), dtype)
    for regul in ("tree-l2", "tree-linf"):
        (mine, value), (theirs, their_value) = (
            each.proximalTree(U, tree, True, regul=regul, lambda1=0.3) for each in (ours, spams)
        )
        np.testing.assert_allclose(mine, theirs, atol=1e-5)
        np.testing.assert_allclose(value, their_value, rtol=1e-5)
    X, Y = unit(rng, 20, 8, dtype), unit(rng, 20, 5, dtype)
    start = np.zeros((8, 5), dtype, order="F")
    options = {"regul": "tree-l2", "loss": "square", "lambda1": 0.02, "tol": 1e-9}
    mine, theirs = (each.fistaTree(Y, X, start, tree, **options) for each in (ours, spams))

    def objective(W):
        norms = [np.sqrt((W[group].astype(float) ** 2).sum(axis=0)).sum() for group in NESTED]
        left = Y.astype(float) - X.astype(float) @ W
        return 0.5 * (left**2).sum() + 0.02 * TREE["eta_g"] @ norms

    assert objective(mine) <= objective(theirs) * (1 + ROUNDING[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pos", [False, True])
def test_projections_as_in_spams(spams, dtype, pos):
    U = columns(np.random.default_rng(5).standard_normal((22, 6)), dtype)
    for mode in range(1, 7):
        options = {"mode": mode, "lambda1": 0.3, "lambda2": 0.2, "lambda3": 0.5, "pos": pos}
        mine, theirs = (each.sparseProject(U, **options) for each in (ours, spams))
        assert mine.dtype == theirs.dtype
        assert mine.flags.f_contiguous
        if mode < 5 or (mode == 5 and not pos):
            np.testing.assert_allclose(mine, theirs, atol=1e-5)
        if mode == 6:
            v = mine.astype(float)
            jumps = np.abs(np.diff(v, axis=0)).sum(axis=0)
            size = 0.3 * np.abs(v).sum(axis=0) + 0.2 * jumps + 0.25 * (v * v).sum(axis=0)
            np.testing.assert_allclose(size, 1.0, rtol=1e-4)
        if pos:
            assert mine.min() >= 0


def test_pictures_and_normalization_as_in_spams(spams):
    rng = np.random.default_rng(6)
    for dtype in DTYPES:
        picture = columns(rng.random((12, 15)), dtype)
        for rgb in (False, True):
            mine, theirs = (each.im2col_sliding(picture, 4, 3, rgb) for each in (ours, spams))
            np.testing.assert_array_equal(mine, theirs)
            assert mine.flags.f_contiguous
            assert mine.dtype == theirs.dtype
    for D in (rng.standard_normal((16, 10)), rng.random((16, 9))):
        np.testing.assert_allclose(ours.displayPatches(D), spams.displayPatches(D), atol=1e-15)
        D = np.asfortranarray(D)
        np.testing.assert_allclose(ours.normalize(D), spams.normalize(D), atol=1e-15)
    assert ours.displayPatches(rng.random((48, 5))).shape == (16, 16, 3)
    assert not ours.normalize(np.zeros((3, 2))).any()
