"""GroupLasso and TreeLasso: optimal on everything, certified, and usable to learn."""

import pickle
import warnings
from dataclasses import replace

import naive_groups as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import DEGENERATE, DTYPES, dictionary, examples, ordinary, problems
from scipy import sparse

from smalto import DictionaryLearning, encode, learn
from smalto.coders import GroupLasso, Lasso, TreeLasso, duality_gap, grouped
from smalto.kernels.coding.grouped_inner import solve_symmetric

KINDS = ["groups", "labels", "chain", "heap", "nested"]


def make(kind, lam, k, **settings):
    """A coder of this kind over k atoms."""
    atoms = np.arange(k)
    if kind == "groups":
        return GroupLasso(lam, [list(atoms[i : i + 3]) for i in range(0, k, 3)], **settings)
    if kind == "labels":
        labels = atoms % (1 + k // 4)
        return GroupLasso(
            lam, labels, group_weights=1 + np.arange(1 + labels.max()) % 3, **settings
        )
    if kind == "chain":
        return TreeLasso(lam, atoms - 1, **settings)
    if kind == "heap":
        return TreeLasso(lam, (atoms - 1) // 2, group_weights=1.0 / (1 + atoms % 4), **settings)
    halves = [list(atoms[: k // 2 + 1]), list(atoms[k // 2 + 1 :])]
    singles = [[int(atom)] for atom in atoms[::2]]
    return TreeLasso(lam, atom_groups=[half for half in halves if half] + singles, **settings)


def quiet(X, D, coder, dtype=np.float64, **arguments):
    """Encode; in float32 rounding may keep signals from the optimum, which the caller checks."""
    with warnings.catch_warnings():
        if dtype == np.float32:
            warnings.filterwarnings("ignore", ".*codes are not proven optimal")
        return encode(X.astype(dtype), D.astype(dtype), coder, **arguments)


def check(X, D, coder, dtype):
    """The optimality conditions, with the numbers that the coder has seen."""
    codes = quiet(X, D, coder, dtype)
    assert codes.dtype == dtype
    assert codes.has_sorted_indices
    assert np.all(codes.data != 0)
    X, D = X.astype(dtype).astype(float), D.astype(dtype).astype(float)
    a = codes.toarray().astype(float)
    if coder.positive:
        assert a.min(initial=0.0) >= 0
    size = np.linalg.norm(X, axis=1) * np.linalg.norm(D, axis=1).max()
    size = size + np.abs(a).sum(1) * np.abs(D @ D.T).max()
    tolerance = 1e-4 if dtype == np.float32 else 1e-8
    missed = naive.violation(X, D, a, coder)
    assert np.all(missed <= tolerance * size + 1e-300), (missed / size).max()
    return codes


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("kind", KINDS)
def test_optimal(name, kind, dtype):
    X, D = DEGENERATE[name]
    scale = np.abs(X @ D.T).max(initial=0.0) or 1.0
    for lam, more in [
        (0.3, {}), (0.1, {"l1": 0.1 * scale}), (0.01, {}), (0.1, {"positive": True}),
        (0.02, {"ridge": 0.1}), (0.0, {}), (2.0, {}), (0.0, {"l1": 0.1 * scale}),
        (0.05, {"l1": 0.02 * scale, "ridge": 0.2, "positive": True}),
    ]:  # fmt: skip
        check(X, D, make(kind, lam * scale, len(D), **more), dtype)


@examples(60)
@given(problems(), st.sampled_from(KINDS), st.sampled_from([0.0, 0.0, 0.05, 0.5]))
def test_optimal_on_anything(problem, kind, l1):
    X, D, lam, ridge, positive = problem
    coder = make(kind, lam, len(D), l1=l1, ridge=ridge, positive=positive)
    for dtype in DTYPES:
        check(X, D, coder, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_gap_is_proven(kind, dtype):
    X, D = ordinary(n=200, k=48, m=32)
    X, D = X.astype(dtype), D.astype(dtype)
    aim = 2e-6 if dtype == np.float32 else 1e-10  # in float32 G itself is rounded
    for lam, more in [(0.3, {}), (0.05, {"l1": 0.05}), (0.05, {"positive": True, "ridge": 0.1})]:
        coder = make(kind, lam, 48, **more)
        codes, info = quiet(X, D, coder, dtype, return_info=True)
        x, d, a = X.astype(float), D.astype(float), codes.toarray().astype(float)
        objectives = [naive.objective(x[i], d, a[i], coder) for i in range(200)]
        assert np.max(info.gap / objectives) <= aim
        assert info.iterations.min() >= 1
        np.testing.assert_array_equal(info.nonzeros, (a != 0).sum(1))


@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_a_slow_twin(kind):
    X, D = ordinary(n=2, k=15, m=20)
    for more in ({}, {"l1": 0.03}, {"positive": True}, {"ridge": 0.2}):
        coder = make(kind, 0.07, 15, **more)
        expected = np.array([naive.encode(x, D, coder, 1000) for x in X])
        np.testing.assert_allclose(encode(X, D, coder).toarray(), expected, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_cvxpy(kind):
    cp = pytest.importorskip("cvxpy")
    X, D = ordinary(n=2, k=15, m=10)
    for more in ({}, {"l1": 0.05}, {"positive": True, "ridge": 0.1}):
        coder = make(kind, 0.1, 15, **more)
        groups, weights = naive.lists(coder)
        for x, code in zip(X, encode(X, D, coder).toarray(), strict=True):
            a = cp.Variable(15, nonneg=coder.positive)
            value = 0.5 * cp.sum_squares(x - a @ D) + 0.5 * coder.ridge * cp.sum_squares(a)
            value += coder.l1 * cp.norm1(a)
            for group, weight in zip(groups, weights, strict=True):
                value += coder.lam * weight * cp.norm2(a[group])
            least = cp.Problem(cp.Minimize(value)).solve()
            assert naive.objective(x, D, code, coder) <= least + 1e-6


def test_closed_forms():
    x = np.array([[3.0, 4.0, 0.5, -0.5]])
    codes = encode(x, np.eye(4), GroupLasso(1.0, ["b", "b", "a", "a"], group_weights=[1, 2.5]))
    np.testing.assert_allclose(codes.toarray(), [[1.5, 2.0, 0, 0]])
    codes = encode(x, np.eye(4), GroupLasso(1.0, [0, 0, 1, 1], l1=0.5))
    a = np.array([2.5, 3.5])
    np.testing.assert_allclose(codes.toarray()[0, :2], a * (1 - 1 / np.linalg.norm(a)))
    assert codes.nnz == 2
    codes = encode(x, np.eye(4), TreeLasso(1.0, [-1, 0, 1, -1]))  # a chain of three, and one
    a = np.array([3.0, 4.0 * (1 - 1 / 4.0)])
    np.testing.assert_allclose(codes.toarray()[0, :2], a * (1 - 1 / np.linalg.norm(a)))
    assert codes.nnz == 2


def test_special_cases_are_those_of_the_lasso():
    X, D = ordinary(n=50, k=30, m=20)
    expected = encode(X, D, Lasso(0.1)).toarray()
    for coder in (
        GroupLasso(0.1, np.arange(30)), GroupLasso(0.0, np.zeros(30, int), l1=0.1),
        GroupLasso(0.04, np.arange(30), l1=0.06), TreeLasso(0.1, np.full(30, -1)),
    ):  # fmt: skip
        np.testing.assert_allclose(encode(X, D, coder).toarray(), expected, atol=1e-8)
    a = encode(X, D, GroupLasso(0.2, np.arange(30) // 3)).toarray()
    b = encode(X, D, TreeLasso(0.2, atom_groups=np.arange(30).reshape(10, 3))).toarray()
    np.testing.assert_allclose(a, b, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_penalty_and_gap_from_their_definitions(kind):
    X, D = ordinary(n=6, k=14, m=10)
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((6, 14)) * (rng.random((6, 14)) < 0.4)
    for more in ({}, {"l1": 0.1}, {"ridge": 0.3, "positive": True}):
        coder = make(kind, 0.2, 14, **more)
        codes = np.abs(dense) if coder.positive else dense
        expected = [naive.penalty(a, coder) for a in codes]
        np.testing.assert_allclose(coder.penalty(sparse.csr_array(codes)), expected)
        gap = duality_gap(X, D, codes, coder)
        best = quiet(X, D, coder).toarray()
        least = [naive.objective(x, D, a, coder) for x, a in zip(X, best, strict=True)]
        now = [naive.objective(x, D, a, coder) for x, a in zip(X, codes, strict=True)]
        assert np.all(gap >= np.array(now) - least)
        if not coder.ridge:
            for x, a, value, found in zip(X, codes, now, gap, strict=True):
                r = x - a @ D
                scale = min(1.0, 1.0 / naive.dual_norm(D @ r, coder))
                dual = scale * (x @ r) - 0.5 * scale**2 * (r @ r)
                np.testing.assert_allclose(found, value - dual, rtol=1e-9)


def test_a_tree_is_used_from_its_root():
    X, D = ordinary(n=100, k=31, m=20)
    parents = (np.arange(31) - 1) // 2
    codes = encode(X, D, TreeLasso(0.05, parents)).toarray()
    assert 0 < np.count_nonzero(codes) < codes.size
    for atom in range(1, 31):
        assert np.all(codes[codes[:, atom] != 0][:, parents[atom]] != 0)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_threads_and_starts_do_not_matter(kind):
    X, D = ordinary(n=300, k=40, m=20)
    coder = make(kind, 0.1, 40)
    codes = encode(X, D, coder, n_threads=2)
    assert np.array_equal(codes.data, encode(X, D, coder, n_threads=1).data)
    np.testing.assert_array_equal(encode(X[7:9], D, coder).toarray(), codes[7:9].toarray())
    start = encode(X, D + 0.05 * dictionary(np.random.default_rng(1), 40, 20), coder)
    for first in (start, codes, -codes):
        again = encode(X, D, coder, start=first)
        np.testing.assert_allclose(again.toarray(), codes.toarray(), atol=1e-6)


def test_more_room():
    """Working sets and outputs that are larger than what there is room for at first."""
    rng = np.random.default_rng(0)
    X, D = rng.standard_normal((5, 300)), dictionary(rng, 290, 300)
    for coder in (GroupLasso(0.05, np.arange(290) // 5), TreeLasso(0.02, np.arange(290) // 3 - 1)):
        codes = check(X, D, coder, np.float64)
        assert codes.nnz > 5 * 200
        np.testing.assert_allclose(
            encode(X, D, coder, start=codes).toarray(), codes.toarray(), atol=1e-7
        )


def test_missing_entries():
    X, D = ordinary(n=30, k=20, m=16)
    mask = np.random.default_rng(0).random(X.shape) < 0.3
    mask[0], mask[1] = True, False
    for coder in (make("groups", 0.1, 20), make("heap", 0.1, 20)):
        codes = encode(np.where(mask, np.nan, X), D, coder, missing="nan").toarray()
        assert not codes[0].any()
        for x, holes, code in zip(X, mask, codes, strict=True):
            known = quiet(x[None, ~holes], D[:, ~holes], coder) if not holes.all() else None
            if known is not None:
                np.testing.assert_allclose(code, known.toarray()[0], atol=1e-7)
        assert duality_gap(X, D, codes, coder, mask=mask).max() < 1e-9
    learned = learn(X, 20, make("groups", 0.1, 20), mask=mask, random_state=0, max_steps=2)
    assert np.isfinite(learned.D).all()


@pytest.mark.parametrize(
    "coder",
    [
        GroupLasso(0.1, np.arange(20) // 4),
        GroupLasso(0.05, np.arange(20) // 4, l1=0.05, positive=True),
        TreeLasso(0.05, (np.arange(20) - 1) // 3),
    ],
)
def test_learning_lowers_the_cost(coder):
    rng = np.random.default_rng(0)
    spectrum = np.geomspace(1, 0.05, 16)
    X, test = (rng.standard_normal((n, 16)) * spectrum for n in (1000, 200))

    def cost(D):
        codes = encode(test, D, coder)
        return float((0.5 * ((test - codes @ D) ** 2).sum(1) + coder.penalty(codes)).mean())

    first = learn(X, 20, coder, random_state=0, max_steps=1)
    last = learn(X, 20, coder, random_state=0, max_epochs=3)
    assert cost(last.D) < cost(first.D)
    assert last.coder == coder
    model = DictionaryLearning(20, coder=coder, random_state=0).fit(X)
    assert model.transform(test).shape == (200, 20)


def test_learned_groups_must_be_of_as_many_atoms():
    X, D = ordinary()
    for coder in (GroupLasso(0.1, [0, 0, 1]), TreeLasso(0.1, [-1, 0, 0])):
        message = "the groups cover 3 atoms, but the dictionary has"
        with pytest.raises(ValueError, match=f"{message} 24"):
            encode(X, D, coder)
        with pytest.raises(ValueError, match=f"{message} 7"):
            learn(X, 7, coder, random_state=0)
        with pytest.raises(ValueError, match=f"{message} 24"):
            duality_gap(X, D, np.zeros((20, 24)), coder)


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        ([[0, 1], [1, 2]], ValueError, "atom 1 is in groups 0 and 1: groups of a GroupLasso"),
        ([[0, 1], [3]], ValueError, "atom 2 is in no group"),
        ([[0, 1], []], ValueError, "group 1 has no atoms"),
        ([[0, 1], [2, -1]], ValueError, "numbered from 0, got -1 in group 1"),
        ([[0, 0], [1]], ValueError, "group 0 contains an atom twice"),
        ([[0.5], [1]], TypeError, "lists of atoms"),
        ([0, [1]], TypeError, "lists of atoms"),
        ([0.5, 1.0], TypeError, "integers or strings, got float64"),
        ("ab", TypeError, "a label for each atom"),
        (3, TypeError, "a label for each atom, or a list of lists of atoms, got 3"),
        ([], TypeError, "a label for each atom"),
        ({0, 1}, TypeError, "a label for each atom"),
        (None, TypeError, "a label for each atom"),
    ],
)
def test_bad_groups(groups, error, message):
    with pytest.raises(error, match=message):
        GroupLasso(0.1, groups)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({}, ValueError, r"give one of parents \(of each atom\) and atom_groups"),
        ({"parents": [-1], "atom_groups": [[0]]}, ValueError, "give one of parents"),
        ({"parents": [-1, 2, 1]}, ValueError, "those of atom 1 form a cycle"),
        ({"parents": [-1, 1]}, ValueError, "those of atom 1 form a cycle"),
        ({"parents": [-1, 5]}, ValueError, "one of the 2 atoms, got 5 for atom 1"),
        ({"parents": [-2, 0]}, ValueError, "got -2 for atom 0"),
        ({"parents": [0.5]}, TypeError, "parents must be integers"),
        ({"parents": [[0, 1], [2]]}, TypeError, "lists of atoms are atom_groups=, got"),
        ({"parents": []}, TypeError, "parents must be integers"),
        ({"atom_groups": [[0, 1], [1, 2]]}, ValueError, "groups 0 and 1 overlap and neither"),
        ({"atom_groups": [[0, 1, 2], [3], [2, 3]]}, ValueError, "groups 0 and 2 overlap"),
        ({"atom_groups": [0, 0, 1]}, TypeError, "a list of lists of atoms"),
        ({"atom_groups": []}, TypeError, "a list of lists of atoms"),
        ({"atom_groups": [[0], [2]]}, ValueError, "atom 1 is in no group"),
        ({"parents": [-1, 0], "group_weights": [1.0]}, ValueError, "1 numbers, expected 2"),
        (
            {"atom_groups": [[0, 1]], "group_weights": [-1]},
            ValueError,
            "> 0 and finite, got -1 for group 0",
        ),
        ({"atom_groups": [[0, 1]], "group_weights": "x"}, TypeError, "numbers, one per group"),
        ({"atom_groups": [[0, 1]], "group_weights": [np.inf]}, ValueError, "got inf for group 0"),
        ({"parents": [-1], "l1": -1}, ValueError, "l1 must be >= 0, got -1"),
        ({"parents": [-1], "ridge": np.inf}, ValueError, "ridge must be finite, got inf"),
    ],
)
def test_bad_trees(settings, error, message):
    with pytest.raises(error, match=message):
        TreeLasso(0.1, **settings)
    with pytest.raises(ValueError, match="lam must be >= 0, got -1"):
        TreeLasso(-1, [-1])


def test_values_compare_and_inputs_stay():
    groups = np.array([5, 5, 2])
    coder = GroupLasso(0.1, groups, group_weights=[1, 2])
    groups[0] = 7
    assert coder == GroupLasso(0.1, [[2], [1, 0]], group_weights=np.array([1.0, 2.0]))
    assert coder.atom_groups == (1, 1, 0)
    assert coder != GroupLasso(0.1, [0, 1, 1], group_weights=[1, 2])
    assert len({coder, replace(coder), pickle.loads(pickle.dumps(coder))}) == 1
    tree = TreeLasso(0.1, atom_groups=[[2, 0, 1], [0]])
    assert tree == replace(tree) == TreeLasso(0.1, atom_groups=((0, 1, 2), (0,)))
    assert hash(tree) == hash(TreeLasso(np.float64(0.1), atom_groups=[np.arange(3), [0]]))
    X, D = ordinary()
    X.flags.writeable = D.flags.writeable = False
    encode(X, D, make("heap", 0.1, 24, ridge=0.1))


def test_codes_out_of_reach_of_float32_are_mended():
    rng = np.random.default_rng(0)
    X, D = ordinary(n=10, k=40, m=10)
    X = (1e6 * X).astype(np.float32)
    D = (D + 1e-4 * rng.standard_normal(D.shape)).astype(np.float32)
    coder = GroupLasso(1e-3, np.arange(40) // 4)
    _, info = encode(X, D, coder, return_info=True)  # no warning
    assert np.all(info.gap <= 1e-3 * 0.5 * (X.astype(np.float64) ** 2).sum(axis=1))


def test_solve_symmetric():
    rng = np.random.default_rng(0)
    for s in (1, 2, 7, 30):
        A = rng.standard_normal((s, s + 3))
        M, right = np.zeros((s + 2, s + 2)), rng.standard_normal(s + 2)
        M[:s, :s] = A @ A.T
        expected = np.linalg.solve(M[:s, :s], right[:s])
        solve_symmetric(M, s, right, 1e-13)
        np.testing.assert_allclose(right[:s], expected, rtol=1e-8)
    M, right = np.ones((3, 3)), np.ones(3)  # of rank one: the others wait
    solve_symmetric(M, 3, right, 1e-13)
    np.testing.assert_allclose(right, [1, 0, 0])


def test_a_signal_that_takes_too_long_is_counted(monkeypatch):
    rng = np.random.default_rng(0)
    t = np.linspace(0, 1, 64)
    D = np.exp(-0.5 * ((t - rng.random((600, 1))) / 0.05) ** 2)
    X = rng.standard_normal((1, 64))
    coder = GroupLasso(1e-5 * np.abs(X @ D.T).max(), np.arange(600) // 4)

    def cost(codes):
        return 0.5 * np.sum((X - codes @ D) ** 2) + coder.penalty(codes)[0]

    exact = cost(encode(X, D, coder))  # without a warning
    monkeypatch.setattr(grouped, "_MOST_WORK", 1e7)
    with pytest.warns(RuntimeWarning, match="1 of 1 codes are not proven optimal"):
        codes = encode(X, D, coder)
    assert exact < cost(codes) < 0.5 * np.sum(X**2)
