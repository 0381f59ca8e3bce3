"""Dense non-negative codes: the kernel, and the exact solution through the dual."""

import naive_nonnegative as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import DEGENERATE, DTYPES, examples, problems
from scipy.optimize import nnls

from smalto import encode
from smalto.coders import Lasso, coding, lasso
from smalto.coders import dense_nonnegative as dense
from smalto.coders.chunks import Chunk
from smalto.coders.signals import Signals
from smalto.kernels.coding.nonnegative import (
    ROUND,
    compress,
    descend,
    make_panel,
    make_slots,
    settle,
)

NNLS = Lasso(0.0, positive=True)
TOLERANCE = {np.float32: 3e-4, np.float64: 1e-9}


def parts(n=50, k=12, m=30, seed=0, dtype=np.float64, power=3):
    """Data with dense codes; the larger the power, the less alike are the atoms."""
    rng = np.random.default_rng(seed)
    D = rng.random((k, m)) ** power
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    X = rng.random((n, k)) @ D + 0.05 * rng.random((n, m))
    return X.astype(dtype), D.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (7, 64), (16, 65), (3, 200)])
def test_descend_is_its_twin(dtype, shape):
    k, n = shape
    rng = np.random.default_rng(n)
    F = rng.random((k, k + 2))
    G, Q, C = (F @ F.T).astype(dtype), rng.normal(1, 2, (k, n)).astype(dtype), rng.random((k, n))
    if k > 3:
        G[2] = G[:, 2] = 0  # a zero atom: its codes stay as they are
    C = C.astype(dtype)
    expected = naive.descend(G.astype(float), Q.astype(float), 0.1, 4, C.astype(float))
    begin, end = n // 3, n
    out = C.copy()
    part = np.ascontiguousarray(Q[:, begin:end])
    descend(G, part, dtype(0.1), 4, out, begin, end, make_panel(k, dtype))
    np.testing.assert_array_equal(out[:, :begin], C[:, :begin])
    np.testing.assert_allclose(
        out[:, begin:], expected[:, begin:], rtol=1e-3 if dtype == np.float32 else 1e-9, atol=1e-4
    )
    assert out.min() >= 0


def settled(G, Q, share, most, start=None):
    """Return what `settle` makes of codes, and its numbers of sweeps; all but the last atom are used."""
    n, k = Q.shape
    codes = np.zeros_like(Q) if start is None else start.copy()
    sweeps, used = np.zeros(n, np.int32), np.arange(k - 1)
    part = np.ascontiguousarray(G[:-1, :-1])
    scratch = make_panel(k - 1, Q.dtype), make_slots()
    settle(part, Q, used, share, most, codes, *scratch, sweeps)
    return codes, sweeps


def with_unused(D, X):
    """Return the Gram matrix and correlations, those of a zero atom last."""
    D = np.concatenate([D, np.zeros((1, D.shape[1]), D.dtype)])
    return D @ D.T, X @ D.T


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 64, 150])
def test_settled_codes_are_optimal_and_the_others_given_up(n, dtype):
    X, D = parts(n, dtype=dtype, power=12)
    X *= np.geomspace(0.1, 10, n)[:, None].astype(dtype)
    G, Q = with_unused(D, X)
    share = 30 * float(np.finfo(dtype).eps)
    C, sweeps = settled(G, Q, share, 600)
    assert (sweeps > 0).all()
    assert (sweeps % ROUND == 0).all()
    assert not C[:, -1].any()
    slopes = Q.astype(float) - C.astype(float) @ G.astype(float)
    missed = np.where(C > 0, np.abs(slopes), np.maximum(slopes, 0))[:, :-1].max(axis=1)
    assert (missed < 4 * share * np.abs(Q).max(axis=1)).all()
    few, given_up = settled(G, Q, share, 2 * ROUND)
    np.testing.assert_array_equal(given_up, -2 * ROUND)
    columns = Q.T[:-1].astype(float)
    twin = naive.descend(
        G[:-1, :-1].astype(float), columns, 0.0, 2 * ROUND, np.zeros(columns.shape)
    )
    tolerance = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(few[:, :-1], twin.T, atol=10 * tolerance, rtol=tolerance)
    for i in (0, n - 1):  # a code does not depend on the others, nor on its place among them
        alone, _ = settled(G, Q[[i]], share, 600)
        np.testing.assert_array_equal(alone[0], C[i])
    backwards, _ = settled(G, np.ascontiguousarray(Q[::-1]), share, 600)
    np.testing.assert_array_equal(backwards[::-1], C)
    again, sweeps = settled(G, Q, share, 600, start=C)
    np.testing.assert_array_equal(sweeps, ROUND)
    np.testing.assert_allclose(again, C, rtol=1e-3 if dtype == np.float32 else 1e-9, atol=tolerance)


