from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import naive_projections as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from smalto import projections
from smalto.kernels.projecting import elastic_net_ball, fused_lasso_ball, l2_ball
from smalto.projections import (
    elastic_net_main_form,
    fused_lasso_path,
    fused_lasso_signal,
    project_elastic_net_ball,
    project_fused_lasso_ball,
    project_l1_ball,
    project_l2_ball,
    project_simplex,
)

# interpreted (NUMBA_DISABLE_JIT=1), the kernels' arithmetic with infinities warns
quiet = pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
DTYPES = [np.float32, np.float64]
ROADS = ["direct", "merge", "homotopy"]
SIZES = [1, 2, 3, 8, 17, 64, 100]


@dataclass(frozen=True)
class Set:
    """``square ‖u‖² + gamma1 ‖u‖₁ + gamma2 FL(u) <= bound``, or the simplex of that sum."""

    name: str
    project: Callable
    twin: Callable
    square: float = 1.0
    gamma1: float = 0.0
    gamma2: float = 0.0
    bound: float = 1.0
    positive: bool = False
    simplex: bool = False

    def left(self, u):
        return naive.left_side(u, self.gamma1, self.gamma2, self.square)

    def feasible(self, w):
        """Bring the rows of w into the set, each onto its boundary."""
        w = np.abs(w) if self.positive else w
        if self.simplex:
            return w * (self.bound / w.sum(axis=1, keepdims=True))
        squares = self.square * (w**2).sum(axis=1, keepdims=True)
        linear = self.left(w)[:, None] - squares
        return w * (2 * self.bound / (linear + np.sqrt(linear**2 + 4 * squares * self.bound)))


def _l2(radius, positive):
    return Set(
        f"l2 {radius} {positive=}",
        lambda v, **k: project_l2_ball(v, radius, positive=positive, **k),
        lambda v: naive.l2_ball(v, radius, positive),
        bound=radius**2,
        positive=positive,
    )


def _l1(radius, positive):
    return Set(
        f"l1 {radius} {positive=}",
        lambda v, **k: project_l1_ball(v, radius, positive=positive, **k),
        lambda v: naive.threshold_ball(v, 1.0, 0.0, radius, positive),
        square=0.0,
        gamma1=1.0,
        bound=radius,
        positive=positive,
    )


def _simplex(radius):
    return Set(
        f"simplex {radius}",
        lambda v, **k: project_simplex(v, radius, **k),
        lambda v: naive.simplex(v, radius),
        square=0.0,
        gamma1=1.0,
        bound=radius,
        positive=True,
        simplex=True,
    )


def _elastic_net(gamma, positive, bound=1.0):
    return Set(
        f"elastic net {gamma} {bound} {positive=}",
        lambda v, **k: project_elastic_net_ball(v, gamma, bound=bound, positive=positive, **k),
        lambda v: naive.threshold_ball(v, gamma, 1.0, bound, positive),
        gamma1=gamma,
        bound=bound,
        positive=positive,
    )


def _fused(gamma1, gamma2, positive, bound=1.0):
    return Set(
        f"fused lasso {gamma1} {gamma2} {bound} {positive=}",
        lambda v, **k: project_fused_lasso_ball(
            v, gamma1, gamma2, bound=bound, positive=positive, **k
        ),
        lambda v: naive.fused_lasso_ball(v, gamma1, gamma2, bound, positive),
        gamma1=gamma1,
        gamma2=gamma2,
        bound=bound,
        positive=positive,
    )


THRESHOLDS = [
    _l1(1.0, False),
    _l1(3.0, True),
    _simplex(1.0),
    _simplex(2.5),
    _elastic_net(0.05, False),
    _elastic_net(1.0, False),
    _elastic_net(1.0, True),
    _elastic_net(20.0, False, bound=3.0),
    _elastic_net(0.3, True, bound=0.1),
]
FUSED = [
    _fused(0.1, 0.1, False),
    _fused(1.0, 0.05, True),
    _fused(0.0, 0.5, False),
    _fused(0.05, 2.0, True),
    _fused(0.3, 0.2, False, bound=5.0),
]
SETS = [_l2(1.0, False), _l2(2.0, True), *THRESHOLDS, *FUSED]


def each(sets):
    return pytest.mark.parametrize("ball", sets, ids=lambda s: s.name)


def rough(dtype, factor=8.0):
    return factor * float(np.finfo(dtype).eps)


