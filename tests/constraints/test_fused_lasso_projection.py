"""The fused lasso: its ball, its signals, its path."""

from __future__ import annotations

import naive_projections as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from projection_sets import ROADS, vectors, weights

from smalto.kernels.projecting import fused_lasso_ball
from smalto.projections import fused_lasso_path, fused_lasso_signal, project_fused_lasso_ball


@settings(max_examples=150, deadline=None)
@given(vectors, weights, weights, st.floats(0.01, 10.0), st.booleans())
def test_made_fused_lassos(v, gamma1, gamma2, bound, positive):
    direct, merge, homotopy = (
        project_fused_lasso_ball(v, gamma1, gamma2, bound=bound, positive=positive, method=road)
        for road in ROADS
    )
    assert naive.left_side(direct, gamma1, gamma2) <= bound * (1 + 1e-13)
    np.testing.assert_allclose(merge, direct, atol=1e-12 * (1 + np.abs(v).max()))
    np.testing.assert_allclose(homotopy, direct, atol=1e-12 * (1 + np.abs(v).max()))
    if positive:
        assert direct.min() >= 0
    if gamma2:  # nothing that the multiplier could be is better: v - p = tau * (a subgradient)
        tight = naive.left_side(direct, gamma1, gamma2) > bound * (1 - 1e-12)
        start = np.maximum(v, 0) if positive else v
        assert tight or np.array_equal(direct, start)


@settings(max_examples=100, deadline=None)
@given(vectors, st.floats(0, 5.0), st.floats(0, 20.0), st.floats(0, 5.0), st.booleans())
def test_made_signals(b, gamma1, gamma2, gamma3, positive):
    direct, merge, homotopy = (
        fused_lasso_signal(b, gamma1, gamma2, gamma3, positive=positive, method=road)
        for road in ROADS
    )
    np.testing.assert_allclose(merge, direct, atol=1e-12)
    np.testing.assert_allclose(homotopy, direct, atol=1e-12)
    path = fused_lasso_path(b)
    at = path.at(gamma2, gamma1=gamma1, gamma3=gamma3, positive=positive)
    np.testing.assert_allclose(at, direct, atol=1e-12)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(("gamma1", "gamma2"), [(0.1, 0.2), (1.0, 0.1), (0.05, 2.0), (0.0, 0.5)])
def test_fused_lasso_against_a_generic_solver(gamma1, gamma2, positive):
    rng = np.random.default_rng(10)
    for m in [2, 6]:
        v = 2 * rng.standard_normal(m)
        expected = naive.generic_ball(v, gamma1, gamma2, 1.0, positive)
        assert naive.left_side(expected, gamma1, gamma2) <= 1 + 1e-8
        p = project_fused_lasso_ball(v, gamma1, gamma2, positive=positive)
        np.testing.assert_allclose(p, expected, atol=1e-6)


@pytest.mark.parametrize("positive", [False, True])
def test_signal_agrees_with_slow_twin(positive):
    rng = np.random.default_rng(12)
    for m in [1, 2, 3, 20]:
        b = 2 * rng.standard_normal((8, m))
        for gammas in [(0.0, 0.7, 0.0), (0.3, 0.2, 1.5), (0.2, 50.0, 0.1), (0.4, 0.0, 0.0)]:
            expected = [naive.fused_lasso_signal(x, *gammas, positive) for x in b]
            u = fused_lasso_signal(b, *gammas, positive=positive)
            np.testing.assert_allclose(u, expected, atol=1e-9)


