"""Dictionaries learned by `smalto.compat.spams` against those of SPAMS."""

import numpy as np
import pytest
import scipy
from spams_problems import DTYPES, columns, dense, fit

import smalto.compat.spams as ours
from smalto.compat.spams.modes import L2ERROR2, PENALTY2, SPARSITY
from smalto.compat.spams.training import Schedule
from smalto.datasets import sample_photo
from smalto.image import PatchSource


@pytest.fixture
def spams():
    return pytest.importorskip("spams")


def patches(dtype=np.float64, n=4000, **options):
    source = PatchSource(sample_photo("flower"), 6, as_gray=True, **options)
    rows = np.random.default_rng(0).permutation(source.n_rows)[:n]
    return columns(source.rows(rows).T, dtype)


def cost(X, D, lambda1, pos=False):
    alpha = ours.lasso(X.astype(float), D.astype(float), lambda1=lambda1, pos=pos)
    return (fit(X, D, alpha) + lambda1 * np.abs(dense(alpha)).sum(axis=0)).mean()


SETTINGS = {
    "few steps": {"iter": 10},
    "more steps": {"iter": 100},
    "batch": {"iter": 8, "batch": True},
    "positive": {"iter": 40, "posAlpha": True},
    "sparse atoms": {"iter": 40, "modeD": 1, "gamma1": 0.3},
    "sparse atoms, other set": {"iter": 40, "modeD": 3, "gamma1": 0.3},
    "means removed": {"iter": 40, "whiten": True},
    "gradient descent": {"iter": 60, "stochastic_deprecated": True, "rho": 20.0, "t0": 200.0},
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SETTINGS)
def test_cost_of_trainDL_is_not_above_spams(spams, dtype, name):
    X = patches(dtype)
    options = {"lambda1": 0.15, "batchsize": 256, "verbose": False, **SETTINGS[name]}
    first = columns(X[:, :60], dtype)
    mine, theirs = (each.trainDL(X, D=first, **options) for each in (ours, spams))
    assert mine.dtype == theirs.dtype
    assert mine.shape == theirs.shape
    assert mine.flags.f_contiguous
    check_set(mine, options)
    pos = options.get("posAlpha", False)
    assert cost(X, mine, 0.15, pos) <= cost(X, theirs, 0.15, pos) * (1 + 2e-4)


def check_set(D, options):
    squares, absolute = (D.astype(float) ** 2).sum(axis=0), np.abs(D.astype(float)).sum(axis=0)
    mode, gamma1 = options.get("modeD", 0), options.get("gamma1", 0.0)
    size = [squares, squares + gamma1 * absolute, None, (1 - gamma1) * squares + gamma1 * absolute]
    assert size[mode].max() <= 1 + 1e-5
    assert size[mode].max() >= 0.9


@pytest.mark.parametrize("mode", [SPARSITY, L2ERROR2, PENALTY2])
def test_greedy_modes_of_trainDL_against_spams(spams, mode):
    X = patches(n=2000)
    level = {SPARSITY: 3, L2ERROR2: 0.1, PENALTY2: 0.02}[mode]
    limit = {SPARSITY: "L", L2ERROR2: "eps", PENALTY2: "lambda1"}[mode]
    options = {"lambda1": level, "mode": mode, "batchsize": 256, "iter": 30, "verbose": False}
    costs = []
    for each in (ours, spams):
        D = each.trainDL(X, D=columns(X[:, :50], float), **options)
        alpha = ours.omp(X, D, **{limit: level})
        weight = {SPARSITY: 0.0, L2ERROR2: 1.0, PENALTY2: level}[mode]
        error = 0.0 if mode == L2ERROR2 else fit(X, D, alpha).mean()
        costs.append(error + weight * alpha.nnz / X.shape[1])
    assert costs[0] <= costs[1] * 1.01


def test_fused_lasso_atoms_lie_in_their_set():
    D = ours.trainDL(patches(n=1000), K=20, lambda1=0.1, iter=10, modeD=2, gamma1=0.1, gamma2=0.2)
    jumps = np.abs(np.diff(D, axis=0)).sum(axis=0)
    assert ((D**2).sum(0) + 0.1 * np.abs(D).sum(0) + 0.2 * jumps).max() <= 1 + 1e-9


def test_memory_and_sparse_samples_against_spams(spams):
    X = patches()
    options = {"K": 60, "lambda1": 0.15, "iter": 60, "batchsize": 256}
    mine, theirs = (each.trainDL_Memory(X, **options) for each in (ours, spams))
    assert cost(X, mine, 0.15) <= cost(X, theirs, 0.15)
    few = scipy.sparse.csc_matrix(np.where(np.abs(X) > 0.2, X, 0.0))
    mine, theirs = (each.trainDL(few, verbose=False, **options) for each in (ours, spams))
    full = few.toarray(order="F")
    assert cost(full, mine, 0.15) <= cost(full, theirs, 0.15) * 1.002


