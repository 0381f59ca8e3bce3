"""The ℓ1 ball."""

from __future__ import annotations

from typing import Any

from smalto.checks import Array
from smalto.kernels.projecting.elastic_net_ball import ABSOLUTE, POSITIVE
from smalto.projections.by_rows import nonnegative, threshold_rows


def project_l1_ball(
    v: Any, radius: float = 1.0, *, positive: bool = False, n_threads: int | None = None
) -> Array:
    """Solve ``argmin_u ½‖u − v‖² subject to ‖u‖₁ ≤ radius`` (Appendix B.1 with γ = 0).

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
        The projection, with the shape of v and exact zeros.

    See Also
    --------
    project_simplex : With non-negative entries of a fixed sum.
    smalto.coders.L1Ball : Codes in this ball.
    """
    kind = POSITIVE if positive else ABSOLUTE
    return threshold_rows(v, 1.0, 0.0, nonnegative("radius", radius), kind, n_threads)