def points(rng, n, m, dtype):
    """Rows far outside, near the boundary, and inside the sets; piecewise constant or not."""
    steps = np.repeat(rng.standard_normal((n, (m + 3) // 4)), 4, axis=1)[:, :m]
    rows = rng.standard_normal((n, m)) * rng.integers(0, 2, (n, 1)) + 2 * steps
    return (rows * 10.0 ** rng.uniform(-2, 2, (n, 1))).astype(dtype)


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
    for ball in [_elastic_net(0.01, False), _elastic_net(1.0, True), _l1(2.0, False), _simplex(1)]:
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


entries = st.one_of(
    st.floats(-10, 10, width=32), st.integers(-3, 3).map(float), st.floats(-1e-3, 1e-3)
)
vectors = hnp.arrays(np.float64, st.integers(1, 40), elements=entries)
weights = st.one_of(st.just(0.0), st.floats(1e-3, 30.0))


@settings(max_examples=150, deadline=None)
@given(vectors, weights, st.floats(0.01, 10.0), st.booleans())
def test_made_elastic_nets(v, gamma, bound, positive):
    p = project_elastic_net_ball(v, gamma, bound=bound, positive=positive)
    expected = naive.threshold_ball(v, gamma, 1.0, bound, positive)
    np.testing.assert_allclose(p, expected, atol=1e-13 * (1 + np.abs(v).max()))
    assert naive.left_side(p, gamma) <= bound * (1 + 1e-14)
    np.testing.assert_allclose(project_simplex(v, bound), naive.simplex(v, bound), atol=1e-13)


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


@quiet
@pytest.mark.parametrize(
    "call",
    [
        project_l2_ball,
        project_l1_ball,
        project_simplex,
        lambda v: project_elastic_net_ball(v, 0.5),
        lambda v: project_elastic_net_ball(v, 0.0),
        lambda v: project_fused_lasso_ball(v, 0.5, 0.5),
        lambda v: project_fused_lasso_ball(v, 0.5, 0.5, method="merge"),
        lambda v: project_l1_ball(v, 0.0),
        lambda v: fused_lasso_signal(v, 0.5, 0.5),
        lambda v: fused_lasso_signal(v, 0.5, 0.5, method="homotopy"),
    ],
)
def test_bad_points_are_refused(call):
    V = np.ones((6, 40))
    V[2, 5], V[4, 1], V[5, 39] = np.nan, np.inf, -np.inf
    with pytest.raises(ValueError, match=r"3 such values, the first \(NaN\) at \(2, 5\)"):
        call(V)
    for place in [0, 17, 39]:
        v = np.ones(40, np.float32)
        v[place] = -np.inf
        with pytest.raises(
            ValueError, match=rf"1 such values, the first \(inf.*\) at \({place},\)"
        ):
            call(v)
    with pytest.raises(ValueError, match=r"empty, got shape \(0,\)"):
        call([])
    with pytest.raises(ValueError, match=r"empty, got shape \(3, 0\)"):
        call(np.ones((3, 0)))
    with pytest.raises(ValueError, match=r"got shape \(2, 2, 2\)"):
        call(np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match=r"got shape \(\)"):
        call(3.0)
    with pytest.raises(TypeError, match="complex128"):
        call(np.ones(3, complex))


@quiet
def test_long_bad_points_are_refused():
    for value in [np.nan, np.inf, -np.inf]:
        for place in [0, 11111, 2 * elastic_net_ball.LONG + 1]:
            v = np.ones(2 * elastic_net_ball.LONG + 2)
            v[place] = value
            for call in [
                project_simplex,
                lambda v: project_l1_ball(v, positive=True),
                lambda v: project_elastic_net_ball(v, 0.5),
                lambda v: project_fused_lasso_ball(v, 0.1, 0.1),
            ]:
                with pytest.raises(ValueError, match=rf"at \({place},\)"):
                    call(v)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: project_l2_ball([1.0], -1), "radius must be >= 0, got -1"),
        (lambda: project_l1_ball([1.0], radius=-0.5), "radius must be >= 0, got -0.5"),
        (lambda: project_simplex([1.0], np.nan), "radius must be >= 0, got nan"),
        (lambda: project_elastic_net_ball([1.0], -0.1), "gamma must be >= 0, got -0.1"),
        (lambda: project_elastic_net_ball([1.0], np.inf), "gamma must be finite, got inf"),
        (lambda: project_elastic_net_ball([1.0], 1, bound=-2), "bound must be >= 0, got -2"),
        (lambda: project_fused_lasso_ball([1.0], -3, 1), "gamma1 must be >= 0, got -3"),
        (lambda: project_fused_lasso_ball([1.0], 1, -3), "gamma2 must be >= 0, got -3"),
        (lambda: fused_lasso_signal([1.0], 0, 0, -3), "gamma3 must be >= 0, got -3"),
        (lambda: fused_lasso_path([1.0]).at(-1), "gamma2 must be >= 0, got -1"),
        (lambda: elastic_net_main_form(0, 1), "gamma must be > 0, got 0"),
        (lambda: elastic_net_main_form(1, -1), "tau must be >= 0, got -1"),
        (lambda: project_l2_ball([1.0], n_threads=0), "n_threads must be .*, got 0"),
        (lambda: fused_lasso_signal([1.0], 0, 1, method="x"), "'homotopy', got 'x'"),
        (lambda: fused_lasso_path([1.0], method="direct"), "got 'direct'"),
        (lambda: fused_lasso_path([[1.0]]), r"b must be a vector \(m,\), got shape \(1, 1\)"),
        (lambda: fused_lasso_path([1.0, np.nan]), r"first \(NaN\) at \(1,\)"),
    ],
)
def test_bad_parameters_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_all_public_names_are_documented():
    for name in projections.__all__:
        opening = getattr(projections, name).__doc__.splitlines()[0]
        assert "argmin_u" in opening or name == "elastic_net_main_form"
