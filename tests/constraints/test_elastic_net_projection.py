"""Thresholds: the elastic net, the l1 ball and the simplex, at any scale and length."""

from __future__ import annotations

import naive_projections as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import DTYPES
from projection_sets import elastic_net_set, l1_set, quiet, rough, simplex_set, vectors, weights

from smalto.kernels.projecting import elastic_net_ball
from smalto.projections import (
    elastic_net_main_form,
    project_elastic_net_ball,
    project_fused_lasso_ball,
    project_l1_ball,
    project_l2_ball,
    project_simplex,
)


def elastic_net_violation(v, p, gamma):
    """Relative violation of ``v - p = lam (2 p + gamma sign(p))``, |v| <= lam gamma where p = 0."""
    v, p = v.astype(np.longdouble), p.astype(np.longdouble)
    on = p != 0
    lams = (np.abs(v) - np.abs(p))[on] / (2 * np.abs(p) + gamma)[on]
    lam = lams.mean()
    beyond = max(0, np.max(np.abs(v[~on]), initial=0) - lam * gamma) / np.abs(v).max()
    return float(max(np.ptp(lams) / lam, beyond, abs((p**2).sum() + gamma * abs(p).sum() - 1)))


@quiet
@pytest.mark.parametrize(
    ("dtype", "scale"), [(np.float64, 1e150), (np.float64, 1e200), (np.float32, 1e30)]
)
def test_huge_and_tiny_scales(dtype, scale):
    rng = np.random.default_rng(6)
    for m in [1, 2, 30, 1000, 10000]:
        w = rng.standard_normal(m)
        v = (w * scale).astype(dtype)
        for gamma in [0.01, 0.5, 3.0]:
            p = project_elastic_net_ball(v, gamma)
            assert elastic_net_violation(v, p, gamma) < rough(dtype, 300)
            fused = project_fused_lasso_ball(v, gamma, 0.2)
            assert naive.left_side(fused, gamma, 0.2) == pytest.approx(1, rel=rough(dtype, 32))
            limit = project_fused_lasso_ball(1e9 * w, gamma, 0.2)  # already as if at infinity
            np.testing.assert_allclose(fused, limit, atol=1e-7)
            for tiny in (w / scale).astype(dtype)[None]:
                assert np.array_equal(project_elastic_net_ball(tiny, gamma), tiny)
                assert np.array_equal(project_fused_lasso_ball(tiny, gamma, 0.2), tiny)
        unit = w.astype(dtype) / np.linalg.norm(w.astype(dtype))
        np.testing.assert_allclose(project_l2_ball(v), unit, rtol=rough(dtype, 200))
        small = (w / scale).astype(dtype)
        np.testing.assert_allclose(
            project_l2_ball(small, 0.5 / scale) * scale,
            project_l2_ball(w.astype(dtype), 0.5),
            rtol=rough(dtype, 200),
        )
        for project in [project_l1_ball, project_simplex]:
            np.testing.assert_allclose(
                project(v, 0.5 * scale) / dtype(scale),
                project(w.astype(dtype), 0.5),
                atol=rough(dtype, 50),
            )


