"""Statistics and the dictionary update."""

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import DTYPES, dictionary, examples
from scipy import sparse

from smalto import State, encode, learn
from smalto.coders import Lasso, preparing, wanted_nonzeros
from smalto.coders.codes import Codes
from smalto.constraints import Constraint, ElasticNetBall, FusedLassoBall, L2Ball, Simplex
from smalto.kernels.coding.fit import fit_at_optimum, fit_of_rows
from smalto.learners import SGD, Online
from smalto.learning.batches import base as batches_base
from smalto.learning.dictionary import sweep as sweep_module
from smalto.learning.dictionary.sweep import gradient_step, sweep
from smalto.learning.learners import online
from smalto.learning.memory import statistics
from smalto.learning.memory.code_store import CodeStore
from smalto.learning.memory.contributions import Contribution
from smalto.learning.memory.statistics import Stats


def random_codes(rng, n, k, density=0.2, dtype=np.float64):
    dense = rng.standard_normal((n, k)) * (rng.random((n, k)) < density)
    csr = sparse.csr_array(dense.astype(dtype))
    return dense.astype(dtype), Codes(
        csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data
    )


def contribution(codes, X, k, fit=0.0, penalties=None, weights=None):
    n = X.shape[0]
    norms = np.asarray((X.multiply(X) if sparse.issparse(X) else X * X).sum(1), float).ravel()
    penalties = np.zeros(n) if penalties is None else penalties
    return Contribution.listed(codes, X, k, norms, fit + penalties, penalties, weights)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("as_csr", [False, True])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("density", [0.06, 0.2])  # few nonzeros are added one by one
def test_statistics(dtype, as_csr, n_threads, density):
    rng = np.random.default_rng(0)
    n, k, m = 90, 150, 13
    dense, codes = random_codes(rng, n, k, density, dtype)
    X = rng.standard_normal((n, m)).astype(dtype)
    stats = Stats.zeros(k, m)
    stats.decay(0.5)  # contributions must not be scaled by what the past is scaled by
    penalties = rng.random(n)
    part = contribution(codes, sparse.csr_array(X) if as_csr else X, k, penalties=penalties)
    part.add_to(stats, 0.25, n_threads)
    A, B = naive.statistics(dense, X, 0.25)
    np.testing.assert_allclose(
        stats.scale * stats.A, A, atol=1e-6 if dtype == np.float32 else 1e-12
    )
    np.testing.assert_allclose(
        stats.scale * stats.B, B, atol=1e-6 if dtype == np.float32 else 1e-12
    )
    assert stats.total_weight() == pytest.approx(0.25 * n)
    constant = 0.25 * (0.5 * (X.astype(float) ** 2).sum() + penalties.sum())
    assert stats.scale * stats.constant == pytest.approx(constant)
    np.testing.assert_array_equal(part.uses, (dense != 0).sum(0))
    part.add_to(stats, -0.25, n_threads)
    np.testing.assert_allclose(stats.A, 0, atol=1e-12)


@pytest.mark.parametrize("as_csr", [False, True])
@pytest.mark.parametrize("density", [0.06, 0.2])
def test_statistics_of_weighted_samples(as_csr, density):
    rng = np.random.default_rng(0)
    n, k, m = 90, 150, 13
    dense, codes = random_codes(rng, n, k, density)
    X, weights = rng.standard_normal((n, m)), rng.random(n)
    for w in (weights, None):
        stats = Stats.zeros(k, m)
        part = contribution(codes, sparse.csr_array(X) if as_csr else X, k, weights=w)
        part.add_to(stats, 0.25, 1)
        left = 0.25 * (dense.T if w is None else dense.T * w)
        np.testing.assert_allclose(stats.A, left @ dense, atol=1e-12)
        np.testing.assert_allclose(stats.B, left @ X, atol=1e-12)
        np.testing.assert_allclose(stats.code_sum, left.sum(1), atol=1e-12)
        ones = np.full(n, 0.25) if w is None else 0.25 * w
        np.testing.assert_allclose(stats.sample_sum, ones @ X, atol=1e-12)
        assert stats.constant == pytest.approx(0.5 * ones @ (X * X).sum(1))


def test_statistics_are_additive_and_decay():
    rng = np.random.default_rng(1)
    k, m = 7, 5
    parts = []
    for n in (4, 9):
        _, codes = random_codes(rng, n, k)
        stats = Stats.zeros(k, m)
        contribution(codes, rng.standard_normal((n, m)), k).add_to(stats, 1.0, 1)
        parts.append(stats)
    first, second = parts
    D = rng.standard_normal((k, m))
    expected = 0.3 * first.surrogate_sum(D) + second.surrogate_sum(D)
    first.decay(0.3)
    both = first.copy()
    both.add(second, 1.0)
    assert both.surrogate_sum(D) == pytest.approx(expected)
    assert both.total_weight() == pytest.approx(0.3 * 4 + 9)
    for _ in range(200):  # beyond where the scale is folded into the matrices
        first.decay(0.8)
    assert first.surrogate_sum(D) == pytest.approx(
        0.8**200 * (expected - second.surrogate_sum(D)), rel=1e-9
    )
    first.decay(0.0)
    assert first.surrogate_sum(D) == 0.0


