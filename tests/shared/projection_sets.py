"""The sets that tests project onto, and points to project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import naive_projections as naive
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from smalto.projections import (
    project_elastic_net_ball,
    project_fused_lasso_ball,
    project_l1_ball,
    project_l2_ball,
    project_simplex,
)

# interpreted (NUMBA_DISABLE_JIT=1), the kernels' arithmetic with infinities warns
quiet = pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
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


def l2_set(radius, positive):
    return Set(
        f"l2 {radius} {positive=}",
        lambda v, **k: project_l2_ball(v, radius, positive=positive, **k),
        lambda v: naive.l2_ball(v, radius, positive),
        bound=radius**2,
        positive=positive,
    )


def l1_set(radius, positive):
    return Set(
        f"l1 {radius} {positive=}",
        lambda v, **k: project_l1_ball(v, radius, positive=positive, **k),
        lambda v: naive.threshold_ball(v, 1.0, 0.0, radius, positive),
        square=0.0,
        gamma1=1.0,
        bound=radius,
        positive=positive,
    )


def simplex_set(radius):
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


def elastic_net_set(gamma, positive, bound=1.0):
    return Set(
        f"elastic net {gamma} {bound} {positive=}",
        lambda v, **k: project_elastic_net_ball(v, gamma, bound=bound, positive=positive, **k),
        lambda v: naive.threshold_ball(v, gamma, 1.0, bound, positive),
        gamma1=gamma,
        bound=bound,
        positive=positive,
    )


def fused_set(gamma1, gamma2, positive, bound=1.0):
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
    l1_set(1.0, False),
    l1_set(3.0, True),
    simplex_set(1.0),
    simplex_set(2.5),
    elastic_net_set(0.05, False),
    elastic_net_set(1.0, False),
    elastic_net_set(1.0, True),
    elastic_net_set(20.0, False, bound=3.0),
    elastic_net_set(0.3, True, bound=0.1),
]
FUSED = [
    fused_set(0.1, 0.1, False),
    fused_set(1.0, 0.05, True),
    fused_set(0.0, 0.5, False),
    fused_set(0.05, 2.0, True),
    fused_set(0.3, 0.2, False, bound=5.0),
]
SETS = [l2_set(1.0, False), l2_set(2.0, True), *THRESHOLDS, *FUSED]


def each(sets):
    return pytest.mark.parametrize("ball", sets, ids=lambda s: s.name)


def rough(dtype, factor=8.0):
    return factor * float(np.finfo(dtype).eps)


def points(rng, n, m, dtype):
    """Rows far outside, near the boundary, and inside the sets; piecewise constant or not."""
    steps = np.repeat(rng.standard_normal((n, (m + 3) // 4)), 4, axis=1)[:, :m]
    rows = rng.standard_normal((n, m)) * rng.integers(0, 2, (n, 1)) + 2 * steps
    return (rows * 10.0 ** rng.uniform(-2, 2, (n, 1))).astype(dtype)


entries = st.one_of(
    st.floats(-10, 10, width=32), st.integers(-3, 3).map(float), st.floats(-1e-3, 1e-3)
)
vectors = hnp.arrays(np.float64, st.integers(1, 40), elements=entries)
weights = st.one_of(st.just(0.0), st.floats(1e-3, 30.0))
