"""Objectives on digits, faces and patches: those of scikit-learn at its own stopping, or lower."""

import numpy as np
import pytest
import sklearn.decomposition as theirs
from sklearn.datasets import load_digits

import smalto.compat.sklearn as ours
from smalto import encode
from smalto.coders import Lasso
from smalto.datasets import random_patches, sample_photo

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ROOM = 1.005  # both find local minima, which differ


def digits():
    return load_digits().data[::3]


def faces():
    data = pytest.importorskip("skimage.data")
    return data.lfw_subset().reshape(200, -1)[::2].astype(np.float64)


def patches():
    return np.asarray(random_patches(sample_photo("flower"), 6, 600, random_state=0), np.float64)


DATA = {"digits": (digits, 5.0), "faces": (faces, 0.3), "patches": (patches, 0.1)}


def lasso_cost(X, D, alpha):
    """``½‖X − CD‖² + alpha‖C‖₁`` for the best codes C."""
    codes = encode(X, D, Lasso(alpha)).toarray()
    return 0.5 * np.sum((X - codes @ D) ** 2) + alpha * np.abs(codes).sum()


def nmf_cost(X, W, H, alpha, l1_ratio):
    def penalty(A):
        return l1_ratio * A.sum() + 0.5 * (1 - l1_ratio) * np.sum(A**2)

    n, m = X.shape
    return 0.5 * np.sum((X - W @ H) ** 2) + alpha * (m * penalty(W) + n * penalty(H))


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("n_components", [10, 50])
def test_mini_batches(name, n_components):
    load, alpha = DATA[name]
    X = load()
    cost = {}
    for module in (ours, theirs):
        model = module.MiniBatchDictionaryLearning(
            n_components, alpha=alpha, fit_algorithm="cd", batch_size=64, random_state=0
        )
        cost[module] = lasso_cost(X, model.fit(X).components_, alpha)
    assert cost[ours] <= ROOM * cost[theirs]


@pytest.mark.parametrize("name", DATA)
def test_all_samples(name):
    load, alpha = DATA[name]
    X = load()[:100]
    cost = {}
    for module in (ours, theirs):
        _, D, errors = module.dict_learning(X, 12, alpha=alpha, max_iter=40, random_state=0)
        cost[module] = errors[-1]
        assert errors[-1] >= (1 - 1e-6) * lasso_cost(X, D, alpha)
    assert cost[ours] <= ROOM * cost[theirs]


@pytest.mark.parametrize("name", DATA)
def test_sparse_pca(name):
    X = DATA[name][0]()[:80, ::3]
    cost = {}
    for module in (ours, theirs):
        model = module.SparsePCA(6, alpha=1.0, max_iter=10, random_state=0).fit(X)
        cost[module] = model.error_[-1]
    assert cost[ours] <= ROOM * cost[theirs]


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("alpha", [0.0, 1e-3])
@pytest.mark.parametrize("kind", ["NMF", "MiniBatchNMF"])
def test_nmf(name, alpha, kind, request):
    if (name, alpha, kind) == ("patches", 1e-3, "NMF"):
        reason = "its stopping rule ends 0.8 % above scikit-learn's: see from_scikit_learn.md"
        request.applymarker(pytest.mark.xfail(reason=reason, strict=False))
    X = DATA[name][0]()
    X = X - min(0.0, X.min())
    cost = {}
    for module in (ours, theirs):
        model = getattr(module, kind)(16, alpha_W=alpha, l1_ratio=0.5, random_state=0)
        W = model.fit_transform(X)
        cost[module] = nmf_cost(X, W, model.components_, alpha, 0.5)
    assert cost[ours] <= ROOM * cost[theirs]
