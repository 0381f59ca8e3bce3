"""The fused-lasso ball."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from smalto.checks import Array
from smalto.kernels.projecting import fused_lasso_ball
from smalto.kernels.projecting import fused_lasso_path as paths
from smalto.projections.by_rows import nonnegative, solve_rows, write_zeros
from smalto.projections.elastic_net import project_elastic_net_ball

Method: TypeAlias = Literal["auto", "direct", "merge", "homotopy"]

DIRECTIONS = {"merge": paths.MERGE, "homotopy": paths.SPLIT}  # of the methods that follow the path


def project_fused_lasso_ball(
    v: Any,
    gamma1: float,
    gamma2: float,
    *,
    bound: float = 1.0,
    positive: bool = False,
    method: Method = "auto",
    n_threads: int | None = None,
) -> Array:
    """Solve ``argmin_u ½‖u − v‖² subject to ‖u‖₂² + gamma1 ‖u‖₁ + gamma2 FL(u) ≤ bound``.

    ``FL(u) = Σ |u[i] − u[i−1]|`` (Section 5.2, Appendix B.2).

    Parameters
    ----------
    v : array_like of shape (m,) or (n, m)
        The point, or points as rows.
    gamma1 : float
        Weight of the ℓ1 norm, >= 0.
    gamma2 : float
        Weight of the fused-lasso term, >= 0; with 0 the set is an elastic-net ball.
    bound : float, default 1
        Right-hand side of the constraint, >= 0; 1 in the paper's main text.
    positive : bool, default False
        Add the constraint u >= 0.
    method : {"auto", "direct", "merge", "homotopy"}, default "auto"
        The algorithm; the solution is the same. "direct" solves total variation for the penalties
        visited by Newton steps, on fewer and fewer pieces. "merge" follows the path of increasing
        penalties, O(m log m); "homotopy" that of decreasing ones as in the paper, O(ms) for s
        pieces in the solution. "auto" is "direct", the fastest in all our measurements.
    n_threads : int, optional
        Number of threads; all available cores by default.

    Returns
    -------
    ndarray
        The projection, with the shape of v and exact zeros.

    See Also
    --------
    smalto.constraints.FusedLassoBall : The set as a constraint on atoms.
    fused_lasso_signal : The penalized problem.

    Notes
    -----
    The appendix's constraint ``γ₁‖u‖₁ + γ₂FL(u) + γ₃/2 ‖u‖₂² ≤ ε`` is this one with
    ``gamma1 = 2γ₁/γ₃``, ``gamma2 = 2γ₂/γ₃`` and ``bound = 2ε/γ₃``.
    """
    gamma1, gamma2 = nonnegative("gamma1", gamma1), nonnegative("gamma2", gamma2)
    bound = nonnegative("bound", bound)
    direction = direction_of(method)
    if gamma2 == 0.0:
        return project_elastic_net_ball(
            v, gamma1, bound=bound, positive=positive, n_threads=n_threads
        )
    unit = 1.0 / max(gamma1, gamma2, 1.0)
    weights = gamma1 * unit, gamma2 * unit, unit, bound * unit, bool(positive)

    def solve(rows: Array, out: Array) -> bool:
        if bound == 0.0:
            return write_zeros(rows, out)
        if direction is None:
            work = ball_work(rows.shape[1])
            return bool(fused_lasso_ball.project_rows(rows, out, *weights, work))
        constraint, scratch = paths.ConstraintSet(*weights), path_work(rows.shape[1])
        return bool(paths.project_rows_by_path(rows, out, constraint, direction, scratch))

    return solve_rows("v", v, solve, n_threads)


def direction_of(method: str) -> int | None:
    """The direction in which ``method`` follows the path; None for the direct method."""
    if method in ("auto", "direct"):
        return None
    if method not in DIRECTIONS:
        message = f"method must be 'auto', 'direct', 'merge' or 'homotopy', got {method!r}"
        raise ValueError(message)
    return DIRECTIONS[method]


def ball_work(m: int) -> Array:
    """Return scratch for the fused-lasso kernels and signals of length m."""
    return np.empty((fused_lasso_ball.WORK_ROWS, m + 1))


def path_work(m: int) -> paths.PathWork:
    """Return scratch for the kernels that follow the whole path, for signals of length m."""
    floats, ints = np.empty((paths.FLOAT_ROWS, m + 1)), np.empty((paths.INT_ROWS, m + 1), np.int64)
    return paths.PathWork(ball_work(m), floats, ints)
