"""Newton's equations of the interior point method: both ways against dense matrices."""

import numpy as np
import pytest
import scipy

from smalto.coders import GroupLasso, TreeLasso, newton_systems
from smalto.coders.chunks import Problem, residuals
from smalto.coders.newton_systems import Bend, newton_step
from smalto.coders.work import Work

K = 60
TRIPLES = np.arange(K) // 3
GROUPS = {
    "none": (np.zeros(0, int), np.zeros(0, int)),
    "some": (np.arange(30), np.arange(30) // 5),
    "disjoint": (np.arange(K), TRIPLES),
    "nested": (
        np.concatenate([np.arange(K), np.arange(K), np.arange(36)]),
        np.concatenate([TRIPLES, 20 + np.arange(K) // 12, np.full(36, 25)]),
    ),
    "a chain": (
        np.concatenate([np.arange(size) for size in range(2, K)]),
        np.repeat(np.arange(K - 2), np.arange(2, K)),
    ),
}


def bend(groups, spread, rng):
    """A second derivative whose numbers differ by factors of up to 10**spread."""
    members, owner = GROUPS[groups]
    count = int(owner.max(initial=-1)) + 1
    code = rng.standard_normal(K) * 10.0 ** rng.uniform(-spread, 0, K)
    sizes = np.sqrt(np.bincount(owner, code[members] ** 2, minlength=count))
    return Bend(
        curve=10.0 ** rng.uniform(-spread, 0, K),
        pull=10.0 ** rng.uniform(-spread / 2, 1, count),
        along=10.0 ** rng.uniform(-spread, 0, count),
        unit=code[members] / sizes[owner],
        members=members,
        owner=owner,
    )


def dense(bend):
    """C by its definition."""
    C = np.diag(bend.curve)
    for g in range(len(bend.pull)):
        u = np.zeros(K)
        u[bend.members[bend.owner == g]] = bend.unit[bend.owner == g]
        here = np.zeros(K)
        here[bend.members[bend.owner == g]] = 1.0
        C += bend.pull[g] * (np.diag(here) - (1.0 - bend.along[g]) * np.outer(u, u))
    return C


@pytest.mark.parametrize("spread", [0, 3, 6])
@pytest.mark.parametrize("groups", GROUPS)
def test_the_second_derivative_in_all_its_forms(groups, spread):
    rng = np.random.default_rng(0)
    part = bend(groups, spread, rng)
    C, v = dense(part), rng.standard_normal(K)
    np.testing.assert_allclose(part.times(v), C @ v, rtol=1e-12, atol=1e-13)
    root = part.square_root()
    np.testing.assert_allclose(root.T @ root, C, rtol=1e-12, atol=1e-13)
    c, W = part.inverse()
    np.testing.assert_allclose((np.diag(c) + W @ W.T) @ C, np.eye(K), atol=1e-8)


@pytest.mark.parametrize("spread", [0, 3, 6])
@pytest.mark.parametrize("groups", GROUPS)
def test_equations_of_the_features_are_solved(groups, spread):
    rng = np.random.default_rng(1)
    part, D, right = bend(groups, spread, rng), rng.standard_normal((K, 25)), rng.standard_normal(K)
    step, missed = newton_systems._by_features(D, part, right)
    left = right - dense(part) @ step - D @ (D.T @ step)
    assert np.linalg.norm(left) <= 1e-9 * np.linalg.norm(right)
    assert missed <= 1e-9


@pytest.mark.parametrize("spread", [0, 3, 6, 9, 12])
@pytest.mark.parametrize("groups", GROUPS)
def test_both_ways_lead_to_the_same_step(groups, spread, monkeypatch):
    monkeypatch.setattr(newton_systems, "_FEW_ATOMS", 0)
    rng = np.random.default_rng(1)
    part, D, right = bend(groups, spread, rng), rng.standard_normal((K, 25)), rng.standard_normal(K)
    wide = np.hstack([D, np.zeros((K, K))])  # more features than atoms
    steps = [newton_step(each, part, right, Work(np.inf)) for each in (D, wide)]
    np.testing.assert_allclose(*steps, rtol=0, atol=1e-4 * np.abs(steps[1]).max())


def test_atoms_without_a_penalty_are_solved_for_by_atoms(monkeypatch):
    monkeypatch.setattr(newton_systems, "_FEW_ATOMS", 0)
    rng = np.random.default_rng(2)
    part = bend("some", 1, rng)
    curve = part.curve.copy()
    curve[50:55] = 0.0
    part = part._replace(curve=curve)
    assert not part.is_positive()
    D, right = rng.standard_normal((K, 25)), rng.standard_normal(K)
    step = newton_step(D, part, right, Work(np.inf))
    np.testing.assert_allclose(dense(part) @ step + D @ (D.T @ step), right, atol=1e-9)


def test_what_rounding_spoils_is_solved_for_by_atoms(monkeypatch):
    monkeypatch.setattr(newton_systems, "_FEW_ATOMS", 0)
    rng = np.random.default_rng(3)
    part, D = bend("disjoint", 3, rng), rng.standard_normal((K, 25))
    right = rng.standard_normal(K)
    exact = newton_step(D, part, right, Work(np.inf))
    monkeypatch.setattr(newton_systems, "_by_features", lambda *_: (np.ones(K), 1.0))
    np.testing.assert_allclose(newton_step(D, part, right, Work(np.inf)), exact, rtol=1e-7)
    little = Work((K + 25) * K**2)  # not enough for both ways
    np.testing.assert_array_equal(newton_step(D, part, right, little), np.ones(K))
    assert newton_step(D, part, right, Work(0.0)) is None


def test_deep_trees_have_limits_of_work_and_memory(monkeypatch):
    rng = np.random.default_rng(5)
    parts = {kind: bend(kind, 1, rng) for kind in ("disjoint", "a chain")}
    D, right = rng.standard_normal((K, 25)), rng.standard_normal(K)
    wide = np.hstack([D, np.zeros((K, K))])
    monkeypatch.setattr(newton_systems, "_FEW_ATOMS", 0)
    spent = {}
    for kind, part in parts.items():
        work = Work(1e9)
        newton_step(D, part, right, work)
        spent[kind] = 1e9 - work.left
    assert spent["a chain"] > 100 * spent["disjoint"]
    monkeypatch.setattr(newton_systems, "_LARGEST", 1000 * K)
    assert newton_step(wide, parts["disjoint"], right, Work(np.inf)) is not None
    assert newton_step(wide, parts["a chain"], right, Work(np.inf)) is None


@pytest.mark.parametrize("kind", [GroupLasso, TreeLasso])
@pytest.mark.parametrize("settings", [{}, {"l1": 0.5}, {"positive": True}, {"ridge": 1e-9}])
def test_codes_of_many_more_atoms_than_features_are_exact(kind, settings):
    """With so small a penalty that a code has more nonzeros than features."""
    rng = np.random.default_rng(4)
    D, x = rng.standard_normal((700, 120)), rng.standard_normal((1, 120))
    top = float(np.abs(x @ D.T).max())
    lam = 1e-6 * top
    groups = np.arange(700) // 4
    if kind is TreeLasso:  # inner nodes, of which each is the parent of three
        groups = np.maximum((np.arange(700) - 1) // 3, -1)
        groups[0] = -1
    settings = {**settings, "l1": settings.get("l1", 0.0) * lam}
    coder = kind(lam, groups, **settings)
    code = coder.certain(Problem(x, D, np.ones(700), None, x.dtype))
    gap = coder.gap(residuals(x, D, scipy.sparse.csr_array(code)))
    assert gap[0] <= 1e-10 * 0.5 * float(x[0] @ x[0])
    assert np.count_nonzero(code) > 120 or "positive" in settings
