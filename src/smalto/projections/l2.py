"""The ℓ2 ball."""

from __future__ import annotations

from typing import Any

from smalto.checks import Array
from smalto.kernels.projecting import l2_ball
from smalto.projections.by_rows import nonnegative, solve_rows


def project_l2_ball(
    v: Any, radius: float = 1.0, *, positive: bool = False, n_threads: int | None = None
) -> Array:
    """Solve ``argmin_u ½‖u − v‖² subject to ‖u‖₂ ≤ radius`` (Section 5.2).

    Parameters
    ----------
    v : array_like of shape (m,) or (n, m)
        The point, or points as rows.
    radius : float, default 1
        Radius of the ball, >= 0.
    positive : bool, default False
        Add the constraint u >= 0.
    n_threads : int, optional
        Number of threads; all available cores by default.

    Returns
    -------
    ndarray
        The projection, with the shape of v.

    See Also
    --------
    smalto.constraints.L2Ball : The set as a constraint on atoms.
    """
    radius = nonnegative("radius", radius)

    def solve(rows: Array, out: Array) -> bool:
        return bool(l2_ball.project_rows(rows, out, radius, bool(positive)))

    return solve_rows("v", v, solve, n_threads)
