"""Projections onto every set: feasible, nearest, as slow twins and other solvers have them."""

from __future__ import annotations

import naive_projections as naive
import numpy as np
import pytest
from problems import DTYPES
from projection_sets import SETS, SIZES, each, points, rough

from smalto import projections
from smalto.kernels.projecting import elastic_net_ball, fused_lasso_ball, l2_ball
from smalto.projections import project_elastic_net_ball, project_fused_lasso_ball, project_l2_ball


@pytest.mark.parametrize("dtype", DTYPES)
@each(SETS)
def test_result_is_the_nearest_feasible_point(ball, dtype):
    rng = np.random.default_rng(1)
    for m in SIZES:
        V = points(rng, 12, m, dtype)
        P = ball.project(V)
        assert P.dtype == dtype
        assert P.shape == V.shape
        assert np.all(ball.left(P) <= ball.bound * (1 + rough(dtype, 32)))
        if ball.positive:
            assert P.min() >= 0
        if ball.simplex:
            np.testing.assert_allclose(ball.left(P), ball.bound, rtol=rough(dtype, 32))
        V, P = V.astype(float), P.astype(float)
        others = [ball.feasible(rng.standard_normal(V.shape)) for _ in range(5)]
        others += [ball.feasible(P + 0.1 * rng.standard_normal(V.shape)) for _ in range(5)]
        others += [ball.feasible(np.where(rng.random(V.shape) < 0.7, P, 0) + 1e-9)]
        scale = np.abs(V).max(axis=1) * np.sqrt(m) + 1
        for Z in others:
            angle = ((V - P) * (Z - P)).sum(axis=1)
            assert np.all(angle <= rough(dtype, 32) * scale * (np.abs(Z - P).sum(axis=1) + 1))


