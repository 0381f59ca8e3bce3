"""Duality gaps computed in NumPy and float64, by definition, of the coders that have groups or a ball.

Nothing of the library is used but `encode`: the dual point is the residual, scaled into the set
that the penalty's dual norm defines.
"""

import numpy as np
import pytest

from smalto import encode
from smalto.coders import GroupLasso, JointLasso, L1Ball, TreeLasso

DTYPES = [np.float32, np.float64]
ALLOWED = {np.float32: 1e-3, np.float64: 1e-8}  # of ½‖x‖²
SIZES = {np.float32: 1e15, np.float64: 1e100}
N, M, K = 24, 10, 15
GROUPS = np.arange(K) // 3
PARENTS = [-1, *((i - 1) // 2 for i in range(1, K))]
LABELS = np.arange(N) // 4


def dictionary(kind, rng):
    D = rng.standard_normal((K, M))
    if kind == "duplicates":
        D[1::2] = D[: K - 1 : 2]
    if kind == "zero atoms":
        D[::4] = 0.0
    return D


def signals(rng):
    X = rng.standard_normal((N, M))
    X[::5] = 0.0
    X[4:8] = 0.0  # a whole group
    return X


def members():
    """The groups of a tree: an atom and all its descendants, inner groups first."""
    inside = [{j} for j in range(K)]
    for j in range(K - 1, 0, -1):
        inside[PARENTS[j]] |= inside[j]
    return [sorted(group) for group in reversed(inside)]


def norms(groups, lam):
    return lambda a: lam * sum(np.linalg.norm(a[group]) for group in groups)


def vanishes(groups, lam):
    """Whether correlations are those of a dual point: shrinking them leaves nothing."""

    def test(c):
        v = c.copy()
        for group in groups:
            size = np.linalg.norm(v[group])
            v[group] *= max(0.0, 1.0 - lam / size) if size > 0 else 0.0
        return not v.any()

    return test


def scale_into(c, inside):
    """The largest factor of correlations, by bisection, for which they are those of a dual point."""
    if inside(c):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if inside(middle * c) else (low, middle)
    return low


def gaps_of_norms(X, D, A, groups, lam):
    out = []
    for x, a in zip(X, A, strict=True):
        r = x - a @ D
        theta = scale_into(D @ r, vanishes(groups, lam)) * r
        primal = 0.5 * r @ r + norms(groups, lam)(a)
        out.append(primal - (x @ theta - 0.5 * theta @ theta))
    return np.array(out), 0.5 * (X**2).sum(axis=1)


def gaps_of_joint(X, D, A, lam):
    gaps, units = [], []
    for label in np.unique(LABELS):
        x, a = X[label == LABELS], A[label == LABELS]
        r = x - a @ D
        top = np.linalg.norm(r @ D.T, axis=0).max()
        theta = r * min(1.0, lam / top) if top > 0 else r
        primal = 0.5 * np.sum(r * r) + lam * np.linalg.norm(a, axis=0).sum()
        gaps.append(primal - np.sum(x * theta) + 0.5 * np.sum(theta * theta))
        units.append(0.5 * np.sum(x * x))
    return np.array(gaps), np.array(units)


def gaps_of_ball(X, D, A, radius):
    assert np.all(np.abs(A).sum(axis=1) <= radius * (1 + 1e-5))
    R = X - A @ D
    top = np.abs(R @ D.T).max(axis=1)
    return radius * top - np.sum((A @ D) * R, axis=1), 0.5 * (X**2).sum(axis=1)


PROBLEMS = {
    "GroupLasso": (
        lambda lam, s, t: GroupLasso(lam * s * t, GROUPS),
        lambda X, D, A, lam: gaps_of_norms(X, D, A, np.split(np.arange(K), K // 3), lam),
    ),
    "TreeLasso": (
        lambda lam, s, t: TreeLasso(lam * s * t, PARENTS),
        lambda X, D, A, lam: gaps_of_norms(X, D, A, members(), lam),
    ),
    "JointLasso": (lambda lam, s, t: JointLasso(lam * s * t), gaps_of_joint),
    "L1Ball": (lambda radius, s, t: L1Ball(radius * s / t), gaps_of_ball),
}


@pytest.mark.parametrize(("signal", "atom"), [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["ordinary", "duplicates", "zero atoms"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_gaps_are_as_small_as_promised(name, kind, dtype, signal, atom):
    rng = np.random.default_rng(3)
    X, D = signals(rng), dictionary(kind, rng)
    s, t = SIZES[dtype] ** signal, SIZES[dtype] ** atom
    make, gaps = PROBLEMS[name]
    groups = {"groups": LABELS} if name == "JointLasso" else {}
    X, D = X.astype(dtype), D.astype(dtype)
    for number in (0.05, 0.5):
        A = encode(dtype(s) * X, dtype(t) * D, make(number, s, t), **groups).toarray()
        found, unit = gaps(
            X.astype(np.float64), D.astype(np.float64), A.astype(np.float64) * t / s, number
        )
        assert A.any()
        assert np.all(found <= ALLOWED[dtype] * unit)
        assert not A[::5].any()  # the codes of zero signals
