"""The rows of docs/from_spams.md that claim equal results, one by one."""

import numpy as np
import pytest

from smalto import encode
from smalto.coders import (
    OMP,
    ErrorBound,
    GroupLasso,
    JointLasso,
    JointOMP,
    L1Ball,
    Lasso,
)

spams = pytest.importorskip("spams")

rng = np.random.default_rng(0)
D = rng.standard_normal((30, 20))
D /= np.linalg.norm(D, axis=1, keepdims=True)
X = rng.standard_normal((40, 20))
COLUMNS, ATOMS = np.asfortranarray(X.T), np.asfortranarray(D.T)
GROUPS, STARTS = np.repeat(np.arange(4), 10), np.arange(0, 40, 10, dtype=np.int32)
ZEROS = np.zeros((30, 40), order="F")
ATOM_GROUPS = np.arange(30) // 3
KNOWN = rng.random(X.shape) < 0.7
WEIGHTS = 0.5 + rng.random((40, 30))

ROWS = {
    "mode 2": (lambda: spams.lasso(COLUMNS, ATOMS, lambda1=0.3, mode=2), Lasso(0.3), {}),
    "mode 2, pos": (
        lambda: spams.lasso(COLUMNS, ATOMS, lambda1=0.3, mode=2, pos=True),
        Lasso(0.3, positive=True),
        {},
    ),
    "mode 0": (lambda: spams.lasso(COLUMNS, ATOMS, lambda1=1.0, mode=0), L1Ball(1.0), {}),
    "mode 1": (lambda: spams.lasso(COLUMNS, ATOMS, lambda1=3.0, mode=1), ErrorBound(3.0), {}),
    "lassoWeighted": (
        lambda: spams.lassoWeighted(
            COLUMNS, ATOMS, np.asfortranarray(WEIGHTS.T), lambda1=0.3, mode=2
        ),
        Lasso(0.3),
        {"penalty_weights": WEIGHTS},
    ),
    "cd": (
        lambda: spams.cd(
            COLUMNS,
            ATOMS,
            spams.lasso(COLUMNS, ATOMS, lambda1=0.5, mode=2),
            lambda1=0.3,
            mode=2,
            itermax=1000,
            tol=1e-10,
        ),
        Lasso(0.3),
        {},
    ),
    "omp, L": (lambda: spams.omp(COLUMNS, ATOMS, L=4, eps=0.0, lambda1=0.0), OMP(4), {}),
    "omp, eps": (lambda: spams.omp(COLUMNS, ATOMS, L=20, eps=3.0, lambda1=0.0), OMP(eps=3.0), {}),
    "somp": (
        lambda: spams.somp(COLUMNS, ATOMS, STARTS, L=4, eps=0.0),
        JointOMP(4),
        {"groups": GROUPS},
    ),
    "l1L2BCD": (
        lambda: spams.l1L2BCD(
            COLUMNS, ATOMS, ZEROS, STARTS, lambda1=0.5, mode=2, itermax=2000, tol=1e-10
        ),
        JointLasso(0.25, by_size=True),
        {"groups": GROUPS},
    ),
    "fistaFlat, l1": (lambda: fista("l1"), Lasso(0.3), {}),
    "fistaFlat, elastic-net": (
        lambda: fista("elastic-net", lambda2=0.2),
        Lasso(0.3, ridge=0.2),
        {},
    ),
    "fistaFlat, group-lasso-l2": (
        lambda: fista("group-lasso-l2", groups=(ATOM_GROUPS + 1).astype(np.int32)),
        GroupLasso(0.3, ATOM_GROUPS),
        {},
    ),
}


def fista(regul, **options):
    return spams.fistaFlat(
        COLUMNS, ATOMS, ZEROS, loss="square", regul=regul, lambda1=0.3, max_it=5000, tol=1e-12,
        **options,
    )  # fmt: skip


def dense(codes):
    return codes.toarray() if hasattr(codes, "toarray") else np.asarray(codes)


@pytest.mark.parametrize("name", ROWS)
def test_spams_has_the_same_codes(name):
    theirs, coder, options = ROWS[name]
    np.testing.assert_allclose(
        encode(X, D, coder, **options).toarray(), dense(theirs()).T, atol=1e-6
    )


def test_spams_multiplies_lambda_by_the_share_of_known_entries():
    theirs = spams.lassoMask(COLUMNS, ATOMS, np.asfortranarray(KNOWN.T), lambda1=0.3, mode=2)
    for i, code in enumerate(dense(theirs).T):
        one = slice(i, i + 1)
        ours = encode(X[one], D, Lasso(0.3 * KNOWN[i].mean()), mask=~KNOWN[one])
        np.testing.assert_allclose(ours.toarray()[0], code, atol=1e-6)


def test_spams_is_close_with_a_ridge():
    theirs = dense(spams.lasso(COLUMNS, ATOMS, lambda1=0.3, lambda2=0.2, mode=2)).T
    ours = encode(X, D, Lasso(0.3, ridge=0.2)).toarray()

    def cost(codes):
        fit = 0.5 * np.sum((X - codes @ D) ** 2)
        return fit + 0.3 * np.abs(codes).sum() + 0.1 * np.sum(codes**2)

    assert cost(ours) < cost(theirs) < 1.01 * cost(ours)