@pytest.mark.parametrize("dtype", DTYPES)
@each(SETS)
def test_agrees_with_slow_twin(ball, dtype):
    rng = np.random.default_rng(2)
    for m in [1, 2, 5, 12] if ball.gamma2 else SIZES:
        V = points(rng, 6, m, dtype)
        expected = np.array([ball.twin(v) for v in V.astype(float)])
        scale = np.abs(V).max() * rough(dtype)
        np.testing.assert_allclose(ball.project(V), expected, rtol=1e-5, atol=scale + 1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@each([ball for ball in SETS if not ball.simplex])
def test_feasible_points_come_back_bit_for_bit(ball, dtype):
    rng = np.random.default_rng(3)
    for m in SIZES:
        V = (0.99 * ball.feasible(rng.standard_normal((10, m)))).astype(dtype)
        assert np.array_equal(ball.project(V).view(np.uint8), V.view(np.uint8))


@pytest.mark.parametrize("dtype", DTYPES)
@each(SETS)
def test_idempotent(ball, dtype):
    rng = np.random.default_rng(4)
    for m in SIZES:
        P = ball.project(points(rng, 10, m, dtype))
        again = ball.project(P)
        np.testing.assert_allclose(again, P, rtol=rough(dtype, 32), atol=rough(dtype))
        assert np.array_equal(again == 0, P == 0) or np.abs(P[(again == 0) != (P == 0)]).max() < (
            rough(dtype)
        )


@each(SETS)
def test_only_the_values_of_the_input_matter(ball):
    rng = np.random.default_rng(5)
    V = points(rng, 300, 33, np.float64)
    kept = V.copy()
    P = ball.project(V, n_threads=1)
    assert np.array_equal(V, kept)
    assert not np.shares_memory(P, V)
    assert np.array_equal(ball.project(V, n_threads=5), P)
    assert np.array_equal(ball.project(V[7]), P[7])
    assert np.array_equal(ball.project(np.asfortranarray(V)), P)
    assert np.array_equal(ball.project(np.repeat(V, 2, axis=1)[:, ::2]), P)
    V.setflags(write=False)
    assert np.array_equal(ball.project(V), P)
    whole = rng.integers(-9, 9, (4, 10))
    assert np.array_equal(ball.project(whole.tolist()), ball.project(whole.astype(float)))
    assert ball.project(whole).dtype == np.float64


@pytest.mark.parametrize("dtype", DTYPES)
@each(SETS)
def test_ties_and_constants(ball, dtype):
    for m in [1, 2, 7] if ball.gamma2 else [1, 2, 7, 40]:
        p = ball.project(np.full(m, 5, dtype))
        assert np.all(p == p[0])  # symmetric, and unique
        assert p[0] > 0
        np.testing.assert_allclose(p, ball.twin(np.full(m, 5.0)), atol=rough(dtype, 16))
        zero = ball.project(np.zeros(m, dtype))
        assert np.all(zero == (ball.bound / m if ball.simplex else 0))
        v = np.repeat(np.array([3, -2, 3, 0], dtype), m)
        p = ball.project(v)
        np.testing.assert_allclose(p, ball.twin(v.astype(float)), atol=rough(dtype, 16))
        assert all(np.ptp(part) == 0 for part in np.split(p, 4))


@each([ball for ball in SETS if ball.bound == 1.0])
def test_against_cvxpy(ball):
    cp = pytest.importorskip("cvxpy")
    v = 2 * np.random.default_rng(11).standard_normal(15)
    u = cp.Variable(v.size)
    left = ball.gamma1 * cp.norm1(u) + ball.gamma2 * cp.norm1(cp.diff(u))
    limits = [left + ball.square * cp.sum_squares(u) <= 1]
    if ball.positive:
        limits += [u >= 0]
    if ball.simplex:
        limits = [u >= 0, cp.sum(u) == 1]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(u - v)), limits)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10)
    np.testing.assert_allclose(ball.project(v), u.value, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_kernels_project_one_atom_in_place(dtype):
    rng = np.random.default_rng(17)
    for m in [1, 7, 64]:
        narrow = np.empty(elastic_net_ball.work_size(m), dtype)
        wide = np.empty((fused_lasso_ball.WORK_ROWS, m + 1))
        for positive in [False, True]:
            v = 3 * rng.standard_normal(m).astype(dtype)
            atom = v.copy()
            elastic_net_ball.project_elastic_net(atom, 1.5, positive, narrow)
            assert np.array_equal(atom, project_elastic_net_ball(v, 1.5, positive=positive))
            gauge = elastic_net_ball.elastic_net_gauge(atom, 1.5, positive)
            assert gauge == pytest.approx(naive.left_side(atom, 1.5), rel=1e-12)
            assert gauge <= 1 + rough(dtype, 32)
            atom = v.copy()
            fused_lasso_ball.project_fused_lasso(atom, 0.2, 0.3, positive, wide)
            assert np.array_equal(atom, project_fused_lasso_ball(v, 0.2, 0.3, positive=positive))
            gauge = fused_lasso_ball.fused_lasso_gauge(atom, 0.2, 0.3, positive)
            assert gauge == pytest.approx(naive.left_side(atom, 0.2, 0.3), rel=1e-12)
            assert gauge <= 1 + rough(dtype, 32)
            atom = v.copy()
            l2_ball.project_l2(atom, positive)
            assert np.array_equal(atom, project_l2_ball(v, positive=positive))
            for gamma in [0.0, 0.7]:  # what the public functions leave to another kernel
                net = v.copy()
                elastic_net_ball.project_elastic_net(net, gamma, positive, narrow)
                if gamma == 0.0:
                    np.testing.assert_allclose(net, atom, atol=rough(dtype))
                fused = v.copy()
                fused_lasso_ball.project_fused_lasso(fused, gamma, 0.0, positive, wide)
                np.testing.assert_allclose(fused, net, atol=rough(dtype))
        bad = np.full(m, -1, dtype)
        assert elastic_net_ball.elastic_net_gauge(bad, 1.5, True) == np.inf
        assert fused_lasso_ball.fused_lasso_gauge(bad, 0.2, 0.3, True) == np.inf


def test_all_public_names_are_documented():
    for name in projections.__all__:
        opening = getattr(projections, name).__doc__.splitlines()[0]
        assert "argmin_u" in opening or name == "elastic_net_main_form"