def test_what_would_take_too_many_sweeps_is_given_up_early():
    rng = np.random.default_rng(0)
    D = 1.0 + 0.1 * rng.random((20, 60))  # atoms much alike: sweeps hardly move on
    X = rng.random((5, 20)) @ D
    _, sweeps = settled(*with_unused(D, X), 1e-14, 600)
    assert (sweeps < 0).all()
    assert (sweeps > -100).all()


def test_compress():
    codes = np.array([[0.0, 2.0, -1.0], [3.0, 0.0, 4.0], [0.0, 0.0, 0.0]])
    indices, values = np.empty(4, np.int32), np.empty(4)
    compress(codes, indices, values)
    assert indices[:3].tolist() == [1, 0, 2]
    assert values[:3].tolist() == [2.0, 3.0, 4.0]
    found = dense.compressed(codes)
    np.testing.assert_array_equal(found.as_csr(3).toarray(), np.maximum(codes, 0))


def test_float32_is_enough_for_whole_signals_over_independent_atoms(monkeypatch):
    X, D = parts(200, dtype=np.float32, power=12)
    exact = encode(X.astype(float), D.astype(float), NNLS).toarray()
    coded = []
    plain = coding._code_in_float64
    monkeypatch.setattr(
        coding,
        "_code_in_float64",
        lambda part, *rest: coded.append(len(part)) or plain(part, *rest),
    )
    codes, info = encode(X, D, NNLS, n_threads=1, return_info=True)
    assert coded == []
    np.testing.assert_allclose(codes.toarray(), exact, atol=1e-5)
    assert info.gap.max() < 1e-5
    # Costs are differences of sums, entries that are missing change the atoms, and similar atoms need more.
    assert coding.mean_cost(Signals(X), D, NNLS, 1) > 0
    assert sum(coded) == 200
    mask = np.zeros(X.shape, np.bool_)
    mask[:5, :3] = True
    encode(X, D, NNLS, mask=mask, n_threads=1)
    alike = np.concatenate([D, D[:1] + np.float32(1e-3) * D[1:2]])
    encode(X, alike, NNLS, n_threads=1)
    assert sum(coded) == 600


