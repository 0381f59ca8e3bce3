"""What projections refuse."""

from __future__ import annotations

import numpy as np
import pytest
from projection_sets import quiet
from scipy import sparse

from smalto.kernels.projecting import elastic_net_ball
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
        with pytest.raises(ValueError, match=rf"1 such value, the first \(inf.*\) at \({place},\)"):
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
    for kind in (sparse.csr_array, sparse.csc_matrix):
        with pytest.raises(TypeError, match=r"dense .* got a sparse .* \(2, 2\): give .\.toarray"):
            call(kind(np.eye(2)))


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