SIGNALS = {
    "noise": lambda rng, m: rng.standard_normal(m),
    "walk": lambda rng, m: rng.standard_normal(m).cumsum(),
    "steps": lambda rng, m: (
        np.repeat(3 * rng.standard_normal(m // 20 + 1), 20)[:m] + 0.3 * rng.standard_normal(m)
    ),
    "slope": lambda rng, m: np.arange(m) + 0.1 * rng.standard_normal(m),
    "rounded": lambda rng, m: rng.integers(-2, 3, m).astype(float),
    "offset": lambda rng, m: 1e6 + rng.standard_normal(m),
}


@pytest.mark.parametrize("kind", SIGNALS)
def test_total_variation_satisfies_its_optimality_conditions(kind):
    """``z[i] = Σ_{j<=i} (b[j] - u[j])`` is within ±gamma, and there against the jumps."""
    b = SIGNALS[kind](np.random.default_rng(13), 3000)
    for gamma in [0.05, 1.0, 30.0, 1e5]:
        for road in ROADS:
            u = fused_lasso_signal(b, 0.0, gamma, method=road)
            z = np.cumsum(b - u)
            tol = 1e-11 * (gamma + np.abs(b).max() * np.sqrt(b.size))
            assert np.abs(z).max() <= gamma + tol
            assert abs(z[-1]) <= tol
            jumps = np.diff(u)
            at = np.abs(jumps) > 1e-9 * np.abs(b).max()
            np.testing.assert_allclose(z[:-1][at], -gamma * np.sign(jumps[at]), atol=tol)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("kind", SIGNALS)
def test_roads_to_the_ball_agree_on_long_signals(kind, positive):
    rng = np.random.default_rng(14)
    for m in [700, fused_lasso_ball.LONG + 100]:
        v = SIGNALS[kind](rng, m)
        for gamma1, gamma2 in [(0.1, 0.1), (0.01, 2.0), (1.0, 0.1), (0.0, 0.5)]:
            found = [
                project_fused_lasso_ball(v, gamma1, gamma2, positive=positive, method=road)
                for road in (ROADS if kind != "slope" else ROADS[:2])
            ]
            for other in found[1:]:
                np.testing.assert_allclose(other, found[0], atol=1e-12)
            left = naive.left_side(found[0], gamma1, gamma2)
            assert left == pytest.approx(1, rel=1e-12)
            if gamma1 == 1.0 and kind == "noise":
                assert 0 < np.count_nonzero(found[0]) < m / 10


def test_pieces_that_leave_zero():
    """Between two high blocks a single entry rises faster than its threshold: no monotone zeros."""
    v = np.concatenate([np.full(20, 9.0), [0.5], np.full(20, 9.0), [-3.0], np.full(5, 0.1)])
    for gamma1, gamma2 in [(0.1, 1.0), (0.5, 3.0), (1.0, 2.0), (0.02, 0.3)]:
        expected = naive.fused_lasso_ball(v, gamma1, gamma2, 1.0)
        for road in ROADS:
            p = project_fused_lasso_ball(v, gamma1, gamma2, method=road)
            np.testing.assert_allclose(p, expected, atol=1e-9)


def test_steps_that_leave_the_bracket():
    """Where pieces rise above zero the excess is not convex, and a step can go astray."""
    steps = np.repeat([-31.8, -76.4, 50.3, 57.8, 56.8], [3, 3, 2, 6, 1])
    waves = [1.53, 1.6, 2.57, -2.07, 0.95, -5.0, -0.24, 4.67, -1.72, 2.18, 0.2]
    waves += [0.32, -0.36, -0.52, -2.4, 6.44, -2.5, 6.5, 0.92, 1.1, -5.3]
    for v, gamma1, gamma2 in [(steps, 0.02, 9.55), (np.array(waves), 0.003, 8.9)]:
        expected = naive.fused_lasso_ball(v, gamma1, gamma2, 1.0, positive=True)
        for road in ROADS:
            p = project_fused_lasso_ball(v, gamma1, gamma2, positive=True, method=road)
            np.testing.assert_allclose(p, expected, atol=1e-12)


def test_path_by_hand():
    path = fused_lasso_path([0.0, 1.0])
    assert path.kinks.tolist() == [0.5]
    assert path.at(0.25).tolist() == [0.25, 0.75]
    assert path.at(0.5).tolist() == [0.5, 0.5]
    path = fused_lasso_path([0.0, 2.0, 0.0])  # sides rise by gamma2, the middle falls by 2 gamma2
    np.testing.assert_allclose(path.vanishes, [2 / 3, 2 / 3], rtol=1e-15)
    path = fused_lasso_path([1.0, 1.0, 4.0])
    np.testing.assert_allclose(path.vanishes, [0.0, 2.0])
    assert path.kinks.tolist() == [2.0]
    assert fused_lasso_path([7.0]).kinks.size == 0
    assert fused_lasso_path([7.0]).at(3.0).tolist() == [7.0]
    assert fused_lasso_path(np.array([1, 2], np.float32)).at(0.1).dtype == np.float32


@pytest.mark.parametrize("kind", SIGNALS)
def test_path_has_all_kinks(kind):
    rng = np.random.default_rng(15)
    b = SIGNALS[kind](rng, 400)
    path = fused_lasso_path(b, method="merge")
    for method in ["homotopy", "auto"]:
        np.testing.assert_allclose(
            fused_lasso_path(b, method=method).vanishes,
            path.vanishes,
            rtol=1e-9,
            atol=1e-12 * np.abs(b).max(),
        )
    kinks = np.concatenate([[0.0], path.kinks])
    for i in rng.choice(kinks.size - 1, min(40, kinks.size - 1), replace=False):
        low, high = kinks[i], kinks[i + 1]
        middle = 0.5 * (low + high)
        tol = 1e-12 * np.abs(b).max()
        np.testing.assert_allclose(
            path.at(middle), 0.5 * (path.at(low) + path.at(high)), atol=tol
        )  # linear in between
        np.testing.assert_allclose(path.at(middle), fused_lasso_signal(b, 0, middle), atol=10 * tol)
    counts = [1 + np.count_nonzero(path.vanishes > kink) for kink in kinks]
    assert counts[0] == 1 + np.count_nonzero(np.diff(b))
    assert counts[-1] == 1
    assert np.all(np.diff(counts) < 0)
    np.testing.assert_allclose(path.at(2 * kinks[-1]), b.mean(), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(path.at(0), b)


def test_path_gives_up_the_homotopy_on_a_slope():
    """Where the homotopy is quadratic, "auto" goes the other way."""
    b = np.arange(4000.0)
    auto, merge = (fused_lasso_path(b, method=method) for method in ["auto", "merge"])
    assert np.array_equal(auto.vanishes, merge.vanishes)
    homotopy = fused_lasso_path(b, method="homotopy")
    assert not np.array_equal(homotopy.vanishes, merge.vanishes)  # rounded otherwise
    np.testing.assert_allclose(homotopy.vanishes, merge.vanishes, rtol=1e-9)


def test_feasible_where_spams_is_not():
    spams = pytest.importorskip("spams")
    rng = np.random.default_rng(19)
    V = rng.standard_normal((50, 30))
    gamma1, gamma2 = 0.3, 0.5
    weights = {"lambda1": gamma1, "lambda2": 1.0, "lambda3": gamma2}
    theirs = spams.sparseProject(np.asfortranarray(V.T), thrs=1.0, mode=5, pos=False, **weights).T
    ours = project_fused_lasso_ball(V, gamma1, gamma2)
    violated = naive.left_side(theirs, gamma1, gamma2) > 1.0001
    assert violated.any()
    np.testing.assert_allclose(naive.left_side(ours, gamma1, gamma2), 1, rtol=1e-13)
    for v, p in zip(V[violated][:5], ours[violated], strict=False):
        expected = naive.fused_lasso_ball(v, gamma1, gamma2, 1.0)
        np.testing.assert_allclose(p, expected, atol=1e-9)