@pytest.mark.parametrize("dtype", DTYPES)
def test_extreme_gamma(dtype):
    rng = np.random.default_rng(7)
    v = rng.standard_normal(50).astype(dtype)
    np.testing.assert_allclose(
        project_elastic_net_ball(v, 0.0), project_l2_ball(v), rtol=rough(dtype)
    )
    np.testing.assert_allclose(
        project_elastic_net_ball(v, 1e-9), project_l2_ball(v), rtol=1e-6, atol=1e-8
    )
    np.testing.assert_allclose(
        project_fused_lasso_ball(v, 0.7, 0.0), project_elastic_net_ball(v, 0.7), rtol=rough(dtype)
    )
    np.testing.assert_allclose(
        project_fused_lasso_ball(v, 0.7, 1e-12),
        project_elastic_net_ball(v, 0.7),
        atol=rough(dtype) + 1e-11,
    )
    for gamma in [1e4, 1e8, 1e30]:  # the l1 ball of radius 1 / gamma
        p = project_elastic_net_ball(v, gamma).astype(float)
        np.testing.assert_allclose(
            p * gamma, project_l1_ball(v, 1 / gamma).astype(float) * gamma, atol=2 / gamma + 1e-5
        )
        assert np.count_nonzero(p) == 1
        fused = project_fused_lasso_ball(v, gamma, 1.0).astype(float)
        assert naive.left_side(fused, gamma, 1.0) <= 1 + rough(dtype, 32)
        if gamma == 1e4:  # beyond, the one entry left drowns in the rounding of v
            np.testing.assert_allclose(fused * gamma, p * gamma, atol=2e-3)
    flat = project_fused_lasso_ball(v + 1, 0.0, 1e9)
    assert np.ptp(flat) == 0
    np.testing.assert_allclose(flat, min((v + 1).mean(), 1 / np.sqrt(v.size)), rtol=1e-5)


def test_true_zeros_and_known_values():
    v = np.array([3.0, -0.1, 0.0, 1.0])
    assert np.array_equal(project_l1_ball(v, 2.0), [2.0, 0.0, 0.0, 0.0])
    assert not np.signbit(project_l1_ball(v, 2.0)).any()
    assert np.array_equal(project_simplex([0.5, 0.5, -3.0]), [0.5, 0.5, 0.0])
    # one entry: u² + gamma u = 1
    assert project_elastic_net_ball([-9.0], 1.5)[0] == pytest.approx(-0.5, rel=1e-15)
    assert project_fused_lasso_ball([9.0], 1.5, 4.0)[0] == pytest.approx(0.5, rel=1e-15)
    # a step: 2 u² + gamma2 u = 1 once the upper piece comes down alone, and lower ones are zero
    p = project_fused_lasso_ball([0.0, 8.0, 8.0, 0.0], 1.0, 0.25)
    assert p[0] == p[3] == 0.0 or p[0] > 0
    assert naive.left_side(p, 1.0, 0.25) == pytest.approx(1, rel=1e-15)
    assert np.array_equal(project_l1_ball(v, 0.0), np.zeros(4))
    assert np.array_equal(project_fused_lasso_ball(v, 0.1, 0.1, bound=0), np.zeros(4))