def test_surrogate_is_the_cost_of_the_samples():
    rng = np.random.default_rng(2)
    n, k, m = 30, 8, 6
    dense, codes = random_codes(rng, n, k)
    X, D, penalties = rng.standard_normal((n, m)), rng.standard_normal((k, m)), rng.random(n)
    stats = Stats.zeros(k, m)
    contribution(codes, X, k, penalties=penalties).add_to(stats, 1.0, 1)
    assert stats.surrogate_sum(D) == pytest.approx(
        0.5 * ((X - dense @ D) ** 2).sum() + penalties.sum()
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_fit_of_rows(dtype):
    rng = np.random.default_rng(3)
    n, k, m = 20, 16, 10
    dense, codes = random_codes(rng, n, k, dtype=dtype)
    X, D = rng.standard_normal((n, m)).astype(dtype), rng.standard_normal((k, m)).astype(dtype)
    out = np.empty(n)
    fit_of_rows(D @ D.T, X @ D.T, (X.astype(float) ** 2).sum(1), *codes, out)
    expected = 0.5 * ((X.astype(float) - dense.astype(float) @ D.astype(float)) ** 2).sum(1)
    np.testing.assert_allclose(out, expected, rtol=1e-4 if dtype == np.float32 else 1e-10)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_fit_at_optimum(dtype, ridge):
    rng = np.random.default_rng(3)
    X, D = rng.standard_normal((20, 10)).astype(dtype), dictionary(rng, 16, 10).astype(dtype)
    lam, norms = 0.4, (X.astype(float) ** 2).sum(1)
    csr = encode(X, D, Lasso(lam, ridge=ridge))
    codes = Codes(csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data)
    fit, twin = np.empty((2, 20))
    fit_at_optimum(X @ D.T, norms, *codes, lam, ridge, fit)
    fit_of_rows(D @ D.T, X @ D.T, norms, *codes, twin)
    np.testing.assert_allclose(fit, twin, rtol=1e-5 if dtype == np.float32 else 1e-12)


class PlainBall(Constraint):
    """The l2 ball as a user would write a constraint of their own."""

    def project(self, atom):
        atom /= max(1.0, float(np.linalg.norm(atom)))

    def gauge(self, atom):
        return float(np.linalg.norm(atom))


def sweep_problem(rng, k, m, unused=()):
    dense = rng.standard_normal((4 * k, k)) * (rng.random((4 * k, k)) < 0.3)
    dense[:, list(unused)] = 0.0
    X = rng.standard_normal((4 * k, m))
    A, B = naive.statistics(dense, X)
    return dictionary(rng, k, m), A, B


@pytest.mark.parametrize("k", [1, 5, 64, 65, 200])
@pytest.mark.parametrize("m", [1, 7, 300])
@pytest.mark.parametrize("positive", [False, True])
def test_blocked_sweep_is_the_plain_one(k, m, positive):
    rng = np.random.default_rng(k + m)
    D0, A, B = sweep_problem(rng, k, m, unused=[k // 2] if k > 1 else [])
    expected = naive.sweep(D0, A, B, lambda atom: naive.project_l2_ball(atom, positive))
    half = Stats(0.5 * A, 0.25 * B, scale=1.0), Stats(A, 1.5 * B, scale=0.5)
    for n_threads in (1, 2, 3):
        D = D0.copy()
        change = sweep(D, half, L2Ball(positive=positive), n_threads)
        np.testing.assert_allclose(D, expected, atol=1e-10)
        assert change == pytest.approx(
            naive.surrogate(D, A, B) - naive.surrogate(D0, A, B), rel=1e-8, abs=1e-9
        )
        assert positive or change <= 0
    if k > 1:
        np.testing.assert_array_equal(D[k // 2], D0[k // 2])  # nothing is known of it
    single = D0.astype(np.float32)
    sweep(single, half, L2Ball(positive=positive), 1)
    np.testing.assert_allclose(single, expected, atol=2e-4)


@pytest.mark.parametrize("ridge", [0.0, 5.0])
def test_a_sweep_of_several_blocks_at_once_is_the_plain_one(ridge):
    k, m = 530, 9  # four groups of two blocks, and a block that is alone
    D0, A, B = sweep_problem(np.random.default_rng(0), k, m)
    expected = naive.sweep(D0, A + ridge * np.eye(k), B, naive.project_l2_ball)
    results = []
    for n_threads in (1, 2, 3):
        results.append(D0.copy())
        change = sweep(results[-1], (Stats(A, B),), L2Ball(), n_threads, ridge)
    np.testing.assert_allclose(results[0], expected, atol=1e-10)
    assert change == pytest.approx(naive.surrogate(expected, A, B) - naive.surrogate(D0, A, B))
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_a_constraint_in_plain_python_gives_the_same():
    rng = np.random.default_rng(0)
    D0, A, B = sweep_problem(rng, 130, 20, unused=[3])
    ours, theirs = D0.copy(), D0.copy()
    stats = (Stats(A, B),)
    change = sweep(ours, stats, L2Ball(), 2)
    assert sweep(theirs, stats, PlainBall(), 2) == pytest.approx(change)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(0)
    D0, A, B = sweep_problem(rng, 130, 300)
    results = []
    for n_threads in (1, 2, 3):
        D = D0.astype(np.float32)
        sweep(D, (Stats(A, B),), L2Ball(), n_threads)
        results.append(D)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_repeated_sweeps_reach_the_optimum():
    rng = np.random.default_rng(5)
    D, A, B = sweep_problem(rng, 12, 9)
    for _ in range(3000):
        if sweep(D, (Stats(A, B),), L2Ball(), 1) > -1e-15:
            break
    # Optimality: each atom is the projection of itself minus its gradient.
    gradient = A @ D - B
    moved = D - gradient / A.diagonal()[:, None]
    moved /= np.maximum(1.0, np.linalg.norm(moved, axis=1, keepdims=True))
    np.testing.assert_allclose(moved, D, atol=1e-6)


def test_gradient_step():
    rng = np.random.default_rng(6)
    D0, A, B = sweep_problem(rng, 70, 9)
    expected = D0 - 0.01 * (A @ D0 - B)
    expected /= np.maximum(1.0, np.linalg.norm(expected, axis=1, keepdims=True))
    for n_threads in (1, 2):
        D = D0.copy()
        gradient_step(D, Stats(A, B), 0.01, L2Ball(), n_threads)
        np.testing.assert_allclose(D, expected, atol=1e-12)


@pytest.mark.parametrize(
    "constraint",
    [L2Ball(), L2Ball(positive=True), ElasticNetBall(0.5), FusedLassoBall(0.3, 0.2), Simplex()],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradient_step_projects_atom_by_atom(constraint, dtype):
    rng = np.random.default_rng(8)
    D0, A, B = sweep_problem(rng, 70, 9)
    D0 = D0.astype(dtype)
    expected = D0 - dtype(0.01) * (A.astype(dtype) @ D0 - B.astype(dtype))
    for atom in expected:
        constraint.project(atom)
    results = []
    for n_threads in (1, 3):
        results.append(D0.copy())
        gradient_step(results[-1], Stats(A, B), 0.01, constraint, n_threads)
    np.testing.assert_array_equal(*results)
    np.testing.assert_allclose(results[0], expected, atol=1e-5 if dtype == np.float32 else 1e-12)


def test_sgd_sums_the_gradients_of_a_batch():
    rng = np.random.default_rng(7)
    X, D0 = rng.standard_normal((50, 9)), rng.standard_normal((12, 9))
    D0 /= np.linalg.norm(D0, axis=1, keepdims=True)
    a, b, rate = 0.5, 100.0, 0.5 / (40 + 100.0)
    result = learn(X[:40], 12, Lasso(0.1), learner=SGD(a, b, 40), init=D0, max_steps=1)
    codes = encode(X[:40], D0, Lasso(0.1)).toarray()
    expected = D0 + rate * codes.T @ (X[:40] - codes @ D0)
    expected /= np.maximum(1.0, np.linalg.norm(expected, axis=1, keepdims=True))
    np.testing.assert_allclose(result.D, expected, atol=1e-10)


@examples(60)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8), st.booleans())
def test_projection_onto_the_ball(values, positive):
    v = np.array(values)
    ball = L2Ball(positive=positive)
    p = v.copy()
    ball.project(p)
    assert ball.gauge(p) <= 1 + 1e-12
    again = p.copy()
    ball.project(again)
    np.testing.assert_allclose(again, p, atol=1e-12)
    rng = np.random.default_rng(0)
    for z in rng.standard_normal((20, len(v))):
        z = np.abs(z) if positive else z
        z /= max(1.0, np.linalg.norm(z))
        assert np.dot(v - p, z - p) <= 1e-9 * (1 + np.abs(v).max())
    if ball.gauge(v) <= 1:
        np.testing.assert_array_equal(p, v)


def test_gauge():
    assert L2Ball().gauge(np.array([3.0, 4.0])) == 5.0
    assert L2Ball(positive=True).gauge(np.array([-0.1, 0.5])) == np.inf


def test_code_store():
    rng = np.random.default_rng(0)
    n, k = 50, 40
    store = CodeStore.empty(n, np.dtype(np.float64))
    table = np.zeros((n, k))
    for _ in range(10):
        numbers = rng.permutation(n)[:13]
        dense, codes = random_codes(rng, 13, k, density=rng.random())
        store.put(numbers, codes, np.abs(dense).sum(1))
        table[numbers] = dense
    everyone = np.arange(n)
    np.testing.assert_array_equal(store.fetch(everyone).as_csr(k).toarray(), table)
    for j, into, sign in ((3, 5, -1.0), (7, -1, 0.0), (20, 2, 1.0)):
        store.merge(j, into, sign)
        if into >= 0:
            table[:, into] += sign * table[:, j]
        table[:, j] = 0.0
        codes = store.fetch(everyone)
        np.testing.assert_allclose(codes.as_csr(k).toarray(), table)
        for row in range(n):
            assert np.all(np.diff(codes.indices[codes.indptr[row] : codes.indptr[row + 1]]) > 0)


def test_statistics_of_very_many_atoms_are_as_precise_as_the_dictionary(monkeypatch, tmp_path):
    X = np.random.default_rng(0).standard_normal((600, 12)).astype(np.float32)
    options = {"learner": Online(100), "random_state": 0, "n_threads": 1}
    usual = learn(X, 16, Lasso(0.5), max_epochs=2, **options)
    monkeypatch.setattr(statistics, "MANY_ATOMS", 16)
    some = learn(X, 16, Lasso(0.5), max_epochs=1, **options).state
    assert {part.A.dtype for part in some.stats} == {np.dtype(np.float32)}
    some.save(tmp_path / "state.safetensors")
    state = State.load(tmp_path / "state.safetensors")
    less = learn(X, 16, Lasso(0.5), max_epochs=2, state=state, **options)
    assert {part.A.dtype for part in usual.state.stats} == {np.dtype(np.float64)}
    np.testing.assert_allclose(less.D, usual.D, atol=1e-3)
    np.testing.assert_allclose(less.state.surrogate, usual.state.surrogate, rtol=1e-4)
    double = learn(X.astype(np.float64), 16, Lasso(0.5), max_epochs=1, **options).state
    assert {part.A.dtype for part in double.stats} == {np.dtype(np.float64)}


def test_very_many_atoms_have_one_sum_of_all_epochs_if_the_past_is_forgotten(monkeypatch):
    X = np.random.default_rng(0).standard_normal((600, 12))
    options = {"random_state": 0, "n_threads": 1, "max_epochs": 3}
    everything = learn(X, 16, Lasso(0.5), learner=Online(100, memory="all"), **options)
    monkeypatch.setattr(online, "MANY_ATOMS", 16)
    many = learn(X, 16, Lasso(0.5), learner=Online(100), **options)
    assert len(many.state.stats) == 1
    np.testing.assert_array_equal(many.D, everything.D)
    many.state.measure_surrogate()
    np.testing.assert_allclose(many.state.surrogate, everything.state.surrogate)
    constant = learn(X, 16, Lasso(0.5), learner=Online(100, rho=1.0), **options)
    assert len(constant.state.stats) == 2


def test_larger_blocks_of_very_many_atoms_give_the_same_sweep(monkeypatch):
    rng = np.random.default_rng(0)
    D, codes = rng.standard_normal((300, 50)), rng.standard_normal((400, 300))
    stats = Stats(codes.T @ codes, rng.standard_normal((300, 50)))
    small, large = D.copy(), D.copy()
    change = sweep_module.sweep(small, (stats,), L2Ball(), 1)
    monkeypatch.setattr(sweep_module, "MANY", 300)
    np.testing.assert_allclose(sweep_module.sweep(large, (stats,), L2Ball(), 1), change)
    np.testing.assert_allclose(large, small, atol=1e-10)


def test_choosing_lam_again_and_coding_share_one_gram_matrix(monkeypatch):
    X = np.random.default_rng(0).standard_normal((600, 12))
    made = []
    for module in (batches_base, preparing, wanted_nonzeros):
        plain = module.gram
        monkeypatch.setattr(
            module, "gram", lambda *given, plain=plain: made.append(given[0].width) or plain(*given)
        )
    options = {"learner": Online(300), "random_state": 0, "n_threads": 1}
    result = learn(X, 24, Lasso(mean_nonzeros=3), max_steps=1, **options)
    made.clear()
    learn(X, 24, Lasso(mean_nonzeros=3), max_steps=2, state=result.state, **options)
    assert made == [32]