@pytest.mark.parametrize("modeD", [0, 3])
def test_a_model_goes_on_as_in_spams(spams, modeD):
    X = patches()
    halves = columns(X[:, :2000], float), columns(X[:, 2000:], float)
    options = {"lambda1": 0.15, "batchsize": 256, "verbose": False, "return_model": True}
    options |= {"modeD": modeD, "gamma1": 0.2}
    found = {}
    for each in (ours, spams):
        D, model = each.trainDL(halves[0], K=50, iter=20, **options)
        D, model = each.trainDL(halves[1], D=D, model=model, iter=20, **options)
        found[each] = D, model
    (mine, model), (theirs, their_model) = found.values()
    assert model["iter"] == their_model["iter"] == 40
    for key in "AB":
        assert model[key].shape == their_model[key].shape
        assert model[key].flags.f_contiguous
    assert cost(X, mine, 0.15) <= cost(X, theirs, 0.15) * 1.001
    afresh = ours.trainDL(halves[1], D=mine, iter=0, lambda1=0.15, modeD=modeD, gamma1=0.2)
    np.testing.assert_allclose(afresh, mine, atol=1e-12)
    # With a heavy past, a small batch of other data hardly moves the dictionary.
    heavy = {"A": 1e6 * model["A"], "B": 1e6 * (mine @ model["A"]), "iter": 40}
    moved = ours.trainDL(halves[1], D=mine, model=heavy, iter=1, **options)[0]
    assert np.abs(moved - mine).max() < 1e-3
    assert np.abs(ours.trainDL(halves[1], D=mine, iter=1, **options)[0] - mine).max() > 1e-2


def test_a_heavy_first_dictionary_hardly_moves():
    X = patches(n=1500)
    options = {"D": columns(X[:, :20], float), "lambda1": 0.15, "iter": 3, "batchsize": 100}
    light, heavy = (ours.trainDL(X, t0=t0, **options) for t0 in (1e-5, 1e6))
    assert np.abs(heavy - options["D"]).max() < 1e-4
    assert np.abs(light - options["D"]).max() > 1e-1


def test_negative_iterations_are_seconds():
    plan = {"batchsize": -1, "t0": 0.0, "rho": 1.0, "modeParam": 0, "iter_updateD": None}
    plan |= {"batch": False, "stochastic": False, "clean": True}
    assert Schedule(iter=-3, **plan).limits(7) == {"max_seconds": 3}
    assert Schedule(iter=3, **plan).limits(7) == {"max_steps": 10}


def test_the_number_of_threads_does_not_matter():
    X = patches(n=1500)
    one, two = (ours.trainDL(X, K=30, lambda1=0.15, iter=5, numThreads=n) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_atoms_are_replaced_unless_clean_is_off():
    X = patches(n=1500, center=False)
    first = columns(np.concatenate([X[:, :2], -X[:, 2:10]], axis=1), float)  # most are of no use
    options = {"D": first, "lambda1": 0.1, "iter": 20, "batchsize": 100, "posAlpha": True}
    clean, other = (ours.trainDL(X, clean=each, **options) for each in (True, False))
    assert (clean[:, 2:].sum(axis=0) > 0).all()
    np.testing.assert_allclose(other[:, 2:], first[:, 2:])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("iter", [10, 60])
def test_nonnegative_factorizations_against_spams(spams, dtype, iter):
    X = patches(dtype, n=2000, center=False)
    options = {"K": 20, "iter": iter, "batchsize": 256, "return_lasso": True}
    for name, lambda1 in (("nmf", {}), ("nnsc", {"lambda1": 0.05})):
        mine, theirs = (getattr(each, name)(X, **options, **lambda1) for each in (ours, spams))
        for part, other in zip(mine, theirs, strict=True):
            assert type(part) is type(other)
            assert part.dtype == other.dtype
            assert part.shape == other.shape
            assert part.min() >= 0
        lam = lambda1.get("lambda1", 0.0)
        assert cost(X, mine[0], lam, True) <= cost(X, theirs[0], lam, True)
        online = getattr(ours, name)(X, **options, **lambda1, modeParam=1, rho=2.0)[0]
        few = {key: options[key] for key in ("K", "iter", "batchsize")}
        same = ours.trainDL(X, lambda1=lam, posAlpha=True, posD=True, modeParam=1, rho=2.0, **few)
        np.testing.assert_array_equal(online, same)
        signed = getattr(ours, name)(X - X.dtype.type(0.01), **options, **lambda1)[0]
        assert signed.min() >= 0


TREE = {  # atoms 0 to 2 belong to the root, 3 and 4 to one child of it, 5 to 7 to the other
    "eta_g": np.array([1.0, 1.0, 2.0]),
    "groups": scipy.sparse.csc_matrix(np.array([[0, 0, 0], [1, 0, 0], [1, 0, 0]], bool)),
    "own_variables": np.array([0, 3, 5], np.int32),
    "N_own_variables": np.array([3, 2, 3], np.int32),
}


@pytest.mark.parametrize("regul", ["l1", "l2", "elastic-net", "tree-l2"])
def test_structured_training_against_spams(spams, regul):
    X = patches(n=2000)
    tree = {"tree": TREE} if regul == "tree-l2" else {}
    options = {
        "lambda1": 0.05,
        "lambda2": 0.1,
        "regul": regul,
        "batchsize": 256,
        "iter": 20,
        **tree,
    }
    first = columns(X[:, :8], float)
    costs = []
    for each in (ours, spams):
        D = each.structTrainDL(X, D=first, verbose=False, tol=1e-5, **options)
        zero = np.zeros((8, X.shape[1]), order="F")
        common = {"loss": "square", "lambda1": 0.05, "lambda2": 0.1}
        if regul == "tree-l2":
            _, info = ours.fistaTree(X, D, zero, TREE, True, regul=regul, **common)
        else:
            name = "l2-not-squared" if regul == "l2" else regul
            _, info = ours.fistaFlat(X, D, zero, True, regul=name, **common)
        costs.append(info[0].mean())
    assert costs[0] <= costs[1] * 1.001