LONG_VECTORS = {
    "noise": lambda rng, m: rng.standard_normal(m),
    "sorted": lambda rng, m: np.sort(rng.standard_normal(m)),
    "constant": lambda rng, m: np.full(m, -0.25),
    "heavy tails": lambda rng, m: rng.standard_cauchy(m),
    "one spike": lambda rng, m: np.where(np.arange(m) == m - 3, 50.0, 1e-6 * rng.random(m)),
    "unseen half": lambda rng, m: np.where(np.arange(m) // 16 % 2, 2.0, 1e-3) * rng.random(m),
    "rounds off": lambda rng, m: rng.integers(-3, 4, m) * 0.5,
    "feasible": lambda rng, m: rng.standard_normal(m) * (0.1 / m),
    "geometric": lambda rng, m: 2.0 ** -(np.arange(m) % 900.0),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", LONG_VECTORS)
def test_long_vectors(kind, dtype):
    """Lengths at which a sample is taken; where it misleads, the answer is the same."""
    rng = np.random.default_rng(8)
    m = 3 * elastic_net_ball.LONG + 5
    v = LONG_VECTORS[kind](rng, m).astype(dtype)
    for ball in [
        elastic_net_set(0.01, False),
        elastic_net_set(1.0, True),
        l1_set(2.0, False),
        simplex_set(1),
    ]:
        expected = ball.twin(v.astype(float))
        p = ball.project(v)
        atol = rough(dtype) * max(np.abs(expected).max(), 1e-3)
        np.testing.assert_allclose(p, expected, atol=atol, rtol=1e-3)
        assert ball.left(p) <= ball.bound * (1 + rough(dtype, 32))


def test_a_sample_leads_to_the_threshold():
    """The short cut for long vectors holds nearly always, and says so when it does not."""
    rng = np.random.default_rng(9)
    m = 4 * elastic_net_ball.LONG
    work = np.empty(elastic_net_ball.work_size(m))
    led = 0
    for gamma in [0.01, 0.1, 1.0, 1.0]:
        for _ in range(5):
            v = rng.standard_normal(m)
            *_, holds, defect = elastic_net_ball.threshold_of_long(
                v, elastic_net_ball.Ball(gamma, 1.0, 1.0, elastic_net_ball.ABSOLUTE), work
            )
            assert defect == 0.0
            led += holds
    assert led >= 17
    flat = np.zeros(m)  # nothing to sample: the bound may not be claimed
    flat[1] = 1e-3
    *_, holds, _ = elastic_net_ball.threshold_of_long(
        flat, elastic_net_ball.Ball(1.0, 1.0, 1.0, 0), work
    )
    assert not holds


@settings(max_examples=150, deadline=None)
@given(vectors, weights, st.floats(0.01, 10.0), st.booleans())
def test_made_elastic_nets(v, gamma, bound, positive):
    p = project_elastic_net_ball(v, gamma, bound=bound, positive=positive)
    expected = naive.threshold_ball(v, gamma, 1.0, bound, positive)
    np.testing.assert_allclose(p, expected, atol=1e-13 * (1 + np.abs(v).max()))
    assert naive.left_side(p, gamma) <= bound * (1 + 1e-14)
    np.testing.assert_allclose(project_simplex(v, bound), naive.simplex(v, bound), atol=1e-13)


def test_appendix_form_is_the_same_set():
    rng = np.random.default_rng(16)
    v = 3 * rng.standard_normal(40)
    for gamma, tau in [(2.0, 1.0), (0.1, 3.0), (50.0, 0.2)]:
        g, bound = elastic_net_main_form(gamma, tau)
        p = project_elastic_net_ball(v, g, bound=bound)
        np.testing.assert_allclose(
            p, naive.threshold_ball(v, 1.0, gamma / 2, tau), rtol=1e-12, atol=1e-14
        )
    assert elastic_net_main_form(2 / 0.3, 1 / 0.3) == pytest.approx((0.3, 1.0))


def test_spams_agrees_where_it_is_right():
    spams = pytest.importorskip("spams")
    rng = np.random.default_rng(18)
    V = 2 * rng.standard_normal((30, 50))
    U = np.asfortranarray(V.T)
    for gamma in [0.1, 1.0]:
        theirs = spams.sparseProject(U, thrs=1.0, mode=2, lambda1=gamma, pos=False).T
        np.testing.assert_allclose(project_elastic_net_ball(V, gamma), theirs, atol=1e-10)
        theirs = spams.sparseProject(U, thrs=2.0, mode=3, lambda1=gamma, pos=False).T
        g, bound = elastic_net_main_form(gamma, 2.0)
        np.testing.assert_allclose(project_elastic_net_ball(V, g, bound=bound), theirs, atol=1e-10)
    theirs = spams.sparseProject(U, thrs=1.5, mode=1, pos=False).T
    np.testing.assert_allclose(project_l1_ball(V, 1.5), theirs, atol=1e-10)


@pytest.mark.parametrize(
    "project", [project_simplex, project_l1_ball, lambda v: project_elastic_net_ball(v, 0.3)]
)
def test_large_values_whose_rounding_hides_the_threshold(project):
    """Several entries are equal to the threshold as float32 rounds it, and leave only after that."""
    rng = np.random.default_rng(0)
    for _ in range(1000):
        m, size = rng.integers(2, 40), 10.0 ** rng.uniform(4, 6)
        v = (rng.integers(-2, 3, m) * size + rng.integers(-80, 80, m) / 128).astype(np.float32)
        np.testing.assert_allclose(project(v), project(v.astype(np.float64)), rtol=0, atol=1e-6)