@pytest.mark.parametrize("span", [1.0, 1e2, 1e3, 1e4, 1e9, 1e12])
def test_short_atoms_count_as_much_as_long_ones(span):
    rng = np.random.default_rng(0)
    X, D = rng.random((100, 50)).astype(np.float32), rng.random((20, 50))
    D = (D * np.geomspace(1.0, 1.0 / span, 20)[:, None]).astype(np.float32)
    left = X.astype(float) - encode(X, D, NNLS).toarray().astype(float) @ D.astype(float)
    best = [nnls(D.T.astype(float), x.astype(float), maxiter=1000)[1] ** 2 for x in X]
    np.testing.assert_allclose(np.sum(left**2, axis=1), best, rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dense_codes_are_exact(dtype):
    X, D = parts(dtype=dtype)
    codes = encode(X, D, NNLS)
    assert codes.dtype == dtype
    assert codes.nnz > 0.6 * len(X) * len(D)
    assert codes.data.min() > 0
    allowed = 1e-12 if dtype == np.float64 else 16 * np.finfo(dtype).eps  # twice `SETTLED`
    assert naive.missed(X, D, codes.toarray(), 0.0) < allowed
    expected = np.array([nnls(D.T.astype(float), x.astype(float))[0] for x in X])
    np.testing.assert_allclose(codes.toarray(), expected, atol=TOLERANCE[dtype])


def test_no_signal_needs_the_dual_if_atoms_are_not_alike(monkeypatch):
    X, D = parts(500, power=12)
    monkeypatch.setattr(dense, "_solve_dual", None)
    codes = encode(X, D, NNLS, n_threads=1).toarray()
    assert naive.missed(X, D, codes, 0.0) < 1e-14


def test_dual_is_what_answers(monkeypatch):
    X, D = parts()
    monkeypatch.setattr(dense, "ROUNDING", 1e6)
    monkeypatch.setattr(dense, "SETTLED", 0.0)
    called = []

    from smalto.coders import lasso

    real = lasso._solve_rows

    def watch(G, *others):
        called.append(G.reshape(16, 16))
        return real(G, *others)

    monkeypatch.setattr(lasso, "_solve_rows", watch)
    encode(X, D, NNLS, n_threads=1)
    assert len(called) == 1
    G = np.zeros_like(called[0])
    G[: len(D), : len(D)] = D @ D.T
    np.testing.assert_allclose((called[0] @ G)[: len(D), : len(D)], np.eye(len(D)), atol=1e-8)


def test_what_rounding_spoils_is_solved_again():
    rng = np.random.default_rng(0)
    base = rng.random((1, 40))
    D = base + 1e-4 * rng.random((10, 40))  # atoms very much alike
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    X = rng.random((20, 10)) @ D
    codes = encode(X, D, NNLS).toarray()
    assert naive.missed(X, D, codes, 0.0) < 1e-9


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(DEGENERATE))
def test_degenerate(name, dtype):
    X, D = (a.astype(dtype) for a in DEGENERATE[name])
    codes = encode(X, D, NNLS)
    assert np.all(codes.data > 0)
    if name not in ("nearly duplicate atoms", "atoms of any norm"):
        assert naive.missed(X, D, codes.toarray(), 0.0) < TOLERANCE[dtype]


@given(problems(), st.sampled_from(DTYPES))
@examples(60)
def test_any_problem(problem, dtype):
    X, D, *_ = problem
    X, D = X.astype(dtype), D.astype(dtype)
    codes = encode(X, D, NNLS, n_threads=1)
    assert naive.missed(X, D, codes.toarray(), 0.0) < TOLERANCE[dtype]


def test_start_and_company_do_not_matter():
    X, D = parts()
    codes = encode(X, D, NNLS).toarray()
    other = np.random.default_rng(1).random(codes.shape)
    np.testing.assert_allclose(encode(X, D, NNLS, start=other).toarray(), codes, atol=1e-10)
    for i in (0, 7):
        np.testing.assert_allclose(encode(X[[i]], D, NNLS).toarray()[0], codes[i], atol=1e-10)


def test_inverse_of_what_has_none():
    assert dense.inverse(np.zeros((16, 16))) is None
    assert dense.inverse(np.ones((16, 16))) is None
    assert dense.inverse(np.eye(dense.WIDEST + 16)) is None
    G = np.diag([4.0, 0.0, 2.0])
    np.testing.assert_allclose(dense.inverse(G), np.diag([0.25, 0.0, 0.5]))


def test_signals_that_are_stuck_in_the_dual_alone_are_not_counted(monkeypatch):
    """They are compared with the optimum in any case; each one counted has its chunk certified."""
    X, D = parts(k=16)
    chunk = Chunk(
        X @ D.T, (X * X).sum(axis=1), np.zeros(len(X), np.int32), stuck=np.zeros(1, np.int64)
    )
    solve, G = lasso._solve_rows, D @ D.T
    calls = []
    monkeypatch.setattr(dense, "SETTLED", 0.0)

    def stuck(exact, fast, chunk, *settings):
        calls.append(len(chunk.Q))
        chunk.tally().stuck[0] += 1
        return solve(exact, fast, chunk, *settings)

    monkeypatch.setattr(lasso, "_solve_rows", stuck)
    codes = NNLS.solver(G)(chunk).as_csr(16)
    assert calls == [len(X)]
    assert chunk.stuck[0] == 0
    expected = [nnls(D.T, x)[0] for x in X]
    np.testing.assert_allclose(codes.toarray(), expected, atol=1e-9)
